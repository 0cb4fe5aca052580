//! Peers: maps, stores and libraries that others have made.
//!
//! A peer is a [`System`](crate::system) like a design. It gets the same keys in the same order,
//! and its answers are checked the same way. No peer is on a [`Medium`](bristlecone_pmem::Medium),
//! so its accesses to memory are neither counted nor modelled.
//!
//! | module | contents |
//! | --- | --- |
//! | `by_name` | the names of peers, and the match from a name to a peer |
//! | `btreemap`, `skiplist`, `tree_index`, `congee` | maps in DRAM |
//! | `heap` | the bytes that the allocator has handed out |
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
