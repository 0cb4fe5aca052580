//! The records of defects by their origin.

use super::About;

/// Returns the record of a defect that a paper prints, or that its authors' code has.
pub(super) const fn printed(
    design: &'static str,
    name: &'static str,
    what: &'static str,
    published: &'static str,
) -> About {
    let (node_bytes, threads, on_disk) = (None, false, false);
    About { name, what, published, design, node_bytes, threads, on_disk, as_printed: true }
}

/// Returns the record of a defect of some other implementation.
pub(super) const fn known(
    design: &'static str,
    name: &'static str,
    what: &'static str,
    published: &'static str,
) -> About {
    About { as_printed: false, ..printed(design, name, what, published) }
}

/// Returns the record of a defect that only several threads can show.
pub(super) const fn threads(
    design: &'static str,
    name: &'static str,
    what: &'static str,
    published: &'static str,
) -> About {
    About { threads: true, ..known(design, name, what, published) }
}

/// Returns the record of a defect of our own making, of a kind that the explorer once missed.
pub(super) const fn own(
    design: &'static str,
    name: &'static str,
    what: &'static str,
    kind: &'static str,
) -> About {
    known(design, name, what, kind)
}

/// Returns the record of a defect of our own making that only several threads can show.
pub(super) const fn own_threads(
    design: &'static str,
    name: &'static str,
    what: &'static str,
    kind: &'static str,
) -> About {
    threads(design, name, what, kind)
}

/// Returns the record of a defect of our own making that only a disk with a journal can show.
pub(super) const fn own_on_disk(
    design: &'static str,
    name: &'static str,
    what: &'static str,
    kind: &'static str,
) -> About {
    About { on_disk: true, ..own(design, name, what, kind) }
}

/// Returns the record of a defect of our own making that only several threads on a disk with a
/// journal can show.
pub(super) const fn own_threads_on_disk(
    design: &'static str,
    name: &'static str,
    what: &'static str,
    kind: &'static str,
) -> About {
    About { on_disk: true, ..own_threads(design, name, what, kind) }
}

/// Returns the record of a defect of the public code of CCL-BTree.
pub(super) const fn public_code(name: &'static str, what: &'static str) -> About {
    printed("ccl-btree", name, what, "CCL-BTree (EuroSys 2024), authors' code")
}
