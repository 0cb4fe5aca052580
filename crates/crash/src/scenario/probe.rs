//! The probe: the view of a crash image that an oracle gets, and the states that it admits.

use crate::medium::lazy_image::LazyImage;
use crate::model::history::StoreHistory;
use std::sync::Arc;

/// The view of a crash image for an oracle.
#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) medium: LazyImage,
    pub(crate) history: Arc<StoreHistory>,
    /// The time of the newest store in the image.
    pub(crate) since: u32,
    /// The states that are right if the operation under test is itself a recovery.
    pub(crate) nested: Option<Nested>,
}

/// The states to which the repetition of an interrupted recovery may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Nested {
    /// The states that the first crash allowed, one bit each.
    pub(crate) admitted: u32,
    /// The states that the recovery came to, which a client may have seen after it.
    pub(crate) settled: u32,
}

impl Probe {
    /// Returns how many operations under test must have happened, and how many may have, in the
    /// images that agree with all words read so far.
    ///
    /// The least is the number acknowledged before the last of these images is ruled out. The most
    /// is the number invoked before their newest store. If the least is above the most, the
    /// operations between them made nothing durable, and must have had nothing to do.
    pub(crate) fn window(&self) -> Window {
        Window {
            required: self.history.acknowledged_before(self.medium.ruled_out()),
            allowed: self.history.invoked_before(self.since),
        }
    }

    /// Returns the states to which an image may recover, one bit each. Where the image has to equal
    /// all of them, each stands for all. For an interrupted recovery these are the states that the
    /// crash before it allowed, because its own operations are not those under test.
    pub(crate) fn admitted(&self) -> u32 {
        let window = self.window();
        match self.nested {
            None => window.bits(),
            Some(nested) if window.required > 0 => nested.settled,
            Some(nested) => nested.admitted,
        }
    }

    /// Checks a recovery that equals the states in `equals`.
    ///
    /// # Errors
    /// The mismatch, with the states that would be right.
    pub(crate) fn verdict(&self, equals: u32) -> Result<(), Mismatch> {
        let window = self.window();
        let right = self.admitted();
        let all = self.nested.is_none() && window.required > window.allowed;
        if if all { equals & right == right } else { equals & right != 0 } {
            return Ok(());
        }
        let (what, crash) = if equals == 0 {
            ("what is recovered is no state that there ever was", None)
        } else if all || equals < right & right.wrapping_neg() {
            ("an acknowledged operation is lost", self.contradicted(equals, all))
        } else {
            ("an operation is there before it began", None)
        };
        Err(Mismatch { what, right, all, crash })
    }

    /// Returns the time of the first acknowledgement that an image which equals the states in
    /// `equals` contradicts. The image is reachable then: until it is ruled out, no store after the
    /// image's newest is guaranteed.
    fn contradicted(&self, equals: u32, all: bool) -> Option<u32> {
        let missing = match self.nested {
            // The crash before the recovery asks for the state.
            Some(_) if self.window().required == 0 => return None,
            Some(_) => 1,
            None if all => (self.admitted() & !equals).trailing_zeros(),
            None => equals.ilog2() + 1,
        };
        self.history.acknowledgement(missing as usize)
    }
}

/// A recovery to a wrong state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) what: &'static str,
    /// The states that would be right, one bit each.
    pub(crate) right: u32,
    /// Set if the image has to equal all of them.
    pub(crate) all: bool,
    /// The time of the acknowledgement that the image contradicts, if it is wrong because of one.
    pub(crate) crash: Option<u32>,
}

impl Mismatch {
    /// Returns the right states as a text, each from `describe`.
    pub(crate) fn expected(self, describe: impl Fn(usize) -> String) -> String {
        let states = (0..32).filter(|state| self.right & (1 << state) != 0);
        let states: Vec<_> = states.map(describe).collect();
        states.join(if self.all { " and " } else { " or " })
    }
}

/// The numbers of operations that an image must contain and may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) required: usize,
    pub(crate) allowed: usize,
}

impl Window {
    /// Returns the states from the least to the most, one bit each. If fewer are allowed than
    /// required, an image has to equal all of them.
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
