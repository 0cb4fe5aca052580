//! Epoch-based reclamation: an unlinked block is freed once no thread can still hold it.
//!
//! 1. A thread that reads shared nodes of a pool is pinned in that pool: a place of its slot holds
//!    the pool's number and the epoch in which it pinned itself. A thread may be pinned in several
//!    pools at once.
//! 2. A retired block carries the epoch of its retirement. Its pool frees it once every thread that
//!    is pinned in that pool has pinned itself in a later epoch. So a reader of one pool never
//!    holds back the frees of another.
//! 3. Pinning is two plain stores and no locked instruction. The freeing thread pays instead:
//!    before it reads the slots, it makes the system run a barrier on every processor of this
//!    process (`membarrier`). So it either sees the reader's slot, or the reader sees the
//!    unlinking. Where the system has no such call, pinning fences.
//! 4. A pin of every pool, and one beyond the places of a slot, holds back the frees of all pools.
//!    That is slower and never wrong.
//! 5. A thread that forks holds the lock of the slots meanwhile. Else a child may get it locked,
//!    and has no thread that unlocks it.
//!
//! A locked instruction waits until all earlier stores are in the cache. The store that releases a
//! latch waits there, behind the write-back of its line. So a locked pin, as epoch libraries have
//! it, costs a third of the throughput of durable inserts (`docs/decisions/0003-own-epochs.md`).

use core::cell::{Cell, OnceCell};
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence, fence};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// The value of a place in which the thread is not pinned.
const IDLE: u64 = 0;
/// The number of places in a slot, a power of two. The last is for pins of every pool.
const PLACES: usize = 8;
/// The bits of an epoch in a place, and of a depth in a [`Local`]. A domain lies above them. At a
/// million epochs a second they last for nine years.
const EPOCH_BITS: u32 = 48;
const EPOCH_MASK: u64 = (1 << EPOCH_BITS) - 1;

/// The current epoch of the process. It begins at 1, so that 0 can mean idle.
static EPOCH: AtomicU64 = AtomicU64::new(1);
static SLOTS: Mutex<Vec<Arc<Slot>>> = Mutex::new(Vec::new());
static HAS_MEMBARRIER: LazyLock<bool> = LazyLock::new(barrier::register);

/// The places in which a thread is pinned, alone in their cache line and the adjacent one. Each
/// holds a domain above an epoch.
#[derive(Debug)]
#[repr(align(128))]
struct Slot([AtomicU64; PLACES]);

/// The readers of one pool, as far as its frees must wait for them.
///
/// The number of the domain lies above [`EPOCH_BITS`]. It is not 0, which stands for every pool.
/// After 65 535 pools a number comes again. Two pools with one number hold back each other's frees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Readers(u64);

/// The state of a thread. Its drop, when the thread exits, removes the slot.
struct Local {
    slot: OnceCell<(Arc<Slot>, bool)>,
    /// For each place, the domain and below it the number of pins; 0 while it is idle.
    pins: [Cell<u64>; PLACES],
}

type Slots = MutexGuard<'static, Vec<Arc<Slot>>>;

/// Locks the slots.
fn slots() -> Slots {
    static HELD_BY_FORKS: LazyLock<()> = LazyLock::new(forks::register);
    LazyLock::force(&HELD_BY_FORKS);
    SLOTS.lock().unwrap_or_else(PoisonError::into_inner) // no holder of it panics
}

thread_local! {
    static LOCAL: Local =
        const { Local { slot: OnceCell::new(), pins: [const { Cell::new(0) }; PLACES] } };
}

impl Local {
    #[inline(always)]
    fn slot(&self) -> &(Arc<Slot>, bool) {
        self.slot.get_or_init(Self::register)
    }

    #[cold]
    fn register() -> (Arc<Slot>, bool) {
        let slot = Arc::new(Slot([const { AtomicU64::new(IDLE) }; PLACES]));
        slots().push(Arc::clone(&slot));
        (slot, *HAS_MEMBARRIER)
    }

    #[inline(always)]
    fn enter(&self, place: usize, domain: Readers) {
        self.pins[place].set(domain.0 + 1);
        let (slot, has_membarrier) = self.slot();
        slot.0[place].store(domain.0 | EPOCH.load(Ordering::Acquire), Ordering::Relaxed);
        if *has_membarrier {
            compiler_fence(Ordering::SeqCst);
        } else {
            full_fence();
        }
    }

