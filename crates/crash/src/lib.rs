//! The crash explorer: every image that a power cut can leave, recovered and checked.
//!
//! All accesses of a design to persistent memory go through a [`Medium`](bristlecone_pmem::Medium).
//! The explorer records one execution, computes the images that a crash can leave at each moment,
//! and runs recovery on all of them. Like Yat (USENIX ATC 2014) it covers every image. Like Jaaru
//! (ASPLOS 2021) it fixes the value of a word only when recovery reads it, so one recovery covers
//! all images that it cannot tell apart. Jaaru calls this constraint refinement, of intervals; here
//! it is a set of contents, because the words of a fill have no order.
//!
//! Earlier tools find some of the same bugs by other means: `PMTest` (ASPLOS 2019) and `XFDetector`
//! (ASPLOS 2020) check annotated or traced executions, Agamotto (OSDI 2020) executes symbolically,
//! Witcher (SOSP 2021) infers the likely order of stores, Vinter (USENIX ATC 2022) traces a virtual
//! machine, Durinn (OSDI 2022) tests durable linearizability.
//!
//! | module | contents |
//! | --- | --- |
//! | `trace` | the recorded accesses, mutations of them, calls of threads |
//! | `config` | constants, persistence models, limits |
//! | `model` | the images that a crash can leave |
//! | `outcome` | the results of an exploration |
//! | `subject` | the pool, the designs and the store, by name |
//! | `medium` | the simulated media: recorder, lazy crash image, scheduled and faulty medium |
//! | `task`, `guard` | the work of one thread of the explorer; panics as findings |
//! | `page` | the report as one HTML page, with a legend |
//! | `scenario` | setups, operations under test, and oracles |
//! | `explore` | the enumeration of crashes, and of crashes of recoveries |
//! | `media_faults` | contents that no correct run wrote |
//! | `threads` | schedules of several threads, each with every crash |
//! | `campaign` | requests, the executor, mutation testing, the catalogue of published defects |
//! | [`hardware_trace`] | the recorder's trace compared with the instructions of a real process |
//!
//! A module uses only itself and modules above it in the table.
//!
//! The model, and the argument for the enumeration, are in `docs/explorer.md`; results are in
//! `docs/results/`.
//!
//! ```
//! use bristlecone_crash::{POOL, Request, Subject, run};
//!
//! let subjects = Subject::named(&[POOL.into()])?;
//! let request = Request { filter: "publish".into(), ..Request::default() };
//! let summary = run(&subjects, &request, &mut |outcome| {
//!     for violation in &outcome.violations {
//!         eprintln!("{}: {violation}", outcome.scenario);
//!     }
//! });
//! assert!(summary.is_pass());
//! # Ok::<(), bristlecone_trees::names::UnknownDesign>(())
//! ```

mod campaign;
mod config;
mod explore;
mod guard;
pub mod hardware_trace;
mod media_faults;
mod medium;
mod model;
mod outcome;
mod page;
mod scenario;
mod subject;
mod task;
mod threads;
mod trace;

pub use bristlecone_pmem::Defect;
pub use campaign::catalogue::{
    CatalogueResult, run_as_printed, run_catalogue, run_defects, run_toys,
};
pub use campaign::mutants::{Mutant, MutationScore, run_crash_mutants, run_mutants};
pub use campaign::options::CrashOptions;
pub use campaign::{Campaign, ProgressFn, Request, run};
pub use config::{Modes, POOL, PersistenceModel, STORE};
pub use media_faults::options::MediaOptions;
pub use outcome::{
    AllocFaultCounts, CrashCounts, MediaFaultCounts, Outcome, OutcomeCounts, ScheduleCounts,
    Summary, Violation,
};
pub use page::CrashPage;
pub use subject::Subject;
pub use threads::options::ScheduleOptions;
pub use trace::mutation::{Mutation, MutationSites};
