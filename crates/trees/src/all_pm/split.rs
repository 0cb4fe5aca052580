//! Splits: an insert that meets a full leaf splits full nodes from the root down, each in one
//! transaction with its parent.

use super::descend::{DescentTarget, Interrupted, Path, retry};
use super::structure::{NewNode, Structure};
use super::{root_cell, root_word};
use crate::index::TreeError;
use crate::key::{Entry, Key, PmPtr};
use crate::node::{Changes, Image, LEVEL_MAX, Slot, View};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Defect, Medium, PoolError};
use core::cmp::Ordering;

/// The right half of a node that splits. Nothing points to it yet.
struct Half {
    separator: u64,
    new: NewNode,
    /// `true` if the separator is a copy made for this split, to be freed if the split fails.
    is_copied: bool,
}

impl<M: Medium, K: Key> dyn Structure<M, K> + '_ {
    /// Splits the first full node on the path to `key`. The caller tries its insert again and calls
    /// this again if needed: nodes below may be full too, and other threads may fill the leaf.
    #[cold]
    pub(super) fn ensure_space(&self, key: K::Ref<'_>) -> Result<(), TreeError> {
        retry(self.pool_ref(), |guard| {
            let (path, is_full) = self.descend(DescentTarget::At(key), &mut |path| {
                let level = path.node.level;
                Ok(self.count(path.node.view, level) >= self.shape(level).capacity)
            })?;
            if is_full { self.split_full(&path, key, guard) } else { Ok(()) }
        })
    }

    /// Splits a full node whose parent has space.
    ///
    /// ```text
    /// N right half, separator       crash before C: nothing points to them
    /// W separator entry in the parent, which its commit word does not show; or N new root
    /// W logs of new inner nodes     empty, if nodes have logs
    /// F lines of a leaf             those that stay, in `circ-tree` alone: as published
    /// F them |
    /// C log: the node's commit word and link, the parent's commit word or the root word
    /// W these, and slot arrays; F |
    /// W log ended; F |              -> durable    4 fences
    /// ```
    pub(super) fn split(&self, path: &Path<'_, M>) -> Result<(), Interrupted> {
        let _parent = path.parent.upgrade()?;
        let _node = path.node.upgrade()?;
        self.check_in_use(core::slice::from_ref(path))?;
        let (level, view) = (path.node.level, path.node.view);
        let log = self.log_of(&path.parent)?;
        let mut image = self.image(view, level)?;
        let mut fresh = Changes::new();
        let half = self.halve(&mut image, &mut fresh)?;
        if level == 0 && self.flushes_left_half() {
            // The line of the head and the link follows, with the words of the transaction.
            view.flush(LINE_WORDS..=self.node_bytes() as usize / 8 - 1);
        }
        let entry = Entry::plain(half.separator, half.new.at.offset());
        if path.is_root {
            let root = self.stage_root(path.node.at, level + 1, entry, &mut fresh);
            let root = root.inspect_err(|_| self.abandon(&half))?;
            let (cell, word) = (root_cell(path.parent.view), root_word(root, level + 1));
            let is_late = M::INJECTS_DEFECTS && self.medium().injects(Defect::RootLate);
            let mut changes = if is_late { Changes::new() } else { vec![(cell, word)] };
            self.plan(view, &image, &mut changes);
            self.transact(log, &fresh, &changes, &mut || {
                if !is_late {
                    self.apply_word((cell, word));
                }
                self.apply(view, &image);
            });
            if is_late {
                self.set_word(cell, word);
            }
        } else {
            let above = path.parent.view;
            let mut parent = self.image(above, level + 1).inspect_err(|_| self.abandon(&half))?;
            self.check_between(above, &parent, path.rank, entry.key)
                .inspect_err(|_| self.abandon(&half))?;
            let slot = parent.insert(path.rank, entry);
            self.write_free_slots(above, level + 1, &[slot]);
            let mut changes = Changes::new();
            self.plan(view, &image, &mut changes);
            self.plan(above, &parent, &mut changes);
            self.transact(log, &fresh, &changes, &mut || {
                self.apply(view, &image);
                self.apply(above, &parent);
            });
        }
        Ok(())
    }

    /// Moves the upper half of `image` to a new node. The middle separator of an inner node moves
    /// up; a leaf's separator is a copy of the right half's first key.
    fn halve<'a>(
        &'a self,
        image: &mut Image,
        fresh: &mut Changes<'a>,
    ) -> Result<Half, Interrupted> {
        let right = image.slots.split_off(image.slots.len() / 2);
        let entries: Vec<_> = right.iter().map(|slot| slot.entry).collect();
        let new = self.reserve_on(image.level)?;
        if image.level > 0 {
            let middle = entries[0];
            self.stage_new(new, image.level, middle.value, &entries[1..], fresh)?;
            return Ok(Half { separator: middle.key, new, is_copied: false });
        }
        let separator = self.copy_separator(entries[0]).inspect_err(|_| self.release_new(new))?;
        self.stage_new(new, 0, image.link, &entries, fresh)?;
        image.link = new.at.offset();
        Ok(Half { separator, new, is_copied: true })
    }

    /// Returns a new separator word for the key of `entry`.
    pub(super) fn copy_separator(&self, entry: Entry) -> Result<u64, PoolError> {
        let key = K::read_entry(self.pool_ref(), entry)?;
        K::store_separator(self.pool_ref(), K::borrow(&key))
    }

    /// Writes a new root on `level` whose children are `left` and the child of `entry`.
    pub(super) fn new_root(
        &self,
        left: PmPtr,
        level: u64,
        entry: Entry,
    ) -> Result<PmPtr, Interrupted> {
        let new = self.reserve_root(level)?;
        self.write_new(new, level, left.offset(), &[entry])?;
        Ok(new.at)
    }

    /// Writes or stages a new root, as [`new_root`](Self::new_root).
    pub(super) fn stage_root<'a>(
        &'a self,
        left: PmPtr,
        level: u64,
        entry: Entry,
        fresh: &mut Changes<'a>,
    ) -> Result<PmPtr, Interrupted> {
        let new = self.reserve_root(level)?;
        self.stage_new(new, level, left.offset(), &[entry], fresh)?;
        Ok(new.at)
    }

    /// Reserves the blocks of a new root on `level`.
    fn reserve_root(&self, level: u64) -> Result<NewNode, Interrupted> {
        if level > LEVEL_MAX {
            let view = self.anchor()?;
            return Err(view.corrupt(super::ROOT, "height of the tree", LEVEL_MAX, level).into());
        }
        Ok(self.reserve_on(level)?)
    }

    /// Checks that `separator` belongs at `rank` of `parent`. If not, the node that splits holds
    /// keys outside its range.
    pub(super) fn check_between(
        &self,
        view: View<'_, M>,
        parent: &Image,
        rank: usize,
        separator: u64,
    ) -> Result<(), Corrupt> {
        let key = K::read(self.pool_ref(), separator)?;
        let order = |slot: &Slot| K::order(self.pool_ref(), slot.entry.key, K::borrow(&key));
        let (below, above) = parent.slots.split_at(rank);
        let fits = match (below.last(), above.first()) {
            (Some(slot), _) if order(slot)? != Ordering::Less => false,
            (_, Some(slot)) => order(slot)? == Ordering::Greater,
            _ => true,
        };
        let what = "separator outside its node's range";
        if fits { Ok(()) } else { Err(view.corrupt(0, what, K::prefix(K::borrow(&key)), 0)) }
    }

    /// Frees the blocks of a split that failed. Nothing points to them.
    fn abandon(&self, half: &Half) {
        self.release_new(half.new);
        if half.is_copied
            && let Ok(Some((block, bytes))) = K::block(self.pool_ref(), half.separator)
        {
            self.pool_ref().release(block, bytes);
        }
    }
}
