//! The defects of `circ-tree`.

defects! {
    circ_tree;

    /// The head of a ring is stored before the entry that it lets in is durable.
    RingHeadEarly = own(
        "circ-tree",
        "ring-head-early",
        "the head lets in the slot beyond the end before the entry there is durable",
        "an end that moves over a slot in a cache",
    ),
    /// A shift of an insert stores the key word of an entry before its value word.
    RingKeyFirst = own(
        "circ-tree",
        "ring-key-first",
        "a shift of an insert stores a key before its value: the entry counts with the value of another",
        "the order of two stores in a line",
    ),
    /// Recovery leaves a shift that a crash interrupted as it is.
    RingTwinsKept = own(
        "circ-tree",
        "ring-twins-kept",
        "recovery does not end an interrupted shift: a search may find the entry that does not count",
        "a repair that is left out",
    ),
    /// Recovery ends a shift only where the latch word reads as held.
    UnlatchedUnrepaired = own(
        "circ-tree",
        "unlatched-unrepaired",
        "recovery ends an interrupted shift only in nodes whose persisted latch word is held",
        "latch words read by recovery",
    ),
    /// A removal shifts one side while the head says that the other one has the valid twins.
    RingSideKept = own(
        "circ-tree",
        "ring-side-kept",
        "a removal shifts a side that the head does not name: the other one of two equal keys counts",
        "a rule that is stored too late",
    ),
    /// Recovery drops the valid one of two entries with one key.
    RingWrongTwin = own(
        "circ-tree",
        "ring-wrong-twin",
        "recovery drops that one of two entries with one key which the head says is valid",
        "a repair by the wrong side",
    ),
}
