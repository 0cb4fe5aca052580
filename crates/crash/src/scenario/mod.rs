//! What the explorer is given: something to record, and a judge of what recovery makes of a crash.

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

/// Operations whose crashes are explored.
///
/// State number i is what is there when i of the operations under test have happened; state 0 is
/// what the setup leaves.
pub(crate) trait Scenario: Send + Sync {
    /// Its name, unique among those of a design.
    fn name(&self) -> &str;

    /// Bytes of the medium that it begins with.
    fn bytes(&self) -> u64 {
        POOL_BYTES
    }

    /// Runs the setup and, after [`Recorder::begin`], the operations under test, each between
    /// [`Recorder::invoke`] and [`Recorder::acknowledge`].
    ///
    /// # Errors
    /// An operation gave a wrong answer, without any crash.
    fn record(&self, recorder: &Recorder) -> Result<(), Finding>;

    /// Opens what a crash left, looks at it, and closes it, as the two operations under test of a
    /// scenario of its own; gives the states that it equals, a bit each.
    ///
    /// # Errors
    /// What is wrong first.
    fn reopen(&self, recorder: &Recorder) -> Result<u32, Finding>;

    /// Whether it relies on the order of stores within a line, whatever its design says.
    fn relies_on_line_order(&self) -> bool {
        false
    }

    /// Recovers what a crash left and says whether it is as it must be.
    ///
    /// # Errors
    /// What is wrong first.
    fn judge(&self, probe: &Probe) -> Result<(), Finding>;

    /// Refuses every reservation of the operations under test in turn; nothing by itself.
    ///
    /// # Errors
    /// What is wrong first.
    fn refuse_allocations(&self, _starved: &mut AllocFaultRun) -> Result<(), Finding> {
        Ok(())
    }

    /// The operation under test of that number, for a trace.
    fn operation(&self, number: u32) -> String;
}

/// Scenarios that are one outcome together.
pub(crate) trait ScenarioFamily: Send + Sync {
    /// Its name, unique among those of a design.
    fn name(&self) -> &str;

    /// Has each scenario explored; ends soon after one is wrong. If several are, the last counts.
    fn each(&self, explore: &mut dyn FnMut(&dyn Scenario) -> FamilyStep);
}

/// What came of exploring a scenario of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FamilyStep {
    /// The operations under test changed nothing but latches, and what they stored in those, if they
    /// did, is right: what would come after them comes after those before.
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
}
