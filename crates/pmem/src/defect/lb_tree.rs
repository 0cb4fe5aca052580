//! The defects of `lb-tree`.

defects! {
    lb_tree;

    /// A writer releases the latch before it flushes.
    LatchEarly = About {
        as_printed: true,
        ..threads(
            "lb-tree",
            "latch-early",
            "the store that commits also unlocks, before the flush: readers see what a crash loses",
            "LB+-Tree (VLDB 2020), authors' code",
        )
    },
    /// A lock bit of a leaf that was set at a crash stays set.
    LockBitKept = printed(
        "lb-tree",
        "lock-bit-kept",
        "a lock bit that persisted as set is never cleared: the next insert waits for ever",
        "LB+-Tree (VLDB 2020), authors' code: no recovery",
    ),
    /// An insert does not flush the line of the new and the moved entries before the header.
    MovedUnfenced = own(
        "lb-tree",
        "moved-unfenced",
        "the header may persist before the line of the new and the moved entries",
        "entry moving",
    ),
    /// An insert stores the first word of a header before the fingerprints in the second.
    FingerprintsLate = own(
        "lb-tree",
        "fingerprints-late",
        "the header word persists before the fingerprints behind it: a lookup misses moved entries",
        "entry moving",
    ),
    /// A split does not flush the new sibling word before the header that makes it count.
    SiblingUnfenced = own(
        "lb-tree",
        "sibling-unfenced",
        "the flipped header may persist before the sibling word that it makes count",
        "logless split",
    ),
    /// A split stores the new sibling into the sibling word that counts.
    SiblingInUse = own(
        "lb-tree",
        "sibling-in-use",
        "a split overwrites the sibling word in use: the right half counts twice until the commit",
        "logless split",
    ),
    /// A remove retires the record of a key that still is a separator.
    SeparatorFreed = own(
        "lb-tree",
        "separator-freed",
        "a remove frees the record of a key that inner nodes still compare with",
        "leaves without a low key",
    ),
    /// The unlink of a leaf does not latch the left neighbour, whose sibling it changes.
    UnlinkUnlatched = own_threads(
        "lb-tree",
        "unlink-unlatched",
        "the left neighbour of an unlinked leaf may split while its sibling word changes",
        "leaves without a low key",
    ),
}
