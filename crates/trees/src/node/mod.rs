//! Node layouts: how entries lie in a block of persistent memory, and which word makes them
//! visible.
//!
//! | layout | commit word | entries | insert | remove |
//! | --- | --- | --- | --- | --- |
//! | [`SlotBitmap`] | bitmap with a valid bit | sorted through a slot array | 3 fences | 3 fences |
//! | [`SlotLine`] | same, in the array's line | sorted through a slot array | 2 fences | 1 fence |
//! | [`Bitmap`] | bitmap | unsorted | 2 fences | 1 fence |
//! | [`Isle`](crate::leaf::isle::Isle) | key words | sorted by line | as [`CountWord`] | same |
//! | [`SlotOnly`] | the slot array itself | sorted through a slot array | 2 fences | 1 fence |
//! | [`Packed`] | none | unsorted, without gaps | word by word | word by word |
//! | [`Sorted`], [`LinearSorted`] | none | sorted in place | word by word | word by word |
//! | [`Shifted`] | children | sorted in place | shifted | shifted |
//! | [`CircularNode`] | head and key words | sorted in a ring | shorter side shifts | the same |
//!
//! [`CountWord`]: crate::leaf::isle::count_word::CountWord
//!
//! A layout with a commit word is [`Atomic`]: its changes are failure-atomic by themselves. A
//! [`Wordwise`] layout changes one word at a time. Its caller supplies a [`Writer`], which logs the
//! words so that recovery can undo them, or only stores them in a volatile tree.
//!
//! A layout serves leaves and inner nodes alike. An entry of a leaf is a key word and a value word,
//! and the *link* of a leaf names the next leaf. An entry of an inner node is a separator and the
//! child that begins there, and its link names the leftmost child.
//!
//! 1. An entry that the commit word does not show is free: it may hold anything, and a writer may
//!    store to it at once. An entry that it shows is durable.
//! 2. The caller of a mutating method holds the latch of the node. Readers hold no latch, so the
//!    words that they load may be torn. Therefore every index is checked before use, no loop
//!    follows a pointer, and a result counts only after the caller has validated the version of the
//!    node.
//! 3. A structure modification describes the new content of a node as an [`Image`]. It writes new
//!    entries to free slots ([`Layout::write_free_slots`]), adds the commit words to a transaction
//!    ([`Layout::plan`]) and, after the transaction has committed, changes the node in place
//!    ([`Layout::apply`]).

mod bitmap;
mod circular;
mod counted;
mod header;
mod isle;
mod packed;
mod range;
mod shift;
mod shifted;
mod slot_bitmap;
mod slot_only;
mod sorted;
mod view;

pub use bitmap::{Bitmap, WideBitmap};
pub use circular::CircularNode;
pub use packed::Packed;
pub(crate) use range::check_order;
pub use shift::ShiftedEntries;
pub use shifted::Shifted;
pub use slot_bitmap::{SlotBitmap, SlotLine, SlotWords};
pub use slot_only::SlotOnly;
pub use sorted::{LinearSorted, Sorted};
pub use view::{Entries, View};

use crate::key::Entry;
use bristlecone_pmem::sync::LatchBits;
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord};
use core::cmp::Ordering;
use core::hint::select_unpredictable;

/// The highest level of a node; leaves are at level 0.
pub const LEVEL_MAX: u64 = 31;

/// The words that a transaction changes, each with its new value.
pub type Changes<'a> = Vec<(&'a PmWord, u64)>;

/// The position of an entry in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotPos {
    /// The index of its slot in the block.
    pub index: usize,
    /// The number of entries that precede it in key order; 0 in an unsorted layout.
    pub rank: usize,
}

/// The result of a search in a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchResult {
    /// The key is present, at this position.
    Found(SlotPos, Entry),
    /// The key is absent. The number is the rank that it would have, or another hint that the
    /// layout's insert needs.
    Absent(usize),
}

/// An entry and the index of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The index of the slot in the block.
    pub index: usize,
    /// The entry in the slot.
    pub entry: Entry,
}

/// The content of a node, current or intended: its entries in key order, its level and its link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The level of the node.
    pub level: u64,
    /// The next leaf, or the leftmost child.
    pub link: u64,
    /// The entries in key order, with their slots.
    pub slots: Vec<Slot>,
}

