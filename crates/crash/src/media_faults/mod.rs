//! Media faults: contents that no correct run wrote.
//!
//! 1. A run opens the corrupted pool, reads all of it, writes, and closes. Every answer must be
//!    right or an error that names the damage; a panic or a run without an end is a violation. A
//!    wrong answer is counted, because a layout that a paper fixes cannot detect every corruption.
//! 2. A run is a function of the words that it reads. So a corruption of words that the run without
//!    corruption does not read needs no run: the result cannot differ.

mod corruption;
pub(crate) mod options;
mod task;
mod workload;

use crate::config::STORE;
use crate::subject::Subject;
use crate::task::{Task, TaskId};
use bristlecone_registry::is_built;
use corruption::CorruptionKind;
use options::MediaOptions;
use std::sync::Arc;
use task::MediaFaultTask;
use workload::{FaultWorkload, IndexWorkload, StoreWorkload};

/// Returns a task for each kind of corruption of the contents of each subject.
pub(crate) fn media_fault_tasks(subjects: &[Subject], options: MediaOptions) -> Vec<Box<dyn Task>> {
    let workloads: Vec<_> =
        subjects.iter().flat_map(|subject| workloads(subject).map(move |w| (subject, w))).collect();
    let garbage = options.garbage.div_ceil(workloads.len().max(1) as u64);
    let options = MediaOptions { garbage, ..options };
    let mut tasks: Vec<Box<dyn Task>> = Vec::new();
    for (subject, workload) in workloads {
        for kind in CorruptionKind::ALL {
            let name = format!("{}/{}", workload.name(), kind.name());
            let id = TaskId::new(subject.name(), name);
            let workload = Arc::clone(&workload);
            tasks.push(Box::new(MediaFaultTask { id, workload, kind, options }));
        }
    }
    tasks
}

/// Returns the contents of a subject that are corrupted: after a kill and after a close.
fn workloads(subject: &Subject) -> impl Iterator<Item = Arc<dyn FaultWorkload>> {
    let mut workloads: Vec<Arc<dyn FaultWorkload>> = Vec::new();
    let index = subject.index.filter(|index| index.numbers.form.spec.persistent);
    for (closed, index) in [false, true].into_iter().filter_map(|closed| Some((closed, index?))) {
        if const { is_built(STORE) } && index.is_store {
            workloads.push(Arc::new(StoreWorkload { closed }));
            continue;
        }
        workloads.push(Arc::new(IndexWorkload { closed, design: index.numbers }));
        if let Some(design) = index.text {
            workloads.push(Arc::new(IndexWorkload { closed, design }));
        }
    }
    workloads.into_iter()
}
