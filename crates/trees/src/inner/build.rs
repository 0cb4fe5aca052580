//! Building all inner nodes from the leaves, and listing the leaves.

use super::locks::child_word;
use super::node::FANOUT;
use super::nodes::{InnerNodes, SeparatedChild, SeparatedLeaf};
use super::{Arena, Inner, SearchChoice};
use crate::key::Key;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool, PoolError};
use core::marker::PhantomData;
use core::sync::atomic::AtomicU64;

/// The largest number of children of a new node. It leaves space, so that the first inserts split
/// nothing.
const BUILT_CHILDREN_MAX: usize = FANOUT * 9 / 10;

impl<M: Medium, F: SearchChoice> Inner<M, F> {
    /// Builds the inner nodes: see [`InnerNodes::build`].
    pub(super) fn over(leaves: &[SeparatedLeaf], exact: bool) -> Result<Self, PoolError> {
        debug_assert!(!leaves.is_empty());
        let separator_words = if exact { None } else { Some(Arena::new()?) };
        let inner = Self {
            nodes: Arena::new()?,
            separator_words,
            locks: if F::HAS_LOCKS { Some(Arena::new()?) } else { None },
            root: AtomicU64::new(0),
            medium: PhantomData,
        };
        inner.set_root(inner.build_levels(leaves));
        Ok(inner)
    }

    /// Builds all nodes over `leaves` and returns the index of their root.
    fn build_levels(&self, leaves: &[SeparatedLeaf]) -> u64 {
        let mut level = 1;
        let mut below = self.build_level(level, leaves);
        while below.len() > 1 {
            level += 1;
            below = self.build_level(level, &below);
        }
        below[0].leaf
    }

    /// Replaces the only leaf: see [`InnerNodes::load`].
    pub(super) fn load_leaves<K: Key>(
        &self,
        pool: &Pool<M>,
        only: PmPtr,
        leaves: &[SeparatedLeaf],
        publish: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Corrupt> {
        // Another thread may be about to remove the nodes above its last merge.
        self.merge_path::<K>(pool, K::borrow(&K::least()))?;
        loop {
            let (root, version) = self.read_root();
            let Some(_guard) = self.node(root).latch().upgrade(version) else { continue };
            if self.root() != root {
                continue;
            }
            let is_only = self.has_only(root, only) && publish();
            if is_only {
                self.set_root(self.build_levels(leaves));
                self.put_back(root);
            }
            return Ok(is_only);
        }
    }

    /// Builds the nodes of one level over `children`. In the result, `leaf` is the index of a node.
    fn build_level(&self, level: u64, children: &[SeparatedLeaf]) -> Vec<SeparatedLeaf> {
        let nodes = children.len().div_ceil(BUILT_CHILDREN_MAX);
        let children_per_node = children.len().div_ceil(nodes);
        let build = |children: &[SeparatedLeaf]| {
            let index = self.take();
            let node = self.node(index);
            let has_locks = F::HAS_LOCKS && level == 1;
            let number =
                |leaf, lock| if has_locks { child_word(PmPtr::new(leaf), lock) } else { leaf };
            node.set_child(0, number(children[0].leaf, 0));
            node.set_level_and_count(level, 0);
            for (at, child) in children[1..].iter().enumerate() {
                let SeparatedLeaf { prefix, word, leaf } = *child;
                self.insert(
                    index,
                    at,
                    SeparatedChild { prefix, word, child: number(leaf, at + 1) },
                );
            }
            SeparatedLeaf { leaf: index as u64, ..children[0] }
        };
        children.chunks(children_per_node).map(build).collect()
    }

    /// Calls `visit` with every leaf below the node at `index`, whose separator is `left`.
    pub(super) fn walk(
        &self,
        index: usize,
        left: SeparatedLeaf,
        visit: &mut impl FnMut(SeparatedLeaf),
    ) {
        let node = self.node(index);
        for at in 0..=node.count() {
            let mut child = match at.checked_sub(1) {
                Some(at) => SeparatedLeaf {
                    prefix: node.prefix(at),
                    word: self
                        .separator_words(index)
                        .map_or(node.prefix(at), |words| words.word(at)),
                    leaf: 0,
                },
                None => left,
            };
            if node.level() == 1 {
                child.leaf = Self::leaf_of(node.child(at)).offset();
                visit(child);
            } else {
                self.walk(node.child(at) as usize, child, visit);
            }
        }
    }
}
