//! What the explorer is given: something to record, and a judge of what recovery makes of a crash.

use crate::program::Program;
use crate::recorder::Recorder;
use crate::refiner::Refiner;
use crate::run::POOL_BYTES;
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

    /// Recovers what a crash left and says whether it is as it must be.
    ///
    /// # Errors
    /// What is wrong first.
    fn judge(&self, probe: &Probe) -> Result<(), Finding>;

    /// The operation under test of that number, for a trace.
    fn operation(&self, number: u32) -> String;
}

/// What a judge sees of a crash.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) medium: Refiner,
    pub(crate) program: Arc<Program>,
    /// Time of the newest store in the image.
    pub(crate) since: u32,
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
}

/// Which states an image may recover to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) required: usize,
    pub(crate) allowed: usize,
}

impl Window {
    /// Whether a recovery that equals the states whose bits are set in `equals` is right.
    pub(crate) fn admits(self, equals: u32) -> bool {
        let bits = |from: usize, to: usize| ((1_u64 << (to + 1)) - (1_u64 << from)) as u32;
        if self.required <= self.allowed {
            equals & bits(self.required, self.allowed) != 0
        } else {
            let all = bits(self.allowed, self.required);
            equals & all == all
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_outlives_an_acknowledgement_must_show_it() {
        let window = |required, allowed| Window { required, allowed };
        assert!(window(0, 1).admits(0b01) && window(0, 1).admits(0b10));
        assert!(!window(1, 1).admits(0b01) && window(1, 1).admits(0b10));
        assert!(!window(0, 0).admits(0b10));
        // Operation 1 was acknowledged though nothing of it is in the image.
        assert!(!window(1, 0).admits(0b01) && window(1, 0).admits(0b11));
    }
}
