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

mod compare;
mod count;
pub mod device_probe;
mod latency;
mod maintenance;
mod model;
mod once;
mod options;
mod pace;
mod pin;
mod probes;
mod reopen;
mod room;
mod row;
mod run;
mod step;
mod time;

pub use bristlecone_trees::names::specs;
pub use compare::{Comparison, Progress};
pub use count::{PerOp, count, count_all, counter, counting_medium};
pub use latency::Latency;
pub use model::{Model, model, modelled_device, modelled_medium, models, models_of_form};
pub use once::Once;
pub use options::{Bench, Delays};
pub use probes::{Splits, batches, splits};
pub use row::{BenchRow, median};
pub use run::{Measured, OpenLoop};
