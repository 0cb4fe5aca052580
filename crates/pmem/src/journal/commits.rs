//! Threads that wait for a sync. One of them leads: it syncs for all that wait. The others sleep on
//! a word of their group. So one call of the system wakes all whose records are synced, and none in
//! vain. Then the leader wakes one of the next group, which leads next.
//!
//! 1. There are two words: that of the group of the last lead, and that of the next group. The turn
//!    says which, and up to which position the last lead syncs.
//! 2. A thread chooses its word by the turn and reads it. Then it finds that its records are not
//!    synced, that a thread leads, and that the turn is the same. It sleeps only if the word is
//!    the same too. Syncs and ends of leads change words last. So no wake is missed.
//! 3. A sync without a lead wakes all. Else a thread that should lead next could find its records
//!    synced, and return while others of its group sleep.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use rustix::thread::futex::{self, Flags};

/// A number of threads that means all of them. The system takes a greater one for one thread.
const ALL: u32 = i32::MAX as u32;

/// The threads that wait for one journal.
#[derive(Debug, Default)]
pub(super) struct Commits {
    is_led: AtomicBool,
    /// The position up to which the last lead syncs, doubled; the lowest bit is its group.
    turn: AtomicU64,
    /// The words on which the groups sleep. Each wake adds one.
    words: [AtomicU32; 2],
}

impl Commits {
    /// Returns `true` if the caller leads from now on. It then calls [`end_lead`](Self::end_lead).
    pub(super) fn lead(&self) -> bool {
        !self.is_led.swap(true, Ordering::Acquire)
    }

    /// Begins the group of those whose records are before `end`. The caller leads.
    pub(super) fn begin_group(&self, end: u64) {
        let (_, group) = self.turn();
        self.turn.store(end << 1 | (1 - group as u64), Ordering::Release);
    }

    /// Returns the position up to which the last lead syncs, and its group.
    fn turn(&self) -> (u64, usize) {
        let turn = self.turn.load(Ordering::Acquire);
        (turn >> 1, (turn & 1) as usize)
    }

    /// Waits for the end of a lead after which the records before `position` are `synced`, or this
    /// thread should lead. May return at any time.
    pub(super) fn wait(&self, position: u64, synced: &AtomicU64) {
        let turn = self.turn();
        let (end, group) = turn;
        let word = &self.words[if position <= end { group } else { 1 - group }];
        let seen = word.load(Ordering::Acquire);
        let is_unsynced = synced.load(Ordering::Acquire) < position;
        if is_unsynced && self.is_led.load(Ordering::Acquire) && self.turn() == turn {
            // After an error too, the caller looks again.
            let _ = futex::wait(word, Flags::PRIVATE, seen, None);
        }
    }

    /// Ends the lead: the records of its group are synced, or no sync succeeds any more. Returns
    /// the number of threads that waited for it.
    pub(super) fn end_lead(&self, is_synced: bool) -> u64 {
        let (_, group) = self.turn();
        // Before another thread can lead, so that those who wake here join one group.
        let woken = self.wake(group, ALL);
        self.is_led.store(false, Ordering::Release);
        if !is_synced {
            self.wake_all();
        } else if !self.is_led.load(Ordering::Acquire) {
            self.wake(1 - group, 1);
        }
        woken
    }

    /// Wakes all threads, so that each looks at what is synced.
    pub(super) fn wake_all(&self) {
        for group in 0..self.words.len() {
            self.wake(group, ALL);
        }
    }

    fn wake(&self, group: usize, most: u32) -> u64 {
        let word = &self.words[group];
        word.fetch_add(1, Ordering::Release);
        // The call fails for no word that is mapped.
        futex::wake(word, Flags::PRIVATE, most).unwrap_or(0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_lead_wakes_all_of_its_group() {
        const THREADS: u64 = 8;
        for _ in 0..100 {
            let (commits, synced, come) =
                (Commits::default(), AtomicU64::new(0), AtomicU64::new(0));
            assert!(commits.lead());
            commits.begin_group(1);
            std::thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        come.fetch_add(1, Ordering::Relaxed);
                        while synced.load(Ordering::Acquire) < 1 {
                            commits.wait(1, &synced);
                        }
                    });
                }
                while come.load(Ordering::Relaxed) < THREADS {
                    std::thread::yield_now();
                }
                synced.store(1, Ordering::Release);
                commits.end_lead(true);
            });
        }
    }
}
