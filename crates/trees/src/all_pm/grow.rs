//! Inserts into full leaves: the new entry and every split that it needs are one transaction.
//!
//! 1. A thread latches the nodes that split and the node above them from the root down, each at the
//!    version under which it read the node. If one has changed, the thread releases all of them and
//!    begins again. It waits for no latch while it holds one.
//! 2. With a redo log, every word that is stored before the commit is in a new node or in a place
//!    that no commit word shows. Nothing has to be undone after a crash.
//! 3. An entry that goes to the lower half of a full node takes a place that the upper half leaves.
//!    The node shows that place until the commit, so the entry is stored after it. A separator is
//!    in the log, because the tree cannot do without it. The new pair of a leaf is not, if the
//!    protocol permits: a crash before the end of the log then undoes the insert and keeps the
//!    splits.

use super::descend::{DescentTarget, Interrupted, NodeGuard, Path, retry};
use super::structure::Structure;
use super::{root_cell, root_word};
use crate::index::TreeError;
use crate::key::{self, Entry, Key, PmPtr};
use crate::node::{Changes, Image, Slot, View};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium};
use core::cmp::Ordering;

/// A node that the transaction changes in place.
struct Changed<'a, M> {
    view: View<'a, M>,
    /// The new content.
    image: Image,
    /// The entry that is stored after the commit, if any.
    late: Option<Slot>,
}

/// The blocks that an insert has reserved, to be freed if it fails. Nothing points to them.
pub(super) struct Reserved {
    pub(super) nodes: Vec<PmPtr>,
    /// The new pair, whose key may own a record.
    pub(super) pair: Entry,
    /// The copy of a leaf's separator, which may own a record.
    separator: Option<u64>,
}

/// The upper half of a node that splits, and what its split needs elsewhere.
pub(super) struct Upper {
    /// The block of the new node, which is still to be written.
    pub(super) at: PmPtr,
    /// The content of the new node.
    pub(super) link: u64,
    pub(super) entries: Vec<Entry>,
    /// The slot of the inserted entry, if it is in the lower half.
    late: Option<Slot>,
    /// The entry for the node above.
    pub(super) up: Entry,
}

