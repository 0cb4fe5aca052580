//! The persist orders of the two trees that have this leaf, and the sizes of their links.

use super::{FingerprintBitmap, TaggedEntry};
use crate::key::{Entry, Value};
use bristlecone_pmem::{Fenced, Medium, PmWord};

/// The persist order of inserts and updates, and the size of a link.
pub trait WriteOrder: Send + Sync + Sized + 'static {
    /// `true` if a link has 16 B: a file and an offset.
    const HAS_FILE_IN_LINK: bool;

    /// Writes `tagged` to the free `slot`. Durable on return.
    fn insert<const NODE: usize, M: Medium>(
        medium: &M,
        words: &[PmWord],
        slot: usize,
        tagged: TaggedEntry,
    ) -> Fenced;

    /// Replaces the value of the entry in `slot`. Durable on return. Returns `None`, with the leaf
    /// unchanged, if this takes a free slot and there is none.
    fn update<const NODE: usize, M: Medium>(
        medium: &M,
        words: &[PmWord],
        slot: usize,
        value: Value,
    ) -> Option<Fenced>;
}

/// The cheaper order, of `fptree-r`: a fingerprint persists with the bitmap, and an update is in
/// place. A link has 8 B.
#[derive(Debug)]
pub struct TwoFences;

/// The published order, of `fptree`: each of entry, fingerprint and bitmap by itself, and an update
/// is a new entry. A link has 16 B.
#[derive(Debug)]
pub struct ThreeFences;

impl WriteOrder for TwoFences {
    const HAS_FILE_IN_LINK: bool = false;

    /// ```text
    /// W entry[i]                1 line     crash before C: the entry is invisible
    /// F entry[i] |
    /// R fingerprint[i]
    /// C bitmap                  8 B
    /// F header |                -> durable  budget: 2 lines, 2 fences (3 lines at 1024 B,
    ///                                       where the fingerprints have their own line)
    /// ```
    #[inline(always)]
    fn insert<const NODE: usize, M: Medium>(
        medium: &M,
        words: &[PmWord],
        slot: usize,
        TaggedEntry { entry, fingerprint }: TaggedEntry,
    ) -> Fenced {
        type Layout<const NODE: usize> = FingerprintBitmap<NODE, TwoFences>;
        let bitmap = Layout::<NODE>::bitmap(medium, words);
        let target = Layout::<NODE>::entry_words(words, slot);
        medium.store(&target[0], entry.key);
        medium.store(&target[1], entry.value);
        let fenced = medium.persist(target);
        Layout::<NODE>::set_fingerprint(medium, words, slot, fingerprint);
        medium.commit(&words[Layout::<NODE>::BITMAP_WORD], bitmap | 1 << slot, fenced);
        Layout::<NODE>::persist_header(medium, words, slot)
    }

    /// ```text
    /// C value[i]                8 B
    /// F entry[i] |              -> durable  budget: 1 line, 1 fence
    /// ```
    #[inline(always)]
    fn update<const NODE: usize, M: Medium>(
        medium: &M,
        words: &[PmWord],
        slot: usize,
        value: Value,
    ) -> Option<Fenced> {
        let target = FingerprintBitmap::<NODE, Self>::entry_words(words, slot);
        medium.store(&target[1], value.word);
        Some(medium.persist(target))
    }
}

impl ThreeFences {
    /// Writes an entry into the free `slot`, then its fingerprint, then the bitmap `bitmap`.
    /// Durable on return.
    ///
    /// ```text
    /// W entry[slot]             1 line     crash before C: the entry is invisible
    /// F entry[slot] |
    /// W fingerprint[slot]       1 B
    /// F its line |
    /// C bitmap                  8 B
    /// F its line |              -> durable  budget: 3 lines, 3 fences
    /// ```
    #[inline(always)]
    fn write_entry<const NODE: usize, M: Medium>(
        medium: &M,
        words: &[PmWord],
        (slot, TaggedEntry { entry, fingerprint }): (usize, TaggedEntry),
        bitmap: u64,
    ) -> Fenced {
        type Layout<const NODE: usize> = FingerprintBitmap<NODE, ThreeFences>;
        let target = Layout::<NODE>::entry_words(words, slot);
        medium.store(&target[0], entry.key);
        medium.store(&target[1], entry.value);
        let _ = medium.persist(target);
        Layout::<NODE>::set_fingerprint(medium, words, slot, fingerprint);
        let fenced = medium.persist(&words[slot / 8..=slot / 8]);
        let commit = Layout::<NODE>::BITMAP_WORD;
        medium.commit(&words[commit], bitmap, fenced);
        medium.persist(&words[commit..=commit])
    }
}

impl WriteOrder for ThreeFences {
    const HAS_FILE_IN_LINK: bool = true;

    /// The order is that of `write_entry`.
    #[inline(always)]
    fn insert<const NODE: usize, M: Medium>(
        medium: &M,
        words: &[PmWord],
        slot: usize,
        tagged: TaggedEntry,
    ) -> Fenced {
        let bitmap = FingerprintBitmap::<NODE, Self>::bitmap(medium, words);
        Self::write_entry::<NODE, M>(medium, words, (slot, tagged), bitmap | 1 << slot)
    }

    /// The order is that of `write_entry`; one store of the bitmap sets the bit of the new entry
    /// and clears that of the old one.
    #[inline(always)]
    fn update<const NODE: usize, M: Medium>(
        medium: &M,
        words: &[PmWord],
        slot: usize,
        value: Value,
    ) -> Option<Fenced> {
        type Layout<const NODE: usize> = FingerprintBitmap<NODE, ThreeFences>;
        let new = Layout::<NODE>::free_slot(medium, words)?;
        let bitmap = Layout::<NODE>::bitmap(medium, words);
        let tagged = TaggedEntry {
            entry: Entry::plain(Layout::<NODE>::entry(medium, words, slot).key, value.word),
            fingerprint: Layout::<NODE>::fingerprint(medium, words, slot),
        };
        let changed = (bitmap | 1 << new) & !(1 << slot);
        Some(Self::write_entry::<NODE, M>(medium, words, (new, tagged), changed))
    }
}
