//! Published defects of persistent indexes, to be put back into the code that avoids them.
//!
//! 1. A defect is a few lines beside the step that it breaks, under
//!    `M::INJECTS_DEFECTS && medium.injects(Defect::X)`. [`Medium::INJECTS_DEFECTS`](crate::Medium::INJECTS_DEFECTS) is false on
//!    every medium but the explorer's, so elsewhere those lines are not compiled.
//! 2. The list is here and nowhere else: what tries the defects goes by [`Defect::ALL`].
//!
//! A defect of a structure that has no counterpart here is seeded in one of the explorer's toys,
//! which have the essential shape of it.

mod catalogue;

use catalogue::CATALOGUE;

/// A published defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Defect {
    /// A removal flushes a line when its first entry is written, not its last.
    DeleteFlush,
    /// A removal of the first entry hides the whole leaf meanwhile.
    DeleteFront,
    /// The key of a new entry is stored before its value.
    KeyBeforeValue,
    /// Recovery leaves the duplicate of an insert that a crash cut off.
    DuplicateLeft,
    /// Recovery does not end a split that a crash cut off.
    SplitUnrepaired,
    /// Nobody looks for a sibling of the root.
    RootSibling,
    /// A new node ends where its block was zero before.
    NoTerminator,
    /// A latch that a crash leaves held stays held.
    LatchKept,
    /// A new pool has its magic number before the rest of its header.
    PoolCreation,
    /// A line of the redo log is marked as whole before it is.
    LogUnmarked,
    /// A redo log is not ended once it is applied.
    LogKept,
    /// A redo log shares a fence with the node that it publishes.
    LogWithNode,
    /// Recovery leaves slot arrays that are not valid.
    SlotsUnrepaired,
    /// Recovery flushes a slot array together with its valid bit.
    ValidUnordered,
    /// The root word follows a split of the root by itself.
    RootLate,
    /// A bit is set before its entry is durable.
    TokenFirst,
    /// A split links the new leaf before it is filled.
    LinkBeforeFill,
    /// Recovery of a split takes the old neighbour for the new leaf.
    OldNeighbour,
    /// Recovery unlinks an empty leaf and does not free it.
    EmptyLeafLeaked,
    /// Bitmap and slot array of a leaf persist one after the other; nothing says whether they agree.
    SlotsApart,
    /// A split copies an entry more into the new leaf than it counts.
    HalfUncounted,
    /// A split cuts the old leaf before it is linked to the new one.
    CutBeforeLink,
    /// Recovery takes two equal values of a line for a shift that was cut off.
    ValuesEqual,
    /// The word that leads to a log is not flushed.
    HeadVolatile,
    /// The stamp of a leaf is stored before the entries that it stands for are valid.
    StampFirst,
    /// A split stamps the leaf before what its buffer holds is in it.
    StampAtSplit,
    /// The count of children is not flushed with them.
    ChildCount,
    /// The number of the newest change is not durable.
    CasVolatile,
    /// The time of an item is set after it is linked.
    TimeLate,
    /// The path of a node is changed apart from the pointer to it.
    PathApart,
    /// The depth is changed before the directory.
    DepthFirst,
    /// A free that took effect is done again after a crash.
    FreedTwice,
    /// Recovery gives a torn slot a right checksum before it empties it.
    SumFirst,
    /// A latch is released before the flush.
    LatchEarly,
    /// A leaf is changed though it may have been split since it was found.
    LeafStale,
    /// A separator goes into the node that was found, though it was split since.
    WrongParent,
    /// A search of an inner node does not look whether it changed meanwhile.
    WrongChild,
    /// The latch is released before the link to a new sibling is durable.
    LinkLate,
    /// A search does not look into the sibling.
    HopMissed,
    /// A root is put above what may no longer be the root.
    RootStale,
    /// A root gives way to its only child though it may have got another.
    CountStale,
    /// An entry goes into the slot that was found before the latch was taken.
    SlotStale,
}

/// What is known about a defect.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// A short name.
    pub name: &'static str,
    /// What is wrong.
    pub what: &'static str,
    /// Where it was published.
    pub published: &'static str,
    /// The design into which it is put; a name that begins with `toy-` is a toy of the explorer.
    pub design: &'static str,
    /// Bytes of the design's nodes, where the defect does not show in the smallest.
    pub node_bytes: Option<usize>,
    /// Whether it takes several threads.
    pub threads: bool,
    /// Whether this is how a paper, or its authors' code, has it; else a known defect of a port.
    pub as_printed: bool,
}

impl Defect {
    /// All of them.
    pub const ALL: [Self; CATALOGUE.len()] = {
        let mut all = [Self::DeleteFlush; CATALOGUE.len()];
        let mut i = 0;
        while i < all.len() {
            all[i] = CATALOGUE[i].0;
            i += 1;
        }
        all
    };

    /// What is known about it.
    pub const fn about(self) -> About {
        CATALOGUE[self as usize].1
    }
}
