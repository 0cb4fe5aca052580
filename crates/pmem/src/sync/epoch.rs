//! Deferred reclamation: what is unlinked is freed once no thread can still hold it.
//!
//! 1. A thread that reads shared nodes is pinned: its slot shows the epoch in which it began.
//! 2. What is retired carries the epoch of that moment, and is freed when every pinned thread began
//!    in a later one.
//! 3. Pinning is two plain stores and no locked instruction. The thread that frees pays instead: it
//!    has the system run a barrier on every processor of this process before it looks at the
//!    slots (`membarrier`), so a reader either is seen, or has seen the unlinking. Where the system
//!    has no such call, pinning fences.
//!
//! A locked instruction waits until all earlier stores are in the cache, and the store that releases a
//! latch waits there behind the write-back of its line: pinning with one, as epoch libraries do, takes
//! a third of the throughput of durable inserts (`docs/decisions/0003-own-epochs.md`).

use core::cell::{Cell, OnceCell};
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence, fence};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

/// A slot that shows this is not pinned.
const IDLE: u64 = 0;
/// Things that wait before the next attempt to free some.
const BATCH: usize = 64;

/// Epochs begin at 1, so that 0 can mean idle.
static EPOCH: AtomicU64 = AtomicU64::new(1);
static SLOTS: Mutex<Vec<Arc<Slot>>> = Mutex::new(Vec::new());
static WAITING: Mutex<VecDeque<Waiting>> = Mutex::new(VecDeque::new());
static HAS_MEMBARRIER: LazyLock<bool> = LazyLock::new(barrier::register);

/// The epoch in which a thread was pinned, on a line of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Slot(AtomicU64);

struct Waiting {
    since: u64,
    free: Box<dyn FnOnce() + Send>,
}

/// What a thread needs to be pinned; its slot goes with it.
struct Local {
    slot: OnceCell<(Arc<Slot>, bool)>,
    depth: Cell<u32>,
}

thread_local! {
    static LOCAL: Local = const { Local { slot: OnceCell::new(), depth: Cell::new(0) } };
}

impl Local {
    #[inline(always)]
    fn slot(&self) -> &(Arc<Slot>, bool) {
        self.slot.get_or_init(Self::register)
    }

    #[cold]
    fn register() -> (Arc<Slot>, bool) {
        let slot = Arc::new(Slot(AtomicU64::new(IDLE)));
        SLOTS.lock().push(Arc::clone(&slot));
        (slot, *HAS_MEMBARRIER)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if let Some((slot, _)) = self.slot.get() {
            SLOTS.lock().retain(|other| !Arc::ptr_eq(slot, other));
        }
    }
}

/// Keeps what this thread may reach from being freed, until it is dropped.
pub struct Guard {
    // A pin belongs to the thread that made it.
    _thread: PhantomData<*const ()>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

/// Pins this thread. Pins nest; an inner one costs an addition.
#[inline]
pub fn pin() -> Guard {
    LOCAL.with(|local| {
        let depth = local.depth.get();
        local.depth.set(depth + 1);
        if depth == 0 {
            let (slot, has_membarrier) = local.slot();
            slot.0.store(EPOCH.load(Ordering::Acquire), Ordering::Relaxed);
            if *has_membarrier {
                compiler_fence(Ordering::SeqCst);
            } else {
                fence(Ordering::SeqCst);
            }
        }
    });
    Guard { _thread: PhantomData }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        // A thread that is ending has given its slot up already.
        let _ = LOCAL.try_with(|local| {
            let depth = local.depth.get() - 1;
            local.depth.set(depth);
            if depth == 0 {
                local.slot().0.0.store(IDLE, Ordering::Release);
            }
        });
    }
}

