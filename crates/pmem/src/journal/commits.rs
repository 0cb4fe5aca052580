//! Threads that wait for a sync. One of them leads: it syncs for all that wait. When it has ended,
//! it wakes those whose records are synced, and one more, which leads next, or wakes another if a
//! checkpoint has synced its records. Each sleeps on a word of its own, so none is woken in vain.
#![expect(unsafe_code, reason = "the queue of waiting threads is keyed by an address")]

use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot_core::{
    DEFAULT_UNPARK_TOKEN, FilterOp, ParkResult, ParkToken, UnparkToken, park, unpark_filter,
    unpark_one,
};

/// What a thread is woken with that should lead next.
const LEAD: UnparkToken = UnparkToken(1);

/// The threads that wait for one journal.
#[derive(Debug, Default)]
pub(super) struct Commits {
    is_led: AtomicBool,
}

impl Commits {
    fn key(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Returns `true` if the caller leads from now on. It then calls [`end_lead`](Self::end_lead).
    pub(super) fn lead(&self) -> bool {
        !self.is_led.swap(true, Ordering::Acquire)
    }

    /// Waits for the end of a lead after which the records before `position` are synced, or this
    /// thread should lead: then it returns `true`. Returns at once if there is no leader.
    pub(super) fn wait(&self, position: u64) -> bool {
        let is_led = || self.is_led.load(Ordering::Acquire);
        let token = ParkToken(position as usize);
        // SAFETY: the key is the address of a value that this journal owns; the closures neither
        // panic nor call into the crate.
        let woken = unsafe { park(self.key(), is_led, || {}, |_, _| {}, token, None) };
        matches!(woken, ParkResult::Unparked(LEAD))
    }

    /// Ends the lead: the records before `synced` are. Returns the number of threads that waited
    /// for them.
    pub(super) fn end_lead(&self, synced: u64) -> u64 {
        // A thread that sees this leads or waits for the next leader. One that saw the value before
        // is in the queue when `unpark_filter` has its lock.
        self.is_led.store(false, Ordering::Release);
        let mut done = 0;
        let filter = |ParkToken(position)| {
            if position as u64 > synced {
                return FilterOp::Skip;
            }
            done += 1;
            FilterOp::Unpark
        };
        // SAFETY: as for `wait`.
        unsafe { unpark_filter(self.key(), filter, |_| DEFAULT_UNPARK_TOKEN) };
        // SAFETY: as for `wait`.
        unsafe { unpark_one(self.key(), |_| LEAD) };
        done
    }

    /// Returns the number of threads that wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        let mut waiting = 0;
        let count = |_| {
            waiting += 1;
            FilterOp::Skip
        };
        // SAFETY: as for `wait`.
        unsafe { unpark_filter(self.key(), count, |_| DEFAULT_UNPARK_TOKEN) };
        waiting
    }
}
