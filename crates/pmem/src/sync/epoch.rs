//! Epoch-based reclamation: an unlinked object is freed once no thread can still hold it.
//!
//! 1. A thread that reads shared nodes is pinned: its slot holds the epoch in which it pinned
//!    itself.
//! 2. A deferred object carries the epoch of its `defer`. It is freed once every pinned thread has
//!    pinned itself in a later epoch.
//! 3. Pinning is two plain stores and no locked instruction. The freeing thread pays instead:
//!    before it reads the slots, it makes the system run a barrier on every processor of this
//!    process (`membarrier`). So it either sees the reader's slot, or the reader sees the
//!    unlinking. Where the system has no such call, pinning fences.
//!
//! A locked instruction waits until all earlier stores are in the cache. The store that releases a
//! latch waits there, behind the write-back of its line. So a locked pin, as epoch libraries have
//! it, costs a third of the throughput of durable inserts (`docs/decisions/0003-own-epochs.md`).

use core::cell::{Cell, OnceCell};
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence, fence};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

/// The value of a slot whose thread is not pinned.
const IDLE: u64 = 0;
/// The number of deferred objects between two automatic attempts to free.
const BATCH: usize = 64;

/// The current epoch. It begins at 1, so that 0 can mean idle.
static EPOCH: AtomicU64 = AtomicU64::new(1);
static SLOTS: Mutex<Vec<Arc<Slot>>> = Mutex::new(Vec::new());
static DEFERRED: Mutex<VecDeque<Deferred>> = Mutex::new(VecDeque::new());
static HAS_MEMBARRIER: LazyLock<bool> = LazyLock::new(barrier::register);

/// The epoch in which a thread is pinned, alone in its cache line and the adjacent one.
#[derive(Debug)]
#[repr(align(128))]
struct Slot(AtomicU64);

struct Deferred {
    epoch: u64,
    free: Box<dyn FnOnce() + Send>,
}

/// The state of a thread. Its drop, when the thread exits, removes the slot.
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

/// A pin of the current thread. Until it is dropped, no object is freed that the thread may reach.
pub struct Guard {
    // A pin belongs to its thread, so the guard is neither `Send` nor `Sync`.
    _thread: PhantomData<*const ()>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

/// Pins the current thread. Pins nest; a nested one costs one addition.
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

/// Sets the number of nested pins of this thread and returns the former one. For a scheduler that
/// runs several threads under test on this thread, each with pins of its own. It must hold a
/// [`Guard`] meanwhile, and both numbers must count that guard.
#[doc(hidden)]
pub fn exchange_pins(pins: u32) -> u32 {
    LOCAL.with(|local| {
        debug_assert!(pins > 0 && local.depth.get() > 0, "the scheduler is pinned");
        local.depth.replace(pins)
    })
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        // When the thread exits, `LOCAL` may be gone before the last guard. Its slot is then gone
        // as well.
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
    /// Runs `free` after every thread that is pinned now has unpinned. Unlink the object first.
    /// `free` runs in a later `defer` or `collect`, on any thread; without such a call it never
    /// runs.
    pub fn defer(&self, free: impl FnOnce() + Send + 'static) {
        // This fence orders the unlinking before the load of the epoch. So a thread that is pinned
        // in a later epoch than the one read here sees the unlinking.
        fence(Ordering::SeqCst);
        let deferred = Deferred { epoch: EPOCH.load(Ordering::SeqCst), free: Box::new(free) };
        let mut queue = DEFERRED.lock();
        queue.push_back(deferred);
        let due = queue.len().is_multiple_of(BATCH);
        drop(queue);
        if due {
            collect();
        }
    }
}

/// Frees every deferred object that no thread can hold any more. [`Guard::defer`] calls this
/// whenever the number of waiting objects reaches a multiple of 64. Call it when large objects wait
/// or space has run out.
#[cold]
pub fn collect() {
    let now = EPOCH.fetch_add(1, Ordering::SeqCst) + 1;
    if *HAS_MEMBARRIER {
        barrier::all_threads();
    } else {
        fence(Ordering::SeqCst);
    }
    let pinned = SLOTS.lock().iter().map(|slot| slot.0.load(Ordering::Acquire)).collect::<Vec<_>>();
    let oldest = pinned.into_iter().filter(|&epoch| epoch != IDLE).min().unwrap_or(now);
    let mut due = Vec::new();
    {
        let mut queue = DEFERRED.lock();
        while queue.front().is_some_and(|deferred| deferred.epoch < oldest) {
            due.extend(queue.pop_front());
        }
    }
    for deferred in due {
        (deferred.free)();
    }
}

/// The barrier that one thread makes all others of the process execute.
#[cfg(all(target_os = "linux", not(miri)))]
mod barrier {
    #![expect(unsafe_code, reason = "a system call that the bindings have no function for")]

    fn membarrier(command: libc::c_int) -> bool {
        // SAFETY: membarrier takes three integers and accesses no memory of the caller.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
    }

    pub(super) fn register() -> bool {
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
    }

    pub(super) fn all_threads() {
        let done = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        assert!(done, "a registered process may always ask for the barrier");
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
mod barrier {
    pub(super) fn register() -> bool {
        false
    }
    pub(super) fn all_threads() {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicBool;

    /// Defers enough objects for several automatic attempts to free.
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
        // Other tests of this process may be pinned for a moment, so one round may not be enough.
        while !freed.load(Ordering::SeqCst) {
            churn();
        }
    }

    /// Readers follow a pointer to a cell. A writer keeps replacing it and poisons each old cell
    /// when it is freed.
    #[test]
    fn readers_never_see_a_freed_cell() {
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
