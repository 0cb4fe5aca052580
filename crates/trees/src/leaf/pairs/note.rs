//! Writes of an entry under one fence, and the note by which recovery takes a torn one back.
//!
//! A crash of such a write may leave the state, and lose the entry or its value word. The note lies
//! in the latch word, which the writer holds: in the line of the state, and stored before it. So
//! every image with the new state has the note, until the release of the latch replaces it, after
//! the fence.
//!
//! | bits | field |
//! | --- | --- |
//! | 0..5 | slot of the new entry |
//! | 5..10 | slot of the entry that it replaces; 31: none |
//! | 10..38 | check of the state before, and of a word that the slot held then |
//!
//! 1. A torn entry holds its former value word, because the key word is stored first; or, if the
//!    value word does not change, its former key word. The note has a check of that word. So
//!    recovery takes a write back only if the slot holds what it held before the write. An entry
//!    that was durable holds something else, also if it is damaged, except by a chance of 2^-27.
//! 2. The check covers the state before, with its checksum. So a write is taken back only if all
//!    other entries are as they were, and a note fits no state after that of its write.
//! 3. What a free slot holds is durable, so a torn entry holds nothing older: a leaf is formatted
//!    whole, and every later store to a slot is fenced before the latch is released.
//! 4. So an entry whose slot held both of its words is durable already, and has no note: recovery
//!    would take damage to one of them for a torn write.

use super::{
    ENTRIES, KIND, PairLeaf, STATE, State, entry, entry_checksum, set_entry, set_tags, state_of,
    verify,
};
use crate::key::{Entry, Key};
use crate::leaf::{Leaf, TaggedEntry};
use bristlecone_pmem::sync::{HELD_NOTE_BITS, held_note, note_held};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmWord, Pool};

const SLOT_BITS: u32 = 5;
const NO_SLOT: u64 = (1 << SLOT_BITS) - 1;
const CHECK_SHIFT: u32 = 2 * SLOT_BITS;
const CHECK_MASK: u64 = (1 << (HELD_NOTE_BITS - CHECK_SHIFT)) - 1;

/// The word of the new entry's slot of which a note has a check.
#[derive(Clone, Copy)]
enum FormerWord {
    Key(u64),
    Value(u64),
}

/// The note of a write.
#[derive(Clone, Copy)]
struct WriteNote(u64);

impl WriteNote {
    /// The note of a write whose entry cannot be torn: it names its slot as the replaced one.
    const NONE: Self = Self(0);

    /// Returns the note of a write to `slot` of `new` in place of `former`, which is not valid. The
    /// entry in `replaced`, if any, goes. `before` is the state before the write.
    #[inline(always)]
    fn new(
        (slot, former): (usize, Entry),
        new: Entry,
        replaced: Option<usize>,
        before: State,
    ) -> Self {
        if (former.key, former.value) == (new.key, new.value) {
            return Self::NONE; // I4
        }
        let kept = if former.value == new.value {
            FormerWord::Key(former.key)
        } else {
            FormerWord::Value(former.value)
        };
        let replaced = replaced.map_or(NO_SLOT, |slot| slot as u64);
        Self(slot as u64 | replaced << SLOT_BITS | Self::check(before, kept) << CHECK_SHIFT)
    }

    /// Returns the check of a state and of a word that a slot holds.
    #[inline(always)]
    const fn check(before: State, kept: FormerWord) -> u64 {
        let (kind, word) = match kept {
            FormerWord::Key(word) => (0, word),
            FormerWord::Value(word) => (1, word),
        };
        let entry = Entry::plain(before.0, word);
        entry_checksum(kind, TaggedEntry { entry, fingerprint: 0 }) & CHECK_MASK
    }

    const fn slot(self) -> usize {
        (self.0 & NO_SLOT) as usize
    }

