//! The way down, and sideways: shared by everything that looks for a node.
//!
//! 1. A pointer is followed only after the node it was read in has been validated, and while the
//!    epoch is pinned: what it names was linked then, and its block is not used anew.
//! 2. A node is left to the right only if its last entry does not decide: most visits so touch one
//!    node a level, and not its sibling.
//! 3. Steps and restarts are bounded by what a healthy tree can ask for, so damage ends in an error.

use super::FastFairTree;
use crate::key::Key;
use crate::leaf::sorted_shift::{ShiftNode, ShiftPos};
use bristlecone_pmem::sync::{Exclusive, OnMedium};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};

/// What a descent looks for.
pub(super) enum Seek<'k, K: Key> {
    /// The node to which the key belongs.
    At(K::Ref<'k>),
    /// The node to which the greatest key below it belongs.
    Below(K::Ref<'k>),
    /// The last node.
    Last,
}

impl<K: Key> Clone for Seek<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: Key> Copy for Seek<'_, K> {}

/// Where a node sends a descent.
pub(super) enum Route {
    /// To the child.
    Down(PmPtr),
    /// To the next node of the level.
    Right(PmPtr),
}

/// What a descent came across, and how long it has taken.
#[derive(Debug, Default)]
pub(super) struct Trail {
    /// A node that was reached from its left neighbour: it may lack a separator.
    pub(super) missed: Option<PmPtr>,
    steps: u64,
    restarts: u32,
}

/// A restart takes an unlinking that happened meanwhile. So many at once means that a node which is
/// linked reads as unlinked.
const RESTARTS_MAX: u32 = 1 << 12;

impl Trail {
    /// Counts a node; the levels of a tree together have no more than its pool has room for.
    pub(super) fn step<M: Medium, const NODE: usize>(
        &mut self,
        node: &ShiftNode<'_, M, NODE>,
        pool_bytes: u64,
    ) -> Result<(), Corrupt> {
        self.steps += 1;
        let expected = pool_bytes / NODE as u64;
        if self.steps <= expected {
            return Ok(());
        }
        let what = "nodes on the way to a key";
        Err(Corrupt { at: node.at().offset(), what, expected, found: self.steps })
    }

    /// Counts a restart at `node`, which is obsolete.
    pub(super) fn restart<M: Medium, const NODE: usize>(
        &mut self,
        node: &ShiftNode<'_, M, NODE>,
    ) -> Result<(), Corrupt> {
        self.steps = 0;
        self.restarts += 1;
        if self.restarts <= RESTARTS_MAX {
            return Ok(());
        }
        let (at, what) = (node.at().offset() + 32, "latch of a linked node says that it is not");
        Err(Corrupt { at, what, expected: 0, found: 2 })
    }
}

/// A latched node, and where in it the key is that it was latched for.
pub(super) struct Locked<'t, M: Medium, const NODE: usize> {
    pub(super) node: ShiftNode<'t, M, NODE>,
    pub(super) held: Exclusive<OnMedium<'t, M>>,
    pub(super) place: ShiftPos,
}

