//! The tasks of crash campaigns and of allocation-fault campaigns, from the scenarios of a subject.

use super::options::CrashOptions;
use crate::config::{Modes, PersistenceModel};
use crate::explore::task::{CrashTask, FamilyTask, no_crashes};
use crate::guard::guarded;
use crate::outcome::{AllocFaultCounts, Finding, OutcomeCounts};
use crate::scenario::alloc_task::AllocFaultTask;
use crate::scenario::index::sequences::{RandomSequences, sequences};
use crate::scenario::index::{cases, wide_cases};
use crate::scenario::pool::scenarios;
use crate::scenario::{Scenario, ScenarioFamily};
use crate::subject::Subject;
use crate::subject::design::SubjectDesign;
use crate::subject::keys::SampleKey;
use crate::task::{FailedTask, Task, TaskId};
use bristlecone_trees::TreeError;
use std::sync::Arc;

/// The scenarios of a subject, in the order in which they are explored.
enum Listed {
    One(Arc<dyn Scenario>),
    Family(Arc<dyn ScenarioFamily>),
    /// The subject failed before all of its scenarios were known.
    Failed(Finding),
}

/// Returns the crash tasks of a subject: each scenario in every persistence model that applies,
/// families in the strictest one, because they are long.
pub(super) fn crash_tasks(
    subject: &Subject,
    options: &CrashOptions,
    modes: Modes,
) -> Vec<Box<dyn Task>> {
    let of_design = subject.spec().is_some_and(|spec| spec.relies_on_line_order);
    let mut tasks: Vec<Box<dyn Task>> = Vec::new();
    for listed in list(subject, options) {
        match listed {
            Listed::One(scenario) => {
                // The creation of a pool runs no code of the index, so `pool` alone explores it
                // where every word persists by itself.
                let is_creation =
                    subject.index.is_some() && scenario.name().ends_with("/create-pool");
                let of_lines = of_design || is_creation || scenario.relies_on_line_order();
                let modes = modes.list(of_lines);
                for &mode in modes {
                    let id = TaskId::new(subject.name(), scenario.name());
                    let relies_on_line_order =
                        mode == PersistenceModel::Px86 && modes.len() == 1 && !is_creation;
                    let scenario = Arc::clone(&scenario);
                    tasks.push(Box::new(CrashTask { id, scenario, mode, relies_on_line_order }));
                }
            }
            Listed::Family(family) => {
                for &mode in modes.strictest(of_design) {
                    let id = TaskId::new(subject.name(), family.name());
                    let family = Arc::clone(&family);
                    tasks.push(Box::new(FamilyTask { id, family, mode }));
                }
            }
            Listed::Failed(finding) => {
                for &mode in modes.list(of_design) {
                    tasks.push(failed(subject, finding.clone(), no_crashes(mode)));
                }
            }
        }
    }
    tasks
}

/// Returns the allocation-fault tasks of a subject: one for each scenario.
pub(super) fn alloc_fault_tasks(subject: &Subject) -> Vec<Box<dyn Task>> {
    let options = CrashOptions { sequences: 0, random: 0, ..CrashOptions::default() };
    let task = |listed| -> Option<Box<dyn Task>> {
        match listed {
            Listed::One(scenario) => {
                let id = TaskId::new(subject.name(), scenario.name());
                Some(Box::new(AllocFaultTask { id, scenario }))
            }
            Listed::Family(_) => None,
            Listed::Failed(finding) => {
                let counts = OutcomeCounts::AllocFaults(AllocFaultCounts::default());
                Some(failed(subject, finding, counts))
            }
        }
    };
    list(subject, &options).into_iter().filter_map(task).collect()
}

fn failed(subject: &Subject, finding: Finding, counts: OutcomeCounts) -> Box<dyn Task> {
    Box::new(FailedTask { id: TaskId::new(subject.name(), "cases"), finding, counts })
}

fn list(subject: &Subject, options: &CrashOptions) -> Vec<Listed> {
    let Some(index) = subject.index else {
        return scenarios().into_iter().map(Listed::One).collect();
    };
    if !index.numbers.form.spec.persistent {
        return Vec::new();
    }
    let mut listed = list_of(index.numbers, options);
    if let Some(wide) = index.wide {
        match wide_cases(wide) {
            Ok(cases) => listed.extend(cases.into_iter().map(|case| Listed::One(Arc::new(case)))),
            Err(error) => listed.push(Listed::Failed(fails(&error))),
        }
    }
    listed.extend(index.text.map_or(Vec::new(), |text| list_of(text, options)));
    listed
}

fn fails(error: &TreeError) -> Finding {
    Finding::new("the design fails without a crash", "no error", error.to_string())
}

/// Returns the scenarios of a design with one kind of key: cases, then sequences, then random
/// sequences.
fn list_of<K: SampleKey>(design: SubjectDesign<K>, options: &CrashOptions) -> Vec<Listed> {
    let mut list = Vec::new();
    let outcome = guarded(|| {
        let fails = |error: TreeError| fails(&error);
        let cases = cases(design).map_err(fails)?;
        list.extend(cases.into_iter().map(|case| Listed::One(Arc::new(case))));
        if options.sequences > 0 {
            let families = sequences(design, options.sequences).map_err(fails)?;
            list.extend(families.into_iter().map(|family| Listed::Family(Arc::new(family))));
        }
        if options.random > 0 {
            let random = RandomSequences::new(design, options.seed, options.random);
            list.push(Listed::Family(Arc::new(random)));
        }
        Ok(())
    });
    list.extend(outcome.err().map(Listed::Failed));
    list
}
