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
    /// The conditions of the runs on this thread.
    static CONDITIONS: Cell<Conditions> = const { Cell::new(Conditions::USUAL) };
    /// The thread under test that runs, counted from 0.
    static THREAD: Cell<usize> = const { Cell::new(0) };
}

/// Conditions that a real pool meets only at a size or an age that no simulated pool has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Conditions {
    /// Code that begins beyond a scale begins at a few leaves: see
    /// [`Medium::has_small_scale`](super::Medium::has_small_scale).
    pub small_scale: bool,
    /// Numbers of a new pool begin near their bounds: see
    /// [`Medium::is_aged`](super::Medium::is_aged).
    pub aged: bool,
}

impl Conditions {
    /// A young pool, and the thresholds of the code.
    pub const USUAL: Self = Self { small_scale: false, aged: false };
}

/// Sets the conditions of the runs on this thread. Returns the former ones.
pub fn set_conditions(conditions: Conditions) -> Conditions {
    CONDITIONS.replace(conditions)
}

/// Returns the conditions of the runs on this thread.
pub fn conditions() -> Conditions {
    CONDITIONS.get()
}

/// Sets the number of the thread under test that runs, counted from 0.
pub fn set_thread(number: usize) {
    THREAD.set(number);
}

pub(super) fn thread() -> usize {
    THREAD.get()
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
