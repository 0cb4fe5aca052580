//! Merges: a node with few entries and a sibling below the same parent become one.
//!
//! 1. A node is sparse if at most a quarter of its places is in use. It joins its left sibling, or
//!    its right one joins it, if both fill at most three quarters. Entries are never redistributed.
//! 2. Merges go from the leaf upwards, each with a record of its own. An inner node may be left
//!    with one child. A root that is gives way to it.
//! 3. A merge reserves no block.

use super::BTreeNativeIndex;
use super::descend::PathNode;
use super::log::NodeOp;
use super::node::SortedNode;
use crate::index::TreeError;
use crate::key::{self, Entry, Key};
use crate::root_block::ROOT;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium};

impl<M: Medium, K: Key, const NODE: usize> BTreeNativeIndex<M, K, NODE> {
    /// The most entries of a sparse node.
    const SPARSE_MAX: usize = SortedNode::<M, NODE>::CAPACITY / 4;
    /// The most entries of a node that a merge makes.
    const MERGED_MAX: usize = SortedNode::<M, NODE>::CAPACITY * 3 / 4;

    /// Returns `true` if a node of `count` entries is sparse.
    pub(super) const fn is_sparse(count: usize) -> bool {
        count <= Self::SPARSE_MAX
    }

    /// Merges the sparse nodes on the path to `key` with siblings, from the leaf upwards.
    #[cold]
    pub(super) fn shrink(&self, key: K::Ref<'_>, guard: &Guard) -> Result<(), TreeError> {
        // A node that loses an entry and is not sparse then keeps the nodes above as they are.
        let mut path = self.latch_path(key, |count| count > Self::SPARSE_MAX + 1)?;
        while path.nodes.len() > 1 {
            let below = path.nodes.pop().expect("there are two");
            if !Self::is_sparse(below.node.state()?.count) {
                break;
            }
            let parent = path.nodes.last().expect("there is one");
            self.merge_child(parent, below, guard)?;
        }
        match (&path.root, path.nodes.first()) {
            (Some(_), Some(top)) => self.lower(&top.node, guard),
            _ => Ok(()),
        }
    }

    /// Merges `below`, the child of `parent` on the path, with a sibling, if one has space.
    fn merge_child(
        &self,
        parent: &PathNode<'_, M, NODE>,
        below: PathNode<'_, M, NODE>,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        let (rank, count) = (parent.rank, parent.node.state()?.count);
        let left = rank.checked_sub(1).map(|rank| (rank, rank));
        let right = (rank < count).then_some((rank + 1, rank));
        for (sibling, place) in [left, right].into_iter().flatten() {
            let sibling_node = self.node(parent.node.child(sibling), below.node.level)?;
            if sibling_node.at == below.node.at {
                return Err(sibling_node.damage("child that is there twice", 1, 2).into());
            }
            let held = self.hold(&sibling_node)?;
            let separator = usize::from(below.node.level > 0);
            let sum = below.node.state()?.count + sibling_node.state()?.count + separator;
            if sum > Self::MERGED_MAX {
                continue;
            }
            let (left, right) = if sibling < rank {
                (sibling_node, below.node)
            } else {
                (below.node, sibling_node)
            };
            let separator = parent.node.entry(place).key;
            self.merge(&parent.node, place, &left, &right)?;
            drop((held, below.held));
            self.pool.retire(right.at, Self::NODE_BYTES, guard);
            if left.level == 0 {
                key::retire::<K, M>(&self.pool, separator, guard)?;
            }
            return Ok(());
        }
        Ok(())
    }

    /// Merges `right` into `left`; `place` is the index of the separator between them in `parent`.
    /// All three are held for writing.
    ///
    /// # Persist order
    /// ```text
    /// W entries of right, behind those of left; F their lines |   not shown before C
    /// C log record, F |          crash from here on: recovery completes the merge
    /// W link of a leaf, state of left, F |
    /// parent: remove             -> durable   budget: lines of the entries + 3 and of the moved
    ///                            ones; 4 fences and theirs
    /// ```
    fn merge(
        &self,
        parent: &SortedNode<'_, M, NODE>,
        place: usize,
        left: &SortedNode<'_, M, NODE>,
        right: &SortedNode<'_, M, NODE>,
    ) -> Result<(), Corrupt> {
        let (above, state) = (parent.state()?, left.state()?);
        let mut entries = Vec::with_capacity(Self::MERGED_MAX);
        if left.level > 0 {
            // The leftmost child of the right node gets the separator that leads to that node.
            entries.push(Entry::plain(parent.entry(place).key, right.link().offset()));
        }
        entries.extend(right.entries(right.state()?.count));
        left.append(state.count, &entries);
        let _ = self.pool.medium().fence();
        let seq = state.seq.max(above.seq) + 1;
        let op = NodeOp::Merge { place, right: right.at, parent: parent.at };
        self.logged(op, left, seq, |fenced| {
            let fenced = self.take(left, right.at, (state.count, seq), fenced)?;
            Ok(parent.remove_from(place + 1, (above.count, seq), fenced))
        })
    }

    /// Replaces a root with one child by that child. The caller holds the latch of the root block.
    ///
    /// # Persist order
    /// ```text
    /// C root word            8 B
    /// F root block |         -> durable   budget: 1 line, 1 fence
    /// ```
    fn lower(&self, root: &SortedNode<'_, M, NODE>, guard: &Guard) -> Result<(), TreeError> {
        if root.level == 0 || root.state()?.count > 0 {
            return Ok(());
        }
        let child = self.node(root.link(), root.level - 1)?;
        let (medium, words) = (self.pool.medium(), self.root.words(&self.pool)?);
        medium.store(&words[ROOT], child.at.offset());
        let _ = medium.persist(&words[..=ROOT]);
        self.pool.retire(root.at, Self::NODE_BYTES, guard);
        Ok(())
    }
}
