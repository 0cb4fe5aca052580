//! Workloads on subjects: timed, counted, modelled.
//!
//! For each workload and repetition every target loads the same records in the same order, then does
//! the same operations; the repetitions of the targets are interleaved, and the one with the median
//! speed is reported. Counts come from a pass of their own, what a modelled device makes of it from
//! another; the memory of a key is found once, after the first load.
//!
//! | module | what it is |
//! | --- | --- |
//! | `subject`, `stored` | what is measured, seen from the loop: a tree, the store, a peer |
//! | `bytes` | targets with keys that are byte strings |
//! | `target` | from a name to a type |
//! | `act` | what a thread does at once, on any of them |
//! | `run`, `reopen` | the clock |
//! | `collect` | threads that do what is put off |
//! | `pace`, `pin` | when operations start, and where threads run |
//! | `count`, `model` | the passes without a clock |
//! | `passes` | passes that ask one question each |
//! | `compare`, `row` | many targets in one run; what came of it |

mod act;
mod bytes;
mod collect;
mod compare;
mod count;
mod model;
mod pace;
mod passes;
mod pin;
mod reopen;
mod row;
mod run;
mod stored;
mod subject;
mod target;

pub(crate) use self::{
    model::{modelled, models_of},
    reopen::Named,
    subject::{Actor, MemoryUse, Subject, counter},
    target::form,
};
#[cfg(feature = "peers")]
pub(crate) use self::{stored::number, target::used_bytes};
pub use bristlecone_trees::names::specs;
pub use compare::{Comparison, Step};
pub use count::PerOp;
pub use model::{Model, model, models};
pub use passes::{Splits, batches, splits};
pub use row::{Bytes, Latency, Row, median};
pub use run::{Measured, Open};
pub use target::{Bench, Delays, Memory, Once, Target, count, count_all, design, parse};
