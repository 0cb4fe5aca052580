//! Published defects of persistent indexes, which tests inject into the code that avoids them.
//!
//! 1. A defect is a few lines beside the step that it breaks, under `M::INJECTS_DEFECTS &&
//!    medium.injects(Defect::X)`. [`INJECTS_DEFECTS`](crate::Medium::INJECTS_DEFECTS) is `true`
//!    only on the explorer's media. On every other medium those lines are not compiled.
//! 2. This module has the only list of defects: every test that injects them iterates over
//!    [`Defect::ALL`].
//!
//! A defect of a structure that no design here has is injected into one of the explorer's toys,
//! which have the relevant part of that structure.

mod about;
mod all_pm;
mod catalogue;
mod ccl_btree;
mod fast_fair;
mod isle_tree_all;
mod kv;
mod lb_tree;
mod nv_tree;
mod wo_tree;

use catalogue::CATALOGUE;

/// A published defect, named by the step that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Defect {
    /// A removal flushes a line when it writes the line's first entry, not after the last.
    DeleteFlush,
    /// A removal of the first entry hides all entries of the leaf until it ends.
    DeleteFront,
    /// An insert stores the key before the value.
    KeyBeforeValue,
    /// Recovery leaves the duplicate entry of an interrupted insert.
    DuplicateLeft,
    /// Recovery does not complete an interrupted split.
    SplitUnrepaired,
    /// No operation looks for a sibling of the root.
    RootSibling,
    /// A split does not write the terminator of the new node; the block may not be zero there.
    NoTerminator,
    /// A latch that was held at a crash stays held.
    LatchKept,
    /// Creation writes a pool's magic number before the rest of its header.
    PoolCreation,
    /// A line of the redo log gets its seal before its contents.
    LogUnmarked,
    /// A redo log is not truncated after its changes are applied.
    LogKept,
    /// A redo log and the node that it publishes become durable with the same fence.
    LogWithNode,
    /// A search relies on a slot array that is marked invalid.
    SlotsUnrepaired,
    /// A repair flushes a slot array and its valid bit without a fence between them.
    ValidUnordered,
    /// A split of the root and the new root word are not one transaction.
    RootLate,
    /// An insert sets the bit of an entry before the entry is durable.
    TokenFirst,
    /// A split links the new leaf before it fills it.
    LinkBeforeFill,
    /// Recovery of a split mistakes the old neighbour for the new leaf.
    OldNeighbour,
    /// Recovery unlinks an empty leaf and does not free it.
    EmptyLeafLeaked,
    /// The bitmap and the slot array of a leaf persist one after the other, and no word says
    /// whether they agree.
    SlotsApart,
    /// A split copies one entry more into the new leaf than it counts.
    HalfUncounted,
    /// A split removes the upper half from the old leaf before it links the new one.
    CutBeforeLink,
    /// Recovery mistakes two equal values in a line for an interrupted shift.
    ValuesEqual,
    /// The word that points to a log is not flushed.
    HeadVolatile,
    /// An insert stores the timestamp of a leaf before the entries that it covers are valid.
    StampFirst,
    /// A split stores the leaf's timestamp before the buffered entries are in the leaf.
    StampAtSplit,
    /// The count of children is not flushed with the children.
    ChildCount,
    /// The number of the newest change is not durable.
    CasVolatile,
    /// The timestamp of an item is set after the item is linked.
    TimeLate,
    /// The compressed path of a node and the pointer to the node change separately.
    PathApart,
    /// The global depth changes before the directory.
    DepthFirst,
    /// A free that was complete is repeated after a crash.
    FreedTwice,
    /// Recovery gives a torn slot a valid checksum before it empties the slot.
    SumFirst,
    /// A writer releases the latch before it flushes.
    LatchEarly,
    /// A writer changes a leaf without checking that it was not split since the search.
    LeafStale,
    /// A split inserts the separator into the parent that it found, which may have been split
    /// since.
    WrongParent,
    /// A search does not check the low key of the child that a shift led it to.
    WrongChild,
    /// A split releases the latch before the link to the new sibling is durable.
    LinkLate,
    /// A search does not follow the sibling link.
    HopMissed,
    /// A split puts a new root above a node that may not be the root any more.
    RootStale,
    /// The only child replaces a root that may have got another child.
    CountStale,
    /// An insert uses the slot that it found before it took the latch.
    SlotStale,
    /// Recovery drops the entries of an interrupted split only where the latch word reads as held.
    LatchVouches,
    /// Recovery rebuilds a slot array only where the latch word reads as held.
    UnlatchedUnrepaired,
    /// A split leaves the latch word of the former block in the new leaf.
    FormerLatch,
    /// A scan reads keys of a copied leaf without a pin.
    ScanUnpinned,
    /// A merge does not retire the leaf that it unlinks.
    MergeLeaks,
    /// A merge does not retire the node that it unlinks.
    NodeLeaks,
    /// A scan reads the link of a leaf before its version.
    ScanLinkFirst,
    /// A batch of lookups does not check that a leaf still covers its key.
    BatchUnchecked,
    /// Recovery joins walks of the chain with leaves that no link reaches.
    WalkTrusted,
    /// Recovery forgets the bound of the last leaf of each part of the chain.
    PartUnbounded,
    /// An insert does not flush the fingerprints where they have a line of their own.
    FingerprintLineUnflushed,
    /// An insert flushes only the first line of a slot array.
    SlotLineUnflushed,
    /// Transaction numbers begin again without the old seals being cleared.
    NumbersRestart,
    /// Recovery reads 32 of the 47 bits of a stamp.
    StampTruncated,
    /// Growth offers the new blocks before the superblock names the new length.
    GrowthEarly,
    /// A split that finds no room for the new leaf cuts the old one all the same.
    CutWithoutRoom,
    /// A rollback restores old values in the order of the changes.
    UndoForward,
    /// A redo log keeps the first of two values of a word.
    RedoFirst,
    /// A replay does not truncate the redo log.
    ReplayKept,
    /// A replay does not truncate the undo-redo log of an index.
    IndexReplayKept,
    /// A replacement of a leaf does not latch the left neighbour, whose link it changes.
    LeftUnlatched,
    /// A replacement links new leaves without a fence between them and the link.
    FreshUnfenced,
    /// A replacement changes the inner nodes before the link to the new leaves is durable.
    ParentFirst,
    /// A replacement does not mark the old leaf as obsolete.
    ObsoleteUnmarked,
    /// The end of a redo log becomes durable with the words that it covers.
    LogEndsEarly,
    /// A split shows the new node in its parent before the log is sealed.
    ParentEarly,
    /// A redo log shows a pair that it does not hold.
    PairUnlogged,
    /// A redo log holds bitmaps with the valid bit, and not the slot arrays.
    ReplayValid,
    /// The first record of an undo-redo log has the commit.
    CommitBitEarly,
    /// The end of an undo-redo log becomes durable with the words that it covers.
    UndoEndsEarly,
    /// The log record of a leaf is not flushed before the leaf changes.
    RecordUnfenced,
    /// A shift in an inner node stores the key of an entry before its child.
    ShiftKeyFirst,
    /// An insert into an inner node does not double the left neighbour's child first.
    PointerNotDoubled,
    /// A split of an inner node flushes its link and its cut under one fence.
    InnerLinkWithCut,
    /// A search without a latch loads the child of an inner node a second time.
    ChildTwice,
    /// A search without a latch does not check the low key of the node that it reaches.
    LowUnchecked,
    /// A split of a leaf does not latch the right leaf until the link is durable.
    RightLeafOpen,
    /// A split publishes the new leaf before it resets its micro-log.
    RightEarly,
    /// A split releases the latch of the full leaf before it resets its micro-log.
    LeftEarly,
    /// The reset of a micro-log clears the current leaf first.
    LogCurrentFirst,
    /// A delete frees the block of the leaf before it resets its micro-log.
    BlockEarly,
    /// A delete releases the latch of the left neighbour before it resets its micro-log.
    NeighbourEarly,
    /// A lock bit of a leaf that was set at a crash stays set.
    LockBitKept,
    /// An insert does not flush the line of the new and the moved entries before the header.
    MovedUnfenced,
    /// An insert stores the first word of a header before the fingerprints in the second.
    FingerprintsLate,
    /// A split does not flush the new sibling word before the header that makes it count.
    SiblingUnfenced,
    /// A split stores the new sibling into the sibling word that counts.
    SiblingInUse,
    /// A remove retires the record of a key that still is a separator.
    SeparatorFreed,
    /// The unlink of a leaf does not latch the left neighbour, whose sibling it changes.
    UnlinkUnlatched,
    /// A reader without a latch does not load the key of an entry again after its value.
    EntryLoadedOnce,
    /// A reader without a latch answers beside a writer and flushes nothing.
    ReadUnflushed,
    /// A reader without a latch follows a link that is not durable.
    LinkUnflushed,
    /// A reader without a latch scans to the right whichever way a writer shifts.
    DirectionIgnored,
    /// A merge does not count the change of the left node's range.
    MergeUncounted,
    /// A log entry that crosses the end of a line is flushed once, at its end.
    EntryTorn,
    /// Recovery accepts entries of an earlier use of a log chunk.
    EntryRecycled,
    /// Unlinking a leaf does not raise the stamp of its left neighbour above its own.
    UnlinkedStamp,
    /// A split stores the state of the full leaf without a fence after the right leaf.
    RightUnfenced,
    /// A split gives the right leaf the stamp of a leaf without log entries.
    RightUnstamped,
    /// A remove frees the record of its key while log entries name it.
    RecordEarly,
    /// The state of a write-ahead log becomes durable with the records that it makes count.
    StateWithRecords,
    /// The end of a write-ahead log becomes durable with the words that it covers.
    StateEndsEarly,
    /// A bulk load names its root without a fence after the nodes.
    LoadUnfenced,
    /// A replacement in a tree without DRAM nodes does not latch the left neighbour.
    NeighborOpen,
    /// Recovery keeps the entries of inner nodes that a shift has doubled.
    DoubledKept,
    /// Recovery does not give a node the new leaf in the place of its first child.
    FirstChildKept,
    /// Recovery does not add the leaves that a parent lacks.
    ParentUnmended,
    /// A split releases the left leaf before the parent leads to the right one.
    PostUnlatched,
    /// A fresh leaf begins with the sequence number 0.
    FreshSeqZero,
    /// Recovery clears the log records before it posts what they name.
    RecordsEarly,
    /// Recovery tries each log record once.
    RecordsOnePass,
    /// A write of the key-value store does not fence the value record before the pointer to it.
    ValueUnfenced,
    /// A write of the key-value store frees the value record that it replaces at once.
    ValueFreedEarly,
    /// Recovery of the key-value store marks no value record.
    ValuesUnmarked,
    /// A rebuild of an array of inner nodes does not latch the nodes that it copies.
    RebuildUnlatched,
    /// A descent through an array of inner nodes does not check that no rebuild ran meanwhile.
    RebuildUnseen,
}

