//! The defects of the pool and its logs.

defects! {
    pool;

    /// Creation writes a pool's magic number before the rest of its header.
    PoolCreation = known(
        "pool",
        "pool-creation",
        "the magic number is written before the rest of the header, and a crash keeps it",
        "persistent-memory allocators: a crash at any point of creation",
    ),
    /// Transaction numbers begin again without the old seals being cleared.
    NumbersRestart = own(
        "pool",
        "numbers-restart",
        "transaction numbers begin again, and old lines with the same numbers stay",
        "numbers near their bounds",
    ),
    /// A rollback restores old values in the order of the changes.
    UndoForward = own(
        "pool",
        "undo-forward",
        "a rollback restores a word that changed twice to its value between the changes",
        "a word that changes twice",
    ),
    /// A redo log keeps the first of two values of a word.
    RedoFirst = own(
        "pool",
        "redo-first",
        "a redo log applies the first, not the last, of two changes of a word",
        "a word that changes twice",
    ),
}
