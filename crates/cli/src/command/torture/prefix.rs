//! The states that a store with a journal may have after a power cut: those after a prefix of its
//! writes that holds all that was promised.
//!
//! 1. A prefix holds the first steps of each thread, so many for each.
//! 2. If it holds a step, then also every step of another thread that had returned before that one
//!    began. A step begins after the one before it in its thread was acknowledged.
//! 3. A step may be in it from its begin on: after its acknowledged steps a thread has one more.

use super::ledger::Ledger;
use super::steps::{Load, Version};

/// The steps of a session that had returned at the moment of a cut, and those that must survive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Promised {
    load: Load,
    /// The version of each key before the session.
    before: Vec<Option<Version>>,
    /// The thread of each acknowledgement, in their order.
    acknowledged: Vec<u64>,
    /// The number of steps of each thread that the store must have.
    least: Vec<u64>,
}

impl Promised {
    /// Returns the state after so many acknowledgements of `load` on a store as in `before`, of
    /// which each thread's first `least` may not be lost.
    pub(super) fn new(
        load: Load,
        before: &Ledger,
        acknowledged: Vec<u64>,
        least: Vec<u64>,
    ) -> Self {
        Self { load, before: before.versions().to_vec(), acknowledged, least }
    }

    /// Returns the number of keys.
    pub(super) fn keys(&self) -> u64 {
        self.before.len() as u64
    }

    /// Returns the state as bytes, for a process that judges an image.
    pub(super) fn written(&self) -> Vec<u8> {
        let Load { seed, cycle, keys, threads } = self.load;
        let mut words = vec![seed, cycle, keys, threads];
        words.extend(&self.least);
        words.extend(self.before.iter().flat_map(|&version| Version::words(version)));
        words.extend(&self.acknowledged);
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Parses the result of [`written`](Self::written); `None` if it is cut off.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let words: Vec<u64> = words.iter().map(|&word| u64::from_le_bytes(word)).collect();
        let (&[seed, cycle, keys, threads], rest) = words.split_first_chunk()?;
        let (least, rest) = rest.split_at_checked(threads as usize)?;
        let (before, acknowledged) = rest.split_at_checked(3 * keys as usize)?;
        Some(Self {
            load: Load { seed, cycle, keys, threads },
            before: before.as_chunks().0.iter().map(|&words| Version::of_words(words)).collect(),
            acknowledged: acknowledged.to_vec(),
            least: least.to_vec(),
        })
    }

    /// Returns `true` if a store may hold exactly the versions in `found`.
    pub(super) fn allows(&self, found: &[Option<Version>]) -> bool {
        let states: Vec<_> = (0..self.load.threads).map(|t| self.counts(t, found)).collect();
        let returned = self.returned();
        let mut counts = self.least.clone();
        // The smallest prefix that is large enough: a thread's count only rises.
        loop {
            let before = counts.clone();
            for (thread, states) in states.iter().enumerate() {
                let needs = |other: usize| {
                    let last = (counts[other] as usize).checked_sub(1)?;
                    Some(returned[other].get(last)?[thread])
                };
                let needed = (0..counts.len()).filter_map(needs).max().unwrap_or(0);
                let least = counts[thread].max(needed);
                let Some(&count) = states.iter().find(|&&count| count >= least) else {
                    return false;
                };
                counts[thread] = count;
            }
            if counts == before {
                return true;
            }
        }
    }

    /// Returns the numbers of steps after which the keys of `thread` are as in `found`.
    fn counts(&self, thread: u64, found: &[Option<Version>]) -> Vec<u64> {
        let own = |key: &usize| *key as u64 % self.load.threads == thread;
        let mut versions = self.before.clone();
        let mut differing =
            (0..versions.len()).filter(own).filter(|&key| versions[key] != found[key]).count();
        let acknowledged = self.acknowledged.iter().filter(|&&other| other == thread).count();
        let mut counts = Vec::new();
        for (count, step) in (0..=acknowledged as u64 + 1).zip(self.load.steps(thread)) {
            if differing == 0 {
                counts.push(count);
            }
            let key = step.key as usize;
            differing -= usize::from(versions[key] != found[key]);
            versions[key] = step.version;
            differing += usize::from(versions[key] != found[key]);
        }
        counts
    }

    /// Returns, for each step of each thread, the number of steps of each thread that had returned
    /// when it began.
    fn returned(&self) -> Vec<Vec<Vec<u64>>> {
        let threads = self.load.threads as usize;
        let mut counts = vec![0; threads];
        let mut returned = vec![vec![counts.clone()]; threads];
        for &thread in &self.acknowledged {
            counts[thread as usize] += 1;
            returned[thread as usize].push(counts.clone());
        }
        returned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOAD: Load = Load { seed: 5, cycle: 1, keys: 400, threads: 2 };

    /// Returns the versions after so many steps of each thread.
    fn after(counts: [usize; 2]) -> Vec<Option<Version>> {
        let mut versions = vec![None; LOAD.keys as usize];
        for thread in 0..2 {
            for step in LOAD.steps(thread).take(counts[thread as usize]) {
                versions[step.key as usize] = step.version;
            }
        }
        versions
    }

    /// Returns the number of the first step of `thread` from `from` on that puts a value.
    fn put(thread: u64, from: usize) -> usize {
        let mut steps = LOAD.steps(thread).enumerate().skip(from);
        steps.find(|(_, step)| step.version.is_some()).unwrap().0
    }

    fn promised(acknowledged: Vec<u64>, least: [u64; 2]) -> Promised {
        Promised::new(LOAD, &Ledger::new(LOAD.keys, 0), acknowledged, least.to_vec())
    }

    #[test]
    fn a_prefix_is_allowed_if_it_has_what_was_promised() {
        let (a, b) = (put(0, 20), put(1, 20));
        let mut acknowledged = vec![0; a];
        acknowledged.extend(vec![1; b]);
        let of = |least| promised(acknowledged.clone(), least);
        let (all, none) = ([a as u64, b as u64], [0, 0]);
        for counts in [[a, b], [a + 1, b], [a, b + 1], [a + 1, b + 1]] {
            assert!(of(all).allows(&after(counts)), "{counts:?}");
            assert!(of(none).allows(&after(counts)), "{counts:?}");
        }
        // Thread 1 began after thread 0 had returned from all but one of its steps.
        let less = put(0, a / 2);
        assert!(!of(all).allows(&after([less, 0])));
        assert!(of(none).allows(&after([less, 0])));
        assert!(!of([less as u64 + 1, 0]).allows(&after([less, 0])));
        assert!(of([less as u64, 0]).allows(&after([less, 0])));
        // The second step of thread 1 began after all of those.
        let step = put(1, 1);
        assert!(!of(none).allows(&after([less, step + 1])), "a later write without an earlier one");
        assert!(of(none).allows(&after([a, step + 1])));
        assert!(!of(none).allows(&after([put(0, a + 1) + 1, b])), "a step that has not begun");
        let mut foreign = after([a, b]);
        foreign[0] = Some(Version::loaded(0));
        assert!(!of(none).allows(&foreign));
    }

    #[test]
    fn what_is_promised_survives_the_round_trip() {
        let promised = promised(vec![0, 1, 1, 0, 1], [1, 2]);
        let bytes = promised.written();
        assert_eq!(Promised::read(&bytes), Some(promised));
        assert_eq!(Promised::read(&bytes[..80]), None);
    }
}
