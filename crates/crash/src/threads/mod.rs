//! Deterministic schedules of several threads, each with every crash.
//!
//! 1. A schedule decides after which access to shared memory which thread continues. Shared memory
//!    is the words of the medium, and the latches and words of inner nodes in DRAM. A seed
//!    determines the schedule.
//! 2. The results that threads get must be linearizable. After a crash, recovery must find a state
//!    that some order of the operations explains: all that were acknowledged before the image was
//!    ruled out, with the results that they returned, and perhaps some that had been invoked. So a
//!    value that a thread has read counts as acknowledged (durable linearizability, as in Durinn).
//! 3. All threads see stores in one order. Reordering by the processor is left to the tests of the
//!    latches (loom). The loss in a crash is not simplified: a fence guarantees the flushes of its
//!    own thread only.
//!
//! | module | contents |
//! | --- | --- |
//! | `coroutines`, `scheduler` | the threads, and the choice of the next one |
//! | `linearizability` | the oracle for results, key by key |
//! | `batches` | the oracle for batches, all of their keys together |
//! | `crashes` | every crash of an execution, each different one once |
//! | `scenario` | the execution of a scenario, and its oracle |
//! | `cases`, `inner_cases`, `maintenance_cases`, `search` | the scenarios of a design |
//! | `task`, `options`, `tally` | the scenarios as tasks of a campaign |

mod batch_cases;
mod batches;
mod cases;
mod coroutines;
mod crashes;
mod delete_cases;
mod inner_cases;
mod linearizability;
mod maintenance_cases;
pub(crate) mod options;
mod record_cases;
mod scenario;
mod scheduler;
mod search;
mod tally;
mod task;

use crate::config::{Modes, PersistenceModel};
use crate::outcome::{Finding, OutcomeCounts, ScheduleCounts};
use crate::subject::design::SubjectDesign;
use crate::subject::keys::SampleKey;
use crate::task::{FailedTask, Task, TaskId};
use cases::cases;
use options::ScheduleOptions;
use search::THREADS_MAX;
use task::ScheduleTask;

/// Returns the schedule tasks of a design with one kind of key.
pub(crate) fn schedule_tasks<K: SampleKey>(
    subject: &str,
    design: SubjectDesign<K>,
    options: ScheduleOptions,
    modes: Modes,
) -> Vec<Box<dyn Task>> {
    let spec = &design.form.spec;
    let modes: &'static [PersistenceModel] = if spec.persistent && options.crashes {
        // Every image of `px86` is one of `word`, and no less is demanded of it.
        modes.strictest(spec.relies_on_line_order)
    } else {
        &[]
    };
    let scenarios = match cases(design) {
        Ok(scenarios) => scenarios,
        Err(error) => {
            let what = "the design fails without a crash";
            let finding = Finding::new(what, "no error", error.to_string());
            let mode = PersistenceModel::Px86;
            let counts =
                ScheduleCounts { mode, threads: 1, schedules: 0, images: 0, recoveries: 0 };
            let (id, counts) = (TaskId::new(subject, "pieces"), OutcomeCounts::Schedules(counts));
            return vec![Box::new(FailedTask { id, finding, counts })];
        }
    };
    let threads = match options.threads {
        0 => 2..=THREADS_MAX,
        threads => threads..=threads,
    };
    let mut tasks: Vec<Box<dyn Task>> = Vec::new();
    for scenario in scenarios {
        for threads in threads.clone() {
            let scenario = scenario.of(threads);
            let id = TaskId::new(subject, &scenario.name);
            tasks.push(Box::new(ScheduleTask { id, scenario, seed: options.seed, modes }));
        }
    }
    tasks
}
