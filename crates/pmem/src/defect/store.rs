//! The defects of the store, and of the journal. No mode of the explorer without a journal can find
//! those that are on a disk.

defects! {
    store;

    /// A compaction ends its pin, and begins another, while it moves a record.
    CompactRepinned = own_threads(
        "store",
        "compact-repinned",
        "a compaction unpins and pins between the lookup of a record and its copy",
        "a record that is read unpinned",
    ),
    /// A write fences the record of a key before the entry, and not that of a value.
    ValueRecordUnfenced = own(
        "store",
        "value-record-unfenced",
        "one fence covers the record of a value and the state of the leaf whose key needs none",
        "one fence for an entry and its state",
    ),
    /// A write of the store returns when it is fenced.
    WriteUnsettled = own_on_disk(
        "store",
        "write-unsettled",
        "a write returns before its lines are on the disk",
        "waits for a journal",
    ),
    /// A lookup of the store returns when its leaf is valid.
    LookupUnsettled = own_threads_on_disk(
        "store",
        "lookup-unsettled",
        "a lookup returns a value that is not on the disk",
        "waits for a journal",
    ),
    /// A scan of the store returns when it has read its pairs.
    ScanUnsettled = own_threads_on_disk(
        "store",
        "scan-unsettled",
        "a scan returns pairs that are not on the disk",
        "waits for a journal",
    ),
    /// A fence copies its lines before it takes their position.
    CopyFirst = own_threads_on_disk(
        "fast-fair",
        "copy-first",
        "the journal copies a line, and only then takes a number for it: an older copy comes last",
        "the order of copies in a journal",
    ),
    /// An exchange looks the entry that it replaces up after it has compared the value.
    ExchangeStale = own_threads(
        "store",
        "exchange-stale",
        "a write that depends on a value replaces a newer one, which another thread's update lost",
        "a condition that is checked before the latch",
    ),
}
