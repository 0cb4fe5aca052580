//! The parts of a store history: stores to persist units, and the steps of a trace.

use bristlecone_pmem::line::LINE_WORDS;

/// One store, or the words of one fill, in one unit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Item {
    pub(crate) unit: u32,
    /// The time of the store.
    pub(crate) time: u32,
    /// The time of the fence that guarantees the item, or [`NEVER`](crate::trace::NEVER).
    pub(crate) sealed: u32,
    /// The words of the unit that the item stores, one bit each.
    pub(crate) mask: u8,
    /// Set for a store to a latch or a version.
    pub(crate) is_transient: bool,
    /// Set for words that are guaranteed at once: those of a freed block, and of a journal's copy.
    pub(crate) is_whole: bool,
    /// The stored values, by word of the unit.
    pub(crate) values: [u64; LINE_WORDS],
}

/// A step of a store history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The store of an item, by its index.
    Store(u32),
    /// The guarantee of a unit's items up to the time `upto`.
    Seal { unit: u32, upto: u32 },
    /// The guarantee that the medium has grown to this many bytes.
    Grow(u64),
    /// The end of items that are guaranteed at once.
    Whole,
}

/// The items and steps of a history that is being compiled.
pub(super) struct Changes<'a> {
    pub(super) items: &'a mut Vec<Item>,
    pub(super) steps: &'a mut Vec<(u32, Step)>,
}
