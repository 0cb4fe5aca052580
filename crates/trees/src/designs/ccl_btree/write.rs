//! Insert, update, upsert and remove.

use super::CclBTreeIndex;
use super::buffer::{BATCH_MAX, BufferNode, SlotStates};
use super::chunk::LogEntry;
use super::layout::{self, CAPACITY, LeafView};
use super::settle::{SettleOptions, settle};
use super::techniques::Techniques;
use crate::index::TreeError;
use crate::key::{self, Entry, Key};
use crate::leaf_table::{EntryChange, Operation, key_word, latch_leaf};
use bristlecone_pmem::sync::{Exclusive, Guard, OnDram};
use bristlecone_pmem::{Corrupt, Defect, Medium};

/// The newest write of a key.
#[derive(Clone, Copy, Debug)]
struct KeyState {
    /// The key's slot in the buffer, if it has one.
    slot: Option<usize>,
    /// The key's entry in the buffer or the leaf, also if the key was removed.
    entry: Option<Entry>,
    value: Option<u64>,
}

/// A write that is being made.
#[derive(Clone, Copy, Debug)]
pub(super) struct BufferedChange {
    pub(super) change: EntryChange,
    /// The buffer slot that the key already has.
    slot: Option<usize>,
    /// `true` if neither buffer nor leaf has an entry of the key.
    pub(super) is_new: bool,
    /// `true` if a new key record was written for it.
    pub(super) is_stored: bool,
}

/// A leaf and its buffer, latched.
pub(super) struct LatchedLeaf<'a, M: Medium> {
    pub(super) node: BufferNode<'a>,
    pub(super) leaf: LeafView<'a>,
    _held: Exclusive<OnDram<'a, M>>,
}

impl<M: Medium, K: Key, const BATCH: usize, T: Techniques> CclBTreeIndex<M, K, BATCH, T> {
    fn key_state_of(
        &self,
        latched: &LatchedLeaf<'_, M>,
        key: K::Ref<'_>,
    ) -> Result<KeyState, Corrupt> {
        if let Some((slot, meta)) = latched.node.find::<K, M>(&self.pool, key)? {
            let change = latched.node.change::<M>(meta, slot);
            return Ok(KeyState {
                slot: (slot < meta.count()).then_some(slot),
                entry: Some(change.entry),
                value: change.value(),
            });
        }
        let entry = latched.leaf.find::<K, M>(&self.pool, key)?.map(|(_, entry)| entry);
        Ok(KeyState { slot: None, entry, value: entry.map(|entry| entry.value) })
    }

    #[inline]
    pub(super) fn write(
        &self,
        key: K::Ref<'_>,
        operation: Operation,
    ) -> Result<Option<u64>, TreeError> {
        let guard = self.pool.pin();
        // The write that begins a collection, and so a chunk, runs no step.
        let is_collecting = BATCH > 0 && self.is_collecting();
        let (node, held) = latch_leaf(self, key, |_| {})?;
        let latched = LatchedLeaf { node, leaf: self.leaf(node.leaf::<M>())?, _held: held };
        let key_state = self.key_state_of(&latched, key)?;
        let Some(value) = operation.value(key_state.value) else { return Ok(key_state.value) };
        let incoming =
            self.prepare_change(key, value, operation == Operation::Remove, &key_state)?;
        self.put(&latched, key, &incoming, &guard)?;
        let meta = latched.node.meta::<M>();
        if operation == Operation::Remove && meta.live(latched.leaf.valid(self.pool.medium())) == 0
        {
            self.unlink_empty(latched, key, &guard)?;
        } else {
            drop(latched);
        }
        if is_collecting {
            self.collect_unless_maintained(&guard)?;
        }
        Ok(key_state.value)
    }

    /// Prepares the change, and writes a record for its key if that is new.
    fn prepare_change(
        &self,
        key: K::Ref<'_>,
        value: u64,
        is_removed: bool,
        key_state: &KeyState,
    ) -> Result<BufferedChange, TreeError> {
        let (word, is_stored) = key_word(self, key, value, key_state.entry)?;
        let change = EntryChange { entry: Entry::plain(word, value), is_removed };
        Ok(BufferedChange {
            change,
            slot: key_state.slot,
            is_new: key_state.entry.is_none(),
            is_stored,
        })
    }

    /// Makes a write: in the buffer and a log, in the leaf together with the buffered writes, or in
    /// a split. Durable on return.
    fn put(
        &self,
        latched: &LatchedLeaf<'_, M>,
        key: K::Ref<'_>,
        incoming: &BufferedChange,
        guard: &Guard,
    ) -> Result<(), TreeError> {
        let medium = self.pool.medium();
        let used =
            latched.leaf.valid(medium).count_ones() as usize + latched.node.meta::<M>().reserved();
        if incoming.is_new && used >= CAPACITY {
            return self.split(latched, key, incoming, guard);
        }
        if !self.buffer_write(latched, incoming)? {
            let meta = latched.node.meta::<M>();
            if !T::CONSERVATIVE && meta.count() > 0 && self.log_write(latched, incoming)?.is_some()
            {
                self.log.count_settled(1);
            }
            self.settle_buffer(&latched.node, &latched.leaf, Some(incoming), guard)?;
        }
        Ok(())
    }

