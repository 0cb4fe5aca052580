//! Workloads on systems: timed, counted and modelled.
//!
//! For each workload and repetition, every system loads the same records in the same order, then
//! does the same operations. The repetitions of the systems are interleaved, and the one with the
//! median speed is reported. Counts come from a pass of their own, the cost on a modelled device
//! from another. The memory for each key is found once, after the first load.
//!
//! | module | contents |
//! | --- | --- |
//! | `options`, `room` | options for all systems; the size of a pool |
//! | `time`, `once`, `reopen` | the timed pass, one repetition, opening again |
//! | `run`, `step` | the clock and the loop; an operation or a batch |
//! | `pace`, `pin`, `maintenance` | scheduled starts, processors, maintenance workers |
//! | `count`, `model` | the passes without a clock |
//! | `probes`, [`device_probe`] | passes that answer one question each |
//! | `compare`, `row`, `latency` | several systems in one run, and their figures |

mod compare;
mod count;
pub mod device_probe;
mod latency;
mod line_writes;
mod maintenance;
mod model;
mod once;
mod options;
mod pace;
pub(crate) mod pin;
mod probes;
mod reopen;
mod room;
mod row;
mod run;
mod step;
mod time;

pub use bristlecone_trees::names::specs;
pub use compare::{Comparison, ComparisonEvent};
pub use count::{PerOp, count, count_all, counter, counting_medium};
pub use latency::Latency;
pub use line_writes::LineWrites;
pub use model::{Model, model, modelled_device, modelled_medium, models, models_of_form};
pub use once::Once;
pub use options::{Bench, Delays, Flushing};
pub use probes::{Splits, batches, splits};
pub use row::{BenchRow, FloorRatio, median};
pub use run::{Measured, OpenLoop};
pub(crate) use run::{load, measure};
