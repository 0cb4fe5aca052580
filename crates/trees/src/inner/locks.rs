//! The lock array of a lowest inner node, as in Isle-Tree: a lock for each leaf below. It lies in
//! DRAM, so a lock causes no write to persistent memory.
//!
//! 1. A leaf's lock has a number, which the low bits of the pointer to the leaf hold. So an entry
//!    that shifts within its node keeps its lock, and a leaf that replaces another inherits it.
//! 2. A thread that moves a leaf to another node, or unlinks it, holds its lock meanwhile. So a
//!    held lock protects its leaf, whatever happens to the node.
//! 3. A thread takes locks from the left to the right. While it waits for one of several, that lock
//!    is still the leaf's, or the node has lost keys and the thread gives up.
//! 4. A lock has a version, so readers take none.

use super::node::{FANOUT, NodeView};
use crate::node_latch::{HeldLatch, NodeLatch};
use bristlecone_pmem::sync::LatchWord;
use bristlecone_pmem::{Medium, PmPtr};
use core::sync::atomic::AtomicU64;

/// The number of locks of a node, one for each child.
pub(super) const LOCKS: usize = 32;
/// The bits of a pointer to a leaf that are the number of its lock.
const NUMBER: u64 = LOCKS as u64 - 1;

const _: () = assert!(FANOUT < LOCKS);

/// The locks of the leaves below a node.
pub(crate) type LockArray = [AtomicU64; LOCKS];

/// Returns the leaf that a child word of a node with locks points to.
#[inline(always)]
pub(super) fn leaf_of(child: u64) -> PmPtr {
    PmPtr::new(child & !NUMBER)
}

/// Returns the number of the leaf's lock.
#[inline(always)]
pub(super) fn lock_of(child: u64) -> usize {
    (child & NUMBER) as usize
}

/// Returns the child word for `leaf` with the lock of number `lock`.
pub(super) fn child_word(leaf: PmPtr, lock: usize) -> u64 {
    debug_assert!(leaf.offset() & NUMBER == 0 && lock < LOCKS);
    leaf.offset() | lock as u64
}

/// Returns the number of a lock that no child of `node` has, which is latched or not reachable yet.
pub(super) fn free_lock<'a, M: Medium>(node: impl NodeView<'a, M>) -> usize {
    let taken = (0..=node.count()).fold(0u32, |taken, at| taken | 1 << lock_of(node.child(at)));
    taken.trailing_ones() as usize
}

/// Waits for the lock of the child word `child` and takes it. Gives up once `is_worth` returns
/// `false`.
#[inline(always)]
pub(super) fn wait_for<M: Medium>(
    locks: &LockArray,
    child: u64,
    is_worth: impl Fn() -> bool,
) -> Option<HeldLatch<'_, M>> {
    let latch = NodeLatch::of(&locks[lock_of(child)]);
    let mut spins = 0;
    while is_worth() {
        if let Some(guard) = latch.try_lock() {
            return Some(guard);
        }
        NodeLatch::<M>::relax(&mut spins);
    }
    None
}
