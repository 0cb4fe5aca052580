//! Workloads: operations and keys, chosen before the clock starts.
//!
//! 1. Record `i` has a token ([`Recipe::token`]). A plan stores the token, not the key. For one
//!    seed, tokens are distinct and equal for all systems of a run.
//! 2. A plan names only keys that are present when its turn comes, whatever the other threads do:
//!    loaded records that no thread deletes, and records that its own thread inserted. The loaded
//!    records that threads delete are a separate part, each deleted once. So every operation must
//!    succeed, and one that does not is an error, not a fast miss. A trace may name absent keys,
//!    because it knows each of its answers.
//! 3. The named mixes are those of YCSB: a 50/50 read/update, b 95/5 read/update, c read only, d
//!    95/5 read/insert with reads of the latest, e 95/5 scan/insert, f 50/50
//!    read/read-modify-write.
//!
//! | module | contents |
//! | --- | --- |
//! | `named`, `shares`, `file` | operations: by a name, as a mix in text, in a file |
//! | `trace` | recorded operations, and their text |
//! | `dist`, `chooser`, `zipf` | the records that operations choose |
//! | `keys`, `set` | the keys of records |
//! | `recipe` | a workload with its numbers, and the plans of its threads |
//! | `operation` | the operations of a plan |
//! | `hash` | hashes of words |

mod chooser;
mod dist;
mod error;
mod file;
mod hash;
mod keys;
mod named;
mod operation;
mod recipe;
mod set;
mod shares;
mod trace;
mod zipf;

pub use dist::Dist;
pub use error::WorkloadError;
pub use file::Custom;
pub use hash::mix64;
pub use keys::Keys;
pub use named::Workload;
pub use operation::{Op, OpKind, Plan, Replayed};
pub use recipe::Recipe;
pub use set::KeySet;
pub use shares::Mix;
pub use trace::Trace;

pub(crate) use keys::{KeyBuffer, Render};
pub(crate) use operation::{BATCH, belongs, value_of};
pub(crate) use zipf::whole;
