//! Latches and log slots under loom: all interleavings and all reorderings of the memory model, up
//! to three preemptions. Run with
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p bristlecone-pmem --release --lib loom
//! ```

use super::latch::NONCE_SHIFT;
use super::{Latch, LatchWord};
use crate::log::{return_slot, take_slot};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

/// A word of a pool, or of DRAM: loaded with acquire ordering, stored with release ordering.
///
/// Loom remembers only the last access of each object. So a thread that loads a word before it
/// writes it hides its race with an earlier load by another thread, and loom misses orders. An
/// access to `access_count` before each access of the word keeps all of them apart. It is relaxed,
/// so it orders nothing.
struct Word {
    value: AtomicU64,
    access_count: AtomicU64,
}

impl Word {
    fn new(value: u64) -> Self {
        Self { value: AtomicU64::new(value), access_count: AtomicU64::new(0) }
    }
}

impl LatchWord for &Word {
    fn load(self) -> u64 {
        self.access_count.fetch_add(1, Ordering::Relaxed);
        self.value.load(Ordering::Acquire)
    }
    fn store(self, value: u64) {
        self.access_count.fetch_add(1, Ordering::Relaxed);
        self.value.store(value, Ordering::Release);
    }
    fn replace(self, old: u64, new: u64) -> bool {
        self.access_count.fetch_add(1, Ordering::Relaxed);
        self.value.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
    /// After two failed attempts, a thread tries again only if no other thread can run. Loom does
    /// not distinguish the orders in which several such threads try, because there is no end of
    /// them.
    fn relax(spins: &mut u32) {
        *spins += 1;
        if *spins > 2 {
            loom::skip_branch();
        }
        thread::yield_now();
    }
}

fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// Runs each of `bodies` on `shared`, the first on this thread and each other one on its own.
fn together<T: Send + Sync + 'static>(shared: &Arc<T>, bodies: Vec<fn(&T)>) {
    let mut bodies = bodies.into_iter();
    let own = bodies.next();
    let others: Vec<_> = bodies
        .map(|body| {
            let shared = Arc::clone(shared);
            thread::spawn(move || body(&shared))
        })
        .collect();
    if let Some(body) = own {
        body(shared);
    }
    for other in others {
        other.join().unwrap();
    }
}

/// A node with a latch and two words, which a writer keeps equal.
struct Node {
    latch: Word,
    left: Word,
    right: Word,
    won: AtomicU64,
}

impl Node {
    fn new(latch: u64) -> Arc<Self> {
        Arc::new(Self {
            latch: Word::new(latch),
            left: Word::new(0),
            right: Word::new(0),
            won: AtomicU64::new(0),
        })
    }

    fn latch(&self) -> Latch<&Word> {
        Latch::new(&self.latch, 2)
    }

    fn pair(&self) -> (u64, u64) {
        (self.left.load(), self.right.load())
    }

    /// Adds one to both words. Without the latch, an addition is lost.
    fn add_one(&self) {
        let (left, right) = self.pair();
        assert_eq!(left, right, "a writer is alone");
        self.left.store(left + 1);
        self.right.store(right + 1);
    }

    fn write(&self) {
        let held = self.latch().lock().unwrap();
        self.add_one();
        drop(held);
    }

    fn upgrade_once(&self) {
        let latch = self.latch();
        let seen = latch.read().unwrap();
        let (left, right) = self.pair();
        if let Some(held) = latch.upgrade(seen) {
            assert_eq!(
                (left, right),
                self.pair(),
                "an upgrade proves that the words read before it are unchanged"
            );
            self.add_one();
            self.won.fetch_add(1, Ordering::Relaxed);
            drop(held);
        }
    }

    /// Adopts a stale word, as the first thread that visits a node after an open does.
    fn adopt(&self) {
        let latch = self.latch();
        let seen = latch.read().unwrap();
        if latch.is_stale(seen) {
            latch.adopt(seen);
        }
        assert!(!latch.is_stale(latch.read().unwrap()), "a word that is adopted stays so");
    }

