//! The defects of `fptree-r`.

defects! {
    fptree_r;

    /// Recovery unlinks an empty leaf and does not free it.
    EmptyLeafLeaked = known(
        "fptree-r",
        "empty-leaf-leaked",
        "an empty leaf is unlinked at recovery and never freed",
        "FPTree variants, found by checkers",
    ),
    /// Recovery drops the entries of an interrupted split only where the latch word reads as held.
    LatchVouches = own(
        "fptree-r",
        "latch-vouches",
        "recovery believes a persisted latch word: it repairs a split only where the word is held",
        "latch words read by recovery",
    ),
    /// A split leaves the latch word of the former block in the new leaf.
    FormerLatch = own(
        "fptree-r",
        "former-latch",
        "a new leaf keeps the latch word of the leaf that had its block before",
        "blocks used again in one life",
    ),
    /// A scan reads keys of a copied leaf without a pin.
    ScanUnpinned = own_threads(
        "fptree-r",
        "scan-unpinned",
        "a scan reads the records of a copied leaf after it has unpinned",
        "blocks used again in one life",
    ),
    /// A merge does not retire the leaf that it unlinks.
    MergeLeaks = own(
        "fptree-r",
        "merge-leaks",
        "a merge never frees the leaf that it unlinks; only a recovery does",
        "leaks that a recovery hides",
    ),
    /// A scan reads the link of a leaf before its version.
    ScanLinkFirst = own_threads(
        "fptree-r",
        "scan-link-first",
        "a scan reads the link to the next leaf before the version that guards it",
        "scans and batches beside writers",
    ),
    /// A batch of lookups does not check that a leaf still covers its key.
    BatchUnchecked = own_threads(
        "fptree-r",
        "batch-unchecked",
        "a batch of lookups reads its leaves without checking their versions",
        "scans and batches beside writers",
    ),
    /// Recovery forgets the bound of the last leaf of each part of the chain.
    PartUnbounded = own(
        "fptree-r",
        "part-unbounded",
        "recovery in parts does not drop what an interrupted split left in the last leaf of a part",
        "code that begins beyond a scale",
    ),
    /// An insert does not flush the fingerprints where they have a line of their own.
    FingerprintLineUnflushed = own(
        "fptree-r",
        "fingerprint-line-unflushed",
        "an insert flushes only the line of the bitmap, not that of the fingerprints",
        "headers of two lines",
    ),
    /// Growth offers the new blocks before the superblock names the new length.
    GrowthEarly = own_threads(
        "fptree-r",
        "growth-early",
        "other threads get blocks of a growth that is not durable yet",
        "growth and a full pool",
    ),
    /// A scan skips the leaf that has taken the entries of a merged one.
    ScanMergeMisses = own_threads(
        "fptree-r",
        "scan-merge-misses",
        "a scan whose next leaf is merged into the last one misses the moved pairs",
        "threads that scan",
    ),
    /// A scan visits all of the leaf that has taken the entries of a merged one.
    ScanMergeRepeats = own_threads(
        "fptree-r",
        "scan-merge-repeats",
        "a scan whose next leaf is merged into the last one visits pairs twice",
        "threads that scan",
    ),
    /// A split that finds no room for the new leaf cuts the old one all the same.
    CutWithoutRoom = own(
        "fptree-r",
        "cut-without-room",
        "a split in a full pool drops the upper half that it could not move",
        "growth and a full pool",
    ),
}