impl<M: Medium, K: Key, const NODE: usize> FastFairTree<M, K, NODE> {
    /// Runs `read` until no writer was at `node` meanwhile; `None` if the node is obsolete. What
    /// `read` finds while a writer is there, errors too, is nothing.
    #[inline(always)]
    #[track_caller]
    pub(super) fn validated<R>(
        &self,
        node: &ShiftNode<'_, M, NODE>,
        mut read: impl FnMut() -> Result<R, Corrupt>,
    ) -> Result<Option<R>, Corrupt> {
        let latch = self.latch(node);
        loop {
            let Some(seen) = latch.read() else { return Ok(None) };
            let result = read();
            let is_blind = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::WrongChild);
            if latch.validate(seen) || is_blind && node.level() > 0 {
                return result.map(Some);
            }
        }
    }

    /// Whether a node with the low key `low` is at or left of what is sought.
    #[inline(always)]
    fn admits_allocation(&self, low: u64, seek: Seek<'_, K>) -> Result<bool, Corrupt> {
        Ok(match seek {
            Seek::At(key) => K::order(&self.pool, low, key)?.is_le(),
            Seek::Below(key) => K::order(&self.pool, low, key)?.is_lt(),
            Seek::Last => true,
        })
    }

    /// The sibling of `node`, if what is sought is there or beyond.
    #[inline]
    pub(super) fn beyond(
        &self,
        node: &ShiftNode<'_, M, NODE>,
        seek: Seek<'_, K>,
    ) -> Result<Option<PmPtr>, Corrupt> {
        let at = node.sibling();
        let is_alone = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::RootSibling);
        if at.is_null() || is_alone && self.root_node()?.at() == node.at() {
            return Ok(None);
        }
        let low = ShiftNode::<M, NODE>::view(&self.pool, at)?.low();
        Ok(self.admits_allocation(low, seek)?.then_some(at))
    }

    /// Where the inner `node` sends a descent.
    #[inline(always)]
    pub(super) fn route(
        &self,
        node: &ShiftNode<'_, M, NODE>,
        seek: Seek<'_, K>,
    ) -> Result<Route, Corrupt> {
        let (child, end) = match seek {
            Seek::At(key) => {
                let place = node.search::<K>(&self.pool, key)?;
                (if place.equal { place.index } else { place.index.saturating_sub(1) }, place.end)
            }
            Seek::Below(key) => {
                let place = node.search::<K>(&self.pool, key)?;
                (place.index.saturating_sub(1), place.end)
            }
            Seek::Last => (node.count().saturating_sub(1), true),
        };
        if end && let Some(right) = self.beyond(node, seek)? {
            return Ok(Route::Right(right));
        }
        Ok(Route::Down(PmPtr::new(node.value(child))))
    }

    /// A node of `level` at or left of what is sought; `None` if no level is that high.
    pub(super) fn descend(
        &self,
        seek: Seek<'_, K>,
        level: u32,
        trail: &mut Trail,
    ) -> Result<Option<ShiftNode<'_, M, NODE>>, Corrupt> {
        let pool_bytes = self.pool.medium().len();
        loop {
            let mut node = self.root_node()?;
            if node.level() < level {
                return Ok(None);
            }
            loop {
                let here = node.level();
                if here == level {
                    return Ok(Some(node));
                }
                trail.step(&node, pool_bytes)?;
                match self.validated(&node, || self.route(&node, seek))? {
                    Some(Route::Down(at)) => node = self.node(at, here - 1)?,
                    Some(Route::Right(at)) => {
                        trail.missed = Some(at);
                        node = self.node(at, here)?;
                    }
                    None => break,
                }
            }
            trail.restart(&node)?;
        }
    }

    /// Latches the node of `level` to which `key` belongs; `None` if no level is that high.
    pub(super) fn lock(
        &self,
        key: K::Ref<'_>,
        level: u32,
        trail: &mut Trail,
    ) -> Result<Option<Locked<'_, M, NODE>>, Corrupt> {
        let pool_bytes = self.pool.medium().len();
        loop {
            let Some(mut node) = self.descend(Seek::At(key), level, trail)? else {
                return Ok(None);
            };
            while let Some(held) = self.latch(&node).lock() {
                let place = node.search::<K>(&self.pool, key)?;
                let stays = M::INJECTS_DEFECTS
                    && self.pool.medium().injects(Defect::WrongParent)
                    && level > 0;
                let right =
                    if place.end && !stays { self.beyond(&node, Seek::At(key))? } else { None };
                let Some(at) = right else { return Ok(Some(Locked { node, held, place })) };
                drop(held);
                trail.missed = Some(at);
                trail.step(&node, pool_bytes)?;
                node = self.node(at, level)?;
            }
            trail.restart(&node)?;
        }
    }
}
