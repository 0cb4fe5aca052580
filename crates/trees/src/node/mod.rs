//! Node layouts: how entries lie in a block of persistent memory, and which word decides that they
//! are there.
//!
//! | layout | commit word | entries | insert | remove |
//! | --- | --- | --- | --- | --- |
//! | [`SlotBitmap`] | bitmap with a valid bit | sorted through a slot array | 3 fences | 3 fences |
//! | [`SlotLine`] | the same, in one line with the array | sorted through a slot array | 2 fences | 1 fence |
//! | [`Bitmap`] | bitmap | unsorted | 2 fences | 1 fence |
//! | [`Isle`](crate::leaf::isle::Isle) | key words | sorted within each line | by its tally | by its tally |
//! | [`SlotOnly`] | the slot array itself | sorted through a slot array | 2 fences | 1 fence |
//! | [`Packed`] | none | unsorted, without gaps | word by word | word by word |
//! | [`Sorted`] | none | sorted in place | word by word | word by word |
//!
//! A layout with a commit word is [`Atomic`]: it changes by itself. One that is [`Wordwise`] changes a
//! word at a time, and what becomes of that in a crash is up to who writes the words: a log that undoes
//! them, or nobody, in a volatile tree.
//!
//! A layout serves leaves and inner nodes alike. A leaf's entry is a key word and a value word, and
//! its *link* the next leaf; an inner node's entry is a separator and the child from it on, and its
//! link the leftmost child.
//!
//! 1. An entry that the commit word does not show is nobody's: it may hold anything, and is written
//!    without further ado. Whatever is shown is durable.
//! 2. The caller of a mutating method holds the node's latch. Readers hold nothing, so what they
//!    load may be torn: every index is checked before it is used, no loop depends on a pointer, and
//!    what comes of it counts only once the node's version has been validated.
//! 3. Structural changes go through an [`Image`], the content that a node is to have: its new
//!    entries are [placed](Layout::place) where nothing shows them, then the words that decide are
//!    [planned](Layout::plan) into a transaction, then the node is [settled](Layout::apply).

mod bitmap;
mod counted;
mod isle;
mod packed;
mod slot_bitmap;
mod slot_only;
mod sorted;
mod view;

pub use bitmap::Bitmap;
pub use packed::Packed;
pub use slot_bitmap::{SlotBitmap, SlotLine};
pub use slot_only::SlotOnly;
pub use sorted::Sorted;
pub use view::View;

use crate::key::Entry;
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmWord};
use core::cmp::Ordering;
use core::hint::select_unpredictable;

/// The highest level that a node can have; leaves are at level 0.
pub const LEVEL_MAX: u64 = 31;

/// Words that a transaction is to change, each with its new value.
pub type Changes<'a> = Vec<(&'a PmWord, u64)>;

/// Where an entry of a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotPos {
    /// Its place in the block.
    pub index: usize,
    /// How many entries precede it in the layout's order; 0 in a layout without order.
    pub rank: usize,
}

/// What a search in a node came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchResult {
    /// The key is there.
    Found(SlotPos, Entry),
    /// It is not; it would have this rank, or what else the layout's insert wants to be told.
    Absent(usize),
}

/// An entry and the place in the block where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Its place in the block.
    pub index: usize,
    /// What stands there.
    pub entry: Entry,
}

/// The content that a node has or is to have: its entries in key order, and its link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Level of the node.
    pub level: u64,
    /// Next leaf, or leftmost child.
    pub link: u64,
    /// Entries in key order.
    pub slots: Vec<Slot>,
}

impl Image {
    /// Puts `entry` at `rank`, in the lowest place of the block that no entry has; gives its slot.
    ///
    /// Nothing may have been taken out of the image before: the node still shows that place.
    pub fn insert(&mut self, rank: usize, entry: Entry) -> Slot {
        let taken = |index| self.slots.iter().any(|slot| slot.index == index);
        let index = (0..=self.slots.len()).find(|&index| !taken(index));
        let slot = Slot { index: index.expect("n entries leave one of n + 1 places"), entry };
        self.slots.insert(rank, slot);
        slot
    }
}

