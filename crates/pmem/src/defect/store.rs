//! The defects of the store on a disk with a journal, and of the journal. No mode of the explorer
//! without a journal can find them.

defects! {
    store;

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
}
