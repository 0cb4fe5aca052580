//! The walk over the whole tree: level by level, from sibling to sibling, checked against the
//! separators of the level above. Recovery and the check both use it.

use super::{FastFairSpec, FastFairTree};
use crate::key::{Entry, Key};
use crate::leaf::sorted_shift::{ShiftForm, ShiftNode};
use crate::root_block::ROOT_BYTES;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};

/// The results of a walk.
#[derive(Debug)]
pub(super) struct TreeWalk<K: Key> {
    pub(super) keys: u64,
    pub(super) leaves: u64,
    pub(super) inner_nodes: u64,
    pub(super) height: u32,
    /// The low keys of leaves without entries.
    pub(super) empty: Vec<K::Owned>,
}

/// A child as its parent names it: separator word and offset.
type Child = (u64, PmPtr);

/// The callback for each block of the tree, with its size in bytes.
type Claim<'f> = &'f mut dyn FnMut(PmPtr, u64) -> Result<(), Corrupt>;

impl<M: Medium, K: Key, S: FastFairSpec, const NODE: usize> FastFairTree<M, K, S, NODE> {
    /// Walks the tree; no other thread may use it. Leftovers of a crash, entries that do not count,
    /// are damage in a node that a writer has latched since the open. With `recovers`, no thread
    /// has, and the latches are reset.
    pub(super) fn walk(&self, recovers: bool, claim: Claim<'_>) -> Result<TreeWalk<K>, Corrupt> {
        let root = self.root_node()?;
        let mut walk = TreeWalk {
            keys: 0,
            leaves: 0,
            inner_nodes: 0,
            height: root.level() + 1,
            empty: Vec::new(),
        };
        claim(self.root.at, ROOT_BYTES)?;
        let mut children = vec![(0, root.at())];
        for level in (0..=root.level()).rev() {
            children = self.walk_level(level, &children, recovers, claim, &mut walk)?;
        }
        Ok(walk)
    }

    /// Walks one level, from the first node of `posted` on. Returns the children of its nodes.
    fn walk_level(
        &self,
        level: u32,
        posted: &[Child],
        recovers: bool,
        claim: Claim<'_>,
        walk: &mut TreeWalk<K>,
    ) -> Result<Vec<Child>, Corrupt> {
        let mut children = Vec::new();
        let mut posted = posted.iter().peekable();
        let mut node = self.node(posted.peek().map_or(PmPtr::NULL, |child| child.1), level)?;
        let mut low = K::least();
        let mut copies = Vec::new();
        if node.low() != 0 {
            return Err(damage(&node, "low key of the leftmost node", 0, node.low()));
        }
        loop {
            claim(node.at(), Self::NODE_BYTES)?;
            self.claim_separator(node.low(), claim)?;
            if let Some(&&(separator, at)) = posted.peek()
                && at == node.at()
            {
                if !K::order(&self.pool, separator, K::borrow(&low))?.is_eq() {
                    let what = "separator that is not its child's low key";
                    return Err(damage(&node, what, node.low(), separator));
                }
                posted.next();
            }
            let next = node.sibling();
            let next = if next.is_null() { None } else { Some(self.node(next, level)?) };
            let limit = next.map(|next| K::read(&self.pool, next.low())).transpose()?;
            if let (Some(limit), Some(next)) = (&limit, &next)
                && *limit <= low
            {
                let what = "low key not above that of the left neighbour";
                return Err(damage(next, what, 0, next.low()));
            }
            if recovers {
                self.latch(&node).reset();
            }
            let (entries, next_copies) = self.walk_entries(&node, &low, limit.as_ref(), claim)?;
            check_copies(&node, &copies, &entries)?;
            copies = next_copies;
            if level > 0 {
                walk.inner_nodes += 1;
                let first = children.len();
                children.extend(entries.iter().map(|e| (e.key, PmPtr::new(e.value))));
                // A leftmost child has no separator; the parent's low key takes its place.
                children[first].0 = node.low();
            } else {
                walk.leaves += 1;
                walk.keys += entries.len() as u64;
                if entries.is_empty() {
                    walk.empty.push(low);
                }
            }
            let (Some(next), Some(limit)) = (next, limit) else { break };
            (node, low) = (next, limit);
        }
        match posted.next() {
            None => Ok(children),
            Some((_, at)) => {
                let what = "child that is not among the nodes of its level";
                Err(Corrupt { at: at.offset(), what, expected: 0, found: at.offset() })
            }
        }
    }

    /// Returns the entries of `node`, after checking that they are in order, from `low` on and
    /// below `limit`, and the copies of the sibling's that a crash has left.
    fn walk_entries(
        &self,
        node: &ShiftNode<'_, M, S::Form, NODE>,
        low: &K::Owned,
        limit: Option<&K::Owned>,
        claim: Claim<'_>,
    ) -> Result<(Vec<Entry>, Vec<Entry>), Corrupt> {
        let mut entries: Vec<_> = (0..node.count()).map(|index| node.entry(index)).collect();
        let is_inner = node.level() > 0;
        // With a defect the walk passes, so that only wrong answers of the tree can reveal it.
        let hides = |defect| M::INJECTS_DEFECTS && self.pool.medium().injects(defect);
        let is_blind = [Defect::DuplicateLeft, Defect::SplitUnrepaired].into_iter().any(hides);
        let mut copies = Vec::new();
        if self.latch(node).is_untouched() || is_blind {
            copies = self.drop_leftovers(&mut entries, is_inner, limit)?;
        }
        if is_blind {
            copies.clear();
        }
        if is_inner && entries.first().is_none_or(|first| first.key != 0) {
            return Err(damage(node, "inner node without a leftmost child", 0, 1));
        }
        let mut last: Option<K::Owned> = None;
        for entry in entries.iter().skip(usize::from(is_inner)) {
            let key = K::read(&self.pool, entry.key)?;
            let in_order =
                last.as_ref().map_or(key > *low || !is_inner && key == *low, |l| key > *l);
            if !in_order || limit.is_some_and(|limit| key >= *limit) {
                return Err(damage(node, "key out of order", 0, entry.key));
            }
            self.claim_separator(entry.key, claim)?;
            if !is_inner && let Some((block, bytes)) = K::value_block(&self.pool, *entry)? {
                claim(block, bytes)?;
            }
            last = Some(key);
        }
        Ok((entries, copies))
    }

    fn claim_separator(&self, word: u64, claim: Claim<'_>) -> Result<(), Corrupt> {
        match K::block(&self.pool, word)? {
            Some((block, bytes)) => claim(block, bytes),
            None => Ok(()),
        }
    }
}

/// Checks that the copies in the left neighbour are the first of the node's `entries`.
fn check_copies<M: Medium, F: ShiftForm, const NODE: usize>(
    node: &ShiftNode<'_, M, F, NODE>,
    copies: &[Entry],
    entries: &[Entry],
) -> Result<(), Corrupt> {
    // The first entry of an inner node has no separator, but its copy has.
    let is_copy = |(copy, entry): (&Entry, &Entry)| {
        copy.value == entry.value && (entry.key == 0 || copy.key == entry.key)
    };
    if copies.len() <= entries.len() && copies.iter().zip(entries).all(is_copy) {
        return Ok(());
    }
    let (expected, found) = (entries.len() as u64, copies.len() as u64);
    Err(damage(node, "copies in the left neighbour", expected, found))
}

fn damage<M: Medium, F: ShiftForm, const NODE: usize>(
    node: &ShiftNode<'_, M, F, NODE>,
    what: &'static str,
    expected: u64,
    found: u64,
) -> Corrupt {
    Corrupt { at: node.at().offset(), what, expected, found }
}