impl Guard {
    /// Runs `free` once no thread is pinned that is pinned now. What it frees must be unlinked
    /// already. It runs in some thread that retires something later; or never, if none does.
    pub fn defer(&self, free: impl FnOnce() + Send + 'static) {
        // A thread pinned in a later epoch than the one read here must see the unlinking.
        fence(Ordering::SeqCst);
        let waiting = Waiting { since: EPOCH.load(Ordering::SeqCst), free: Box::new(free) };
        let mut queue = WAITING.lock();
        queue.push_back(waiting);
        let due = queue.len().is_multiple_of(BATCH);
        drop(queue);
        if due {
            collect();
        }
    }
}

/// Frees what nobody can hold any more. It happens by itself from time to time; call it when what
/// waits is large, or when space has run out.
#[cold]
pub fn collect() {
    let now = EPOCH.fetch_add(1, Ordering::SeqCst) + 1;
    if *HAS_MEMBARRIER {
        barrier::everywhere();
    } else {
        fence(Ordering::SeqCst);
    }
    let pinned = SLOTS.lock().iter().map(|slot| slot.0.load(Ordering::Acquire)).collect::<Vec<_>>();
    let oldest = pinned.into_iter().filter(|&epoch| epoch != IDLE).min().unwrap_or(now);
    let mut ready = Vec::new();
    {
        let mut queue = WAITING.lock();
        while queue.front().is_some_and(|waiting| waiting.since < oldest) {
            ready.extend(queue.pop_front());
        }
    }
    for waiting in ready {
        (waiting.free)();
    }
}

/// The barrier that one thread imposes on all others of the process.
#[cfg(all(target_os = "linux", not(miri)))]
mod barrier {
    #![expect(unsafe_code, reason = "a system call that the bindings have no function for")]

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: membarrier takes three integers and touches no memory of the caller's.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    pub(super) fn register() -> bool {
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
    }

    pub(super) fn everywhere() {
        let done = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        assert!(done, "a registered process may always ask for the barrier");
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
mod barrier {
    pub(super) fn register() -> bool {
        false
    }
    pub(super) fn everywhere() {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicBool;

    /// Makes enough garbage for several attempts to free.
    fn churn() {
        for _ in 0..4 * BATCH {
            pin().defer(|| {});
        }
    }

    #[test]
    fn nothing_is_freed_while_a_thread_that_may_hold_it_is_pinned() {
        let freed = Arc::new(AtomicBool::new(false));
        let outer = pin();
        let inner = pin();
        let flag = Arc::clone(&freed);
        inner.defer(move || flag.store(true, Ordering::SeqCst));
        drop(inner);
        std::thread::scope(|scope| {
            scope.spawn(churn);
        });
        assert!(!freed.load(Ordering::SeqCst));
        drop(outer);
        // Tests beside this one may be pinned for a moment, so one round need not be enough.
        while !freed.load(Ordering::SeqCst) {
            churn();
        }
    }

    /// Readers follow a pointer to a slot that a writer keeps replacing and, when freed, poisons.
    #[test]
    fn readers_never_meet_what_was_freed() {
        const POISON: u64 = u64::MAX;
        let cells: Arc<Vec<AtomicU64>> =
            Arc::new((0..4096).map(|_| AtomicU64::new(POISON)).collect());
        let current = AtomicU64::new(0);
        let done = AtomicBool::new(false);
        let free = Arc::new(Mutex::new((1..4096u64).collect::<Vec<_>>()));
        cells[0].store(0, Ordering::SeqCst);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !done.load(Ordering::Acquire) {
                        let _guard = pin();
                        let at = current.load(Ordering::Acquire) as usize;
                        for _ in 0..50 {
                            assert_ne!(cells[at].load(Ordering::Acquire), POISON);
                        }
                    }
                });
            }
            for round in 0..200_000 {
                let Some(at) = free.lock().pop() else { continue };
                cells[at as usize].store(round, Ordering::Release);
                let guard = pin();
                let old = current.swap(at, Ordering::AcqRel);
                let (cells, free) = (Arc::clone(&cells), Arc::clone(&free));
                guard.defer(move || {
                    cells[old as usize].store(POISON, Ordering::Release);
                    free.lock().push(old);
                });
            }
            done.store(true, Ordering::Release);
        });
    }
}
