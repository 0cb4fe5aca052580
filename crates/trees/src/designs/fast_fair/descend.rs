//! Descents, downwards and to the right, used by every operation.
//!
//! 1. A descent takes no latch and checks no version. A thread stays pinned, so a node that it
//!    reaches was linked when its operation began or later, and its block has not been reused.
//! 2. What a descent reads in an inner node is a hint. An entry under way can lead too far left,
//!    where the sibling links lead on, or too far right, where the low key says so: the descent
//!    restarts.
//! 3. A descent reads a node's sibling only if the key is beyond the node's last entry. So most
//!    descents touch one node on each level.
//! 4. Steps and restarts are bounded by what a sound tree needs, so damage ends in an error and not
//!    in an endless loop.

use super::{FastFairSpec, FastFairTree};
use crate::key::Key;
use crate::leaf::sorted_shift::{ShiftForm, ShiftNode, ShiftPos, Unlatched};
use crate::linked_leaves::SearchTarget;
use bristlecone_pmem::sync::{Exclusive, OnMedium};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};

/// The next step of a descent.
pub(super) enum Route {
    /// Down, to the child.
    Down(PmPtr),
    /// Right, to the sibling.
    Right(PmPtr),
}

/// A node that was reached through its left neighbour, so its parent may lack a separator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reached {
    pub(super) left: PmPtr,
    pub(super) at: PmPtr,
}

/// The state of a descent: a node found without a separator, and the steps taken.
#[derive(Debug, Default)]
pub(super) struct DescentState {
    /// The last such node on the way.
    pub(super) unposted: Option<Reached>,
    steps: u64,
    restarts: u32,
}

/// The most restarts of one descent. Each restart means that another thread changed a node
/// meanwhile, so more of them indicate damage.
const RESTARTS_MAX: u32 = 1 << 12;

impl DescentState {
    /// Counts a visited node. All levels of a tree together have at most as many nodes as fit in
    /// the pool.
    pub(super) fn step<M: Medium, F: ShiftForm, const NODE: usize>(
        &mut self,
        node: &ShiftNode<'_, M, F, NODE>,
        pool_bytes: u64,
    ) -> Result<(), Corrupt> {
        self.steps += 1;
        let expected = pool_bytes / NODE as u64;
        if self.steps <= expected {
            return Ok(());
        }
        let what = "endless path to a key";
        Err(Corrupt { at: node.at().offset(), what, expected, found: self.steps })
    }

    /// Counts a restart because `node` is obsolete or right of the target.
    pub(super) fn restart<M: Medium, F: ShiftForm, const NODE: usize>(
        &mut self,
        node: &ShiftNode<'_, M, F, NODE>,
    ) -> Result<(), Corrupt> {
        self.steps = 0;
        self.restarts += 1;
        if self.restarts <= RESTARTS_MAX {
            return Ok(());
        }
        let (at, what) = (node.at().offset(), "node that is reached is obsolete, or of other keys");
        let (expected, found) = (RESTARTS_MAX.into(), self.restarts.into());
        Err(Corrupt { at, what, expected, found })
    }
}

/// A latched node and the position of the key in it.
pub(super) struct LatchedNode<'t, M: Medium, F, const NODE: usize> {
    pub(super) node: ShiftNode<'t, M, F, NODE>,
    pub(super) held: Exclusive<OnMedium<'t, M>>,
    pub(super) pos: ShiftPos,
}

impl<M: Medium, K: Key, S: FastFairSpec, const NODE: usize> FastFairTree<M, K, S, NODE> {
    /// Returns `true` if a node with the low key `low` is at or left of the target.
    #[inline(always)]
    fn is_at_or_left_of(&self, low: u64, target: SearchTarget<'_, K>) -> Result<bool, Corrupt> {
        Ok(match target {
            SearchTarget::At(key) => K::order(&self.pool, low, key)?.is_le(),
            SearchTarget::Below(key) => K::order(&self.pool, low, key)?.is_lt(),
            SearchTarget::Last => true,
        })
    }