/// What is asked for at once of a node of so many words, most of which a search comes to: its first
/// 512 B. The rest of a larger node is left to the processor.
pub(crate) const fn prefetch_words(words: usize) -> usize {
    if words < 64 { words } else { 64 }
}

/// How the entries of a node lie in its block.
pub trait Layout: Send + Sync + 'static {
    /// Bytes of a node.
    const BYTES: usize;
    /// The most entries that a node can hold.
    const CAPACITY: usize;
    /// Index of the transient word that holds the latch.
    const LATCH: usize;
    /// Index of the first entry's first word.
    const ENTRIES: usize;
    /// Words, from the first on, of which a search reads most: all are asked for at once.
    const PREFETCH_WORDS: usize = 0;

    /// The bytes of a fresh node with `entries`, in key order if the layout keeps it. Shorter than
    /// the node: what follows may hold anything.
    fn encode(level: u64, link: u64, entries: &[Entry]) -> Vec<u8>;

    /// The level that the node says it has.
    ///
    /// # Errors
    /// The block holds no node of this layout.
    fn level<M: Medium>(node: View<'_, M>) -> Result<u64, Corrupt>;

    /// The link.
    fn link<M: Medium>(node: View<'_, M>) -> u64;

    /// How many entries there are; of a damaged node, any number.
    fn count<M: Medium>(node: View<'_, M>) -> usize;

    /// Searches for the entry that `order` finds equal. `order` says how an entry compares to what
    /// is sought.
    ///
    /// # Errors
    /// The node is torn or damaged, or `order` says so of an entry.
    fn find<M: Medium>(
        node: View<'_, M>,
        order: impl FnMut(Entry) -> Result<Ordering, Corrupt>,
    ) -> Result<SearchResult, Corrupt>;

    /// The places of all entries, in key order if [`is_sorted`](Self::is_sorted) says so. All of
    /// the node's own rules are checked.
    ///
    /// # Errors
    /// The node is torn or damaged.
    fn slot_indices<M: Medium>(node: View<'_, M>) -> Result<Vec<usize>, Corrupt>;

    /// Whether [`places`](Self::places) gives key order.
    fn is_sorted<M: Medium>(node: View<'_, M>) -> bool;

    /// Checks that entries stand where their order wants them; they are given in key order.
    ///
    /// # Errors
    /// The node is damaged.
    fn check_order<M: Medium>(_node: View<'_, M>, _slots: &[Slot]) -> Result<(), Corrupt> {
        Ok(())
    }

    /// Changes the value word of an entry.
    ///
    /// ```text
    /// C value    8 B
    /// F value |  -> durable    budget: 1 line, 1 fence
    /// ```
    fn update<M: Medium>(node: View<'_, M>, at: SlotPos, value: u64) -> Fenced {
        let word = Self::ENTRIES + 2 * at.index + 1;
        node.store(word, value);
        node.persist(word..=word)
    }

    /// Writes entries into places that the commit word does not show. Flushed, each line once.
    fn write_free_slots<M: Medium>(node: View<'_, M>, slots: &[Slot]) {
        for slot in slots {
            debug_assert!(Self::slot_indices(node).is_ok_and(|shown| !shown.contains(&slot.index)));
            node.store_entry(Self::ENTRIES, slot.index, slot.entry);
        }
        node.flush_entries(Self::ENTRIES, slots.iter().map(|slot| slot.index));
    }

    /// Adds to `changes` the words that a transaction must carry so that the node holds `image`, whose
    /// new entries have been placed, or not, as the protocol has it.
    fn plan<'a, M: Medium>(node: View<'a, M>, image: &Image, changes: &mut Changes<'a>);

    /// Makes the node hold `image`, once a transaction with what was [planned](Self::plan) for it
    /// is committed. Flushed, and durable after the next fence; until then the transaction's log
    /// brings it about.
    fn apply<M: Medium>(node: View<'_, M>, image: &Image);

    /// Changes the key word of an entry, as part of a transaction, if that has not done so itself.
    /// Flushed.
    fn apply_key<M: Medium>(node: View<'_, M>, index: usize, key: u64) {
        let word = Self::ENTRIES + 2 * index;
        if node.load(word) != key {
            node.store(word, key);
            node.flush(word..=word);
        }
    }

    /// Whether a crash has left the node in need of [`repair`](Self::repair).
    fn needs_repair<M: Medium>(_node: View<'_, M>) -> bool {
        false
    }

    /// After a crash: restores whatever is derived from the entries. `image` is the node's own
    /// content. Durable at return; a crash meanwhile changes nothing.
    fn repair<M: Medium>(_node: View<'_, M>, _image: &Image) {}
}

/// A layout with a commit word, which changes failure-atomically by itself.
pub trait Atomic: Layout {
    /// Whether an insert may show its entry before it fences: then whatever the entry names has to be
    /// durable before.
    const PUBLISHES_UNFENCED: bool = false;

    /// Adds an entry to a node that has room; `rank` is where [`find`](Layout::find) missed it.
    fn insert<M: Medium>(node: View<'_, M>, rank: usize, entry: Entry) -> Fenced;

    /// Takes an entry out.
    fn remove<M: Medium>(node: View<'_, M>, at: SlotPos) -> Fenced;
}

/// What becomes of the words of a change.
pub trait Writer {
    /// Changes a word that the node shows, or that decides what it shows.
    fn write_visible(&mut self, word: &PmWord, value: u64);

    /// Writes a word that nothing shows.
    fn write_hidden(&mut self, word: &PmWord, value: u64);
}

/// A layout that changes a word at a time.
pub trait Wordwise: Layout {
    /// Adds an entry to a node that has room; `rank` is where [`find`](Layout::find) missed it.
    fn insert<M: Medium>(node: View<'_, M>, rank: usize, entry: Entry, writer: &mut impl Writer);

    /// Takes an entry out.
    fn remove<M: Medium>(node: View<'_, M>, at: SlotPos, writer: &mut impl Writer);
}

/// A layout whose link is a word by itself, which another node's copy can be linked with.
pub trait Linked: Layout {
    /// Index of the link's word.
    const LINK: usize;
}

/// A layout that keeps its entries in order: one that inner nodes can have.
pub trait Ordered: Layout {
    /// How many entries, from the first, satisfy `before`, which must hold for a first part of them.
    ///
    /// # Errors
    /// The node is torn or damaged, or `before` says so of an entry.
    fn partition<M: Medium>(
        node: View<'_, M>,
        before: impl FnMut(Entry) -> Result<bool, Corrupt>,
    ) -> Result<usize, Corrupt>;

    /// The entry of that rank.
    ///
    /// # Errors
    /// There is none, or the node is torn or damaged.
    fn nth<M: Medium>(node: View<'_, M>, rank: usize) -> Result<Slot, Corrupt>;
}

/// Halves `0..count` until the first number that `before` does not hold for is found. Which half it is
/// is selected, for nothing could predict a branch; the steps depend on `count` alone.
#[inline(always)]
fn bisect(
    count: usize,
    mut before: impl FnMut(usize) -> Result<bool, Corrupt>,
) -> Result<usize, Corrupt> {
    let (mut low, mut left) = (0, count);
    while left > 0 {
        let half = left.div_ceil(2);
        low = select_unpredictable(before(low + half - 1)?, low + half, low);
        left -= half;
    }
    Ok(low)
}

/// [`Layout::find`] of a layout that keeps its entries in order.
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

/// The word that names a layout and the level of a node.
const fn meta(magic: u64, level: u64) -> u64 {
    magic << 8 | level
}

/// The level in the word at `index`, if the rest of it is `magic`.
#[inline(always)]
fn level_of<M: Medium>(node: View<'_, M>, index: usize, magic: u64) -> Result<u64, Corrupt> {
    let word = node.load(index);
    let level = word & 0xff;
    if word >> 8 != magic || level > LEVEL_MAX {
        return Err(node.corrupt(index, "mark of a node", magic, word >> 8));
    }
    Ok(level)
}

/// The bytes of a node of `words`, the header's, and of `entries` behind it.
fn encode(header: &[u64], entries: &[Entry]) -> Vec<u8> {
    let body = entries.iter().flat_map(|entry| [entry.key, entry.value]);
    header.iter().copied().chain(body).flat_map(u64::to_le_bytes).collect()
}

/// Adds to `changes` each of `words` that does not hold its value yet.
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

/// Stores each of `words` that does not hold its value yet, and flushes it.
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
