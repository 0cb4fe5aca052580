//! From the root to a leaf, without a latch.
//!
//! 1. A node's version is read, then the node's parent is validated: so the node was the right one
//!    at that version. Whatever is read in the node counts once its version has been validated.
//! 2. A failure in a node whose version has changed is a torn read; one in a node whose version
//!    holds is damage.

use super::{ANCHOR_LATCH, AllPm, AllPmSpec};
use crate::index::TreeError;
use crate::key::Key;
use crate::node::{Layout, Ordered, View};
use bristlecone_pmem::sync::{Exclusive, Guard, Latch, OnMedium, Version, pin};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PoolError};
use core::cmp::Ordering;

/// Why an attempt came to no end.
#[derive(Debug)]
pub enum Interrupted {
    /// Another thread changed what was being read: start again.
    Restart,
    /// Starting again would not help.
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

/// Where a descent goes.
pub(super) enum Target<'k, K: Key> {
    /// To the first leaf.
    First,
    /// To the last leaf.
    Last,
    /// To the leaf that has the key, if any has.
    At(K::Ref<'k>),
    /// To the leaf that has the greatest key below this one, if it is not empty.
    Below(K::Ref<'k>),
}

impl<K: Key> Clone for Target<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: Key> Copy for Target<'_, K> {}

/// A held latch of a node.
pub(super) type NodeGuard<'a, M> = Exclusive<OnMedium<'a, M>>;

/// A node as a descent meets it, and the version at which it does.
#[derive(Debug)]
pub struct NodeRef<'a, M> {
    pub(super) at: PmPtr,
    pub(super) view: View<'a, M>,
    pub(super) level: u64,
    latch: Latch<OnMedium<'a, M>>,
    seen: Version,
}

impl<M> Clone for NodeRef<'_, M> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<M> Copy for NodeRef<'_, M> {}

impl<'a, M: Medium> NodeRef<'a, M> {
    /// Whether nothing has changed since the hop was made.
    #[inline(always)]
    #[track_caller]
    pub(super) fn holds(&self) -> bool {
        self.latch.validate(self.seen)
    }

    /// What was read in this node, if nothing has changed since.
    #[inline(always)]
    #[track_caller]
    pub(super) fn certify<T>(&self, read: Result<T, Corrupt>) -> Result<T, Interrupted> {
        if self.holds() { read.map_err(Interrupted::from) } else { Err(Interrupted::Restart) }
    }

    /// Takes the latch, if nothing has changed since.
    #[inline(always)]
    #[track_caller]
    pub(super) fn upgrade(&self) -> Result<NodeGuard<'a, M>, Interrupted> {
        self.latch.upgrade(self.seen).ok_or(Interrupted::Restart)
    }

    /// Takes the latch, whatever has changed since the hop was made: for a defect.
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
    /// The node itself.
    pub(super) node: NodeRef<'a, M>,
    /// How many separators of the parent lie at or before the node.
    pub(super) rank: usize,
    /// The separator word before the node on the way down, if there is one.
    pub(super) low: Option<u64>,
    /// Whether the node is the root.
    pub(super) is_root: bool,
}

impl<M: Medium, K: Key, S: AllPmSpec> AllPm<M, K, S> {
    /// Runs `attempt`, pinned, until it needs no restart.
    #[inline(always)]
    pub(super) fn retry<'a, T>(
        &'a self,
        mut attempt: impl FnMut(&'a Self, &Guard) -> Result<T, Interrupted>,
    ) -> Result<T, TreeError> {
        let guard = pin();
        loop {
            match attempt(self, &guard) {
                Ok(done) => return Ok(done),
                Err(Interrupted::Restart) => core::hint::spin_loop(),
                Err(Interrupted::Failed(error)) => return Err(error),
            }
        }
    }