    fn read_validated(&self) {
        let latch = self.latch();
        let seen = latch.read().unwrap();
        let (left, right) = self.pair();
        if latch.validate(seen) {
            assert_eq!(left, right, "a validated reader saw a torn pair");
            self.won.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_validated_reader_never_sees_a_torn_pair() {
    explore(|| {
        let node = Node::new(2 << NONCE_SHIFT);
        together(&node, vec![Node::read_validated, Node::write]);
        assert_eq!(node.pair(), (1, 1));
    });
}

#[test]
fn a_reader_among_two_writers_never_sees_a_torn_pair() {
    explore(|| {
        let node = Node::new(2 << NONCE_SHIFT);
        together(&node, vec![Node::read_validated, Node::write, Node::write]);
        assert_eq!(node.pair(), (2, 2));
    });
}

#[test]
fn a_stale_latch_is_adopted_under_no_writer() {
    explore(|| {
        let node = Node::new(1 << NONCE_SHIFT | 1);
        together(&node, vec![Node::adopt, Node::write, Node::read_validated]);
        assert_eq!(node.pair(), (1, 1));
    });
}

#[test]
fn writers_exclude_each_other() {
    explore(|| {
        let node = Node::new(2 << NONCE_SHIFT);
        together(&node, vec![Node::write, Node::write]);
        assert_eq!(node.pair(), (2, 2));
    });
}

#[test]
fn an_upgrade_excludes_every_other_change() {
    explore(|| {
        let node = Node::new(2 << NONCE_SHIFT);
        together(&node, vec![Node::upgrade_once, Node::write]);
        let upgrades = node.won.load(Ordering::Relaxed);
        assert_eq!(node.pair(), (1 + upgrades, 1 + upgrades));
    });
}

#[test]
fn of_two_upgrades_from_one_version_one_succeeds() {
    explore(|| {
        let node = Node::new(2 << NONCE_SHIFT);
        together(&node, vec![Node::upgrade_once, Node::upgrade_once]);
        let upgrades = node.won.load(Ordering::Relaxed);
        assert!(upgrades >= 1 && node.pair() == (upgrades, upgrades));
    });
}

#[test]
fn an_obsolete_latch_fails_every_later_read_and_every_earlier_reader() {
    explore(|| {
        let node = Node::new(2 << NONCE_SHIFT);
        let unlink = |node: &Node| {
            let held = node.latch().lock().unwrap();
            node.left.store(7); // A reader must not use this value of an unlinked node.
            held.obsolete();
        };
        let read = |node: &Node| {
            let Some(seen) = node.latch().read() else {
                assert!(node.latch().lock().is_none(), "an obsolete latch stays obsolete");
                return;
            };
            let left = node.left.load();
            assert!(
                !node.latch().validate(seen) || left == 0,
                "a reader validated an unlinked node"
            );
        };
        together(&node, vec![read, unlink]);
        assert!(node.latch().read().is_none());
    });
}

#[test]
fn a_latch_that_a_crash_left_held_is_taken_by_one() {
    const HELD: u64 = 1;
    explore(|| {
        let node = Node::new(1 << NONCE_SHIFT | HELD);
        together(&node, vec![Node::upgrade_once, Node::upgrade_once]);
        let (left, right) = node.pair();
        assert!(left == right && left >= 1);
        assert_eq!(node.latch.load() >> NONCE_SHIFT, 2);
    });
}

/// Two log slots and their contents.
struct Logs {
    leased: Word,
    slots: [UnsafeCell<u64>; 2],
}

#[expect(unsafe_code, reason = "the cell is shared on purpose, to be checked")]
// SAFETY: loom reports every pair of unordered accesses to a cell.
unsafe impl Sync for Logs {}

impl Logs {
    fn new() -> Arc<Self> {
        Arc::new(Self { leased: Word::new(0), slots: [UnsafeCell::new(0), UnsafeCell::new(0)] })
    }

    /// Uses a slot of `range` as a log does: exclusively, and after all accesses of the last
    /// holder. The cell panics on any access that is not ordered.
    fn transact(&self, range: core::ops::Range<usize>) {
        let slot = take_slot(&self.leased, range);
        #[expect(unsafe_code, reason = "the checked cell is what is tested")]
        // SAFETY: the lease gives this thread the slot alone, which is what loom verifies here.
        self.slots[slot].with_mut(|content| unsafe { *content += 1 });
        return_slot(&self.leased, slot);
    }

    fn total(&self) -> u64 {
        #[expect(unsafe_code, reason = "the checked cell is what is tested")]
        // SAFETY: all threads have been joined.
        self.slots.iter().map(|slot| slot.with(|content| unsafe { *content })).sum()
    }
}

#[test]
fn a_log_slot_has_one_holder_at_a_time() {
    explore(|| {
        let logs = Logs::new();
        let transact: fn(&Logs) = |logs| logs.transact(0..2);
        together(&logs, vec![transact, transact, transact]);
        assert_eq!(logs.total(), 3);
        assert_eq!(logs.leased.load(), 0);
    });
}

#[test]
fn a_thread_waits_for_the_last_slot_until_it_is_returned() {
    explore(|| {
        let logs = Logs::new();
        let transact: fn(&Logs) = |logs| logs.transact(1..2);
        together(&logs, vec![transact, transact]);
        assert_eq!(logs.total(), 2);
    });
}
