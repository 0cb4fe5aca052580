//! Lanes: the numbers of the threads that append to logs.

use bristlecone_pmem::Medium;
use core::sync::atomic::{AtomicU64, Ordering};

/// The number of lanes. Each thread has a lane of its own as long as no more threads than this have
/// written; further threads share lanes.
pub(crate) const LANES: usize = 64;

/// Returns the number of this thread's lane. If the medium schedules threads, that is lane 0, which
/// they share, or at a small scale the number of the thread under test, so that a schedule is
/// repeatable.
pub(crate) fn own_lane<M: Medium>() -> usize {
    thread_local! {
        static NUMBER: ThreadNumber = ThreadNumber::take();
    }
    match (M::CONTROLS_SCHEDULE, M::has_small_scale()) {
        // A thread that is about to end may have given its number back.
        (false, _) => NUMBER.try_with(|number| number.0).unwrap_or(0),
        (true, true) => M::scheduled_thread() % LANES,
        (true, false) => 0,
    }
}

/// The numbers of living threads, as a bit mask.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

const _: () = assert!(LANES == u64::BITS as usize);

/// The number of a living thread. If all numbers are taken, threads share the last one.
#[derive(Debug)]
struct ThreadNumber(usize);

impl ThreadNumber {
    /// Takes the least free number.
    fn take() -> Self {
        let taken = NUMBERS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |numbers| {
            (numbers != u64::MAX).then_some(numbers | (numbers + 1))
        });
        Self(taken.map_or(LANES - 1, |before| before.trailing_ones() as usize))
    }
}

impl Drop for ThreadNumber {
    fn drop(&mut self) {
        // The last number may have several owners, so it stays taken.
        if self.0 < LANES - 1 {
            NUMBERS.fetch_and(!(1 << self.0), Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bristlecone_pmem::Mapped;

    #[test]
    fn a_living_thread_has_a_lane_of_its_own() {
        let own = own_lane::<Mapped>();
        assert_eq!(own_lane::<Mapped>(), own);
        let other = std::thread::spawn(own_lane::<Mapped>).join().unwrap();
        assert!(other != own || own == LANES - 1, "{other}");
    }
}
