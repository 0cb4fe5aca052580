//! What the explorer is given: something to record, and a judge of what recovery makes of a crash.

use crate::program::Program;
use crate::recorder::Recorder;
use crate::refiner::Refiner;
use crate::report::Violation;
use crate::run::POOL_BYTES;
use crate::space::Starved;
use std::sync::Arc;

/// What was wrong after a recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) what: String,
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl Finding {
    pub(crate) fn new(
        what: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self { what: what.into(), expected: expected.into(), found: found.into() }
    }

    /// The finding as a violation that no crash led to.
    pub(crate) fn without_crash(&self) -> Violation {
        let Self { what, expected, found } = self.clone();
        Violation { what, expected, found, trace: String::new(), rank: (0, 0) }
    }
}

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
    fn starve(&self, _starved: &mut Starved) -> Result<(), Finding> {
        Ok(())
    }

    /// The operation under test of that number, for a trace.
    fn operation(&self, number: u32) -> String;
}

/// Scenarios that are one outcome together.
pub(crate) trait Family: Send + Sync {
    /// Its name, unique among those of a design.
    fn name(&self) -> &str;

    /// Has each scenario explored; ends soon after one is wrong. If several are, the last counts.
    fn each(&self, explore: &mut dyn FnMut(&dyn Scenario) -> Verdict);
}

/// What came of exploring a scenario of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The operations under test changed nothing but latches, and what they stored in those, if they
    /// did, is right: what would come after them comes after those before.
    Idle,
    Right,
    Wrong,
}

/// What a judge sees of a crash.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) medium: Refiner,
    pub(crate) program: Arc<Program>,
    /// Time of the newest store in the image.
    pub(crate) since: u32,
    /// If the operation under test is itself a recovery: what it may come to.
    pub(crate) nested: Option<Nested>,
}

/// What a recovery that a crash cut off may come to when it is run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Nested {
    /// The states that the first crash allowed, a bit each.
    pub(crate) admitted: u32,
    /// Those that the recovery came to, and that a client may have seen once it was done.
    pub(crate) settled: u32,
}

impl Probe {
    /// How many of the operations under test must have happened, and how many may have, in the
    /// images that agree with all that was read so far.
    ///
    /// The least is those acknowledged before the last of these images is ruled out; the most is
    /// those invoked before the newest store of them. If the least is more than the most, the
    /// operations between did nothing durable, and must have had nothing to do.
    pub(crate) fn window(&self) -> Window {
        Window {
            required: self.program.acknowledged_before(self.medium.ruled_out()),
            allowed: self.program.invoked_before(self.since),
        }
    }

    /// The states that an image may recover to, a bit each. Where it has to be all at once, any of
    /// them stands for all. Of a recovery that a crash cut off, its own operations are none of those
    /// under test: what it may come to is what the crash before it allowed.
    pub(crate) fn admitted(&self) -> u32 {
        let window = self.window();
        match self.nested {
            None => window.bits(),
            Some(nested) if window.required > 0 => nested.settled,
            Some(nested) => nested.admitted,
        }
    }

    /// Whether a recovery that equals the states whose bits are set in `equals` is right. If not,
    /// gives what is wrong, and the states that would be right, a bit each.
    pub(crate) fn verdict(&self, equals: u32) -> Result<(), Wrong> {
        let window = self.window();
        let right = self.admitted();
        let all = self.nested.is_none() && window.required > window.allowed;
        if if all { equals & right == right } else { equals & right != 0 } {
            return Ok(());
        }
        let what = if equals == 0 {
            "what is recovered is no state that there ever was"
        } else if all || equals < right & right.wrapping_neg() {
            "an acknowledged operation is lost"
        } else {
            "an operation is there before it began"
        };
        Err(Wrong { what, right, all })
    }
}

/// How a recovery is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    pub(crate) what: &'static str,
    /// States that would be right, a bit each.
    pub(crate) right: u32,
    /// Whether it has to be all of them at once.
    pub(crate) all: bool,
}

impl Wrong {
    /// The right states for people to read, each as `describe` has it.
    pub(crate) fn expected(self, describe: impl Fn(usize) -> String) -> String {
        let states = (0..32).filter(|state| self.right & (1 << state) != 0);
        let states: Vec<_> = states.map(describe).collect();
        states.join(if self.all { " and " } else { " or " })
    }
}

/// Which states an image may recover to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) required: usize,
    pub(crate) allowed: usize,
}

impl Window {
    /// The states from the least to the most, a bit each. If less is allowed than is required, an
    /// image has to be all of them at once.
    fn bits(self) -> u32 {
        let least = self.required.min(self.allowed);
        let most = self.required.max(self.allowed);
        (((1_u64 << (most + 1)) - 1) & !((1 << least) - 1)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_the_states_between() {
        let bits = |required, allowed| Window { required, allowed }.bits();
        assert_eq!(bits(0, 0), 0b1);
        assert_eq!(bits(0, 1), 0b11);
        assert_eq!(bits(1, 1), 0b10);
        assert_eq!(bits(1, 0), 0b11);
        assert_eq!(bits(1, 3), 0b1110);
    }
}
