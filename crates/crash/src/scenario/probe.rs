//! The probe: the view of a crash image that an oracle gets, and the states that it admits.

use crate::medium::lazy_image::LazyImage;
use crate::model::history::StoreHistory;
use std::sync::Arc;

/// What a judge sees of a crash.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) medium: LazyImage,
    pub(crate) history: Arc<StoreHistory>,
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
            required: self.history.acknowledged_before(self.medium.ruled_out()),
            allowed: self.history.invoked_before(self.since),
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
    pub(crate) fn verdict(&self, equals: u32) -> Result<(), Mismatch> {
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
        Err(Mismatch { what, right, all })
    }
}

/// How a recovery is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) what: &'static str,
    /// States that would be right, a bit each.
    pub(crate) right: u32,
    /// Whether it has to be all of them at once.
    pub(crate) all: bool,
}

impl Mismatch {
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
