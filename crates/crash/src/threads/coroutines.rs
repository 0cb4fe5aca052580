//! A pool of coroutines that run the threads under test, one at a time.

use super::scheduler::Scheduler;
use crate::medium::turns::{
    SwitchReason, enter_pins, install_hooks, leave_pins, reset_pins, set_abandoned,
    set_running_thread, yield_to_scheduler,
};
use bristlecone_pmem::medium::schedule;
use core::sync::atomic::{AtomicBool, Ordering};
use generator::{Generator, Gn};
use parking_lot::Mutex;
use std::sync::Arc;

/// The number of accesses after which an execution counts as one that never ends.
const ACCESSES_MAX: u64 = 1 << 18;
/// The words of a coroutine's stack.
const STACK_WORDS: usize = 1 << 15;

/// The operations of one thread under test.
pub(crate) type ThreadBody = Box<dyn FnOnce() + Send>;

/// The bodies that the coroutines take next.
#[derive(Default)]
struct Inbox {
    bodies: Mutex<Vec<Option<ThreadBody>>>,
    is_closed: AtomicBool,
}

impl Inbox {
    /// Runs the bodies of coroutine `number` until the inbox is closed.
    fn serve(&self, number: usize) -> SwitchReason {
        while !self.is_closed.load(Ordering::Relaxed) {
            let body = self.bodies.lock().get_mut(number).and_then(Option::take);
            if let Some(body) = body {
                body();
            }
            yield_to_scheduler(SwitchReason::Finished);
        }
        SwitchReason::Finished
    }
}

/// Coroutines that are reused by each execution.
pub(crate) struct CoroutinePool {
    coroutines: Vec<Generator<'static, (), SwitchReason>>,
    inbox: Arc<Inbox>,
}

/// The length of an execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ExecutionStats {
    /// The number of accesses of all threads.
    pub(crate) accesses: u64,
    /// Set if threads had to be unwound.
    pub(crate) is_abandoned: bool,
}

impl CoroutinePool {
    pub(crate) fn new(threads: usize) -> Self {
        install_hooks();
        let inbox = Arc::new(Inbox::default());
        let shared = Arc::clone(&inbox);
        let coroutines = (0..threads).map(|number| {
            let inbox = Arc::clone(&shared);
            Gn::<()>::new_opt(STACK_WORDS, move || inbox.serve(number))
        });
        let coroutines = coroutines.collect();
        Self { coroutines, inbox }
    }

    /// Runs one thread for each body, in the order that `scheduler` decides, until all have
    /// finished or `is_over` returns `true`. `retirements` returns how many blocks were retired so
    /// far. The caller is pinned.
    pub(crate) fn run(
        &mut self,
        bodies: Vec<ThreadBody>,
        scheduler: &mut Scheduler,
        is_over: impl Fn() -> bool,
        retirements: impl Fn() -> u64,
    ) -> ExecutionStats {
        reset_pins(bodies.len());
        let mut alive: Vec<usize> = (0..bodies.len()).collect();
        *self.inbox.bodies.lock() = bodies.into_iter().map(Some).collect();
        let mut accesses = 0;
        while !alive.is_empty() && accesses < ACCESSES_MAX && !is_over() {
            let (thread, slice) = scheduler.next(&alive);
            let (reason, used) = self.resume(thread, slice, retirements());
            accesses += used + 1;
            if reason == SwitchReason::Finished {
                alive.retain(|&other| other != thread);
            }
            scheduler.switched(thread, reason, used + 1);
        }
        let is_abandoned = !alive.is_empty();
        set_abandoned(true);
        for thread in alive {
            while self.resume(thread, 0, 0).0 != SwitchReason::Finished {}
        }
        set_abandoned(false);
        ExecutionStats { accesses, is_abandoned }
    }

    /// Lets `thread` take a turn of `slice` accesses. Returns the reason for its end, and the
    /// number of accesses.
    fn resume(&mut self, thread: usize, slice: u64, retirements: u64) -> (SwitchReason, u64) {
        set_running_thread(thread as u32 + 1);
        schedule::set_thread(thread);
        let pins = enter_pins(thread, retirements);
        schedule::set_slice(slice);
        let reason = self.coroutines[thread].resume().unwrap_or(SwitchReason::Finished);
        leave_pins(thread, pins);
        set_running_thread(0);
        schedule::set_thread(0);
        let used = slice - schedule::slice();
        schedule::set_slice(schedule::UNSCHEDULED);
        (reason, used)
    }
}

impl Drop for CoroutinePool {
    /// Lets each coroutine return: one that is dropped inside its loop would have to unwind.
    fn drop(&mut self) {
        self.inbox.is_closed.store(true, Ordering::Relaxed);
        for coroutine in &mut self.coroutines {
            let _ = coroutine.resume();
        }
    }
}