impl Image {
    /// Inserts `entry` at `rank`, in the lowest slot that no entry uses, and returns it with that
    /// slot.
    ///
    /// If an entry has been removed from the image before, its slot looks free here, but the node
    /// on the medium still shows it. Then the new entry may be stored only after the transaction
    /// that hides the old one has committed.
    pub fn insert(&mut self, rank: usize, entry: Entry) -> Slot {
        let taken = |index| self.slots.iter().any(|slot| slot.index == index);
        let index = (0..=self.slots.len()).find(|&index| !taken(index));
        let slot = Slot { index: index.expect("n entries leave one of n + 1 indices free"), entry };
        self.slots.insert(rank, slot);
        slot
    }
}

/// Returns the number of words to prefetch of a node of `words` words. It is at most 64 (512 B),
/// which hold most of what a search reads; the hardware prefetcher must load the rest.
pub(crate) const fn prefetch_words(words: usize) -> usize {
    if words < 64 { words } else { 64 }
}

/// A layout: how the entries of a node lie in its block.
pub trait Layout: Send + Sync + 'static {
    /// The size of a node in bytes.
    const BYTES: usize;
    /// The maximum number of entries in a node.
    const CAPACITY: usize;
    /// The index of the word that holds the latch.
    const LATCH: usize;
    /// The bits of that word that are the latch.
    const LATCH_BITS: LatchBits = LatchBits::Whole;
    /// The largest offset that a node may have, so that a link can name it.
    const OFFSET_MAX: u64 = u64::MAX;
    /// The place of the entries.
    const ENTRIES: Entries;
    /// The number of words that [`plan`](Self::plan) may change beside the link and entries.
    const COMMIT_WORDS: usize = 1;

    /// Returns the bytes of a fresh node with `entries`, which are in key order if the layout is
    /// sorted. They may end before the node does, because free slots may hold anything.
    fn encode(level: u64, link: u64, entries: &[Entry]) -> Vec<u8>;

    /// Returns the level that the node states.
    ///
    /// # Errors
    /// The block holds no node of this layout.
    fn level<M: Medium>(node: View<'_, M>) -> Result<u64, Corrupt>;

    /// Returns the link: the next leaf, or the leftmost child.
    fn link<M: Medium>(node: View<'_, M>) -> u64;

    /// Returns the number of entries; any number if the node is damaged.
    fn count<M: Medium>(node: View<'_, M>) -> usize;

    /// Searches for the entry that `order` finds equal. `order` compares an entry to the key.
    ///
    /// # Errors
    /// The node is torn or damaged, or `order` fails.
    fn find<M: Medium>(
        node: View<'_, M>,
        order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt>;

    /// Returns the slot indices of all entries, in key order if [`is_sorted`](Self::is_sorted).
    /// Checks all invariants of the layout.
    ///
    /// # Errors
    /// The node is torn or damaged.
    fn slot_indices<M: Medium>(node: View<'_, M>) -> Result<Vec<usize>, Corrupt>;

    /// Returns `true` if [`slot_indices`](Self::slot_indices) returns key order.
    fn is_sorted<M: Medium>(node: View<'_, M>) -> bool;

    /// Checks that the slots of the entries agree with their key order, in which they are given.
    ///
    /// # Errors
    /// The node is damaged.
    fn check_order<M: Medium>(_node: View<'_, M>, _slots: &[Slot]) -> Result<(), Corrupt> {
        Ok(())
    }

    /// Replaces the value word of an entry. Durable on return.
    ///
    /// ```text
    /// C value    8 B
    /// F value |  -> durable    budget: 1 line, 1 fence
    /// ```
    fn update<M: Medium>(node: View<'_, M>, at: SlotPos, value: u64) -> Fenced {
        let word = Self::ENTRIES.word(at.index) + 1;
        node.store(word, value);
        node.persist(word..=word)
    }

    /// Writes entries into slots that the commit word does not show, and flushes each line once.
    fn write_free_slots<M: Medium>(node: View<'_, M>, slots: &[Slot]) {
        for slot in slots {
            debug_assert!(Self::slot_indices(node).is_ok_and(|shown| !shown.contains(&slot.index)));
            node.store_entry(Self::ENTRIES, slot.index, slot.entry);
        }
        node.flush_entries(Self::ENTRIES, slots.iter().map(|slot| slot.index));
    }

    /// Adds to `changes` the words that a transaction must carry to give the node the content
    /// `image`. The new entries of the image are written already if the protocol writes them to
    /// free slots.
    fn plan<'a, M: Medium>(node: View<'a, M>, image: &Image, changes: &mut Changes<'a>);

    /// Adds to `changes` the words of an entry that is in `image` and not yet in the node, unless
    /// [`plan`](Self::plan) adds them.
    fn plan_entry<'a, M: Medium>(node: View<'a, M>, slot: Slot, changes: &mut Changes<'a>) {
        plan_words(node, Self::ENTRIES.words(slot.index, slot.entry), changes);
    }
    /// Gives the node the content `image`, after a transaction with the [planned](Self::plan) words
    /// has committed, and flushes it. Durable after the next fence; until then recovery applies the
    /// words from the log.
    fn apply<M: Medium>(node: View<'_, M>, image: &Image);

    /// Stores and flushes the key word of an entry, unless the transaction has stored it already.
    fn apply_key<M: Medium>(node: View<'_, M>, index: usize, key: u64) {
        let word = Self::ENTRIES.word(index);
        if node.load(word) != key {
            node.store(word, key);
            node.flush(word..=word);
        }
    }

    /// `true` if operations repair a node that needs it, and recovery does not: a leaf by its first
    /// writer, as searches do without; an inner node by the first descent.
    const REPAIRS_ON_USE: bool = false;

    /// Returns `true` if a crash has left the node in need of [`repair`](Self::repair).
    fn needs_repair<M: Medium>(_node: View<'_, M>) -> bool {
        false
    }

    /// Restores, after a crash, the fields that the layout derives from its entries. `image` is the
    /// content of the node, whose latch the caller holds, or which no other thread can reach yet.
    /// Durable on return. A crash during the repair leaves a state that another repair restores.
    fn repair<M: Medium>(_node: View<'_, M>, _image: &Image) {}
}

/// A layout with a commit word, so that its changes are failure-atomic by themselves.
pub trait Atomic: Layout {
    /// `true` if an insert may make its entry visible before it fences. Then a record that the
    /// entry names must be durable before the call.
    const PUBLISHES_UNFENCED: bool = false;

    /// Inserts an entry into a node with a free slot. `rank` comes from [`SearchResult::Absent`].
    /// Durable on return.
    fn insert<M: Medium>(node: View<'_, M>, rank: usize, entry: Entry) -> Fenced;

    /// Removes an entry. Durable on return.
    fn remove<M: Medium>(node: View<'_, M>, at: SlotPos) -> Fenced;
}

/// The destination of the words of a change: a log and the node, or the node alone.
pub trait Writer {
    /// Changes a word of the node's visible content.
    fn write_visible(&mut self, word: &PmWord, value: u64);

    /// Writes a word that is not visible.
    fn write_hidden(&mut self, word: &PmWord, value: u64);
}

/// A layout that changes one word at a time, through a [`Writer`].
pub trait Wordwise: Layout {
    /// Inserts an entry into a node with a free slot. `rank` comes from [`SearchResult::Absent`].
    /// Returns the word that completes the change, and its new value. The caller stores it last.
    fn insert<'a, M: Medium>(
        node: View<'a, M>,
        rank: usize,
        entry: Entry,
        writer: &mut impl Writer,
    ) -> (&'a PmWord, u64);

    /// Removes an entry, word by word. Returns the last word, as [`insert`](Self::insert).
    fn remove<'a, M: Medium>(
        node: View<'a, M>,
        at: SlotPos,
        writer: &mut impl Writer,
    ) -> (&'a PmWord, u64);
}

/// A layout with the link in a word of its own, so that one 8 B store can redirect it to a copy of
/// the next node.
pub trait Linked: Layout {
    /// The index of the word that holds the link.
    const LINK: usize;

    /// Returns that word with another link, for the holder of the latch.
    fn link_word<M: Medium>(_node: View<'_, M>, link: u64) -> u64 {
        link
    }
}

/// A leaf layout that stores the separator word of its low key, so that recovery can find the place
/// of a leaf that its parent lacks.
pub trait LowKeyed: Linked {
    /// The index of the word: the separator that leads to the leaf; 0 in the first leaf.
    const LOW: usize;
}

/// An inner layout whose entries shift in place.
pub trait InPlace: Ordered + Linked {
    /// Returns the entries of a node.
    fn entries<M: Medium>(node: View<'_, M>) -> ShiftedEntries<'_, M>;
}

/// A layout that keeps its entries in key order, which inner nodes need.
pub trait Ordered: Layout {
    /// Returns the number of entries, from the first, for which `before` is `true`. They must form
    /// a prefix of the key order.
    ///
    /// # Errors
    /// The node is torn or damaged, or `before` fails.
    fn partition<M: Medium>(
        node: View<'_, M>,
        before: impl FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<usize, Corrupt>;

    /// Returns the entry of that rank.
    ///
    /// # Errors
    /// The node has no such entry, or is torn or damaged.
    fn nth<M: Medium>(node: View<'_, M>, rank: usize) -> Result<Slot, Corrupt>;
}

/// Returns the first number in `0..count` for which `before` is `false`, by bisection. It selects a
/// half without a branch, because no predictor could guess it. The number of steps depends on
/// `count` alone.
#[inline(always)]
pub(crate) fn bisect(
    count: usize,
    mut before: impl FnMut(usize) -> Result<bool, Corrupt>,
) -> Result<usize, Corrupt> {
    let (mut low, mut remaining) = (0, count);
    while remaining > 0 {
        let half = remaining.div_ceil(2);
        low = select_unpredictable(before(low + half - 1)?, low + half, low);
        remaining -= half;
    }
    Ok(low)
}

/// Implements [`Layout::find`] for a layout that keeps its entries in order.
#[inline(always)]
fn find_ordered<L: Ordered, M: Medium>(
    node: View<'_, M>,
    mut order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
) -> Result<SearchResult, Corrupt> {
    let mut equal = None;
    let rank = L::partition(node, |entry| {
        let ordering = order(entry)?;
        if ordering == Ordering::Equal {
            equal = Some(entry);
        }
        Ok(ordering == Ordering::Less)
    })?;
    let Some(entry) = equal else { return Ok(SearchResult::Absent(rank)) };
    let Slot { index, .. } = L::nth(node, rank)?;
    Ok(SearchResult::Found(SlotPos { index, rank }, entry))
}

/// Returns the magic number of the layout called `name` with entries of `entry_words` words: a byte
/// before the name tells that they are wide.
const fn sized_magic(name: u64, entry_words: usize) -> u64 {
    ((entry_words / Entry::WORDS - 1) as u64) << 16 | name
}

/// Returns the mark of a node: the magic number of its layout, and its level.
pub(crate) const fn mark(magic: u64, level: u64) -> u64 {
    magic << 8 | level
}

/// Returns the level in the mark at `index`, after a check of its magic number.
#[inline(always)]
pub(crate) fn level_of<M: Medium>(
    node: View<'_, M>,
    index: usize,
    magic: u64,
) -> Result<u64, Corrupt> {
    let word = node.load(index);
    let level = word & 0xff;
    if word >> 8 != magic || level > LEVEL_MAX {
        return Err(node.corrupt(index, "mark of a node", magic, word >> 8));
    }
    Ok(level)
}

/// Returns the bytes of a node: the words of the header, which ends where `place` begins, then
/// `entries`.
pub(crate) fn encode(header: &[u64], place: Entries, entries: &[Entry]) -> Vec<u8> {
    debug_assert_eq!(header.len(), place.word(0));
    let words = |(index, &entry)| place.words(index, entry).map(|(_, word)| word);
    let body = entries.iter().enumerate().flat_map(words);
    header.iter().copied().chain(body).flat_map(u64::to_le_bytes).collect()
}

/// Adds each of `words` whose stored value differs to `changes`.
fn plan_words<'a, M: Medium>(
    node: View<'a, M>,
    words: impl IntoIterator<Item = (usize, u64)>,
    changes: &mut Changes<'a>,
) {
    for (index, value) in words {
        if node.load(index) != value {
            changes.push((node.word(index), value));
        }
    }
}

/// Stores and flushes each of `words` whose stored value differs.
fn apply_words<M: Medium>(node: View<'_, M>, words: impl IntoIterator<Item = (usize, u64)>) {
    for (index, value) in words {
        if node.load(index) != value {
            node.store(index, value);
            node.flush(index..=index);
        }
    }
}

#[cfg(test)]
mod tests;
