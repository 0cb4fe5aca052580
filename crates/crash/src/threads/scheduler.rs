//! The scheduler: picks the thread that runs next, by random priorities (PCT; Burckhardt et al.,
//! ASPLOS 2010) or a random walk. The seed determines the schedule.
//!
//! 1. With priorities, the thread with the highest one runs until it waits or has finished. At a
//!    few random accesses the running thread drops to the lowest priority. PCT finds a bug that
//!    takes `d` such preemptions with a probability that has a lower bound.
//! 2. A random walk draws the next thread and the length of its slice each time.

use crate::medium::turns::SwitchReason;

/// The number of accesses after which a thread drops to the lowest priority, so that a thread that
/// spins without a hint stops no execution.
const FAIR_ACCESSES: u64 = 1 << 12;
/// The greatest number of random changes of priority.
const CHANGES_MAX: u64 = 5;

/// The choice of the next thread and of its slice.
#[derive(Debug)]
pub(crate) struct Scheduler {
    state: u64,
    style: Style,
    /// The number of accesses so far.
    accesses: u64,
    /// The number of switches from a thread that could have continued.
    pub(crate) preemptions: u32,
}

#[derive(Debug)]
enum Style {
    Priorities {
        /// The priority of each thread; the greatest runs.
        ranks: Vec<i64>,
        least: i64,
        /// The accesses of the changes of priority that are still to come, the next one last.
        changes: Vec<u64>,
    },
    Walk {
        mean: u64,
        /// The thread that has just started to wait.
        waiting: Option<usize>,
    },
}

impl Scheduler {
    /// Returns a schedule of one thread after the other.
    pub(crate) fn serial(threads: usize) -> Self {
        let ranks = (0..i64::from(threads as u32)).rev().collect();
        let style = Style::Priorities { ranks, least: 0, changes: Vec::new() };
        Self { state: 0, style, accesses: 0, preemptions: 0 }
    }

    /// Returns a schedule in which `first` runs until its access `at`, and then all others do until
    /// they wait or have finished.
    pub(crate) fn interrupted(first: usize, at: u64, threads: usize) -> Self {
        let mut ranks: Vec<i64> = (0..i64::from(threads as u32)).collect();
        ranks[first] = i64::from(threads as u32);
        let style = Style::Priorities { ranks, least: 0, changes: vec![at] };
        Self { state: 0, style, accesses: 0, preemptions: 0 }
    }

    /// Returns the schedule of a seed, for threads with about `accesses` accesses in all.
    pub(crate) fn random(seed: u64, threads: usize, accesses: u64) -> Self {
        let style = Style::Walk { mean: 1, waiting: None };
        let mut scheduler = Self { state: seed, style, accesses: 0, preemptions: 0 };
        // Consecutive seeds would give overlapping streams.
        scheduler.state = scheduler.draw(u64::MAX);
        scheduler.style = if scheduler.draw(4) == 0 {
            let mean = [2, 5, 12, 40][scheduler.draw(4) as usize];
            Style::Walk { mean, waiting: None }
        } else {
            let mut ranks: Vec<i64> = (0..i64::from(threads as u32)).collect();
            for last in (1..threads).rev() {
                let other = scheduler.draw(last as u64 + 1) as usize;
                ranks.swap(last, other);
            }
            let count = 1 + scheduler.draw(CHANGES_MAX);
            let mut changes: Vec<u64> =
                (0..count).map(|_| scheduler.draw(accesses.max(1))).collect();
            changes.sort_unstable_by(|a, b| b.cmp(a));
            Style::Priorities { ranks, least: 0, changes }
        };
        scheduler
    }

    /// Returns a random number below `bound` (`SplitMix64`).
    fn draw(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// Returns the next thread of `alive`, which is not empty, and its slice in accesses.
    pub(crate) fn next(&mut self, alive: &[usize]) -> (usize, u64) {
        match &mut self.style {
            Style::Priorities { ranks, changes, .. } => {
                let first = alive.iter().copied().max_by_key(|&thread| ranks[thread]);
                let until = changes.last().map_or(u64::MAX, |&at| at.saturating_sub(self.accesses));
                (first.unwrap_or(alive[0]), until.min(FAIR_ACCESSES))
            }
            Style::Walk { mean, waiting } => {
                let (mean, waiting) = (*mean, waiting.take());
                let others = alive.len() - usize::from(alive.len() > 1 && waiting.is_some());
                let mut choice = self.draw(others as u64) as usize;
                if others < alive.len() {
                    let absent = alive.iter().position(|&thread| Some(thread) == waiting);
                    choice += usize::from(absent.is_some_and(|absent| choice >= absent));
                    choice = choice.min(alive.len() - 1);
                }
                (alive[choice], self.draw(2 * mean))
            }
        }
    }

    /// Notes the end of a turn of `thread`, after `accesses` accesses.
    pub(crate) fn switched(&mut self, thread: usize, reason: SwitchReason, accesses: u64) {
        self.accesses += accesses;
        self.preemptions += u32::from(reason == SwitchReason::Preempted);
        match &mut self.style {
            Style::Priorities { ranks, least, changes } => {
                while changes.last().is_some_and(|&at| at <= self.accesses) {
                    changes.pop();
                }
                if reason != SwitchReason::Finished {
                    *least -= 1;
                    ranks[thread] = *least;
                }
            }
            Style::Walk { waiting, .. } => {
                *waiting = (reason == SwitchReason::Blocked).then_some(thread);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the order of the accesses of three threads with 40 each, none of which waits.
    fn order(mut scheduler: Scheduler) -> Vec<usize> {
        let mut left = [40_u64; 3];
        let mut order = Vec::new();
        let mut alive = vec![0, 1, 2];
        while !alive.is_empty() {
            let (thread, length) = scheduler.next(&alive);
            let used = left[thread].min(length + 1);
            left[thread] -= used;
            order.extend((0..used).map(|_| thread));
            let reason =
                if left[thread] == 0 { SwitchReason::Finished } else { SwitchReason::Preempted };
            scheduler.switched(thread, reason, used);
            alive.retain(|&thread| left[thread] > 0);
        }
        order
    }

    #[test]
    fn a_seed_is_a_schedule_and_other_seeds_are_others() {
        let random = |seed| order(Scheduler::random(seed, 3, 120));
        assert_eq!(random(7), random(7));
        let different: std::collections::BTreeSet<_> = (0..200).map(random).collect();
        assert!(different.len() > 150, "{} different", different.len());
        let serial = order(Scheduler::serial(3));
        assert!(serial.is_sorted(), "{serial:?}");
    }

    #[test]
    fn who_waits_is_not_next() {
        for seed in 0..100 {
            let mut scheduler = Scheduler::random(seed, 2, 100);
            let (first, _) = scheduler.next(&[0, 1]);
            scheduler.switched(first, SwitchReason::Blocked, 1);
            assert_ne!(scheduler.next(&[0, 1]).0, first, "seed {seed}");
        }
    }
}
