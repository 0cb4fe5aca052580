//! The defects of `nv-tree`.

defects! {
    nv_tree;

    /// Recovery joins walks of the chain with leaves that no link reaches.
    WalkTrusted = own(
        "nv-tree",
        "walk-trusted",
        "recovery joins a guessed walk of the chain whole, with leaves that no link reaches",
        "code that begins beyond a scale",
    ),
    /// A replacement does not mark the old leaf as obsolete.
    ObsoleteUnmarked = own_threads(
        "nv-tree",
        "obsolete-unmarked",
        "a thread that waited for a replaced leaf takes it for the left neighbour of another",
        "replacement of a leaf",
    ),
    /// A rebuild of an array of inner nodes does not latch the nodes that it copies.
    RebuildUnlatched = own_threads(
        "nv-tree",
        "rebuild-unlatched",
        "a separator that reaches a lowest node after its copy is lost with the former array",
        "rebuild of inner nodes",
    ),
    /// A descent through an array of inner nodes does not check that no rebuild ran meanwhile.
    RebuildUnseen = own_threads(
        "nv-tree",
        "rebuild-unseen",
        "a descent that began before a rebuild inserts its separator into the former array",
        "rebuild of inner nodes",
    ),
}
