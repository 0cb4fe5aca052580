//! Several changes of one leaf, up to the commit store, which the caller's redo log makes.

use super::{
    ALL, CAPACITY, ENCODINGS, PairLeaf, STATE, State, entry_words, set_entry, slots, tagged_entry,
};
use crate::leaf::TaggedEntry;
use bristlecone_pmem::{Medium, PmWord};

/// The tags of eight slots, in their words.
struct Tags {
    at: usize,
    fingerprints: u64,
    encodings: u64,
}

impl Tags {
    fn load<M: Medium>(medium: &M, words: &[PmWord], at: usize) -> Self {
        let [fingerprints, encodings] = [at, ENCODINGS + at].map(|at| medium.load(&words[at]));
        Self { at, fingerprints, encodings }
    }

    #[inline(always)]
    fn set(&mut self, slot: usize, TaggedEntry { entry, fingerprint }: TaggedEntry) {
        let shift = 8 * (slot % 8);
        let with = |word: u64, byte: u8| word & !(0xff << shift) | u64::from(byte) << shift;
        self.fingerprints = with(self.fingerprints, fingerprint);
        self.encodings = with(self.encodings, entry.encoding);
    }

    /// Appends the words that change.
    #[inline(always)]
    fn append<'a, M: Medium>(
        self,
        medium: &M,
        words: &'a [PmWord],
        log: &mut Vec<(&'a PmWord, u64)>,
    ) {
        for (at, value) in [(self.at, self.fingerprints), (ENCODINGS + self.at, self.encodings)] {
            if medium.load(&words[at]) != value {
                log.push((&words[at], value));
            }
        }
    }
}

impl PairLeaf {
    /// Returns the largest number of words of fingerprints and encodings that `count` new entries
    /// change.
    pub(crate) fn tag_words(count: usize) -> usize {
        2 * count.min(CAPACITY / 8)
    }

    /// Writes `added` to slots that are not valid. Appends to `log` the words of the first line
    /// that make them valid, and the slots of `dropped` invalid, with their new values: the tags
    /// that change, then the state. There are as many free slots as entries. Until the words are
    /// stored, the leaf has the same content. The entries are durable after the next fence.
    ///
    /// ```text
    /// W entries       their lines    crash before the commit: they are not valid
    /// F them
    /// ```
    pub(crate) fn stage<'a, M: Medium>(
        medium: &M,
        words: &'a [PmWord],
        dropped: u64,
        added: impl ExactSizeIterator<Item = TaggedEntry>,
        log: &mut Vec<(&'a PmWord, u64)>,
    ) {
        let state = State::load(medium, words);
        let free = !state.valid() & ALL;
        debug_assert!(added.len() <= free.count_ones() as usize && dropped & free == 0);
        let mut new = state;
        for slot in slots(dropped) {
            new = new.toggle(slot, tagged_entry(medium, words, slot));
        }
        let mut tags: Option<Tags> = None;
        for (slot, tagged) in slots(free).zip(added) {
            set_entry(medium, words, slot, tagged.entry);
            new = new.toggle(slot, tagged);
            if let Some(full) = tags.take_if(|tags| tags.at != slot / 8) {
                full.append(medium, words, log);
            }
            tags.get_or_insert_with(|| Tags::load(medium, words, slot / 8)).set(slot, tagged);
        }
        if let Some(tags) = tags {
            tags.append(medium, words, log);
        }
        log.push((&words[STATE], new.0));
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
