//! Building all inner nodes from the leaves, and listing the leaves.

use super::nodes::{InnerNodes, SeparatedLeaf};
use super::{Arena, Inner, Levels, NodeView, SearchChoice};
use bristlecone_pmem::{Medium, PoolError};
use core::marker::PhantomData;
use core::sync::atomic::AtomicU64;

impl<M: Medium, F: SearchChoice, const WORDS: usize> Inner<M, F, WORDS> {
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
