//! The latch of a node: in the node, or in a lock array of the node above it.

use bristlecone_pmem::Medium;
use bristlecone_pmem::sync::{Exclusive, Latch, LatchBits, LatchWord, OnDram, OnMedium};
use core::panic::Location;
use core::sync::atomic::AtomicU64;

/// The word of a node's latch.
#[derive(Debug)]
pub enum NodeLatch<'a, M> {
    /// A word of the node.
    InNode(OnMedium<'a, M>),
    /// A lock in the array of the node above it, which the node's successors inherit.
    InParent(OnDram<'a, M>),
}

impl<M> Clone for NodeLatch<'_, M> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<M> Copy for NodeLatch<'_, M> {}

impl<'a, M: Medium> NodeLatch<'a, M> {
    /// Returns the lock in `word`.
    #[inline(always)]
    pub(crate) fn of(word: &'a AtomicU64) -> Latch<Self> {
        OnDram::latch(word).map(Self::InParent)
    }

    /// Returns `true` if this and `other` are one lock.
    pub(crate) fn is_same(&self, other: &NodeLatch<'_, M>) -> bool {
        match (self, other) {
            (Self::InParent(word), NodeLatch::InParent(other)) => word.is_same(other),
            _ => false,
        }
    }
}

impl<M: Medium> LatchWord for NodeLatch<'_, M> {
    #[inline(always)]
    fn load(self) -> u64 {
        match self {
            Self::InNode(word) => word.load(),
            Self::InParent(word) => word.load(),
        }
    }
    #[inline(always)]
    fn store(self, value: u64) {
        match self {
            Self::InNode(word) => word.store(value),
            Self::InParent(word) => word.store(value),
        }
    }
    #[inline(always)]
    fn replace(self, old: u64, new: u64) -> bool {
        match self {
            Self::InNode(word) => word.replace(old, new),
            Self::InParent(word) => word.replace(old, new),
        }
    }
    #[inline(always)]
    fn bits(self) -> LatchBits {
        match self {
            Self::InNode(word) => word.bits(),
            Self::InParent(_) => LatchBits::Whole,
        }
    }
    #[inline(always)]
    fn is_plausible(self, value: u64) -> bool {
        match self {
            Self::InNode(word) => word.is_plausible(value),
            Self::InParent(_) => true,
        }
    }
    #[inline(always)]
    fn relax(spins: &mut u32) {
        OnMedium::<'_, M>::relax(spins);
    }
    #[inline(always)]
    fn first_version(bits: LatchBits) -> u64 {
        OnMedium::<'_, M>::first_version(bits)
    }
    #[inline(always)]
    fn outlives_node(self) -> bool {
        matches!(self, Self::InParent(_))
    }
    #[inline(always)]
    fn skip_validation(at: &'static Location<'static>) -> bool {
        OnMedium::<'_, M>::skip_validation(at)
    }
}

/// The guard of a node's latch.
pub(crate) type HeldLatch<'a, M> = Exclusive<NodeLatch<'a, M>>;
