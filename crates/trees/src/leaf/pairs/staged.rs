//! Several changes of one leaf, up to the commit store, which the caller's redo log makes.

use super::{
    ALL, CAPACITY, PairLeaf, STATE, State, entry_words, set_entry, set_tags, slots, tagged_entry,
};
use crate::leaf::TaggedEntry;
use bristlecone_pmem::{Medium, PmWord};

impl PairLeaf {
    /// Writes `added` to slots that are not valid, and returns the word to store at
    /// [`state_word`](Self::state_word): it makes them valid and the slots of `dropped` invalid.
    /// There are as many free slots as entries. Until that word is stored, the leaf has the same
    /// content. Durable after the next fence.
    ///
    /// ```text
    /// W entries                    their lines   crash before the commit: they are not valid
    /// W fingerprints, encodings    1 line
    /// F both
    /// ```
    pub(crate) fn stage<M: Medium>(
        medium: &M,
        words: &[PmWord],
        dropped: u64,
        added: impl ExactSizeIterator<Item = TaggedEntry>,
    ) -> u64 {
        let state = State::load(medium, words);
        let free = !state.valid() & ALL;
        debug_assert!(added.len() <= free.count_ones() as usize && dropped & free == 0);
        let has_added = added.len() > 0;
        let mut new = state;
        for slot in slots(dropped) {
            new = new.toggle(slot, tagged_entry(medium, words, slot));
        }
        for (slot, tagged) in slots(free).zip(added) {
            set_entry(medium, words, slot, tagged.entry);
            set_tags(medium, words, slot, tagged);
            new = new.toggle(slot, tagged);
        }
        if has_added {
            medium.flush(&words[STATE..=STATE]);
        }
        new.0
    }

    /// Prefetches what a change of a key with this fingerprint uses in a leaf whose first line is
    /// there: the entries that may have the key, and the slot that a new one takes. Returns `true`
    /// if such an entry names a record.
    #[inline(always)]
    pub(crate) fn prefetch_change<M: Medium>(
        medium: &M,
        words: &[PmWord],
        fingerprint: u8,
    ) -> bool {
        let free = State::load(medium, words).valid().trailing_ones() as usize;
        if free < CAPACITY {
            medium.prefetch(&entry_words(words, free)[..1]);
        }
        Self::prefetch_matching(medium, words, fingerprint)
    }

    /// Returns the word whose store commits a change of the leaf.
    pub(crate) fn state_word(words: &[PmWord]) -> &PmWord {
        &words[STATE]
    }

    /// Returns the entries in the slots `among`, given as bits.
    pub(crate) fn entries_in<M: Medium>(
        medium: &M,
        words: &[PmWord],
        among: u64,
    ) -> Vec<TaggedEntry> {
        slots(among).map(|slot| tagged_entry(medium, words, slot)).collect()
    }

    /// Returns the slots of the valid entries for which `is_wanted` returns `true`, as bits.
    pub(crate) fn slots_with<M: Medium>(
        medium: &M,
        words: &[PmWord],
        is_wanted: impl Fn(TaggedEntry) -> bool,
    ) -> u64 {
        let valid = slots(State::load(medium, words).valid());
        let wanted = valid.filter(|&slot| is_wanted(tagged_entry(medium, words, slot)));
        wanted.fold(0, |bits, slot| bits | 1 << slot)
    }
}
