//! The turns of threads under test, which are coroutines of one thread of the machine.
//!
//! 1. A thread runs until it is preempted, which happens at a yield point after its slice, or until
//!    it waits for another thread, or until its body has finished.
//! 2. One thread runs at a time, so a code path without a yield point is atomic.
//! 3. An unwinding thread never switches: a second panic would abort the process.
//! 4. Each thread has pins of its own: a block that it may hold is not freed, one that only a
//!    switched-away thread without a pin holds is.
//! 5. In an abandoned execution every thread unwinds to its beginning.

use crate::trace::CallSite;
use bristlecone_pmem::medium::schedule::{self, SchedulerHooks};
use bristlecone_pmem::sync::exchange_pins;
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
    static PINS: RefCell<Vec<Pins>> = const { RefCell::new(Vec::new()) };
    static TURN: Turn = const {
        Turn { thread: Cell::new(0), is_abandoned: Cell::new(false) }
    };
}

/// The pins of a thread under test, which shares the pins of the machine's thread with the others.
#[derive(Clone, Copy, Debug)]
struct Pins {
    /// The number of its pins when it was switched away, or was known to have none.
    depth: u64,
    /// The number of retirements before its oldest pin, or more than all.
    since: u64,
    /// The number of retirements when it last began to run, or was known to have no pin.
    mark: u64,
}

/// Forgets the pins of all threads, before an execution of `threads` threads.
pub(crate) fn reset_pins(threads: usize) {
    let none = Pins { depth: 0, since: u64::MAX, mark: 0 };
    PINS.with_borrow_mut(|pins| *pins = vec![none; threads]);
}

/// Sets the pins of this thread to those of `thread`, which runs after `retirements` retirements.
/// Returns the scheduler's.
pub(crate) fn enter_pins(thread: usize, retirements: u64) -> u64 {
    let depth = PINS.with_borrow_mut(|pins| {
        pins[thread].mark = retirements;
        pins[thread].depth
    });
    exchange_pins(1 + depth)
}

/// Sets the pins of this thread to `former` again, as `thread` is switched away.
pub(crate) fn leave_pins(thread: usize, former: u64) {
    let depth = exchange_pins(former) - 1;
    PINS.with_borrow_mut(|pins| {
        let pins = &mut pins[thread];
        pins.since = match (depth, pins.depth) {
            (0, _) => u64::MAX,
            (_, 0) => pins.mark,
            _ => pins.since,
        };
        pins.depth = depth;
    });
}

/// Notes that the running thread has no pin, after `retirements` retirements. Returns the number of
/// retirements before the oldest pin of any other thread.
pub(crate) fn unpinned(retirements: u64) -> u64 {
    let thread = running_thread() as usize - 1;
    PINS.with_borrow_mut(|pins| {
        (pins[thread].depth, pins[thread].mark) = (0, retirements);
        let others = pins.iter().enumerate().filter(|&(number, _)| number != thread);
        others.map(|(_, pins)| pins.since).min().unwrap_or(u64::MAX)
    })
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
        std::panic::resume_unwind(Box::new(Abandoned)); // I5
    }
}

pub(crate) fn yield_to_scheduler(reason: SwitchReason) {
    #[expect(deprecated, reason = "a turn ends deep in a tree, where no scope is at hand")]
    generator::yield_with(reason);
}
