//! Building all inner nodes at once from the leaves, and listing the leaves again.

use super::node::FANOUT;
use super::{Arena, Inner};
use bristlecone_pmem::{Medium, PoolError};
use core::marker::PhantomData;
use core::sync::atomic::AtomicU64;

/// A leaf and the separator to its left, its low key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Separated {
    /// Prefix of the low key.
    pub(crate) prefix: u64,
    /// Word of the low key.
    pub(crate) word: u64,
    /// Offset of the leaf.
    pub(crate) leaf: u64,
}

/// Children of a node that is built: room is left, so that the first inserts split nothing.
const FILL: usize = FANOUT * 9 / 10;

impl<M: Medium> Inner<M> {
    /// The inner nodes over `leaves`, which stand in key order. Time O(leaves).
    ///
    /// # Errors
    /// The system has no addresses left.
    pub(crate) fn build(leaves: &[Separated], exact: bool) -> Result<Self, PoolError> {
        debug_assert!(!leaves.is_empty());
        let ties = if exact { None } else { Some(Arena::new()?) };
        let inner =
            Self { nodes: Arena::new()?, ties, root: AtomicU64::new(0), medium: PhantomData };
        let mut level = 1;
        let mut below = inner.build_level(level, leaves);
        while below.len() > 1 {
            level += 1;
            below = inner.build_level(level, &below);
        }
        inner.set_root(below[0].leaf);
        Ok(inner)
    }

    /// Makes the nodes of a level; `leaf` is then the index of a node.
    fn build_level(&self, level: u64, children: &[Separated]) -> Vec<Separated> {
        let nodes = children.len().div_ceil(FILL);
        let share = children.len().div_ceil(nodes);
        let build = |children: &[Separated]| {
            let index = self.take();
            let node = self.node(index);
            node.set_child(0, children[0].leaf);
            node.set_shape(level, 0);
            for (at, child) in children[1..].iter().enumerate() {
                self.insert_slot(index, at, child.prefix, child.word, child.leaf);
            }
            Separated { leaf: index as u64, ..children[0] }
        };
        children.chunks(share).map(build).collect()
    }

    /// Calls `visit` with every leaf, in key order. Nobody may write meanwhile. The separator of the
    /// first leaf is given as the least.
    pub(crate) fn for_each_leaf(&self, visit: &mut impl FnMut(Separated)) {
        let root = self.enter().0;
        self.walk(root, Separated::default(), visit);
    }

    fn walk(&self, index: usize, left: Separated, visit: &mut impl FnMut(Separated)) {
        let node = self.node(index);
        for at in 0..=node.count() {
            let mut child = match at.checked_sub(1) {
                Some(at) => Separated {
                    prefix: node.prefix(at),
                    word: self.ties(index).map_or(node.prefix(at), |ties| ties.word(at)),
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