    /// Pins in `domain` while place 0 serves another one, and returns the place.
    #[cold]
    fn enter_beside(&self, domain: Readers) -> usize {
        let covers = |pins: u64| {
            let is_of_every_pool = pins <= EPOCH_MASK;
            pins != 0 && (is_of_every_pool || pins ^ domain.0 <= EPOCH_MASK)
        };
        if let Some(place) = self.pins.iter().position(|pins| covers(pins.get())) {
            self.pins[place].set(self.pins[place].get() + 1);
            return place;
        }
        let own = self.pins[1..PLACES - 1].iter().position(|pins| pins.get() == 0);
        let (place, domain) = own.map_or((PLACES - 1, Readers::EVERY), |at| (1 + at, domain));
        self.enter(place, domain);
        place
    }
}

/// Out of line, so that pinning stays short enough to be inlined.
#[cold]
fn full_fence() {
    fence(Ordering::SeqCst);
}

impl Drop for Local {
    fn drop(&mut self) {
        if let Some((slot, _)) = self.slot.get() {
            slots().retain(|other| !Arc::ptr_eq(slot, other));
        }
    }
}

/// A pin of the current thread. Until it is dropped, no block is freed that the thread may reach in
/// the pool, or in the pools, of the pin.
pub struct Guard {
    /// The place in the slot of the thread, below [`PLACES`]; or the address of the slot that this
    /// pin alone has.
    place: usize,
    // A pin belongs to its thread, so the guard is neither `Send` nor `Sync`.
    _thread: PhantomData<*const ()>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Guard")
    }
}

impl Drop for Guard {
    #[inline]
    fn drop(&mut self) {
        let place = self.place % PLACES; // its thread has a slot, or `LOCAL` is gone
        let unpinned = LOCAL.try_with(|local| {
            let pins = local.pins[place].get();
            if pins & EPOCH_MASK > 1 {
                local.pins[place].set(pins - 1);
            } else {
                local.pins[place].set(0);
                local.slot().0.0[place].store(IDLE, Ordering::Release);
            }
        });
        if unpinned.is_err() {
            self.unpin_late();
        }
    }
}

impl Guard {
    /// Ends a pin of a thread that ends. `LOCAL` may also be gone before the last guard of its
    /// slot, which is then gone as well.
    #[cold]
    fn unpin_late(&self) {
        if self.place >= PLACES {
            slots().retain(|slot| Arc::as_ptr(slot).addr() != self.place);
        }
    }
}

/// Pins the current thread in every pool of the process. [`Pool::pin`](crate::Pool::pin) pins it in
/// one, and holds back no other.
pub fn pin() -> Guard {
    Readers::EVERY.pin()
}

/// Sets the number of pins of this thread under its pin of every pool, and returns the former one.
/// For a scheduler that runs several threads under test on this thread, each with pins of its own.
/// It must hold a [`Guard`] of [`pin`] meanwhile, and both numbers must count that guard.
#[doc(hidden)]
pub fn exchange_pins(pins: u64) -> u64 {
    LOCAL.with(|local| {
        let former = local.pins[0].replace(pins);
        debug_assert!(pins > 0 && former > 0 && former <= EPOCH_MASK, "the scheduler is pinned");
        former
    })
}

impl Readers {
    const EVERY: Self = Self(0);