/// The record of a defect: description, source, and how to reproduce it.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The name of the defect, as commands take and print it.
    pub name: &'static str,
    /// A sentence that says which step is wrong.
    pub what: &'static str,
    /// The paper, code or checker that the defect comes from.
    pub published: &'static str,
    /// The design into which the defect is injected. A name with the prefix `toy-` is a toy of the
    /// explorer.
    pub design: &'static str,
    /// The node size that shows the defect, in bytes; `None` if the smallest does.
    pub node_bytes: Option<usize>,
    /// `true` if only several threads can show the defect.
    pub threads: bool,
    /// `true` if a paper, or its authors' code, has the defect; `false` if a port or another
    /// implementation has it.
    pub as_printed: bool,
}

impl Defect {
    /// All defects, in the order of the enumeration.
    pub const ALL: [Self; CATALOGUE.len()] = {
        let mut all = [Self::DeleteFlush; CATALOGUE.len()];
        let mut i = 0;
        while i < all.len() {
            assert!(
                CATALOGUE[i].0 as usize == i,
                "the catalogue is in the order of the enumeration"
            );
            all[i] = CATALOGUE[i].0;
            i += 1;
        }
        all
    };

    /// Returns the record of this defect.
    pub const fn about(self) -> About {
        CATALOGUE[self as usize].1
    }
}
