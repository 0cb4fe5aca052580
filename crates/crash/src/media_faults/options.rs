//! The corruptions of a campaign.

/// The number of loads that a run may take: a bounded run may read the whole pool several times for
/// each of some hundred operations before it gives up.
const STEPS: i64 = 50_000_000;

/// The corruptions to try.
#[derive(Clone, Copy, Debug)]
pub struct MediaOptions {
    /// The number of garbage images, over all subjects together.
    pub garbage: u64,
    /// The stride through the cases of each kind of corruption; 1 for every case.
    pub thin: u64,
    /// The number of loads after which a run counts as one that never ends.
    pub steps: i64,
}

impl Default for MediaOptions {
    fn default() -> Self {
        Self { garbage: 1_000_000, thin: 1, steps: STEPS }
    }
}