    /// Returns the domain of a new pool.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed) % u64::from(u16::MAX) + 1;
        Self(number << EPOCH_BITS)
    }

    /// Pins the current thread. Pins nest; a nested one costs one addition.
    #[inline(always)]
    pub(crate) fn pin(self) -> Guard {
        let place = LOCAL.try_with(|local| {
            let pins = local.pins[0].get();
            if pins == 0 {
                local.enter(0, self);
                0
            } else if pins ^ self.0 <= EPOCH_MASK {
                local.pins[0].set(pins + 1);
                0
            } else {
                local.enter_beside(self)
            }
        });
        match place {
            Ok(place) => Guard { place, _thread: PhantomData },
            Err(_) => self.pin_late(),
        }
    }

    /// Pins a thread that ends: a destructor of a thread-local runs, and `LOCAL` is gone. The pin
    /// has a slot of its own.
    #[cold]
    fn pin_late(self) -> Guard {
        let slot = Arc::new(Slot([const { AtomicU64::new(IDLE) }; PLACES]));
        slot.0[0].store(self.0 | EPOCH.load(Ordering::Acquire), Ordering::Relaxed);
        slots().push(Arc::clone(&slot));
        fence(Ordering::SeqCst);
        Guard { place: Arc::as_ptr(&slot).addr(), _thread: PhantomData }
    }

    /// Returns the epoch of a retirement. The caller has unlinked the block before.
    pub(crate) fn retirement_epoch() -> u64 {
        // This fence orders the unlinking before the load of the epoch. So a thread that is pinned
        // in a later epoch than the one read here sees the unlinking.
        fence(Ordering::SeqCst);
        EPOCH.load(Ordering::SeqCst)
    }

    /// Begins an epoch, and returns the oldest in which a thread is pinned in this domain. No
    /// reader holds a block of the domain that was retired before that epoch.
    #[cold]
    pub(crate) fn oldest_pinned_epoch(self) -> u64 {
        let now = EPOCH.fetch_add(1, Ordering::SeqCst) + 1;
        if *HAS_MEMBARRIER {
            if !barrier::all_threads() {
                return 0; // A filter of calls that was set since refuses it: nothing comes free.
            }
        } else {
            fence(Ordering::SeqCst);
        }
        let mut oldest = now;
        for place in slots().iter().flat_map(|slot| &slot.0) {
            let pin = place.load(Ordering::Acquire);
            let domain = pin & !EPOCH_MASK;
            if pin != IDLE && (domain == self.0 || domain == Self::EVERY.0) {
                oldest = oldest.min(pin & EPOCH_MASK);
            }
        }
        oldest
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

    pub(super) fn all_threads() -> bool {
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
mod barrier {
    pub(super) fn register() -> bool {
        false
    }
    pub(super) fn all_threads() -> bool {
        false
    }
}

/// The lock of the slots at a fork (I5).
#[cfg(all(target_os = "linux", not(miri)))]
mod forks {
    #![expect(unsafe_code, reason = "a call of the C library that the bindings have no form for")]

    use super::{SLOTS, Slots};
    use core::cell::Cell;

    /// The number of tries after which a fork goes on without the lock: a signal handler that forks
    /// may have interrupted its holder.
    const TRIES: u32 = 1 << 16;

    thread_local! {
        static HELD: Cell<Option<Slots>> = const { Cell::new(None) };
    }

    extern "C" fn lock() {
        for _ in 0..TRIES {
            if let Ok(slots) = SLOTS.try_lock() {
                let _ = HELD.try_with(|held| held.set(Some(slots)));
                return;
            }
            std::thread::yield_now();
        }
    }

    extern "C" fn unlock() {
        let _ = HELD.try_with(Cell::take);
    }

    /// If this fails, for want of memory, forks go on without the lock.
    pub(super) fn register() {
        // SAFETY: the functions stay, and lock and unlock on the thread that forks.
        let _ = unsafe { libc::pthread_atfork(Some(lock), Some(unlock), Some(unlock)) };
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
mod forks {
    pub(super) fn register() {}
}

/// Tests that pin every pool write-lock this; tests that expect frees read-lock it.
#[cfg(test)]
pub(crate) static PINS_EVERY_POOL: parking_lot::RwLock<()> = parking_lot::RwLock::new(());

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicBool;

    /// Returns `true` if a block of `domain` that was retired in `epoch` may be freed.
    fn comes_free(domain: Readers, epoch: u64) -> bool {
        domain.oldest_pinned_epoch() > epoch
    }

    #[test]
    fn nothing_is_freed_while_a_thread_that_may_hold_it_is_pinned() {
        let _others = PINS_EVERY_POOL.read();
        let domain = Readers::new();
        let outer = domain.pin();
        let inner = domain.pin();
        let epoch = Readers::retirement_epoch();
        drop(inner);
        std::thread::scope(|scope| {
            scope.spawn(|| (0..9).for_each(|_| assert!(domain.oldest_pinned_epoch() <= epoch)));
        });
        drop(outer);
        assert!(comes_free(domain, epoch));
    }

    /// A thread of the parent has the lock at the fork. No thread of the child ever unlocked it, so
    /// a child with stores of its own waited for ever.
    #[test]
    #[cfg_attr(miri, ignore = "it forks")]
    #[expect(unsafe_code, reason = "a fork")]
    fn a_child_of_a_fork_frees_whatever_threads_of_its_parent_held() {
        const TURNS: u32 = 10_000;
        const SECONDS_MAX: u32 = 60;
        let is_held = AtomicBool::new(false);
        let child = std::thread::scope(|scope| {
            scope.spawn(|| {
                let held = slots();
                is_held.store(true, Ordering::Release);
                (0..TURNS).for_each(|_| std::thread::yield_now());
                drop(held);
            });
            while !is_held.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            // SAFETY: the child uses no other lock, and ends with `_exit`.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: the calls end the process, the first of them if the child hangs.
                unsafe { libc::alarm(SECONDS_MAX) };
                let is_right = Readers::new().oldest_pinned_epoch() > 0;
                // SAFETY: as above.
                unsafe { libc::_exit(i32::from(!is_right)) };
            }
            child
        });
        let mut status = 0;
        // SAFETY: the pointer is valid.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child ends, and not by the alarm");
    }

    #[test]
    fn a_pin_of_one_pool_holds_back_no_other() {
        let _others = PINS_EVERY_POOL.read();
        let [read, written] = [Readers::new(), Readers::new()];
        let reader = read.pin();
        // The same thread writes to the other pool, as it does when it copies a store.
        let writer = written.pin();
        let epoch = Readers::retirement_epoch();
        drop(writer);
        assert!(comes_free(written, epoch));
        assert!(read.oldest_pinned_epoch() <= epoch);
        drop(reader);
    }

    #[test]
    fn a_pin_of_every_pool_holds_back_each() {
        let domain = Readers::new();
        let _alone = PINS_EVERY_POOL.write();
        let epoch;
        {
            let _every = pin();
            let _nested = domain.pin();
            epoch = Readers::retirement_epoch();
            assert!(domain.oldest_pinned_epoch() <= epoch);
        }
        assert!(comes_free(domain, epoch));
    }

    #[test]
    fn pins_beyond_the_places_of_a_slot_hold_back_their_pools() {
        let domains: Vec<_> = (0..2 * PLACES).map(|_| Readers::new()).collect();
        let _alone = PINS_EVERY_POOL.write();
        // Guards may be dropped in any order.
        let mut guards: Vec<_> = domains.iter().map(|domain| Some(domain.pin())).collect();
        let epoch = Readers::retirement_epoch();
        for (at, domain) in domains.iter().enumerate() {
            assert!(domain.oldest_pinned_epoch() <= epoch);
            guards[(at * 5) % (2 * PLACES)] = None;
            let again = domain.pin();
            assert!(domain.oldest_pinned_epoch() <= Readers::retirement_epoch());
            drop(again);
        }
        assert!(domains.iter().all(|&domain| comes_free(domain, epoch)));
    }

    /// Readers follow a pointer to a cell. A writer keeps replacing it and poisons each old cell
    /// when it is freed.
    #[test]
    fn readers_never_see_a_freed_cell() {
        const POISON: u64 = u64::MAX;
        let domain = Readers::new();
        let cells: Vec<AtomicU64> = (0..4096).map(|_| AtomicU64::new(POISON)).collect();
        let current = AtomicU64::new(0);
        let done = AtomicBool::new(false);
        cells[0].store(0, Ordering::SeqCst);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !done.load(Ordering::Acquire) {
                        let _guard = domain.pin();
                        let at = current.load(Ordering::Acquire) as usize;
                        for _ in 0..50 {
                            assert_ne!(cells[at].load(Ordering::Acquire), POISON);
                        }
                    }
                });
            }
            let mut free: Vec<_> = (1..4096u64).collect();
            let mut retired = std::collections::VecDeque::new();
            for round in 0..200_000 {
                if round % 64 == 0 {
                    let oldest = domain.oldest_pinned_epoch();
                    while let Some(&(_, old)) = retired.front().filter(|(epoch, _)| *epoch < oldest)
                    {
                        cells[old as usize].store(POISON, Ordering::Release);
                        free.push(old);
                        retired.pop_front();
                    }
                }
                let Some(at) = free.pop() else { continue };
                cells[at as usize].store(round, Ordering::Release);
                let _guard = domain.pin();
                let old = current.swap(at, Ordering::AcqRel);
                retired.push_back((Readers::retirement_epoch(), old));
            }
            done.store(true, Ordering::Release);
        });
    }
}
