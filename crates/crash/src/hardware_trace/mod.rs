//! The recorder's trace compared with the instructions of a real process.
//!
//! Every image of the explorer comes from a trace, and the recorder, which is part of this library,
//! records it. This module checks the recorder. A fixed script of operations runs twice: on the
//! recorder; and in a process of its own, on a mapped file, with the code that applications use. In
//! that process page faults report each store to the pool, and breakpoints report each instruction
//! that writes back or fences. The two traces must agree event for event.
//!
//! | module | contents |
//! | --- | --- |
//! | `script` | the operations, on any medium |
//! | `recorded` | the recorder's trace of a script |
//! | `process`, `tracer`, `decode` | the traced process and its instructions (Linux on x86-64) |
//! | `unsupported` | the refusal on other machines |
//! | `compare`, `finish` | the comparison, and its result |
//! | `run` | the comparison for subjects by name |

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