    /// Returns the valid entries before the write after which the entries `valid` are; `None` if
    /// the note is of no such write.
    const fn valid_before(self, valid: u64) -> Option<u64> {
        let new = 1 << self.slot();
        let replaced = match self.0 >> SLOT_BITS & NO_SLOT {
            NO_SLOT => 0,
            slot => 1 << slot,
        };
        let is_of_write = valid & new != 0 && valid & replaced == 0 && replaced & !super::ALL == 0;
        if is_of_write { Some(valid & !new | replaced) } else { None }
    }
}

/// Writes `tagged` into the free slot `slot` of a leaf whose latch the caller holds, and makes it
/// valid in the place of `replaced`, if there is one. Durable on return, with the record that the
/// entry names.
///
/// ```text
/// W entry[i]                1 line       crash before C: the entry is invisible
/// F entry[i]                             crash after C: recovery takes a torn entry back
/// |                                      only if the entry names a record: fenced with it
/// W fingerprint[i], encoding[i], note    in the line of C, before it
/// C state                   8 B
/// F header |                -> durable   budget: 2 lines, 1 fence; 2 fences with a record
/// ```
#[inline(always)]
pub(super) fn write<K: Key, M: Medium>(
    pool: &Pool<M>,
    words: &[PmWord],
    (slot, tagged): (usize, TaggedEntry),
    replaced: Option<(usize, TaggedEntry)>,
) -> Fenced {
    let medium = pool.medium();
    let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
    let before = State::load(medium, words);
    debug_assert!(before.valid() & 1 << slot == 0);
    let kept = replaced.map_or(before, |(slot, former)| before.toggle(slot, former));
    let after = kept.toggle(slot, tagged);
    let mut former = entry(medium, words, slot);
    set_entry(medium, words, slot, tagged.entry);
    if injects(Defect::PairNoteAfterEntry) {
        former = entry(medium, words, slot);
    }
    if !K::stands_alone(tagged.entry.encoding) {
        let fenced = medium.fence();
        set_tags(medium, words, slot, tagged);
        return after.commit(medium, words, fenced);
    }
    set_tags(medium, words, slot, tagged);
    let replaced = replaced.map(|(slot, _)| slot);
    let note = WriteNote::new((slot, former), tagged.entry, replaced, before).0;
    let store_note = |note| note_held(medium, &words[PairLeaf::LATCH], note);
    if !injects(Defect::PairNoteLate) {
        store_note(note);
    }
    medium.store(&words[STATE], after.0);
    if injects(Defect::PairNoteLate) {
        store_note(note);
    }
    if injects(Defect::PairNoteCleared) {
        store_note(0);
    }
    medium.persist(&words[STATE..=STATE])
}

/// Returns the state that counts after a crash, of the leaf at `at` whose words `load` returns: its
/// state, or the one before its newest write, if the crash has torn that one.
///
/// # Errors
/// The leaf is damaged, or of another kind.
pub(super) fn settled(
    at: u64,
    load: impl Fn(usize) -> u64,
    keeps_torn: bool,
) -> Result<State, Corrupt> {
    // Another thread may settle the leaf meanwhile, so its state is loaded once.
    let found = State(load(STATE));
    let load = |word: usize| if word == STATE { found.0 } else { load(word) };
    match verify(at, load) {
        Ok(()) => Ok(found),
        Err(damage) => {
            let before = state_before(load, found).ok_or(damage)?;
            Ok(if keeps_torn { state_of(load, found.valid()) } else { before })
        }
    }
}

/// Returns the state before the newest write to a leaf, if the note is of that write and the entry
/// is torn.
fn state_before(load: impl Fn(usize) -> u64 + Copy, found: State) -> Option<State> {
    let note = WriteNote(held_note(load(PairLeaf::LATCH))?);
    let before = state_of(load, note.valid_before(found.valid())?);
    let at = ENTRIES + 2 * note.slot();
    let is_torn = [FormerWord::Key(load(at)), FormerWord::Value(load(at + 1))]
        .map(|word| WriteNote::check(before, word))
        .contains(&(note.0 >> CHECK_SHIFT));
    (is_torn && load(KIND) == 0).then_some(before)
}

#[cfg(test)]
mod tests;
