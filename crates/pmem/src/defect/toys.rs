//! The defects of structures that no design here has. Toys of the explorer have the part of the
//! structure that shows the defect.

defects! {
    toys;

    /// The count of children is not flushed with the children.
    ChildCount = known(
        "toy-items",
        "child-count",
        "children are persistent without their count",
        "P-ART, as found by RECIPE (SOSP 2019) and later checkers",
    ),
    /// The number of the newest change is not durable.
    CasVolatile = known(
        "toy-items",
        "cas-volatile",
        "the CAS id is not persistent: numbers are issued twice",
        "memcached on persistent memory",
    ),
    /// The timestamp of an item is set after the item is linked.
    TimeLate = known(
        "toy-items",
        "time-late",
        "the timestamp of an item is set after linking, so that it counts as expired",
        "memcached on persistent memory",
    ),
    /// The compressed path of a node and the pointer to the node change separately.
    PathApart = known(
        "toy-prefixed",
        "path-apart",
        "parent pointer and compressed path are not changed atomically",
        "WOART (FAST 2017)",
    ),
    /// The global depth changes before the directory.
    DepthFirst = known(
        "toy-directory",
        "depth-first",
        "the global depth is updated before the directory",
        "CCEH (FAST 2019), code",
    ),
    /// A free that was complete is repeated after a crash.
    FreedTwice = known(
        "toy-cells",
        "freed-twice",
        "a free is repeated after a crash, and a block is allocated twice",
        "persistent-memory allocators",
    ),
    /// Recovery gives a torn slot a valid checksum before it empties the slot.
    SumFirst = known(
        "toy-summed",
        "sum-first",
        "recovery re-checksums a torn slot; a second crash promotes it",
        "checksummed slots, nested crashes",
    ),
}
