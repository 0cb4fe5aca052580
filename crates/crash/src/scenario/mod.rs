//! Scenarios: a setup, operations under test, and an oracle that judges each recovery.

pub(crate) mod alloc_task;
pub(crate) mod checks;
pub(crate) mod index;
pub(crate) mod pool;
pub(crate) mod probe;

use crate::config::POOL_BYTES;
use crate::medium::fault::Refusal;
use crate::medium::recorder::Recorder;
use crate::outcome::Finding;
use crate::scenario::probe::Probe;
use bristlecone_pmem::Defect;
use bristlecone_pmem::medium::schedule::Conditions;

/// Operations whose crashes are explored.
///
/// State i is the state after i operations under test; state 0 is the state after the setup.
pub(crate) trait Scenario: Send + Sync {
    /// Returns the name, unique among the scenarios of a subject.
    fn name(&self) -> &str;

    /// Returns the initial length of the medium in bytes.
    fn bytes(&self) -> u64 {
        POOL_BYTES
    }

    /// Returns the conditions under which it runs, its recoveries included.
    fn conditions(&self) -> Conditions {
        Conditions::USUAL
    }

    /// Runs the setup and, after [`Recorder::begin`], the operations under test, each between
    /// [`Recorder::invoke`] and [`Recorder::acknowledge`].
    ///
    /// # Errors
    /// An operation gave a wrong answer, without any crash.
    fn record(&self, recorder: &Recorder) -> Result<(), Finding>;

    /// Opens the pool that a crash left, checks it, and closes it, as two operations under test.
    /// Returns the states that it equals, one bit each.
    ///
    /// # Errors
    /// The first finding.
    fn reopen(&self, recorder: &Recorder) -> Result<u32, Finding>;

    /// Returns `true` if the scenario relies on the order of stores to one line, even if its design
    /// does not.
    fn relies_on_line_order(&self) -> bool {
        false
    }

    /// Recovers from a crash and checks the recovered state.
    ///
    /// # Errors
    /// The first finding.
    fn judge(&self, probe: &Probe) -> Result<(), Finding>;

    /// Refuses each allocation of the operations under test in turn. Default: none.
    ///
    /// # Errors
    /// The first finding.
    fn refuse_allocations(&self, _starved: &mut AllocFaultRun) -> Result<(), Finding> {
        Ok(())
    }

    /// Returns an operation under test as a text for the trace.
    fn operation(&self, number: u32) -> String;
}

/// Scenarios that have one outcome together.
pub(crate) trait ScenarioFamily: Send + Sync {
    /// Returns the name, unique among the scenarios of a subject.
    fn name(&self) -> &str;

    /// Calls `explore` with each scenario. Ends soon after a violation; of several, the last one
    /// counts.
    fn each(&self, explore: &mut dyn FnMut(&dyn Scenario) -> FamilyStep);
}

/// The result of one scenario of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FamilyStep {
    /// The operations under test stored nothing but latches, and no crash violates anything.
    /// Operations after them would have the same crashes as without them.
    Idle,
    Right,
    Wrong,
}

/// The refused allocations of a scenario, and the refusal that is being tried.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AllocFaultRun {
    /// The number of runs in which an allocation was refused.
    pub(crate) refused: u64,
    /// The number of runs in which an operation reported a full pool.
    pub(crate) full: u64,
    pub(crate) refusal: Option<Refusal>,
    /// The defect that is injected after the setup.
    pub(crate) defect: Option<Defect>,
}
