//! Inserts into full leaves by copy-on-write: the new pair and every split that it needs are in
//! fresh nodes, which one swap publishes.
//!
//! A leaf and the full nodes above it give way to two nodes each, and the node above them to a
//! copy. So two words lead to the new nodes: the pointer to that copy, or the root word, and the
//! link of the leaf's left neighbour.

use super::descend::{Interrupted, NodeGuard, NodeRef, Path};
use super::grow::Reserved;
use super::replacement::entries_of;
use super::{AllPm, AllPmSpec, Undo, root_cell, root_word};
use crate::index::TreeError;
use crate::key::{Entry, Key};
use crate::node::{Changes, Image, Linked, Wordwise};
use bristlecone_pmem::log::UndoLog;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Medium, PmPtr};

/// The fresh nodes of an insert that take the place of those that it splits.
struct Copies<'a, M: Medium> {
    /// The words that lead to them, with their new values.
    changes: Changes<'a>,
    reserved: Reserved,
    /// The log with the records of their blocks.
    log: UndoLog<'a, M>,
}

impl<M: Medium, K: Key, S> AllPm<M, K, S>
where
    S: AllPmSpec<Leaf: Linked + Wordwise, Inner: Linked, Protocol = Undo>,
{
    /// Inserts `key` into its full leaf and splits every full node above. Returns `false` if the
    /// caller must try its insert again: the leaf has got space, or the key.
    ///
    /// ```text
    /// W records of the blocks of the new nodes, F
    /// N halves of the full nodes, with the pair; separator; copy of the node above or new root |
    ///                               crash before C: nothing points to them
    /// C log: the pointer to the copy, the link to the lower half of the leaf |
    ///                               or one word alone, if the leaf is the first
    /// W both, F |
    /// W log ended, F |              -> durable   budget: lines of the new nodes + levels that
    ///                               split + 5, 4 fences; of the first leaf 3 lines less, 2 fences
    /// ```
    #[cold]
    pub(super) fn insert_and_split_by_copy(
        &self,
        key: K::Ref<'_>,
        value: u64,
    ) -> Result<bool, TreeError> {
        self.retry(|tree, guard| tree.try_insert_by_copy(key, value, guard))
    }

    fn try_insert_by_copy(
        &self,
        key: K::Ref<'_>,
        value: u64,
        guard: &Guard,
    ) -> Result<bool, Interrupted> {
        let structure = self.structure();
        let way = structure.way_to(key)?;
        let full = structure.full_end(&way);
        let (Some(top), Some(leaf)) = (full.first(), full.last()) else { return Ok(false) };
        let above = way[..way.len() - full.len()].last();
        let fork = way.iter().rev().find(|path| path.rank > 0);
        let left = fork.map(|fork| self.last_leaf_before(fork, leaf)).transpose()?;
        let _above = above.map(|above| above.parent.upgrade()).transpose()?;
        let parent = top.parent.upgrade()?;
        let mut latches: Vec<NodeGuard<'_, M>> = Vec::new();
        for path in full {
            latches.push(path.node.upgrade()?);
        }
        let _left = left.map(|left| left.upgrade()).transpose()?;
        structure.check_in_use(full)?;
        let image = structure.image(leaf.node.view, 0)?;
        let Some(rank) = structure.rank_of_absent(&image, key)? else { return Ok(false) };
        let reserved = structure.reserve_pair(key, value)?;
        let log = self.protocol.log(&self.pool);
        let mut copies = Copies { changes: Changes::new(), reserved, log };
        self.write_copies(full, above, left, (image, rank), &mut copies)
            .inspect_err(|_| structure.free_reserved(&copies.reserved))?;
        self.swap(&copies.changes);
        for (path, latch) in full.iter().zip(latches).rev() {
            latch.obsolete();
            let _ = self.pool.try_retire(path.node.at, Self::NODE_BYTES, guard);
        }
        if above.is_some() {
            parent.obsolete();
            let _ = self.pool.try_retire(top.parent.at, Self::NODE_BYTES, guard);
        }
        Ok(true)
    }

    /// Writes both halves of each of the `full` nodes, from the leaf with the content `leaf` up,
    /// and the node above them. The pair of `copies` has the given rank in the leaf.
    fn write_copies<'a>(
        &'a self,
        full: &[Path<'a, M>],
        above: Option<&Path<'a, M>>,
        left: Option<NodeRef<'a, M>>,
        (leaf, rank): (Image, usize),
        copies: &mut Copies<'a, M>,
    ) -> Result<(), Interrupted> {
        let structure = self.structure();
        let Copies { changes, reserved, log } = copies;
        let (mut image, mut rank, mut entry) = (leaf, rank, reserved.pair);
        let mut lower = None;
        for path in full.iter().rev() {
            let level = path.node.level;
            if let Some(lower) = lower {
                image = self.repointed(path.node, rank, entry, lower)?;
            }
            let upper = structure.divide(&mut image, rank, entry, reserved)?;
            let at = structure.reserve_node()?;
            reserved.nodes.push(at);
            log.alloc_node(level as usize, &[at, upper.at]);
            structure.write_new(upper.at, level, upper.link, &upper.entries)?;
            structure.write_new(at, level, image.link, &entries_of(&image.slots))?;
            if let (None, Some(left)) = (lower, left) {
                changes.push(Self::link_to(path, left, at)?);
            }
            (lower, rank, entry) = (Some(at), path.rank, upper.up);
        }
        let (top, lower) = (full[0], lower.expect("an insert splits a leaf"));
        let level = top.node.level + 1;
        let Some(above) = above else {
            let root = structure.new_root(lower, level, entry)?;
            reserved.nodes.push(root);
            log.alloc_node(level as usize, &[root]);
            changes.push((root_cell(top.parent.view), root_word(root, level)));
            return Ok(());
        };
        let mut image = self.repointed(above.node, rank, entry, lower)?;
        let _ = image.insert(rank, entry);
        let copy = structure.reserve_node()?;
        reserved.nodes.push(copy);
        log.alloc_node(level as usize, &[copy]);
        structure.write_new(copy, level, image.link, &entries_of(&image.slots))?;
        changes.push(Self::pointer(above, copy)?);
        Ok(())
    }

    /// Returns the content of an inner node with `lower` as its child of rank `rank`, after which
    /// `entry` belongs.
    fn repointed(
        &self,
        node: NodeRef<'_, M>,
        rank: usize,
        entry: Entry,
        lower: PmPtr,
    ) -> Result<Image, Interrupted> {
        let mut image = self.structure().image(node.view, node.level)?;
        self.structure().check_between(node.view, &image, rank, entry.key)?;
        match rank.checked_sub(1) {
            None => image.link = lower.offset(),
            Some(last) => image.slots[last].entry.value = lower.offset(),
        }
        Ok(image)
    }
}