    /// Adds a write to the buffer. Returns `false` if there is no free slot or no log space.
    /// Durable on return.
    ///
    /// ```text
    /// N record of the key |    only for a new key, if its layer has records
    /// W entry of the log         1 line
    /// C its seal                 8 B       crash before C: no entry
    /// F entry |                  -> durable, then visible   budget: 1 line, 1 fence; of eight
    ///                                      entries two cross a line: 2 lines, 2 fences
    /// ```
    fn buffer_write(
        &self,
        latched: &LatchedLeaf<'_, M>,
        incoming: &BufferedChange,
    ) -> Result<bool, Corrupt> {
        let node = &latched.node;
        let meta = node.meta::<M>();
        let slot = incoming.slot.unwrap_or(meta.count());
        if slot >= BATCH {
            return Ok(false);
        }
        let Some(parity) = self.log_write(latched, incoming)? else { return Ok(false) };
        node.set_entry::<M>(slot, incoming.change.entry);
        let is_removed = incoming.change.is_removed;
        node.set_meta::<M>(meta.write(slot, is_removed, incoming.is_new, parity));
        Ok(true)
    }

    /// Logs a write. Returns the parity of the log's epoch; `None` if there is no log space.
    fn log_write(
        &self,
        latched: &LatchedLeaf<'_, M>,
        incoming: &BufferedChange,
    ) -> Result<Option<u64>, Corrupt> {
        let (node, medium) = (&latched.node, self.pool.medium());
        if incoming.is_stored {
            let _ = medium.fence();
        }
        let stamp = layout::after(self.last_stamp(node, &latched.leaf, node.meta::<M>()));
        let logged = LogEntry { stamp, change: incoming.change };
        let appended =
            self.log.append(&self.pool, self.root_words()?, &logged, || self.is_due())?;
        let Some(appended) = appended else { return Ok(None) };
        if !appended.is_durable {
            let _ = medium.fence();
        }
        node.set_stamp::<M>(stamp);
        Ok(Some(appended.parity))
    }

    /// Returns a stamp no lower than that of any log entry of the leaf that may count.
    pub(super) fn last_stamp(
        &self,
        node: &BufferNode<'_>,
        leaf: &LeafView<'_>,
        meta: SlotStates,
    ) -> u64 {
        if meta.count() == 0 { leaf.stamp(self.pool.medium()) } else { node.stamp::<M>() }
    }

    /// Merges the buffered writes into the leaf, together with `incoming`, which the buffer or the
    /// log had no space for. `incoming` is not logged. See [`settle`].
    pub(super) fn settle_buffer(
        &self,
        node: &BufferNode<'_>,
        leaf: &LeafView<'_>,
        incoming: Option<&BufferedChange>,
        guard: &Guard,
    ) -> Result<(), Corrupt> {
        let is_logged = node.meta::<M>().count() > 0;
        let stamp = is_logged.then(|| layout::after(node.stamp::<M>()));
        let has_written = incoming.is_some_and(|incoming| incoming.is_stored);
        let options = SettleOptions { stamp, has_written, ..SettleOptions::default() };
        self.settle_with(node, leaf, incoming, options, guard)
    }

    /// Settles as [`settle_buffer`](Self::settle_buffer), with these options.
    pub(super) fn settle_with(
        &self,
        node: &BufferNode<'_>,
        leaf: &LeafView<'_>,
        incoming: Option<&BufferedChange>,
        options: SettleOptions,
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
        settle::<K, M>(&self.pool, leaf, changes, options)?;
        let kept = changes.iter().filter(|change| !change.is_removed);
        Self::cache(node, kept.map(|change| change.entry));
        self.log.count_settled(meta.count());
        self.retire_removed(changes, guard)
    }

    /// Empties the buffer and makes the first of `settled` its read cache.
    pub(super) fn cache(node: &BufferNode<'_>, settled: impl Iterator<Item = Entry>) {
        node.keep::<M>(settled.take(BATCH));
    }

    /// Retires the key records of keys that neither leaf nor buffer has any more, at once or when
    /// no log can contain an entry that names them.
    pub(super) fn retire_removed(
        &self,
        changes: &[EntryChange],
        guard: &Guard,
    ) -> Result<(), Corrupt> {
        for change in changes.iter().filter(|change| change.is_removed) {
            let is_early = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::RecordEarly);
            if BATCH == 0 || is_early {
                key::retire_entry::<K, M>(&self.pool, change.entry, guard)?;
            } else if let Some((block, bytes)) = K::entry_block(&self.pool, change.entry)? {
                self.log.retire_later(block, bytes);
            }
        }
        Ok(())
    }
}
