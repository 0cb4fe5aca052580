//! The turns of threads under test, which are coroutines of one thread of the machine.
//!
//! 1. A thread runs until it is preempted, which happens at a yield point after its slice, or until
//!    it waits for another thread, or until its body has finished.
//! 2. One thread runs at a time, so a code path without a yield point is atomic.
//! 3. An unwinding thread never switches: a second panic would abort the process.
//! 4. In an abandoned execution every thread unwinds to its beginning.

use crate::trace::CallSite;
use bristlecone_pmem::medium::schedule::{self, SchedulerHooks};
use core::cell::{Cell, RefCell};

/// The reason for which a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SwitchReason {
    /// The slice was used up.
    Preempted,
    /// The thread waits for another one.
    Blocked,
    /// The body of the thread has returned.
    Finished,
}

/// The payload that unwinds a thread of an abandoned execution.
#[derive(Debug)]
pub(crate) struct Abandoned;

struct Turn {
    /// The running thread, counted from 1; 0 while none runs.
    thread: Cell<u32>,
    is_abandoned: Cell<bool>,
}

/// The version checks that executions on this thread came by, and the one that always passes.
#[derive(Default)]
struct Checks {
    seen: Vec<CallSite>,
    skipped: Option<CallSite>,
}

thread_local! {
    static CHECKS: RefCell<Checks> = const {
        RefCell::new(Checks { seen: Vec::new(), skipped: None })
    };
    static TURN: Turn = const {
        Turn { thread: Cell::new(0), is_abandoned: Cell::new(false) }
    };
}

/// Installs the scheduling hooks of this process.
pub(crate) fn install_hooks() {
    schedule::install(SchedulerHooks { preempt, spin_hint, skip_validation });
}

/// Returns the running thread, counted from 1, or 0 outside an execution.
pub(crate) fn running_thread() -> u32 {
    TURN.with(|turn| turn.thread.get())
}

pub(crate) fn set_running_thread(thread: u32) {
    TURN.with(|turn| turn.thread.set(thread));
}

/// Makes threads unwind at their next switch, or ends that.
pub(crate) fn set_abandoned(is_abandoned: bool) {
    TURN.with(|turn| turn.is_abandoned.set(is_abandoned));
}

/// Makes the version check at `at` pass always, in executions on this thread.
pub(crate) fn skip_check(at: Option<CallSite>) {
    CHECKS.with_borrow_mut(|checks| checks.skipped = at);
}

/// Returns the call sites of the version checks that executions on this thread came by since the
/// last call.
pub(crate) fn take_checks() -> Vec<CallSite> {
    CHECKS.with_borrow_mut(|checks| core::mem::take(&mut checks.seen))
}

fn preempt() {
    if running_thread() != 0 {
        switch(SwitchReason::Preempted);
    }
}

fn spin_hint() -> bool {
    let is_scheduled = running_thread() != 0;
    if is_scheduled {
        switch(SwitchReason::Blocked);
    }
    is_scheduled
}

fn skip_validation(at: CallSite) -> bool {
    running_thread() != 0
        && CHECKS.with_borrow_mut(|checks| {
            if !checks.seen.contains(&at) {
                checks.seen.push(at);
            }
            checks.skipped == Some(at)
        })
}

#[cold]
fn switch(reason: SwitchReason) {
    if std::thread::panicking() {
        return; // I3
    }
    if !TURN.with(|turn| turn.is_abandoned.get()) {
        yield_to_scheduler(reason);
    }
    if TURN.with(|turn| turn.is_abandoned.get()) {
        std::panic::resume_unwind(Box::new(Abandoned)); // I4
    }
}

pub(crate) fn yield_to_scheduler(reason: SwitchReason) {
    #[expect(deprecated, reason = "a turn ends deep in a tree, where no scope is at hand")]
    generator::yield_with(reason);
}
