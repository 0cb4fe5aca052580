//! The crash-state explorer: every image that a power cut can leave, recovered and judged.
//!
//! Everything that a design does to persistent memory goes through a
//! [`Medium`](bristlecone_pmem::Medium), so the explorer is two media and a loop between them:
//!
//! | module | what it is |
//! | --- | --- |
//! | `recorder`, `tape` | a medium that writes down each store, fill, flush and fence, and each operation |
//! | `program`, `candidates` | the persistence model: what each unit may hold after a crash |
//! | `refiner` | a medium whose contents are decided where recovery looks at them |
//! | `explore`, `residue` | the exact enumeration, and the proof that it was exact |
//! | `nested` | crashes of recoveries |
//! | `scenario`, `tree`, `pool` | what is recorded, and the oracle that judges a recovery |
//! | `report`, `run`, `jobs` | outcomes, traces, and the one call that explores designs by name |
//! | `kind` | a design without its type, so that the explorer is compiled once |
//! | `threads` | schedules of several threads, each with every crash |
//! | `space`, `frail` | reservations that are refused, in every scenario |
//! | `page` | the report as one page of HTML |
//! | `media` | contents that are not what was written |
//! | [`witness`] | what the processor executes, seen from outside, is what is recorded |
//! | `mutants` | the same with ordering steps left out: what would be noticed |
//!
//! The model and the argument for the enumeration are in `docs/TESTING.md`.
//!
//! ```
//! use bristlecone_crash::{POOL, Request, run};
//!
//! let request = Request {
//!     designs: vec![POOL.into()],
//!     filter: "publish".into(),
//!     ..Request::default()
//! };
//! let summary = run(&request, &mut |outcome| {
//!     for violation in &outcome.violations {
//!         eprintln!("{}: {violation}", outcome.scenario);
//!     }
//! })?;
//! assert!(summary.is_pass());
//! # Ok::<(), bristlecone_trees::names::UnknownDesign>(())
//! ```

mod arena;
mod candidates;
mod catalogue;
mod explore;
mod frail;
mod guard;
mod jobs;
mod kind;
mod media;
mod mutants;
mod nested;
mod page;
mod pool;
mod program;
mod recorder;
mod refiner;
mod report;
mod residue;
mod run;
mod scenario;
mod space;
mod store;
mod tape;
mod threads;
mod tree;
pub mod witness;

pub use bristlecone_pmem::Defect;
pub use catalogue::{Tried, run_as_printed, run_catalogue, run_toys};
pub use media::{Damages, Harm, run_media, run_media_of};
pub use mutants::{Mutant, Toll, run_mutants, run_mutants_of};
pub use page::Page;
pub use program::Mode;
pub use report::{Outcome, Violation};
pub use run::{Modes, POOL, Request, Summary, run, run_design};
pub use space::{Hunger, run_space, run_space_of};
pub use store::STORE;
pub use tape::{Sabotage, Sites};
pub use threads::{Drawn, run_threads, run_threads_of};
