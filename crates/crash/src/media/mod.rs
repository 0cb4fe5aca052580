//! Media faults: contents that are not what was written.
//!
//! 1. A run opens what is damaged, reads all of it, writes, and closes. Every answer must be right
//!    or an error that says what is wrong; a panic or a run without an end is a violation. A wrong
//!    answer is counted: where a paper fixes the layout, nothing in it can tell.
//! 2. A run is a function of the words that it looks at. So damage to words that the run without
//!    damage does not look at needs no run: it cannot come out otherwise.

mod damage;
mod subject;

use crate::frail::{Frail, Poisoned};
use crate::guard::guarded;
use crate::kind::Both;
use crate::report::Violation;
use crate::scenario::Finding;
use crate::store::STORE;
use bristlecone_trees::Design;
use bristlecone_trees::names::{UnknownDesign, specs};
use core::any::Any;
use core::sync::atomic::{AtomicUsize, Ordering};
use damage::{Contents, Family};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc;
use subject::{Answers, Subject, Tree, WholeStore};

/// Bytes of the pools that are damaged: the header, and a chunk for each size of block there is.
const BYTES: u64 = 6 * bristlecone_pmem::pool::HEADER_BYTES;
/// Bytes to which they can grow.
const RESERVE_BYTES: u64 = 1 << 20;
/// What is bounded may go through the whole pool several times for each of some hundred operations
/// before it gives up.
const STEPS: i64 = 50_000_000;

/// What to damage, and how often.
#[derive(Clone, Debug)]
pub struct Damages {
    /// Names of designs, [`STORE`] among them; none for all.
    pub designs: Vec<String>,
    /// Only scenarios whose name contains this.
    pub filter: String,
    /// Threads; 0 for as many as the machine runs at once.
    pub threads: usize,
    /// Garbage images, over all subjects together.
    pub garbage: u64,
    /// Of each kind of damage one case in so many; 1 for all.
    pub thin: u64,
    /// Loads that a run may take before it counts as one that does not end.
    pub steps: i64,
}

impl Default for Damages {
    fn default() -> Self {
        let (designs, filter) = Default::default();
        Self { designs, filter, threads: 0, garbage: 1_000_000, thin: 1, steps: STEPS }
    }
}

/// What came of one kind of damage to one subject.
#[derive(Clone, Debug, Default)]
pub struct Harm {
    /// The design, or [`STORE`].
    pub design: String,
    /// The kind of keys, how the pool was left, and the kind of damage.
    pub scenario: String,
    /// Cases.
    pub cases: u64,
    /// Cases that were run; the others are to words that no run looks at.
    pub runs: u64,
    /// Cases in which every answer was right.
    pub right: u64,
    /// Cases in which something was refused, and no answer was wrong.
    pub named: u64,
    /// Cases with a wrong answer.
    pub wrong: u64,
    /// Those of them that a check of the whole structure does not see either.
    pub unseen: u64,
    /// The first wrong answer.
    pub example: Option<String>,
    /// Panics, and runs that do not end; each kind once.
    pub violations: Vec<Violation>,
}

/// Damages what `damages` asks for, in every way.
///
/// # Errors
/// A design that is asked for does not exist.
pub fn run_media(damages: &Damages, on_harm: &mut dyn FnMut(&Harm)) -> Result<(), UnknownDesign> {
    let mut subjects: Vec<Box<dyn Subject>> = Vec::new();
    let mut names = damages.designs.clone();
    if names.is_empty() {
        names.extend(specs().iter().map(|sizes| sizes[0].name.to_string()));
        names.push(STORE.into());
    }
    for name in names {
        if name == STORE {
            subjects.extend([false, true].map(|closed| Box::new(WholeStore { closed }) as Box<_>));
        } else {
            subjects.extend(subjects_of(Both::named(&name)?));
        }
    }
    work(damages, &subjects, on_harm);
    Ok(())
}

/// Damages a design that is not in the registry.
pub fn run_media_of<D: Design>(damages: &Damages, on_harm: &mut dyn FnMut(&Harm)) {
    work(damages, &subjects_of(Both::of::<D>()), on_harm);
}

fn subjects_of(design: Both) -> Vec<Box<dyn Subject>> {
    let mut subjects: Vec<Box<dyn Subject>> = Vec::new();
    for closed in [false, true].into_iter().filter(|_| design.spec().persistent) {
        subjects.push(Box::new(Tree { closed, kind: design.numbers }));
        subjects.push(Box::new(Tree { closed, kind: design.text }));
    }
    subjects
}

