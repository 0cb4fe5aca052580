//! Inserts into trees whose nodes are all equally full, as the wB+-Tree study loads them: in bulk.
//!
//! No other tree may be in use in the process meanwhile; see
//! [`operation_costs`](super::operation_costs).

use super::operation_costs::{design, places};
use bristlecone_lab::bench::{modelled_device, modelled_medium};
use bristlecone_lab::device::{DeviceReport, Profile};
use bristlecone_lab::system::DesignTree;
use bristlecone_lab::workload::mix64;
use bristlecone_lab::{LabError, Result};

/// The structures that can be loaded in this way.
const NAMES: [&str; 10] = [
    "btree",
    "btree-log",
    "unsorted-leaf-log",
    "unsorted-bitmap-log",
    "btree-shadow",
    "unsorted-leaf-shadow",
    "unsorted-bitmap-shadow",
    "wb-tree",
    "wb-tree-bitmap-leaf",
    "wb-tree-slot-only",
];

/// The counts of inserts into equally full leaves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Filled {
    /// The share of the slots of leaves that had keys before the inserts, from 0 to 1.
    pub fill: f64,
    /// The number of split leaves for each insert.
    pub splits: f64,
    /// The number of split inner nodes for each insert.
    pub inner_splits: f64,
    /// The report of the device on the inserts.
    pub report: DeviceReport,
}

/// Returns the names of the structures, in the order of the paper.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter()
}

/// Inserts `inserts` random keys into a tree of `name` with `keys` keys, on a model of `profile`.
/// Before, `percent` of the slots of each node are used.
///
/// # Errors
/// The structure or the percentage is not supported, or the tree failed.
pub fn inserts(
    name: &str,
    percent: u32,
    profile: &Profile,
    [keys, inserts]: [u64; 2],
) -> Result<Filled> {
    if !NAMES.contains(&name) {
        return Err(LabError::Asked(format!("{name} is not filled")));
    }
    if keys == 0 || !(1..=100).contains(&percent) {
        return Err(LabError::Asked(format!("{keys} keys in nodes {percent} % full")));
    }
    filled(name, percent, profile, [keys, inserts])
}

/// Returns the ascending key at `place`. Other keys lie between it and the next.
const fn ascending(place: u64) -> u64 {
    const SHIFT: u32 = 20;
    (place + 1) << SHIFT
}

fn filled(
    name: &str,
    percent: u32,
    profile: &Profile,
    [keys, inserts]: [u64; 2],
) -> Result<Filled> {
    /// The bytes of the medium for each key, and beside them.
    const ROOM_BYTES: [u64; 2] = [128, 16 << 20];
    /// The bytes that an insert changes for its caller: a pair.
    const USER_BYTES: u64 = 16;
    let places = places(name)?;
    let medium = modelled_medium(keys * ROOM_BYTES[0] + ROOM_BYTES[1], profile)?;
    let tree = DesignTree::create(&design(name)?, medium)?;
    let (device, tree) = (modelled_device(tree.medium()), tree.index());
    tree.bulk_load(&mut (0..keys).map(|place| (ascending(place), place)), percent)?;
    let before = tree.check()?;
    // Each random key has a part of the gap behind a loaded key to itself, so all are distinct.
    let part = (ascending(1) - ascending(0) - 1) / inserts.max(1);
    if part == 0 {
        return Err(LabError::Asked(format!(
            "{inserts} inserts are more than keys leave room for"
        )));
    }
    device.reset_counts();
    for index in 0..inserts {
        let [left, above] = [mix64(index) % keys, mix64(!index) % part];
        let former = tree.insert(ascending(left) + 1 + index * part + above, index)?;
        debug_assert!(former.is_none(), "random keys are new");
        device.end_op(USER_BYTES);
    }
    device.settle();
    let report = device.report(); // The check reads all of the tree.
    let after = tree.check()?;
    let for_each = |count: u64| count as f64 / inserts.max(1) as f64;
    Ok(Filled {
        fill: before.keys as f64 / (before.leaves * places) as f64,
        splits: for_each(after.leaves - before.leaves),
        inner_splits: for_each(after.inner_nodes - before.inner_nodes),
        report,
    })
}
