//! The defects of `bristlecone`.

defects! {
    bristlecone;

    /// A write stores the note of its leaf after the state.
    PairNoteLate = own(
        "bristlecone",
        "pair-note-late",
        "the state may persist without the note by which recovery takes back a torn entry",
        "one fence for an entry and its state",
    ),
    /// A write clears the note of its leaf before the fence.
    PairNoteCleared = own(
        "bristlecone",
        "pair-note-cleared",
        "the note may be gone before the entry has persisted",
        "one fence for an entry and its state",
    ),
    /// A write reads what its slot held after it has stored the entry.
    PairNoteAfterEntry = own(
        "bristlecone",
        "pair-note-after-entry",
        "the note has a check of the new entry: recovery takes a torn one for damage",
        "one fence for an entry and its state",
    ),
    /// Recovery gives a leaf with a torn entry a checksum that fits.
    PairTornKept = own(
        "bristlecone",
        "pair-torn-kept",
        "recovery keeps an entry of which a part has not persisted",
        "one fence for an entry and its state",
    ),
}
