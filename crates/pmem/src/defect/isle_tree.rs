//! The defects of `isle-tree` and `isle-tree-all`.

defects! {
    isle_tree;

    /// Recovery mistakes two equal values in a line for an interrupted shift.
    ValuesEqual = printed(
        "isle-tree",
        "values-equal",
        "recovery mistakes two equal values in a line for an interrupted shift, and drops one",
        "Isle-Tree, recovery of a leaf",
    ),
    /// A replacement of a leaf does not latch the left neighbour, whose link it changes.
    LeftUnlatched = threads(
        "isle-tree",
        "left-unlatched",
        "a leaf is replaced under its parent's locks: its left neighbour may be replaced at once",
        "Isle-Tree, split and merge",
    ),
    /// A replacement links new leaves without a fence between them and the link.
    FreshUnfenced = own(
        "isle-tree",
        "fresh-unfenced",
        "the link to two new leaves may persist before the leaves",
        "replacement of a leaf",
    ),
    /// A replacement changes the inner nodes before the link to the new leaves is durable.
    ParentFirst = own_threads(
        "isle-tree",
        "parent-first",
        "inner nodes lead to new leaves whose link a crash can still lose",
        "replacement of a leaf",
    ),
    /// A thread that waited for a lock does not compare its key with the separators there.
    LockUnchecked = own_threads(
        "isle-tree",
        "lock-unchecked",
        "a thread that waited for a lock writes to the leaf that it sought, which has been replaced",
        "locks in the parent",
    ),
    /// A split of an inner node does not hold the locks of the leaves that move.
    LockLeftBehind = own_threads(
        "isle-tree",
        "lock-left-behind",
        "an inner node splits while a thread holds the lock of a leaf that moves to the new node",
        "locks in the parent",
    ),
    /// A replacement in a tree without DRAM nodes does not latch the left neighbour.
    NeighborOpen = own_threads(
        "isle-tree-all",
        "neighbor-open",
        "a leaf is replaced while another thread replaces its left neighbour, whose link it changes",
        "replacement of a leaf",
    ),
    /// A split of an inner node does not latch the children that move.
    ChildrenUnheld = own_threads(
        "isle-tree-all",
        "children-unheld",
        "an inner node splits while a thread holds the lock of a child that moves to the new node",
        "locks in the parent",
    ),
    /// Recovery keeps the entries of inner nodes that a shift has doubled.
    DoubledKept = own(
        "isle-tree-all",
        "doubled-kept",
        "recovery keeps an entry whose child a shift has doubled",
        "parents mended from children",
    ),
    /// Recovery does not give a node the new leaf in the place of its first child.
    FirstChildKept = own(
        "isle-tree-all",
        "first-child-kept",
        "recovery keeps a leaf that has been replaced as the first child of its parent",
        "parents mended from children",
    ),
    /// Recovery does not add the leaves that a parent lacks.
    ParentUnmended = own(
        "isle-tree-all",
        "parent-unmended",
        "recovery does not add the new leaf that a parent lacks",
        "parents mended from children",
    ),
}
