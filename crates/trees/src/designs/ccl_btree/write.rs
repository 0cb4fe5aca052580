//! Insert, update, upsert, remove.

use super::CclBTreeIndex;
use super::buffer::{BATCH_MAX, BufferNode, Meta};
use super::chunk::Logged;
use super::layout::{self, CAPACITY, LeafView};
use super::settle::{With, settle};
use crate::index::TreeError;
use crate::key::{self, Entry, Key};
use crate::leaf_table::{EntryChange, Operation, key_word, latch_leaf};
use bristlecone_pmem::sync::{Exclusive, Guard, OnDram, pin};
use bristlecone_pmem::{Corrupt, Medium};

/// Where the newest write of a key is.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Its slot in the buffer.
    slot: Option<usize>,
    /// Its entry, in the buffer or in the leaf; the key may be removed.
    entry: Option<Entry>,
    value: Option<u64>,
}

/// A write of an operation, on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct BufferedChange {
    pub(super) change: EntryChange,
    /// The slot in the buffer that the key has already.
    slot: Option<usize>,
    /// Whether neither buffer nor leaf has the key.
    pub(super) is_new: bool,
    /// Whether its record has just been planted.
    pub(super) is_stored: bool,
}

/// A leaf and its buffer, latched.
pub(super) struct LatchedLeaf<'a, M: Medium> {
    pub(super) node: BufferNode<'a>,
    pub(super) leaf: LeafView<'a>,
    _held: Exclusive<OnDram<'a, M>>,
}

impl<M: Medium, K: Key, const BATCH: usize> CclBTreeIndex<M, K, BATCH> {
    /// A leaf is merged with a neighbour once there are no more keys in it and its buffer than this.
    pub(super) const SPARSE: usize = CAPACITY / 4;

    fn look(&self, place: &LatchedLeaf<'_, M>, key: K::Ref<'_>) -> Result<Seen, Corrupt> {
        if let Some((slot, meta)) = place.node.find::<K, M>(&self.pool, key)? {
            let change = place.node.change::<M>(meta, slot);
            return Ok(Seen { slot: Some(slot), entry: Some(change.entry), value: change.value() });
        }
        let entry = place.leaf.find::<K, M>(&self.pool, key)?.map(|(_, entry)| entry);
        Ok(Seen { slot: None, entry, value: entry.map(|entry| entry.value) })
    }

    #[inline]
    pub(super) fn write(
        &self,
        key: K::Ref<'_>,
        operation: Operation,
    ) -> Result<Option<u64>, TreeError> {
        let guard = pin();
        let (node, held) = latch_leaf(self, key, |_| {})?;
        let place = LatchedLeaf { node, leaf: self.leaf(node.leaf::<M>())?, _held: held };
        let seen = self.look(&place, key)?;
        let Some(value) = operation.value(seen.value) else { return Ok(seen.value) };
        let incoming = self.incoming(key, value, operation == Operation::Remove, &seen)?;
        self.put(&place, key, &incoming, &guard)?;
        let valid = place.leaf.valid(self.pool.medium());
        let is_sparse =
            operation == Operation::Remove && place.node.meta::<M>().live(valid) <= Self::SPARSE;
        drop(place);
        if is_sparse {
            self.inner.merge_leaves::<K, TreeError>(&self.pool, key, |left, right| {
                Ok(self.merge(left, right, &guard)?)
            })?;
        }
        if BATCH > 0 {
            self.maintain_log(&guard)?;
        }
        Ok(seen.value)
    }

    /// The write, with a record for its key if that is new.
    fn incoming(
        &self,
        key: K::Ref<'_>,
        value: u64,
        is_removed: bool,
        seen: &Seen,
    ) -> Result<BufferedChange, TreeError> {
        let (word, is_stored) = key_word(self, key, value, seen.entry)?;
        let change = EntryChange { entry: Entry::plain(word, value), is_removed };
        Ok(BufferedChange { change, slot: seen.slot, is_new: seen.entry.is_none(), is_stored })
    }