    /// The root block, as the parent of the root.
    #[inline(always)]
    pub(super) fn start(&self) -> Result<NodeRef<'_, M>, Interrupted> {
        let view = self.anchor()?;
        let latch = OnMedium::latch(view.medium(), view.word(ANCHOR_LATCH), self.pool.generation());
        let seen = latch.read().ok_or(Interrupted::Restart)?;
        Ok(NodeRef { at: self.anchor, view, level: u64::MAX, latch, seen })
    }

    /// The node at `at`, to which the content of `parent`, already certified, leads.
    #[inline(always)]
    pub(super) fn enter<'a>(
        &'a self,
        at: PmPtr,
        level: u64,
        parent: &NodeRef<'_, M>,
    ) -> Result<NodeRef<'a, M>, Interrupted> {
        let view = self.node(at)?;
        let ahead = if level == 0 { S::Leaf::PREFETCH_WORDS } else { S::Inner::PREFETCH_WORDS };
        if ahead > 0 {
            self.medium().prefetch(&view.words()[..ahead]);
        }
        let hop = self.arrive(at, view, level)?;
        match hop {
            _ if !parent.holds() => Err(Interrupted::Restart),
            Some(hop) => Ok(hop),
            // Whoever unlinks a node changes its parent before letting go of either.
            None => Err(view.corrupt(0, "pointer to a node that is gone", 0, at.offset()).into()),
        }
    }

    /// Reads the version of the node at `at`, and checks that there is one; nothing if the node is
    /// obsolete.
    #[inline(always)]
    pub(super) fn arrive<'a>(
        &self,
        at: PmPtr,
        view: View<'a, M>,
        level: u64,
    ) -> Result<Option<NodeRef<'a, M>>, Corrupt> {
        let word = if level == 0 { S::Leaf::LATCH } else { S::Inner::LATCH };
        let latch = OnMedium::latch(view.medium(), view.word(word), self.pool.generation());
        let Some(seen) = latch.read() else { return Ok(None) };
        Self::check_level(view, level)?;
        Ok(Some(NodeRef { at, view, level, latch, seen }))
    }

    /// How many separators of an inner node lie at or before what `aim` leads to.
    #[inline(always)]
    pub(super) fn rank(&self, node: View<'_, M>, aim: Target<'_, K>) -> Result<usize, Corrupt> {
        let order = |word, key| K::order(&self.pool, word, key);
        match aim {
            Target::First => Ok(0),
            Target::Last => S::Inner::partition(node, |_| Ok(true)),
            Target::At(key) => {
                S::Inner::partition(node, |e| Ok(order(e.key, key)? != Ordering::Greater))
            }
            Target::Below(key) => {
                S::Inner::partition(node, |e| Ok(order(e.key, key)? == Ordering::Less))
            }
        }
    }

    /// The child behind the first `rank` separators of an inner node, and the last of these.
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

    /// Descends to a leaf, or to the first node on the way of which `stop` makes something.
    #[inline(always)]
    pub(super) fn descend<'a, T>(
        &'a self,
        aim: Target<'_, K>,
        mut stop: impl FnMut(&Path<'a, M>) -> Result<Option<T>, Interrupted>,
    ) -> Result<(Path<'a, M>, Option<T>), Interrupted> {
        let parent = self.start()?;
        let (at, level) = parent.certify(Self::read_root(parent.view))?;
        let node = self.enter(at, level, &parent)?;
        let mut path = Path { parent, node, rank: 0, low: None, is_root: true };
        loop {
            let stopped = stop(&path)?;
            if stopped.is_some() || path.node.level == 0 {
                return Ok((path, stopped));
            }
            let Path { node, low, .. } = path;
            let step = self.rank(node.view, aim);
            let step = step.and_then(|rank| Ok((rank, Self::child(node.view, rank)?)));
            let (rank, (at, separator)) = node.certify(step)?;
            let child = self.enter(at, node.level - 1, &node)?;
            let low = separator.or(low);
            path = Path { parent: node, node: child, rank, low, is_root: false };
        }
    }

    /// Descends to the leaf of `aim`.
    #[inline(always)]
    pub(super) fn leaf(&self, aim: Target<'_, K>) -> Result<Path<'_, M>, Interrupted> {
        self.descend(aim, |_| Ok(None::<()>)).map(|(path, _)| path)
    }
}