impl<M: Medium, K: Key> dyn Structure<M, K> + '_ {
    /// Inserts `key` into its full leaf and splits every full node above. Returns `false` if the
    /// caller must try its insert again: the leaf has got space, or the key.
    #[cold]
    pub(super) fn insert_and_split(&self, key: K::Ref<'_>, value: u64) -> Result<bool, TreeError> {
        retry(self.pool_ref(), |guard| self.try_insert_and_split(key, value, guard))
    }

    fn try_insert_and_split(
        &self,
        key: K::Ref<'_>,
        value: u64,
        guard: &Guard,
    ) -> Result<bool, Interrupted> {
        let way = self.way_to(key)?;
        let full = self.full_end(&way);
        let (Some(top), Some(leaf)) = (full.first(), full.last()) else { return Ok(false) };
        if full.len() > self.split_levels_max() {
            // A log holds no more levels. The split of the topmost node shortens the path.
            self.split_full(top, key, guard)?;
            return Ok(false);
        }
        let mut latches: Vec<NodeGuard<'_, M>> = vec![top.parent.upgrade()?];
        for path in full {
            latches.push(path.node.upgrade()?);
        }
        self.check_in_use(full)?;
        let image = self.image(leaf.node.view, 0)?;
        let Some(rank) = self.rank_of_absent(&image, key)? else { return Ok(false) };
        let mut reserved = self.reserve_pair(key, value)?;
        self.insert_latched(full, image, rank, &mut reserved)
            .inspect_err(|_| self.free_reserved(&reserved))?;
        drop(latches);
        Ok(true)
    }

    /// Returns the nodes on the way to `key`, from the root to the leaf.
    pub(super) fn way_to<'a>(&'a self, key: K::Ref<'_>) -> Result<Vec<Path<'a, M>>, Interrupted> {
        let mut way = Vec::new();
        let _ = self.descend(DescentTarget::At(key), &mut |path| {
            way.push(*path);
            Ok(false)
        })?;
        Ok(way)
    }

    /// Returns the nodes of a way that an insert splits: the leaf, if it is full, and the full
    /// nodes above it, up to the first that is not.
    pub(super) fn full_end<'w, 'a>(&self, way: &'w [Path<'a, M>]) -> &'w [Path<'a, M>] {
        let is_full = |path: &&Path<'a, M>| {
            let level = path.node.level;
            self.count(path.node.view, level) >= self.shape(level).capacity
        };
        let count = way.iter().rev().take_while(is_full).count();
        &way[way.len() - count..]
    }

    /// Checks that the nodes of `paths`, one below the other, and the parent of the first lie in
    /// blocks that are in use. A damaged pointer may lead to a free block, and the caller's change
    /// would get it as a fresh one.
    pub(super) fn check_in_use(&self, paths: &[Path<'_, M>]) -> Result<(), Corrupt> {
        let above = paths.first().filter(|top| !top.is_root).map(|top| &top.parent);
        for node in above.into_iter().chain(paths.iter().map(|path| &path.node)) {
            if !self.pool_ref().is_block(node.at, self.node_bytes()) {
                return Err(node.view.corrupt(0, "block of the tree is free in the pool", 1, 0));
            }
        }
        Ok(())
    }

    /// Returns the rank that `key` would have in a leaf with the content `image`; `None` if the
    /// leaf has the key.
    pub(super) fn rank_of_absent(
        &self,
        image: &Image,
        key: K::Ref<'_>,
    ) -> Result<Option<usize>, Corrupt> {
        for (rank, slot) in image.slots.iter().enumerate() {
            match K::order_entry(self.pool_ref(), slot.entry, key)? {
                Ordering::Less => {}
                Ordering::Equal => return Ok(None),
                Ordering::Greater => return Ok(Some(rank)),
            }
        }
        Ok(Some(image.slots.len()))
    }

    /// Stores the record of a new pair's key, if it needs one.
    pub(super) fn reserve_pair(
        &self,
        key: K::Ref<'_>,
        value: u64,
    ) -> Result<Reserved, Interrupted> {
        let pair = Entry::plain(K::store_entry_key(self.pool_ref(), key, value)?, value);
        Ok(Reserved { nodes: Vec::new(), pair, separator: None })
    }

    /// Inserts the pair at `rank` of the leaf with the content `leaf`. `full` are the nodes that
    /// split, from the top down; the caller holds their latches and that of the node above.
    ///
    /// ```text
    /// N upper halves, separator, key record    crash before C: nothing points to them
    /// W separator in the node above, which its commit word does not show; or N new root
    /// F them |
    /// C log: commit words and links of the nodes, separators of lower halves; F |
    /// W these, slot arrays, a pair of the lower half; F |    crash: the log is replayed
    /// W log ended; F |              -> durable   budget with `Redo`: lines of the upper halves,
    ///                               1 for the separator, 1 for each 3 words of the log, header
    ///                               lines of the changed nodes, 1 for each entry of a lower half,
    ///                               1; 4 fences
    /// ```
    ///
    /// That is the order of `Redo`. `Undo` logs the words of new nodes too, and stores each other
    /// word when its record is durable.
    fn insert_latched<'a>(
        &'a self,
        full: &[Path<'a, M>],
        leaf: Image,
        rank: usize,
        reserved: &mut Reserved,
    ) -> Result<(), Interrupted> {
        let (mut image, mut rank, mut entry) = (leaf, rank, reserved.pair);
        let mut changed: Vec<Changed<'a, M>> = Vec::new();
        let mut fresh = Changes::new();
        for (below, path) in full.iter().rev().enumerate() {
            let view = path.node.view;
            if below > 0 {
                image = self.image(view, path.node.level)?;
                self.check_between(view, &image, rank, entry.key)?;
            }
            let upper = self.divide(&mut image, rank, entry, reserved)?;
            self.stage_new(upper.at, image.level, upper.link, &upper.entries, &mut fresh)?;
            changed.push(Changed { view, image: image.clone(), late: upper.late });
            (rank, entry) = (path.rank, upper.up);
        }
        let top = &full[0];
        let (above, level) = (top.parent.view, top.node.level + 1);
        let mut changes = Changes::new();
        let mut root = None;
        if top.is_root {
            let at = self.stage_root(top.node.at, level, entry, &mut fresh)?;
            reserved.nodes.push(at);
            root = Some((root_cell(above), root_word(at, level)));
        } else {
            let mut image = self.image(above, level)?;
            self.check_between(above, &image, rank, entry.key)?;
            let slot = image.insert(rank, entry);
            self.place_separator(above, slot);
            changed.push(Changed { view: above, image, late: None });
        }
        let is_late = M::INJECTS_DEFECTS && self.medium().injects(Defect::RootLate);
        let logged_root = root.filter(|_| !is_late);
        changes.extend(logged_root);
        for node in &changed {
            self.plan_changed(node, &mut changes);
        }
        if M::INJECTS_DEFECTS && self.medium().injects(Defect::ParentEarly) {
            let node = &changed[changed.len() - 1];
            self.apply(node.view, &node.image); // Wrong: the log does not cover this store yet.
        }
        self.transact(PmPtr::NULL, &fresh, &changes, &mut || {
            if let Some(change) = logged_root {
                self.apply_word(change);
            }
            for node in &changed {
                if let Some(slot) = node.late {
                    self.apply_entry(node.view, node.image.level, slot);
                }
                self.apply(node.view, &node.image);
            }
        });
        if let (true, Some((cell, word))) = (is_late, root) {
            self.set_word(cell, word);
        }
        Ok(())
    }

    /// Adds the words of a changed node to `changes`. A pair that the transaction stores without a
    /// log is not among them, nor does the logged commit word show it.
    fn plan_changed<'a>(&self, node: &Changed<'a, M>, changes: &mut Changes<'a>) {
        let Some(late) = node.late else { return self.plan(node.view, &node.image, changes) };
        if node.image.level == 0 && self.stores_pairs_unlogged() {
            let is_wrong = M::INJECTS_DEFECTS && self.medium().injects(Defect::PairUnlogged);
            let mut logged = node.image.clone();
            logged.slots.retain(|slot| is_wrong || slot.index != late.index);
            self.plan(node.view, &logged, changes);
        } else {
            self.plan_entry(node.view, node.image.level, late, changes);
            self.plan(node.view, &node.image, changes);
        }
    }

    /// Inserts `entry` at `rank` of `image` and takes the upper half away, for a new node.
    pub(super) fn divide(
        &self,
        image: &mut Image,
        rank: usize,
        entry: Entry,
        reserved: &mut Reserved,
    ) -> Result<Upper, Interrupted> {
        let lower = image.slots.len().div_ceil(2);
        let stays = rank < lower;
        let upper = image.slots.split_off(lower - usize::from(stays));
        let mut upper: Vec<_> = upper.iter().map(|slot| slot.entry).collect();
        let late = if stays {
            Some(image.insert(rank, entry))
        } else {
            upper.insert(rank - lower, entry);
            None
        };
        let at = self.reserve_node()?;
        reserved.nodes.push(at);
        let (link, separator) = if image.level > 0 {
            let middle = upper.remove(0);
            (middle.value, middle.key)
        } else {
            let separator = self.copy_separator(upper[0])?;
            reserved.separator = Some(separator);
            (core::mem::replace(&mut image.link, at.offset()), separator)
        };
        Ok(Upper { at, link, entries: upper, late, up: Entry::plain(separator, at.offset()) })
    }

    /// Frees the blocks of an insert that failed.
    pub(super) fn free_reserved(&self, reserved: &Reserved) {
        for &at in &reserved.nodes {
            self.pool_ref().release(at, self.node_bytes());
        }
        key::free_entry_key::<K, M>(self.pool_ref(), reserved.pair);
        if let Some(separator) = reserved.separator {
            key::free_separator::<K, M>(self.pool_ref(), separator);
        }
    }
}
