//! The defects of the store, and of the journal. No mode of the explorer without a journal can find
//! those that are on a disk.

defects! {
    store;

    /// A compaction ends its pin, and begins another, some times while it moves a record.
    CompactRepinned = own_threads(
        "store",
        "compact-repinned",
        "a compaction unpins and pins between the lookup of a record and its copy",
        "a record that is read unpinned",
    ),
    /// A write does not fence the record of a value before the cell that names it.
    ValueRecordUnfenced = own(
        "store",
        "value-record-unfenced",
        "one fence covers a new record and the cell that names it",
        "one fence for what is published and what publishes it",
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
    /// A batch commits its log without the fence of what the log publishes.
    BatchEarly = own(
        "store",
        "batch-early",
        "the log of a batch may become durable before the entries and leaves that it publishes",
        "a log that is committed too early",
    ),
    /// Recovery lets the cells of a batch count whose number is not committed.
    BatchKept = own(
        "store",
        "batch-kept",
        "recovery keeps what a batch has written to some of its cells",
        "changes of several nodes that are committed one by one",
    ),
    /// An update does not keep the encoding that it replaces.
    EncodingLost = own(
        "store",
        "encoding-lost",
        "a crash leaves the old value of an update with the lengths of the new one",
        "an update in place of two fields",
    ),
    /// A batch commits one leaf after the other.
    BatchFractured = own(
        "store",
        "batch-fractured",
        "a batch changes one leaf after the other, each while it holds the latches of all",
        "changes of several nodes that are committed one by one",
    ),
    /// A batch does not compare its conditions once more under its latches.
    BatchStale = own_threads(
        "store",
        "batch-stale",
        "a batch compares its conditions before it latches: it replaces a newer value, which is lost",
        "conditions that are checked before the latches",
    ),
    /// A batch whose condition stops to hold does not free its new records.
    UnmetLeaks = own_threads(
        "store",
        "unmet-leaks",
        "a batch that loses to another writer after it has written its records leaks them",
        "conditions that are checked before the latches",
    ),
    /// A batch makes one change after the other, each under its own latch.
    BatchUnlatched = own_threads(
        "store",
        "batch-unlatched",
        "a batch makes one change after the other, and latches one leaf at a time",
        "changes of several nodes under one latch at a time",
    ),
}
