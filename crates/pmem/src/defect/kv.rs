//! The defects of the key-value store over a design.

defects! {
    kv;

    /// A write of the key-value store does not fence the value record before the pointer to it.
    ValueUnfenced = own(
        "kv-isle-tree",
        "value-unfenced",
        "the pointer to a value record may persist before the record",
        "value records",
    ),
    /// A write of the key-value store frees the value record that it replaces at once.
    ValueFreedEarly = own_threads(
        "kv-isle-tree",
        "value-freed-early",
        "a replaced value record is used again while a reader copies it",
        "value records",
    ),
    /// Recovery of the key-value store marks no value record.
    ValuesUnmarked = own(
        "kv-wb-tree",
        "values-unmarked",
        "recovery frees the value records that the leaves name",
        "value records",
    ),
}
