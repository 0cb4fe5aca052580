//! New leaves behind those of a batch that lack space for its entries.

use super::{AddedEntry, BatchLeaf, NewLeaf};
use crate::hybrid::{Hybrid, HybridSpec, LeafRef};
use crate::index::TreeError;
use crate::inner::{Direction, InnerNodes};
use crate::key::{self, Bytes, Key, Record};
use crate::leaf::pairs::PairLeaf;
use crate::leaf::{Leaf, TaggedEntry};
use bristlecone_pmem::{Corrupt, Medium};
use core::cmp::Ordering;

/// An entry of a leaf after the batch, with its key if the batch adds it.
type MergedEntry<'a> = (Option<&'a [u8]>, TaggedEntry);

impl<S: HybridSpec<Leaf = PairLeaf>, M: Medium> Hybrid<S, M, Record> {
    /// Writes the new leaves behind each leaf that lacks space. Durable after the next fence.
    pub(super) fn write_behind_all(
        &self,
        leaves: &mut [BatchLeaf<'_, M>],
        added: &[AddedEntry<'_>],
    ) -> Result<(), TreeError> {
        for leaf in leaves {
            if leaf.added.len() > leaf.free_slots {
                self.write_behind(leaf, added)?;
            }
        }
        Ok(())
    }

    /// Writes new leaves for the entries of a leaf that lacks space: those from the first one on
    /// for which it has no free slot, or which would fill it beyond three quarters.
    fn write_behind(
        &self,
        leaf: &mut BatchLeaf<'_, M>,
        added: &[AddedEntry<'_>],
    ) -> Result<(), TreeError> {
        let BatchLeaf { latched: (old, _), free_slots, dropped, added: range, behind, .. } = leaf;
        let mut free = *free_slots;
        let medium = self.pool.medium();
        let all = self.merged_entries(old, *dropped, &added[range.clone()])?;
        let mut kept = 0;
        while kept < Self::MERGED_MAX.min(all.len()) && (free > 0 || all[kept].0.is_none()) {
            free -= usize::from(all[kept].0.is_some());
            kept += 1;
        }
        let (mut next, mut at) = (self.next(old), all.len());
        while at > kept {
            let from = kept + (at - kept - 1) / Self::MERGED_MAX * Self::MERGED_MAX;
            let part: Vec<_> = all[from..at].iter().map(|&(_, tagged)| tagged).collect();
            let below = all[from - 1].1.entry;
            let above = match all[from].0 {
                Some(key) => Bytes::from_slice(key),
                None => Record::read_entry(&self.pool, all[from].1.entry)?,
            };
            let separator = Record::between(&self.pool, below, &above)?;
            self.check_separator(old, below, &separator)?;
            let word = Record::store_separator(&self.pool, &separator)?;
            let leaf = self
                .write_leaf(word, next, &part)
                .inspect_err(|_| key::free_separator::<Record, M>(&self.pool, word))?;
            behind.insert(0, NewLeaf { leaf, separator, word });
            (next, at) = (leaf, from);
        }
        let moved: Vec<_> = all[kept..].iter().map(|&(_, tagged)| tagged).collect();
        *dropped |= PairLeaf::slots_with(medium, old.words, |tagged| moved.contains(&tagged));
        range.end = range.start + all[..kept].iter().filter(|(key, _)| key.is_some()).count();
        Ok(())
    }

    /// Returns the entries of a leaf after the batch, in the order of their keys; new ones with
    /// their keys.
    fn merged_entries<'a>(
        &self,
        leaf: &LeafRef<'_>,
        dropped: u64,
        added: &[AddedEntry<'a>],
    ) -> Result<Vec<MergedEntry<'a>>, Corrupt> {
        let gone = PairLeaf::entries_in(self.pool.medium(), leaf.words, dropped);
        let mut old = self.sorted_entries(leaf)?.into_iter().map(|(_, tagged)| tagged);
        let mut old_next = || old.by_ref().find(|tagged| !gone.contains(tagged));
        let mut all = Vec::with_capacity(PairLeaf::CAPACITY + added.len());
        let mut waiting = old_next();
        for &(key, tagged) in added {
            while let Some(below) = waiting {
                let order = Record::order_entry(&self.pool, below.entry, key)?;
                Record::verify_mismatch(&self.pool, below.entry, key)?;
                if order != Ordering::Less {
                    break;
                }
                all.push((None, below));
                waiting = old_next();
            }
            all.push((Some(key), tagged));
        }
        while let Some(above) = waiting {
            all.push((None, above));
            waiting = old_next();
        }
        Ok(all)
    }

    /// Adds the new leaves to the inner nodes.
    pub(super) fn post_behind(&self, leaves: &[BatchLeaf<'_, M>]) -> Result<(), TreeError> {
        for BatchLeaf { behind, latched: (latched, _), .. } in leaves {
            // From right to left: until its own separator is there, the keys of a new leaf lead to
            // the latched one, never to another new leaf.
            for NewLeaf { leaf, separator, word } in behind.iter().rev() {
                debug_assert!(
                    self.inner
                        .seek::<Record>(&self.pool, separator, Direction::Key)
                        .is_ok_and(|route| route.leaf == latched.at),
                    "an unlatched leaf would be asked for the keys of another one"
                );
                self.inner.post::<Record>(&self.pool, separator, *word, *leaf)?;
            }
        }
        Ok(())
    }

    /// Flushes a line of each new leaf for its readers: they must wait for the log, without which
    /// nothing reaches the leaf.
    pub(super) fn flush_behind(&self, leaves: &[BatchLeaf<'_, M>]) {
        for new in leaves.iter().flat_map(|leaf| &leaf.behind) {
            if let Ok(leaf) = self.leaf(new.leaf) {
                let state = PairLeaf::state_word(leaf.words);
                self.pool.medium().flush_for_readers(core::slice::from_ref(state));
            }
        }
    }

    /// Releases the new leaves, which nothing reaches.
    #[cold]
    pub(super) fn release_behind(&self, leaves: &[BatchLeaf<'_, M>]) {
        for new in leaves.iter().flat_map(|leaf| &leaf.behind) {
            self.pool.release(new.leaf, Self::LEAF_BYTES);
            key::free_separator::<Record, M>(&self.pool, new.word);
        }
    }
}
