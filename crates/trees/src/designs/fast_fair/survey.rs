//! A walk over everything: level by level, each from sibling to sibling, held against the
//! separators of the level above. Recovery and checking are this walk.

use super::{FastFairTree, ROOT_BYTES};
use crate::key::{Entry, Key};
use crate::leaf::sorted_shift::ShiftNode;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};

/// What a survey found.
#[derive(Debug)]
pub(super) struct Survey<K: Key> {
    pub(super) keys: u64,
    pub(super) leaves: u64,
    pub(super) inner_nodes: u64,
    pub(super) height: u32,
    /// Nodes without a separator, from the leaves up.
    pub(super) unposted: Vec<PmPtr>,
    /// Low keys of leaves without an entry.
    pub(super) empty: Vec<K::Owned>,
}

/// A child as its parent has it: separator word and place.
type Child = (u64, PmPtr);

/// Takes note of a block that was reached, and of its bytes.
type Reached<'f> = &'f mut dyn FnMut(PmPtr, u64) -> Result<(), Corrupt>;

impl<M: Medium, K: Key, const NODE: usize> FastFairTree<M, K, NODE> {
    /// Surveys the tree, alone on it. With `repair`, takes away first what a crash has left in a
    /// node that does not count; without, that is damage.
    pub(super) fn survey(&self, repair: bool, reached: Reached<'_>) -> Result<Survey<K>, Corrupt> {
        let root = self.root_node()?;
        let mut survey = Survey {
            keys: 0,
            leaves: 0,
            inner_nodes: 0,
            height: root.level() + 1,
            unposted: Vec::new(),
            empty: Vec::new(),
        };
        reached(self.root, ROOT_BYTES)?;
        let mut children = vec![(0, root.at())];
        for level in (0..=root.level()).rev() {
            let mut unposted = Vec::new();
            children =
                self.survey_level(level, &children, repair, reached, &mut survey, &mut unposted)?;
            // Lower levels first: a post may split the parent, whose sibling is then posted too.
            unposted.append(&mut survey.unposted);
            survey.unposted = unposted;
        }
        Ok(survey)
    }

    /// Surveys one level, which starts with the first of `posted`; gives the children of its nodes.
    fn survey_level(
        &self,
        level: u32,
        posted: &[Child],
        repair: bool,
        reached: Reached<'_>,
        survey: &mut Survey<K>,
        unposted: &mut Vec<PmPtr>,
    ) -> Result<Vec<Child>, Corrupt> {
        let mut children = Vec::new();
        let mut posted = posted.iter().peekable();
        let mut node = self.node(posted.peek().map_or(PmPtr::NULL, |child| child.1), level)?;
        let mut low = K::least();
        if node.low() != 0 {
            return Err(damage(&node, "low key of the leftmost node", 0, node.low()));
        }
        loop {
            reached(node.at(), Self::NODE_BYTES)?;
            self.reach_separator(node.low(), reached)?;
            match posted.peek() {
                Some(&&(separator, at)) if at == node.at() => {
                    if !K::order(&self.pool, separator, K::borrow(&low))?.is_eq() {
                        let what = "separator that is not its child's low key";
                        return Err(damage(&node, what, node.low(), separator));
                    }
                    posted.next();
                }
                _ => unposted.push(node.at()),
            }
            let next = node.sibling();
            let next = if next.is_null() { None } else { Some(self.node(next, level)?) };
            let limit = next.map(|next| K::read(&self.pool, next.low())).transpose()?;
            if let (Some(limit), Some(next)) = (&limit, &next)
                && *limit <= low
            {
                return Err(damage(next, "low key that is not above the last", 0, next.low()));
            }
            if repair {
                node.repair::<K>(&self.pool, limit.as_ref().map(K::borrow))?;
            }
            let entries = self.survey_entries(&node, &low, limit.as_ref(), reached)?;
            if level > 0 {
                survey.inner_nodes += 1;
                let first = children.len();
                children.extend(entries.iter().map(|e| (e.key, PmPtr::new(e.value))));
                // The leftmost child has no separator of its own: the node's low key is its.
                children[first].0 = node.low();
            } else {
                survey.leaves += 1;
                survey.keys += entries.len() as u64;
                if entries.is_empty() {
                    survey.empty.push(low);
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

    /// The entries of `node`, which must be in order, from `low` on and below `limit`.
    fn survey_entries(
        &self,
        node: &ShiftNode<'_, M, NODE>,
        low: &K::Owned,
        limit: Option<&K::Owned>,
        reached: Reached<'_>,
    ) -> Result<Vec<Entry>, Corrupt> {
        let mut entries: Vec<_> = (0..node.count()).map(|index| node.entry(index)).collect();
        if M::INJECTS_DEFECTS {
            self.overlook(&mut entries, limit)?;
        }
        let is_inner = node.level() > 0;
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
            self.reach_separator(entry.key, reached)?;
            if !is_inner && let Some((block, bytes)) = K::value_block(&self.pool, *entry)? {
                reached(block, bytes)?;
            }
            last = Some(key);
        }
        Ok(entries)
    }

    /// With a defect of recovery: takes what it leaves behind out of the `entries` of a node, so that
    /// it is the answers of the tree that show it.
    fn overlook(&self, entries: &mut Vec<Entry>, limit: Option<&K::Owned>) -> Result<(), Corrupt> {
        if self.pool.medium().injects(Defect::DuplicateLeft) {
            entries.dedup_by(|right, left| {
                let same = right.key == left.key;
                if same {
                    *left = *right;
                }
                same
            });
        }
        if self.pool.medium().injects(Defect::SplitUnrepaired)
            && let Some(limit) = limit
        {
            let mut kept = 0;
            for entry in &*entries {
                kept += usize::from(K::order(&self.pool, entry.key, K::borrow(limit))?.is_lt());
            }
            entries.truncate(kept);
        }
        Ok(())
    }

    fn reach_separator(&self, word: u64, reached: Reached<'_>) -> Result<(), Corrupt> {
        match K::block(&self.pool, word)? {
            Some((block, bytes)) => reached(block, bytes),
            None => Ok(()),
        }
    }
}

fn damage<M: Medium, const NODE: usize>(
    node: &ShiftNode<'_, M, NODE>,
    what: &'static str,
    expected: u64,
    found: u64,
) -> Corrupt {
    Corrupt { at: node.at().offset(), what, expected, found }
}
