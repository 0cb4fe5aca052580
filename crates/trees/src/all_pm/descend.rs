//! Latch-free descents from the root to a leaf.
//!
//! 1. A descent reads a child's version, then validates the parent. So the child was the right node
//!    at that version. What is read in the child counts only after its version has been validated.
//! 2. An error in a node whose version has changed is a torn read, and the operation restarts. An
//!    error in a node whose version holds is damage.

use super::locks::LockArrays;
use super::reader_counts::{ReaderCounts, Readers};
use super::{ANCHOR_LATCH, AllPm, AllPmSpec, anchor_view, read_root};
use crate::index::TreeError;
use crate::key::Key;
use crate::node::{Layout, Ordered, View};
use crate::node_latch::{HeldLatch, NodeLatch};
use bristlecone_pmem::sync::{Guard, Latch, OnMedium, Version};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool, PoolError};
use core::cmp::Ordering;

/// The reason why an attempt ended without a result.
#[derive(Debug)]
pub enum Interrupted {
    /// Another thread changed what this attempt read. A new attempt can succeed.
    Restart,
    /// The attempt failed, and a new one would fail too.
    Failed(TreeError),
}

impl From<Corrupt> for Interrupted {
    fn from(corrupt: Corrupt) -> Self {
        Self::Failed(corrupt.into())
    }
}
impl From<PoolError> for Interrupted {
    fn from(error: PoolError) -> Self {
        Self::Failed(error.into())
    }
}

/// The leaf that a descent looks for.
pub(super) enum DescentTarget<'k, K: Key> {
    /// The leaf with the least keys.
    First,
    /// The leaf with the greatest keys.
    Last,
    /// The leaf whose key range contains the key.
    At(K::Ref<'k>),
    /// The leaf whose key range contains the keys just below this one.
    Below(K::Ref<'k>),
}

impl<K: Key> Clone for DescentTarget<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: Key> Copy for DescentTarget<'_, K> {}

/// The level of the root block, as the parent of the root.
const ROOT_BLOCK: u64 = u64::MAX;

/// The guard of a node's latch.
pub(super) type NodeGuard<'a, M> = HeldLatch<'a, M>;

/// A node that a descent reached, and the version that it had then.
#[derive(Debug)]
pub struct NodeRef<'a, M> {
    pub(super) at: PmPtr,
    pub(super) view: View<'a, M>,
    pub(super) level: u64,
    latch: Latch<NodeLatch<'a, M>>,
    version: Version,
    /// The readers of the node, if the design counts them.
    readers: Option<Readers<'a, M>>,
}

impl<M> Clone for NodeRef<'_, M> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<M> Copy for NodeRef<'_, M> {}

impl<'a, M: Medium> NodeRef<'a, M> {
    /// Returns the node at `at`, which had `version` when its level was checked.
    #[inline(always)]
    pub(super) fn new(
        at: PmPtr,
        view: View<'a, M>,
        level: u64,
        (latch, version): (Latch<NodeLatch<'a, M>>, Version),
        readers: Option<Readers<'a, M>>,
    ) -> Self {
        Self { at, view, level, latch, version, readers }
    }

    /// Returns `node`, which lies at `at` and which `parent` pointed to, if `parent` has not
    /// changed since.
    #[inline(always)]
    #[track_caller]
    pub(super) fn entered(
        node: Option<Self>,
        at: PmPtr,
        view: View<'_, M>,
        parent: &NodeRef<'_, M>,
    ) -> Result<Self, Interrupted> {
        match node {
            _ if !parent.holds() => Err(Interrupted::Restart),
            Some(node) => Ok(node),
            // A thread that unlinks a node changes its parent before it releases either latch. So a
            // valid parent never points to an obsolete node.
            None => Err(view.corrupt(0, "pointer to an obsolete node", 0, at.offset()).into()),
        }
    }

    /// Returns `true` if the node has not changed since the descent reached it.
    #[inline(always)]
    #[track_caller]
    pub(super) fn holds(&self) -> bool {
        self.latch.validate(self.version)
    }

    /// Returns `read`, a result read from this node, if the node has not changed since.
    #[inline(always)]
    #[track_caller]
    pub(super) fn certify<T>(&self, read: Result<T, Corrupt>) -> Result<T, Interrupted> {
        if self.holds() { read.map_err(Interrupted::from) } else { Err(Interrupted::Restart) }
    }

    /// Takes the latch if the node has not changed since the descent reached it, and waits until
    /// counted readers have left it.
    #[inline(always)]
    #[track_caller]
    pub(super) fn upgrade(&self) -> Result<NodeGuard<'a, M>, Interrupted> {
        let guard = self.latch.upgrade(self.version).ok_or(Interrupted::Restart)?;
        if let Some(readers) = self.readers {
            readers.wait_until_none();
        }
        Ok(guard)
    }

