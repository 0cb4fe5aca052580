//! The tasks of a media-fault campaign: one kind of corruption of the contents of one subject.

use super::corruption::{CorruptionKind, MediaContents};
use super::options::MediaOptions;
use super::workload::{Answers, FaultWorkload};
use crate::config::{Limits, RESERVE_BYTES};
use crate::guard::guarded;
use crate::medium::fault::{FaultMedium, Poisoned};
use crate::outcome::{Finding, MediaFaultCounts, Outcome, OutcomeCounts, Violation};
use crate::task::{Task, TaskId};
use crate::trace::mutation::Mutation;
use core::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// The bytes of a corrupted pool: the header, and a chunk for each size of block.
const BYTES: u64 = 6 * bristlecone_pmem::pool::HEADER_BYTES;

/// One kind of corruption of the contents of one subject.
pub(crate) struct MediaFaultTask {
    pub(crate) id: TaskId,
    pub(super) workload: Arc<dyn FaultWorkload>,
    pub(super) kind: CorruptionKind,
    pub(super) options: MediaOptions,
}

/// The results of the runs of a task.
#[derive(Default)]
struct Results {
    counts: MediaFaultCounts,
    violations: Vec<Violation>,
}

/// A workload on its medium.
struct FaultRunner<'a> {
    workload: &'a dyn FaultWorkload,
    medium: FaultMedium,
    contents: MediaContents,
}

impl Task for MediaFaultTask {
    fn id(&self) -> &TaskId {
        &self.id
    }

    /// Runs the workload on every corruption of this kind. A violation is kept once for each place
    /// that panics.
    fn run(&self, _limits: &Limits, _mutation: Option<Mutation>) -> Vec<Outcome> {
        let results = FaultRunner::new(&*self.workload).run_all(self.kind, self.options);
        let Results { counts, violations } = results;
        let outcome = self.id.outcome(OutcomeCounts::MediaFaults(counts));
        vec![Outcome { violations, ..outcome }]
    }
}

impl<'a> FaultRunner<'a> {
    fn new(workload: &'a dyn FaultWorkload) -> Self {
        let medium = FaultMedium::blank(BYTES, RESERVE_BYTES);
        let former = workload.build(&medium);
        let image = medium.image();
        medium.mark();
        let mut answers = Answers::default();
        workload.run(&medium, &mut answers);
        assert!(answers.refused.is_none(), "without corruption: {answers:?}");
        assert!(answers.wrong.is_none() && answers.check_passed, "without corruption: {answers:?}");
        let is_read = medium.words_read();
        medium.restore(image.len() as u64 * 8);
        Self { workload, medium, contents: MediaContents::new(image, former, is_read) }
    }

    fn run_all(&self, kind: CorruptionKind, options: MediaOptions) -> Results {
        let mut results = Results::default();
        let cases = self.contents.cases(kind, options.garbage);
        for case in (0..cases).step_by(options.thin as usize) {
            results.counts.cases += 1;
            let corruption = self.contents.corruption(kind, case);
            if !self.contents.matters(&corruption) {
                results.counts.right += 1;
                continue;
            }
            results.counts.runs += 1;
            corruption.apply(&self.medium);
            let mut answers = Answers::default();
            let failed = self.run(options.steps, &mut answers).err();
            self.medium.restore(self.contents.bytes());
            let trace = || format!("  {}, case {case}: {}\n", kind.name(), corruption.describe());
            results.add(failed, answers, &trace);
        }
        results
    }

    /// Runs the workload once. A poisoned word ends the run with an error that names its offset.
    fn run(&self, steps: i64, answers: &mut Answers) -> Result<(), Finding> {
        self.medium.allow(steps);
        let mut poisoned = None;
        let outcome = guarded(|| {
            let run = catch_unwind(AssertUnwindSafe(|| self.workload.run(&self.medium, answers)));
            match run.map_err(Box::<dyn Any + Send>::downcast::<Poisoned>) {
                Ok(()) => {}
                Err(Ok(word)) => poisoned = Some(word.0),
                Err(Err(other)) => resume_unwind(other),
            }
            Ok(())
        });
        if let Some(at) = poisoned {
            answers.refused.get_or_insert_with(|| format!("cannot reach offset {at:#x}"));
        }
        outcome
    }
}

impl Results {
    fn add(&mut self, failed: Option<Finding>, answers: Answers, trace: &dyn Fn() -> String) {
        let counts = &mut self.counts;
        match (failed, answers) {
            (Some(finding), _) => {
                // Panics at different places are different violations, and the place comes first.
                let place = |text: &str| text.lines().next().unwrap_or_default().to_string();
                let is_known = |v: &Violation| {
                    v.what == finding.what && place(&v.found) == place(&finding.found)
                };
                if !self.violations.iter().any(is_known) {
                    self.violations.push(finding.with_trace(trace(), (0, 0)));
                }
            }
            (None, Answers { wrong: Some(wrong), check_passed, .. }) => {
                counts.wrong += 1;
                counts.unseen += u64::from(check_passed);
                counts.example.get_or_insert_with(|| format!("{}  {wrong}", trace()));
            }
            (None, Answers { refused: Some(_), .. }) => counts.named += 1,
            (None, _) => counts.right += 1,
        }
    }
}