    /// Returns `true` if `node` is at or left of the target, or is the leftmost node of its level,
    /// as for the keys below the least one. Its low key never changes, so this stays true.
    #[inline(always)]
    pub(super) fn leads_on(
        &self,
        node: &ShiftNode<'_, M, S::Form, NODE>,
        target: SearchTarget<'_, K>,
    ) -> Result<bool, Corrupt> {
        let is_blind = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::WrongChild);
        let low = node.low();
        Ok(is_blind || low == 0 || self.is_at_or_left_of(low, target)?)
    }

    /// Returns the sibling of `node` if the target is the sibling or to its right.
    #[inline]
    pub(super) fn move_right(
        &self,
        node: &ShiftNode<'_, M, S::Form, NODE>,
        target: SearchTarget<'_, K>,
    ) -> Result<Option<PmPtr>, Corrupt> {
        let at = node.sibling();
        let is_alone = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::RootSibling);
        if at.is_null() || is_alone && self.root_node()?.at() == node.at() {
            return Ok(None);
        }
        let low = ShiftNode::<M, S::Form, NODE>::view(&self.pool, at)?.low();
        Ok(self.is_at_or_left_of(low, target)?.then_some(at))
    }

    /// Returns the next step of a descent from the inner node `node`.
    ///
    /// Reads in the direction in which entries move. Bisection, which byte-string keys take, may
    /// miss an entry under way, as any hint may.
    #[inline(always)]
    pub(super) fn route(
        &self,
        node: &ShiftNode<'_, M, S::Form, NODE>,
        target: SearchTarget<'_, K>,
    ) -> Result<Route, Corrupt> {
        let leftward = K::EXACT && self.shifts(node).read().are_leftward();
        let (child, end) = match target {
            SearchTarget::At(key) if leftward => {
                match node.find_unlatched::<K>(&self.pool, key, true)? {
                    Unlatched::Found(index, _) => (index, false),
                    Unlatched::Absent { index, end } => (index.saturating_sub(1), end),
                }
            }
            SearchTarget::At(key) => {
                let pos = node.search::<K>(&self.pool, key)?;
                (if pos.equal { pos.index } else { pos.index.saturating_sub(1) }, pos.end)
            }
            SearchTarget::Below(key) => {
                let pos = node.search::<K>(&self.pool, key)?;
                (pos.index.saturating_sub(1), pos.end)
            }
            SearchTarget::Last => (node.count().saturating_sub(1), true),
        };
        if end && let Some(right) = self.move_right(node, target)? {
            return Ok(Route::Right(right));
        }
        Ok(Route::Down(PmPtr::new(node.value(child))))
    }

    /// Descends to a node of `level` at or left of the target. Returns `None` if the tree has no
    /// such level.
    pub(super) fn descend(
        &self,
        target: SearchTarget<'_, K>,
        level: u32,
        state: &mut DescentState,
    ) -> Result<Option<ShiftNode<'_, M, S::Form, NODE>>, Corrupt> {
        let pool_bytes = self.pool.medium().len();
        loop {
            let mut node = self.root_node()?;
            if node.level() < level {
                return Ok(None);
            }
            loop {
                let here = node.level();
                if !self.leads_on(&node, target)? {
                    break;
                }
                if here == level {
                    return Ok(Some(node));
                }
                state.step(&node, pool_bytes)?;
                match self.route(&node, target)? {
                    Route::Down(at) => node = self.node(at, here - 1)?,
                    Route::Right(at) => {
                        state.unposted = Some(Reached { left: node.at(), at });
                        node = self.node(at, here)?;
                    }
                }
            }
            state.restart(&node)?;
        }
    }

    /// Latches the node of `level` whose key range contains `key`. Returns `None` if the tree has
    /// no such level.
    pub(super) fn lock(
        &self,
        key: K::Ref<'_>,
        level: u32,
        state: &mut DescentState,
    ) -> Result<Option<LatchedNode<'_, M, S::Form, NODE>>, Corrupt> {
        let pool_bytes = self.pool.medium().len();
        loop {
            let Some(mut node) = self.descend(SearchTarget::At(key), level, state)? else {
                return Ok(None);
            };
            while let Some(held) = self.lock_node(&node)? {
                let pos = node.search::<K>(&self.pool, key)?;
                let stays = M::INJECTS_DEFECTS
                    && self.pool.medium().injects(Defect::WrongParent)
                    && level > 0;
                let right = if pos.end && !stays {
                    self.move_right(&node, SearchTarget::At(key))?
                } else {
                    None
                };
                let Some(at) = right else { return Ok(Some(LatchedNode { node, held, pos })) };
                drop(held);
                state.unposted = Some(Reached { left: node.at(), at });
                state.step(&node, pool_bytes)?;
                node = self.node(at, level)?;
            }
            state.restart(&node)?;
        }
    }
}