    /// Returns the readers of the node, if the design counts them.
    #[inline(always)]
    pub(super) fn readers(&self) -> Option<Readers<'a, M>> {
        self.readers
    }

    /// Takes the latch, as [`upgrade`](Self::upgrade), beside those of `held`. Returns `None` if
    /// one of these has the same latch.
    #[inline(always)]
    #[track_caller]
    pub(super) fn upgrade_beside(
        &self,
        held: &[NodeRef<'_, M>],
    ) -> Result<Option<NodeGuard<'a, M>>, Interrupted> {
        match held.iter().find(|other| other.latch.word().is_same(&self.latch.word())) {
            Some(other) if other.version == self.version => Ok(None),
            Some(_) => Err(Interrupted::Restart),
            None => self.upgrade().map(Some),
        }
    }

    /// Takes the latches of `nodes` beside those of `held`.
    pub(super) fn upgrade_all(
        nodes: &[Self],
        held: &[Self],
    ) -> Result<Vec<NodeGuard<'a, M>>, Interrupted> {
        let mut held = held.to_vec();
        let mut guards = Vec::new();
        for node in nodes {
            guards.extend(node.upgrade_beside(&held)?);
            held.push(*node);
        }
        Ok(guards)
    }

    /// Returns the node at its present version.
    pub(super) fn reread(&self) -> Result<Self, Interrupted> {
        let version = self.latch.read().ok_or(Interrupted::Restart)?;
        Ok(Self { version, ..*self })
    }

    /// Returns the node for [`LockArrays`]: `None` for the root block.
    #[inline(always)]
    pub(super) fn key(&self) -> Option<PmPtr> {
        (self.level != ROOT_BLOCK).then_some(self.at)
    }

    /// Takes the latch even if the node has changed: only for an injected defect.
    #[cold]
    pub(super) fn lock(&self) -> Result<NodeGuard<'a, M>, Interrupted> {
        self.latch.lock().ok_or(Interrupted::Restart)
    }
}

/// The last two nodes of a descent.
#[derive(Debug)]
pub struct Path<'a, M> {
    /// The parent; the root block if the node is the root.
    pub(super) parent: NodeRef<'a, M>,
    /// The node that the descent reached.
    pub(super) node: NodeRef<'a, M>,
    /// The number of separators in the parent that are at or below the node's keys.
    pub(super) rank: usize,
    /// The separator word that is the node's lower bound; `None` for the leftmost node of a level.
    pub(super) low: Option<u64>,
    /// `true` if the node is the root.
    pub(super) is_root: bool,
}

impl<M> Clone for Path<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M> Copy for Path<'_, M> {}

/// Two siblings. `between` is the rank, in their parent, of the separator between them.
#[derive(Debug)]
pub struct Siblings<'a, M> {
    pub(super) left: NodeRef<'a, M>,
    pub(super) right: NodeRef<'a, M>,
    pub(super) between: usize,
}

/// Pins the thread in `pool` and runs `attempt` until it returns anything but a restart.
#[inline(always)]
pub(super) fn retry<M: Medium, T>(
    pool: &Pool<M>,
    mut attempt: impl FnMut(&Guard) -> Result<T, Interrupted>,
) -> Result<T, TreeError> {
    let guard = pool.pin();
    loop {
        match attempt(&guard) {
            Ok(done) => return Ok(done),
            Err(Interrupted::Restart) => core::hint::spin_loop(),
            Err(Interrupted::Failed(error)) => return Err(error),
        }
    }
}

