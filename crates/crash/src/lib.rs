//! The crash-state explorer.
mod arena;
mod candidates;
mod explore;
mod pool;
mod program;
mod recorder;
mod refiner;
mod report;
mod residue;
mod run;
mod scenario;
mod tape;
mod tree;

pub use program::Mode;
pub use report::{Outcome, Violation};
pub use run::{Modes, POOL, Request, Summary, run, run_design};
pub use tape::{Sabotage, Sites};
