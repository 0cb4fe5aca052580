//! The witness: what the machine executes, seen from outside, is what the recorder writes down.
//!
//! Every image that the explorer makes comes from a tape, and the tape is the library's own word: the
//! recorder is a medium that notes what it is asked to do. Here the word is checked. A fixed script of
//! operations runs twice: on the recorder; and as a process of its own, on a mapped file, with the code
//! that is measured and used. In that process the processor itself reports each store to the pool, and
//! breakpoints report each instruction that writes back or fences. The two must agree event for event.
//!
//! | module | what it is |
//! | --- | --- |
//! | `script` | the operations, played on any medium |
//! | `recorded` | the tape of a script, as events that a processor could show |
//! | `process`, `tracer`, `decode` | the process that is watched, and what its instructions do (Linux on x86-64) |
//! | `elsewhere` | on other machines: a refusal |
//! | `compare` | the two, event for event |
//! | `run` | all of it, for designs by name |

mod compare;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod decode;
mod finish;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod process;
mod recorded;
mod run;
mod script;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tracer;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod unsupported;

pub use compare::{Difference, ExecutedEffect, ExecutedEvent};
pub use finish::Finish;
pub use recorded::ScriptTotals;
pub use run::{HardwareTraceRequest, HardwareTraceResult, run_hardware_trace, run_traced};
pub use script::{Injection, ScriptHost};
