//! The results of an exploration: outcomes, and the violations in them.

use crate::config::PersistenceModel;
use crate::trace::mutation::MutationSites;
use core::fmt;

/// A contradiction between the state that a check expects and the state that it finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) what: String,
    pub(crate) expected: String,
    pub(crate) found: String,
    /// The time of the crash, if it comes after the newest store of the image: an image is wrong
    /// from the acknowledgement on that it contradicts.
    pub(crate) crash: Option<u32>,
}

impl Finding {
    pub(crate) fn new(
        what: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self { what: what.into(), expected: expected.into(), found: found.into(), crash: None }
    }

    /// Returns the finding as one of a crash at the time `crash`.
    pub(crate) fn at(self, crash: Option<u32>) -> Self {
        Self { crash, ..self }
    }

    /// Returns the finding as a violation without a crash.
    pub(crate) fn without_crash(self) -> Violation {
        self.with_trace(String::new(), (0, 0))
    }

    /// Returns the finding as a violation that `trace` led to.
    pub(crate) fn with_trace(self, trace: String, rank: (u32, u32)) -> Violation {
        let Self { what, expected, found, .. } = self;
        Violation { what, expected, found, trace, rank }
    }
}

/// A crash image whose recovery is wrong, or another wrong result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The kind of violation, in a few words.
    pub what: String,
    /// The states or answers that would be right.
    pub expected: String,
    /// The state or answer that was found.
    pub found: String,
    /// The stores, flushes and fences up to the crash, one a line, with the lost stores marked.
    pub trace: String,
    /// The number of lost words and the time of the crash; the least is the simplest.
    pub(crate) rank: (u32, u32),
}

impl Violation {
    /// Returns the number of stored words that the crash image lacks.
    pub fn lost_words(&self) -> u32 {
        self.rank.0
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.what)?;
        writeln!(f, "  expected: {}", self.expected)?;
        writeln!(f, "  found:    {}", self.found)?;
        f.write_str(&self.trace)
    }
}

/// The result of exploring one scenario in one way.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The name of the design, or `pool` or `store`.
    pub subject: String,
    /// The name of the scenario: the kind of keys, then the operations.
    pub scenario: String,
    /// The violations, each kind once with its simplest trace.
    pub violations: Vec<Violation>,
    /// Set if the budget ended before the images. An incomplete outcome is not a pass.
    pub incomplete: bool,
    /// The amount of work that was done.
    pub counts: OutcomeCounts,
}

/// The amount of work behind an outcome, for each kind of campaign.
#[derive(Clone, Debug)]
pub enum OutcomeCounts {
    /// Crashes of one thread.
    Crashes(CrashCounts),
    /// Schedules of several threads, and their crashes.
    Schedules(ScheduleCounts),
    /// Refused allocations of one thread.
    AllocFaults(AllocFaultCounts),
    /// Corrupted contents of one kind.
    MediaFaults(MediaFaultCounts),
}

/// Counts of a scenario of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashCounts {
    /// The persistence model that decides which images are reachable.
    pub mode: PersistenceModel,
    /// The number of crashes in a row: 1 for the operations, more for recoveries. A third crash is
    /// sampled, and its images are those tried.
    pub depth: u32,
    /// The number of reachable crash images, all covered unless the outcome is incomplete;
    /// saturating.
    pub images: u128,
    /// The number of recoveries that covered them.
    pub recoveries: u64,
    /// The number of flushes and fences of the operations under test.
    pub sites: MutationSites,
}

/// Counts of a scenario of several threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleCounts {
    /// The persistence model that decides which images are reachable.
    pub mode: PersistenceModel,
    /// The number of threads under test.
    pub threads: usize,
    /// The number of schedules that were executed.
    pub schedules: u64,
    /// The number of different crash images; saturating.
    pub images: u128,
    /// The number of recoveries that covered them.
    pub recoveries: u64,
}

/// Counts of a scenario whose allocations are refused, each once alone and once with all after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocFaultCounts {
    /// The number of runs in which an allocation was refused.
    pub refused: u64,
    /// The number of runs in which an operation reported a full pool. In the others the operation
    /// did without the block.
    pub full: u64,
}

/// Counts of one kind of corruption of one subject.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MediaFaultCounts {
    /// The number of cases.
    pub cases: u64,
    /// The number of cases that were run; the others corrupt words that no run reads.
    pub runs: u64,
    /// The number of cases in which every answer was right.
    pub right: u64,
    /// The number of cases in which an error named the damage and no answer was wrong.
    pub named: u64,
    /// The number of cases with a wrong answer.
    pub wrong: u64,
    /// The number of cases with a wrong answer that the check of the whole structure misses too.
    pub unseen: u64,
    /// The first wrong answer.
    pub example: Option<String>,
}

impl Outcome {
    /// Returns the persistence model; px86 where no crash is explored.
    pub fn mode(&self) -> PersistenceModel {
        match &self.counts {
            OutcomeCounts::Crashes(counts) => counts.mode,
            OutcomeCounts::Schedules(counts) => counts.mode,
            OutcomeCounts::AllocFaults(_) | OutcomeCounts::MediaFaults(_) => PersistenceModel::Px86,
        }
    }

    /// Returns the number of crashes in a row.
    pub fn depth(&self) -> u32 {
        if let OutcomeCounts::Crashes(counts) = &self.counts { counts.depth } else { 1 }
    }

    /// Returns the number of crash images; saturating.
    pub fn images(&self) -> u128 {
        match &self.counts {
            OutcomeCounts::Crashes(counts) => counts.images,
            OutcomeCounts::Schedules(counts) => counts.images,
            OutcomeCounts::AllocFaults(_) | OutcomeCounts::MediaFaults(_) => 0,
        }
    }

    /// Returns the number of recoveries from crash images.
    pub fn recoveries(&self) -> u64 {
        match &self.counts {
            OutcomeCounts::Crashes(counts) => counts.recoveries,
            OutcomeCounts::Schedules(counts) => counts.recoveries,
            OutcomeCounts::AllocFaults(_) | OutcomeCounts::MediaFaults(_) => 0,
        }
    }

    /// Returns the number of flushes and fences of the operations under test, which a scenario of
    /// one thread counts.
    pub fn sites(&self) -> MutationSites {
        match &self.counts {
            OutcomeCounts::Crashes(counts) => counts.sites,
            _ => MutationSites::default(),
        }
    }

    /// Returns the number of threads under test.
    pub fn threads(&self) -> usize {
        if let OutcomeCounts::Schedules(counts) = &self.counts { counts.threads } else { 1 }
    }

    /// Returns the number of schedules, which is 1 for one thread.
    pub fn schedules(&self) -> u64 {
        if let OutcomeCounts::Schedules(counts) = &self.counts { counts.schedules } else { 1 }
    }
}

/// The sums over all outcomes of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of outcomes.
    pub scenarios: u64,
    /// The number of crash images covered; saturating.
    pub images: u128,
    /// The number of recoveries run.
    pub recoveries: u64,
    /// The number of incomplete outcomes.
    pub incomplete: u64,
    /// The number of outcomes with a violation.
    pub violated: u64,
}

impl Summary {
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.scenarios += 1;
        self.images = self.images.saturating_add(outcome.images());
        self.recoveries += outcome.recoveries();
        self.incomplete += u64::from(outcome.incomplete);
        self.violated += u64::from(!outcome.violations.is_empty());
    }

    /// Returns `true` if every image was covered and no outcome has a violation.
    pub fn is_pass(&self) -> bool {
        self.incomplete == 0 && self.violated == 0
    }
}