/// Tries all subjects on all threads, and shows what comes of each as it is done.
fn work(damages: &Damages, subjects: &[Box<dyn Subject>], on_harm: &mut dyn FnMut(&Harm)) {
    let name =
        |subject: &dyn Subject, family: Family| format!("{}/{}", subject.name(), family.name());
    let mut tasks = Vec::new();
    for subject in subjects {
        for family in Family::ALL {
            tasks.push((&**subject, family));
        }
    }
    tasks.retain(|&(subject, family)| name(subject, family).contains(&damages.filter));
    let garbage = damages.garbage.div_ceil(subjects.len().max(1) as u64);
    let threads = match damages.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(tasks.len()) {
            let (sender, tasks, next) = (sender.clone(), &tasks, &next);
            scope.spawn(move || {
                while let Some(&(subject, family)) = tasks.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let mut harm = Ward::new(subject).try_all(family, garbage, damages);
                    harm.design = subject.design().into();
                    harm.scenario = name(subject, family);
                    if sender.send(harm).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for harm in receiver {
            on_harm(&harm);
        }
    });
}

/// A subject on its medium.
struct Ward<'a> {
    subject: &'a dyn Subject,
    medium: Frail,
    contents: Contents,
}

impl<'a> Ward<'a> {
    fn new(subject: &'a dyn Subject) -> Self {
        let medium = Frail::blank(BYTES, RESERVE_BYTES);
        let former = subject.build(&medium);
        let image = medium.image();
        medium.mark();
        let mut answers = Answers::default();
        subject.live(&medium, &mut answers);
        assert!(answers.refused.is_none(), "without damage: {answers:?}");
        assert!(answers.wrong.is_none() && answers.check_passed, "without damage: {answers:?}");
        let looked_at = medium.looked_at();
        medium.restore(image.len() as u64 * 8);
        Self { subject, medium, contents: Contents::new(image, former, looked_at) }
    }

    fn try_all(&self, family: Family, garbage: u64, damages: &Damages) -> Harm {
        let mut harm = Harm::default();
        let cases = self.contents.cases(family, garbage);
        for case in (0..cases).step_by(damages.thin as usize) {
            harm.cases += 1;
            let damage = self.contents.damage(family, case);
            if !self.contents.matters(&damage) {
                harm.right += 1;
                continue;
            }
            harm.runs += 1;
            damage.apply(&self.medium);
            let mut answers = Answers::default();
            let outcome = self.run(damages.steps, &mut answers);
            self.medium.restore(self.contents.bytes());
            let told = || format!("  {}, case {case}: {}\n", family.name(), damage.describe());
            harm.add(outcome, answers, &told);
        }
        harm
    }

    /// One run; a poisoned word ends it, with a message that names its offset.
    fn run(&self, steps: i64, answers: &mut Answers) -> Result<(), Finding> {
        self.medium.allow(steps);
        let mut poisoned = None;
        let outcome = guarded(|| {
            let lived = catch_unwind(AssertUnwindSafe(|| self.subject.live(&self.medium, answers)));
            match lived.map_err(Box::<dyn Any + Send>::downcast::<Poisoned>) {
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

impl Harm {
    fn add(&mut self, outcome: Result<(), Finding>, answers: Answers, told: &dyn Fn() -> String) {
        match (outcome, answers) {
            (Err(Finding { what, expected, found }), _) => {
                // Panics in different places are different, and the place comes first.
                let place = |text: &str| text.lines().next().unwrap_or_default().to_string();
                let known = |v: &Violation| v.what == what && place(&v.found) == place(&found);
                if !self.violations.iter().any(known) {
                    let trace = told();
                    self.violations.push(Violation { what, expected, found, trace, rank: (0, 0) });
                }
            }
            (Ok(()), Answers { wrong: Some(wrong), check_passed, .. }) => {
                self.wrong += 1;
                self.unseen += u64::from(check_passed);
                self.example.get_or_insert_with(|| format!("{}  {wrong}", told()));
            }
            (Ok(()), Answers { refused: Some(_), .. }) => self.named += 1,
            (Ok(()), _) => self.right += 1,
        }
    }
}
