//! Building all inner nodes from the leaves, and listing the leaves.

use super::node::FANOUT;
use super::{Arena, Inner, SearchChoice};
use bristlecone_pmem::{Medium, PoolError};
use core::marker::PhantomData;
use core::sync::atomic::AtomicU64;

/// A leaf and its low key, which is the separator to its left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeparatedLeaf {
    /// The prefix of the low key.
    pub(crate) prefix: u64,
    /// The separator word of the low key.
    pub(crate) word: u64,
    /// The offset of the leaf in the pool.
    pub(crate) leaf: u64,
}

/// The largest number of children of a new node. It leaves space, so that the first inserts split
/// nothing.
const BUILT_CHILDREN_MAX: usize = FANOUT * 9 / 10;

impl<M: Medium, F: SearchChoice> Inner<M, F> {
    /// Builds the inner nodes over `leaves`, which are in key order and not empty. `exact` tells
    /// whether a prefix is a whole key. Takes O(n) for n leaves.
    ///
    /// # Errors
    /// The system cannot reserve the addresses.
    pub(crate) fn build(leaves: &[SeparatedLeaf], exact: bool) -> Result<Self, PoolError> {
        debug_assert!(!leaves.is_empty());
        let separator_words = if exact { None } else { Some(Arena::new()?) };
        let inner = Self {
            nodes: Arena::new()?,
            separator_words,
            root: AtomicU64::new(0),
            medium: PhantomData,
        };
        let mut level = 1;
        let mut below = inner.build_level(level, leaves);
        while below.len() > 1 {
            level += 1;
            below = inner.build_level(level, &below);
        }
        inner.set_root(below[0].leaf);
        Ok(inner)
    }

    /// Builds the nodes of one level over `children`. In the result, `leaf` is the index of a node.
    fn build_level(&self, level: u64, children: &[SeparatedLeaf]) -> Vec<SeparatedLeaf> {
        let nodes = children.len().div_ceil(BUILT_CHILDREN_MAX);
        let children_per_node = children.len().div_ceil(nodes);
        let build = |children: &[SeparatedLeaf]| {
            let index = self.take();
            let node = self.node(index);
            node.set_child(0, children[0].leaf);
            node.set_level_and_count(level, 0);
            for (at, child) in children[1..].iter().enumerate() {
                self.insert_slot(index, at, child.prefix, child.word, child.leaf);
            }
            SeparatedLeaf { leaf: index as u64, ..children[0] }
        };
        children.chunks(children_per_node).map(build).collect()
    }

    /// Calls `visit` with every leaf, in key order. The first leaf gets the least separator. No
    /// thread may change the inner nodes meanwhile.
    pub(crate) fn for_each_leaf(&self, visit: &mut impl FnMut(SeparatedLeaf)) {
        let root = self.read_root().0;
        self.walk(root, SeparatedLeaf::default(), visit);
    }

    fn walk(&self, index: usize, left: SeparatedLeaf, visit: &mut impl FnMut(SeparatedLeaf)) {
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
                child.leaf = node.child(at);
                visit(child);
            } else {
                self.walk(node.child(at) as usize, child, visit);
            }
        }
    }
}
