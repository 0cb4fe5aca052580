//! Peers: what others have made, measured in the same harness.
//!
//! A peer is a [`System`](crate::bench) like a design: it gets the same keys in the same order and
//! gives answers that are checked the same way. None of them is on a
//! [`Medium`](bristlecone_pmem::Medium), so nothing of what they do to memory is counted or
//! modelled.
//!
//! | module | what it is |
//! | --- | --- |
//! | `peer` | from a name to a peer |
//! | `btreemap`, `skiplist`, `tree_index`, `congee` | maps in DRAM |
//! | `heap` | how maps are weighed |
//! | `disk` | stores in files, behind the feature `peers` |
//! | `pibench` | a tree in a shared library, behind the interface of `PiBench` |

mod btreemap;
mod by_name;
mod congee;
#[cfg(feature = "peers")]
mod disk;
mod heap;
mod pibench;
mod scan;
mod shared;
mod site;
mod skiplist;
#[cfg(test)]
mod tests;
mod tree_index;

pub use by_name::Peer;
pub(crate) use heap::allocated_bytes;
pub(crate) use site::Site;
