//! The scheduling of threads under test: the points where a thread switch may happen, and the hooks
//! of the scheduler.
//!
//! 1. A thread runs for a slice, a number of yield points. At the end of the slice the scheduler's
//!    `preempt` hook runs, which may switch to another coroutine.
//! 2. A thread that no scheduler runs has an endless slice, so a yield point costs it a decrement.
//! 3. The hooks belong to the process: only one crate of a process schedules threads.

use core::cell::Cell;
use core::panic::Location;
use std::sync::OnceLock;

/// The source line of an access, or of a version check.
pub type CallSite = &'static Location<'static>;

/// The slice of a thread that no scheduler runs.
pub const UNSCHEDULED: u64 = u64::MAX;

thread_local! {
    /// The number of yield points that are left of this thread's slice.
    static SLICE: Cell<u64> = const { Cell::new(UNSCHEDULED) };
}

/// The hooks of a scheduler, called by the code under test.
#[derive(Clone, Copy, Debug)]
pub struct SchedulerHooks {
    /// Called at a yield point once the slice is used up.
    pub preempt: fn(),
    /// Called in each round of a wait loop; returns `true` if another thread ran.
    pub spin_hint: fn() -> bool,
    /// Returns `true` if the version check at this call site must succeed.
    pub skip_validation: fn(CallSite) -> bool,
}

static HOOKS: OnceLock<SchedulerHooks> = OnceLock::new();

/// Installs the hooks of this process. Later calls change nothing.
pub fn install(hooks: SchedulerHooks) {
    let _ = HOOKS.set(hooks); // I3
}

/// Sets the number of yield points after which this thread is preempted.
pub fn set_slice(yield_points: u64) {
    SLICE.set(yield_points);
}

/// Returns the number of yield points that are left of this thread's slice.
pub fn slice() -> u64 {
    SLICE.get()
}

/// Passes a yield point. The code under test calls this before each access to a shared word.
#[inline(always)]
pub fn yield_point() {
    match SLICE.get().checked_sub(1) {
        Some(left) => SLICE.set(left),
        None => preempt(),
    }
}

#[cold]
#[inline(never)]
fn preempt() {
    if let Some(hooks) = HOOKS.get() {
        (hooks.preempt)();
    }
}

pub(super) fn spin_hint() -> bool {
    HOOKS.get().is_some_and(|hooks| (hooks.spin_hint)())
}

pub(super) fn skip_validation(at: CallSite) -> bool {
    HOOKS.get().is_some_and(|hooks| (hooks.skip_validation)(at))
}