    /// Puts a write where there is room for it: into the buffer and a log, into the leaf with all that the
    /// buffer holds, or into one of two leaves. Durable at return.
    fn put(
        &self,
        place: &LatchedLeaf<'_, M>,
        key: K::Ref<'_>,
        incoming: &BufferedChange,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        let medium = self.pool.medium();
        let kept = place.leaf.valid(medium).count_ones() as usize + place.node.meta::<M>().kept();
        if incoming.is_new && kept >= CAPACITY {
            return self.split(place, key, incoming, guard);
        }
        if !self.buffer(place, incoming)? {
            self.settle_buffer(&place.node, &place.leaf, Some(incoming), guard)?;
        }
        Ok(())
    }

    /// Takes a write into the buffer, if there is a slot and room in a log. Durable at return.
    ///
    /// ```text
    /// N record of the key |    only of a new key that has a record: the entry names it
    /// W entry of the log         1 line
    /// C its seal                 8 B       crash before C: no entry
    /// F entry |                  -> durable, and then seen   budget: 1 line, 1 fence
    /// ```
    fn buffer(
        &self,
        place: &LatchedLeaf<'_, M>,
        incoming: &BufferedChange,
    ) -> Result<bool, Corrupt> {
        let (node, medium) = (&place.node, self.pool.medium());
        let meta = node.meta::<M>();
        let slot = incoming.slot.unwrap_or(meta.count());
        if slot >= BATCH {
            return Ok(false);
        }
        if incoming.is_stored {
            let _ = medium.fence();
        }
        let stamp = layout::after(self.last_stamp(node, &place.leaf, meta));
        let logged = Logged { leaf: place.leaf.at, stamp, change: incoming.change };
        let appended =
            self.log.append(&self.pool, self.root_words()?, &logged, || self.is_due())?;
        let Some(appended) = appended else { return Ok(false) };
        if !appended.is_durable {
            let _ = medium.fence();
        }
        node.set_entry::<M>(slot, incoming.change.entry);
        node.set_stamp::<M>(stamp);
        let is_removed = incoming.change.is_removed;
        node.set_meta::<M>(meta.write(slot, is_removed, incoming.is_new, appended.parity));
        if slot == meta.count() {
            self.log.count_buffered();
        }
        Ok(true)
    }

    /// No less than the stamp of any log entry of the leaf that may count.
    pub(super) fn last_stamp(&self, node: &BufferNode<'_>, leaf: &LeafView<'_>, meta: Meta) -> u64 {
        if meta.count() == 0 { leaf.stamp(self.pool.medium()) } else { node.stamp::<M>() }
    }

    /// Merges what the buffer holds into the leaf, together with a write that there is no room for
    /// in the buffer, or that no log takes: that one is not logged. See [`settle`].
    pub(super) fn settle_buffer(
        &self,
        node: &BufferNode<'_>,
        leaf: &LeafView<'_>,
        incoming: Option<&BufferedChange>,
        guard: &Guard,
    ) -> Result<(), Corrupt> {
        let meta = node.meta::<M>();
        let mut changes = [EntryChange::default(); BATCH_MAX + 1];
        let mut count = 0;
        let replaced = incoming.and_then(|incoming| incoming.slot);
        for slot in (0..meta.count()).filter(|&slot| Some(slot) != replaced) {
            changes[count] = node.change::<M>(meta, slot);
            count += 1;
        }
        if let Some(incoming) = incoming {
            changes[count] = incoming.change;
            count += 1;
        }
        let changes = &changes[..count];
        let stamp = (meta.count() > 0).then(|| layout::after(node.stamp::<M>()));
        let is_stored = incoming.is_some_and(|incoming| incoming.is_stored);
        settle::<K, M>(&self.pool, leaf, changes, With { next: None, stamp, is_stored })?;
        self.emptied(node, meta);
        self.retire_removed(changes, guard)
    }

    /// The buffer holds nothing any more.
    pub(super) fn emptied(&self, node: &BufferNode<'_>, meta: Meta) {
        if meta.count() > 0 {
            node.set_meta::<M>(Meta::default());
            self.log.count_settled(meta.count() as u64);
        }
    }

    /// Retires the records of keys that are gone from leaf and buffer.
    pub(super) fn retire_removed(
        &self,
        changes: &[EntryChange],
        guard: &Guard,
    ) -> Result<(), Corrupt> {
        for change in changes.iter().filter(|change| change.is_removed) {
            key::retire_entry::<K, M>(&self.pool, change.entry, guard)?;
        }
        Ok(())
    }
}
