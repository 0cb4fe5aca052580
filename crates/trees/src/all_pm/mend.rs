//! Mending of inner nodes after a crash, from the chain of leaves.
//!
//! 1. The chain of leaves is right: one store links new leaves. Each leaf but the first has the
//!    word of its separator.
//! 2. The first node of each level never changes but by replacement of the leftmost leaf. So the
//!    leftmost pointers lead to the first leaf.
//! 3. The children of a node of level 1 are the leaves whose low keys are in its range, which the
//!    separators above give. So the leaves say what the node must hold.
//! 4. A node has room for what it lacks (`replacement.rs`), so mending takes no block.
//! 5. Each step leaves a tree that the same steps mend. So a crash of a recovery does no harm.

use super::{AllPm, AllPmSpec, read_root};
use crate::key::{Entry, Key};
use crate::node::{Atomic, InPlace, Layout, LowKeyed, ShiftedEntries, View};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

/// The chain of leaves.
struct Chain {
    /// Each leaf, with the word of its low key.
    leaves: Vec<(u64, PmPtr)>,
    /// The position of each low key.
    positions: BTreeMap<u64, usize>,
    /// The offsets of all leaves.
    offsets: BTreeSet<u64>,
}

impl<M: Medium, K: Key, S> AllPm<M, K, S>
where
    S: AllPmSpec<Leaf: Atomic + LowKeyed, Inner: InPlace>,
{
    /// Mends all inner nodes, a parent before its children.
    ///
    /// # Errors
    /// The tree is damaged.
    pub(super) fn mend_parents(&self) -> Result<(), Corrupt> {
        let (root, level) = read_root(self.anchor()?)?;
        if level == 0 {
            return Ok(());
        }
        let chain = self.chain(root, level)?;
        self.mend_node(root, level, 0..chain.leaves.len(), &chain)
    }

    /// Returns the node at `at`, after a check of its level.
    fn checked(&self, at: PmPtr, level: u64) -> Result<View<'_, M>, Corrupt> {
        let view = self.node(at)?;
        Self::check_level(view, level)?;
        Ok(view)
    }

    /// Reads the chain of leaves from the leftmost one below `root`.
    fn chain(&self, root: PmPtr, level: u64) -> Result<Chain, Corrupt> {
        let mut at = root;
        for level in (1..=level).rev() {
            at = PmPtr::new(S::Inner::link(self.checked(at, level)?));
        }
        let mut chain =
            Chain { leaves: Vec::new(), positions: BTreeMap::new(), offsets: BTreeSet::new() };
        loop {
            let leaf = self.checked(at, 0)?;
            let low = leaf.load(S::Leaf::LOW);
            let is_first = chain.leaves.is_empty();
            if is_first != (low == 0)
                || chain.positions.insert(low, chain.leaves.len()).is_some()
                || !chain.offsets.insert(at.offset())
            {
                return Err(leaf.corrupt(S::Leaf::LOW, "low key of a leaf", 0, low));
            }
            chain.leaves.push((low, at));
            at = PmPtr::new(S::Leaf::link(leaf));
            if at.is_null() {
                return Ok(chain);
            }
        }
    }

    /// Mends the node at `at`, whose leaves are those of `range`, and the nodes below it.
    ///
    /// # Persist order
    /// ```text
    /// for each entry that does not count    shift out, or cut
    /// at level 1, for each child that the chain lacks
    ///   C child of that low key, F |
    /// at level 1, for each leaf that the node lacks
    ///   shift in            -> durable
    /// ```
    fn mend_node(
        &self,
        at: PmPtr,
        level: u64,
        range: Range<usize>,
        chain: &Chain,
    ) -> Result<(), Corrupt> {
        let view = self.checked(at, level)?;
        let entries = S::Inner::entries(view);
        let bounds = Self::mend_entries(view, &entries, level, &range, chain)?;
        if level == 1 {
            return self.mend_children(view, &entries, range, chain);
        }
        let first = PmPtr::new(S::Inner::link(view));
        let children = (0..bounds.len()).map(|index| PmPtr::new(entries.child(index)));
        let children: Vec<_> = core::iter::once(first).chain(children).collect();
        let starts = core::iter::once(range.start).chain(bounds.iter().copied());
        let ends = bounds.iter().copied().chain([range.end]);
        for (child, (start, end)) in children.into_iter().zip(starts.zip(ends)) {
            self.mend_node(child, level - 1, start..end, chain)?;
        }
        Ok(())
    }

    /// Removes the entries of a node that do not count. Returns the positions of the leaves at
    /// which the others begin.
    fn mend_entries(
        view: View<'_, M>,
        entries: &ShiftedEntries<'_, M>,
        level: u64,
        range: &Range<usize>,
        chain: &Chain,
    ) -> Result<Vec<usize>, Corrupt> {
        let keeps_doubled = M::INJECTS_DEFECTS && view.medium().injects(Defect::DoubledKept);
        let mut starts: Vec<usize> = Vec::new();
        while starts.len() < S::Inner::CAPACITY {
            let index = starts.len();
            let (key, child) = (entries.key(index), entries.child(index));
            if child == 0 {
                break;
            }
            let last = starts.last().copied().unwrap_or(range.start);
            match chain.positions.get(&key) {
                _ if child == entries.child_before(index) && !keeps_doubled => {
                    let _ = entries.shift_out(entries.count(), index);
                }
                Some(&position) if position >= range.end => {
                    let _ = entries.cut(index);
                }
                Some(&position) if position > last => starts.push(position),
                None if level == 1 && !chain.offsets.contains(&child) => {
                    let _ = entries.shift_out(entries.count(), index);
                }
                _ => {
                    let word = S::Inner::ENTRIES.word(index);
                    return Err(view.corrupt(word, "separator that no leaf has", 0, key));
                }
            }
        }
        Ok(starts)
    }

    /// Gives a node of level 1 the leaves of `range` as its children.
    fn mend_children(
        &self,
        view: View<'_, M>,
        entries: &ShiftedEntries<'_, M>,
        range: Range<usize>,
        chain: &Chain,
    ) -> Result<(), Corrupt> {
        let injects = |defect| M::INJECTS_DEFECTS && self.medium().injects(defect);
        let wanted = &chain.leaves[range];
        let [(_, first), rest @ ..] = wanted else {
            return Err(view.corrupt(0, "node without a leaf", 1, 0));
        };
        if rest.len() > S::Inner::CAPACITY {
            let (expected, found) = (S::Inner::CAPACITY as u64, rest.len() as u64);
            return Err(view.corrupt(0, "number of leaves of a node", expected, found));
        }
        let swing = |index, at: PmPtr| {
            let _ = entries.replace_child(index, at.offset(), self.medium().fence());
        };
        if S::Inner::link(view) != first.offset() && !injects(Defect::FirstChildKept) {
            swing(None, *first);
        }
        for (index, &(low, at)) in rest.iter().enumerate() {
            let count = entries.count();
            if index < count && entries.key(index) == low {
                if entries.child(index) != at.offset() {
                    swing(Some(index), at);
                }
            } else if count < S::Inner::CAPACITY && !injects(Defect::ParentUnmended) {
                let _ = entries.shift_in(count, index, Entry::plain(low, at.offset()));
            } else {
                return Err(view.corrupt(0, "entry of a node", low, entries.key(index)));
            }
        }
        Ok(())
    }
}