/// Returns the root block at `anchor` as the parent of the root node.
#[inline(always)]
pub(super) fn start<'a, M: Medium>(
    pool: &'a Pool<M>,
    anchor: PmPtr,
    counts: Option<&'a ReaderCounts>,
) -> Result<NodeRef<'a, M>, Interrupted> {
    let view = anchor_view(pool, anchor)?;
    let latch = OnMedium::latch(view.medium(), view.word(ANCHOR_LATCH), pool.nonce());
    let latch = latch.map(NodeLatch::InNode);
    let version = latch.read().ok_or(Interrupted::Restart)?;
    let readers = counts.map(|counts| counts.of(anchor));
    Ok(NodeRef { at: anchor, view, level: ROOT_BLOCK, latch, version, readers })
}

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    /// Pins the thread and runs `attempt` until it returns anything but a restart.
    #[inline(always)]
    pub(super) fn retry<'a, T>(
        &'a self,
        mut attempt: impl FnMut(&'a Self, &Guard) -> Result<T, Interrupted>,
    ) -> Result<T, TreeError> {
        retry(&self.pool, |guard| attempt(self, guard))
    }

    /// Enters the child at `at`. The caller has validated the pointer, which was read in `parent`.
    #[inline(always)]
    pub(super) fn enter<'a>(
        &'a self,
        at: PmPtr,
        level: u64,
        parent: &NodeRef<'_, M>,
    ) -> Result<NodeRef<'a, M>, Interrupted> {
        let view = self.node(at)?;
        let ahead = if level == 0 { S::LEAF_PREFETCH_WORDS } else { S::INNER_PREFETCH_WORDS };
        if ahead > 0 {
            self.medium().prefetch(&view.words()[..ahead]);
        }
        let node = self.arrive(at, view, level, parent)?;
        NodeRef::entered(node, at, view, parent)
    }

    /// Reads the version of the node at `at`, a child of `parent`, and checks its level. Returns
    /// `None` if the node is obsolete.
    #[inline(always)]
    pub(super) fn arrive<'a>(
        &'a self,
        at: PmPtr,
        view: View<'a, M>,
        level: u64,
        parent: &NodeRef<'_, M>,
    ) -> Result<Option<NodeRef<'a, M>>, Corrupt> {
        let latch = match self.lock_arrays() {
            Some(arrays) => NodeLatch::of(arrays.lock(parent.key(), at)),
            None => self.latch_in(view, level).map(NodeLatch::InNode),
        };
        let check = || self.structure().check_latched(at, view, level);
        let Some(version) = latch.read_checked(check)? else { return Ok(None) };
        Self::check_level(view, level)?;
        let readers = self.reader_counts().map(|counts| counts.of(at));
        Ok(Some(NodeRef { at, view, level, latch, version, readers }))
    }

    /// Returns the numbers of readers, if the design counts them.
    #[inline(always)]
    pub(super) fn reader_counts(&self) -> Option<&ReaderCounts> {
        if S::COUNTS_READERS { self.readers.as_ref() } else { None }
    }

    /// Calls `read`, during which this thread counts as a reader of `node` if the design counts
    /// readers.
    #[inline(always)]
    pub(super) fn reading<T>(node: &NodeRef<'_, M>, read: impl FnOnce() -> T) -> T {
        let _reader = if S::COUNTS_READERS { node.readers().map(Readers::enter) } else { None };
        read()
    }

    /// Returns the lock arrays, if the design has them.
    #[inline(always)]
    pub(super) fn lock_arrays(&self) -> Option<&LockArrays> {
        if S::HAS_LOCKS { self.locks.as_ref() } else { None }
    }

    /// Returns the latch in a node.
    #[inline(always)]
    fn latch_in<'a>(&self, view: View<'a, M>, level: u64) -> Latch<OnMedium<'a, M>> {
        let (word, bits) = if level == 0 {
            (S::Leaf::LATCH, S::Leaf::LATCH_BITS)
        } else {
            (S::Inner::LATCH, S::Inner::LATCH_BITS)
        };
        OnMedium::latch_in(view.medium(), view.word(word), bits, self.pool.nonce())
    }

    /// Checks that the node's header names `level`.
    ///
    /// # Errors
    /// The header names another level, or belongs to no node of this layout.
    #[inline(always)]
    pub(super) fn check_level(view: View<'_, M>, level: u64) -> Result<(), Corrupt> {
        let found = if level == 0 { S::Leaf::level(view)? } else { S::Inner::level(view)? };
        if found == level { Ok(()) } else { Err(view.corrupt(0, "level of a node", level, found)) }
    }

    /// Returns the number of separators in an inner node at or below `target`: the rank of its
    /// child.
    #[inline(always)]
    pub(super) fn rank(
        &self,
        node: View<'_, M>,
        target: DescentTarget<'_, K>,
    ) -> Result<usize, Corrupt> {
        let order = |word, key| K::order(&self.pool, word, key);
        match target {
            DescentTarget::First => Ok(0),
            DescentTarget::Last => S::Inner::partition(node, |_| Ok(true)),
            DescentTarget::At(key) => {
                S::Inner::partition(node, |e| Ok(order(e.key, key)? != Ordering::Greater))
            }
            DescentTarget::Below(key) => {
                S::Inner::partition(node, |e| Ok(order(e.key, key)? == Ordering::Less))
            }
        }
    }

    /// Returns the child of `rank` in an inner node, and the separator before it, if any.
    #[inline(always)]
    pub(super) fn child(node: View<'_, M>, rank: usize) -> Result<(PmPtr, Option<u64>), Corrupt> {
        Ok(match rank.checked_sub(1) {
            None => (PmPtr::new(S::Inner::link(node)), None),
            Some(last) => {
                let entry = S::Inner::nth(node, last)?.entry;
                (PmPtr::new(entry.value), Some(entry.key))
            }
        })
    }

    /// Descends to the leaf of `target`. Ends early at the first node for which `stop` returns a
    /// value.
    #[inline(always)]
    pub(super) fn descend<'a, T>(
        &'a self,
        target: DescentTarget<'_, K>,
        mut stop: impl FnMut(&Path<'a, M>) -> Result<Option<T>, Interrupted>,
    ) -> Result<(Path<'a, M>, Option<T>), Interrupted> {
        let parent = start(&self.pool, self.anchor, self.reader_counts())?;
        let (at, level) = parent.certify(Self::reading(&parent, || read_root(parent.view)))?;
        let node = self.enter(at, level, &parent)?;
        let mut path = Path { parent, node, rank: 0, low: None, is_root: true };
        loop {
            let stopped = stop(&path)?;
            if stopped.is_some() || path.node.level == 0 {
                return Ok((path, stopped));
            }
            let Path { mut node, low, .. } = path;
            let turns = self.lock_arrays().map(|arrays| arrays.turns::<M>(node.key()));
            let (rank, separator, child) = loop {
                let step = Self::reading(&node, || {
                    let rank = self.rank(node.view, target)?;
                    Ok((rank, Self::child(node.view, rank)?))
                });
                let (rank, (at, separator)) = self.step_or_repair(&node, step)?;
                match self.enter(at, node.level - 1, &node) {
                    Err(Interrupted::Restart) if turns.is_some() => {
                        node = self.recheck(&node, turns)?;
                    }
                    entered => break (rank, separator, entered?),
                }
            };
            let low = separator.or(low);
            path = Path { parent: node, node: child, rank, low, is_root: false };
        }
    }

    /// Returns `step`, which was read in an inner node, or repairs the node and asks for a restart
    /// if a crash has left it in need of that.
    #[inline(always)]
    #[track_caller]
    pub(super) fn step_or_repair<T>(
        &self,
        node: &NodeRef<'_, M>,
        step: Result<T, Corrupt>,
    ) -> Result<T, Interrupted> {
        if S::Inner::REPAIRS_ON_USE && step.is_err() && S::Inner::needs_repair(node.view) {
            return Err(self.structure().repair_inner(node));
        }
        node.certify(step)
    }

    /// Returns `node` at its present version, if it still covers what it did when it had taken
    /// `turns`: a child has been split, replaced or merged.
    #[cold]
    fn recheck<'a>(
        &self,
        node: &NodeRef<'a, M>,
        turns: Option<u64>,
    ) -> Result<NodeRef<'a, M>, Interrupted> {
        let node = node.reread()?;
        let now = self.lock_arrays().map(|arrays| arrays.turns::<M>(node.key()));
        if now == turns { Ok(node) } else { Err(Interrupted::Restart) }
    }

    /// Descends to the leaf of `target`.
    #[inline(always)]
    pub(super) fn leaf(&self, target: DescentTarget<'_, K>) -> Result<Path<'_, M>, Interrupted> {
        if M::COMPACT { self.leaf_called(target) } else { self.leaf_inlined(target) }
    }

    /// [`leaf`](Self::leaf), for callers that gain nothing from a copy of their own.
    #[inline(never)]
    pub(super) fn leaf_called(
        &self,
        target: DescentTarget<'_, K>,
    ) -> Result<Path<'_, M>, Interrupted> {
        self.leaf_inlined(target)
    }

    #[inline(always)]
    fn leaf_inlined(&self, target: DescentTarget<'_, K>) -> Result<Path<'_, M>, Interrupted> {
        self.descend(target, |_| Ok(None::<()>)).map(|(path, _)| path)
    }
}
