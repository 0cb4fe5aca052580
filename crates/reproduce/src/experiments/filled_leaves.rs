//! Inserts into trees whose leaves are all equally full, as the wB+-Tree study loads them before it inserts.
//!
//! 1. Keys that ascend leave leaves half full: each is split in halves, and nothing comes to the left one any
//!    more. Then each leaf gets as many keys more, between those that it has, as make it as full as is asked
//!    for. No leaf is split by that; the census says so, and how full leaves are.
//! 2. Inner nodes stay as ascending keys leave them, half full. So a leaf that is split mostly finds room above.
//!
//! Nothing else may use trees in the process meanwhile, see [`operation_costs`](super::operation_costs).

use super::operation_costs::{design, places};
use bristlecone_lab::bench::{modelled_device, modelled_medium};
use bristlecone_lab::device::{DeviceReport, Profile};
use bristlecone_lab::system::DesignTree;
use bristlecone_lab::workload::mix64;
use bristlecone_lab::{LabError, Result};

/// The structures that can be loaded so.
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

/// What came of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Filled {
    /// Keys for each place of a leaf, before the inserts.
    pub fill: f64,
    /// Leaves that were split, for each insert.
    pub splits: f64,
    /// Inner nodes that were split, for each insert.
    pub inner_splits: f64,
    /// What the device made of the inserts.
    pub report: DeviceReport,
}

/// The names of structures that can be loaded so, in the order of the paper.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.into_iter()
}

/// Some `inserts` of random keys into a tree of `name` with some `keys` keys, in leaves of whose places
/// `percent` of a hundred are taken, on a model of `profile`.
///
/// # Errors
/// The structure or the part cannot be had, or the tree refused.
pub fn inserts(
    name: &str,
    percent: u64,
    profile: &Profile,
    [keys, inserts]: [u64; 2],
) -> Result<Filled> {
    if !NAMES.contains(&name) {
        return Err(LabError::Asked(format!("{name} is not filled")));
    }
    if !(50..=100).contains(&percent) {
        return Err(LabError::Asked(format!("leaves are 50 to 100 % full, not {percent}")));
    }
    filled(name, percent, profile, [keys, inserts])
}

/// The key at a place of those that ascend; others lie between it and the next.
const fn ascending(place: u64) -> u64 {
    const SHIFT: u32 = 20;
    (place + 1) << SHIFT
}

fn filled(
    name: &str,
    percent: u64,
    profile: &Profile,
    [keys, inserts]: [u64; 2],
) -> Result<Filled> {
    /// Room for a key, and beside them.
    const ROOM_BYTES: [u64; 2] = [128, 16 << 20];
    /// Bytes of a pair that an insert adds for its caller.
    const USER_BYTES: u64 = 16;
    /// Random keys lie so far above those that were loaded.
    const ABOVE: u64 = 1 << 10;
    let places = places(name)?;
    let (half, target) = (places / 2, (places * percent + 50) / 100);
    let leaves = (keys / target).max(1);
    let medium = modelled_medium(keys * ROOM_BYTES[0] + ROOM_BYTES[1], profile)?;
    let tree = DesignTree::create(&design(name)?, medium)?;
    let (device, tree) = (modelled_device(tree.medium()), tree.index());
    // Beyond the leaves that are filled, one takes the half that goes to the right, and a key.
    for place in 0..=leaves * half + (places - half) {
        tree.insert(ascending(place), place)?;
    }
    for leaf in 0..leaves {
        for more in 0..target - half {
            let left = leaf * half + more * half / (target - half);
            tree.insert(ascending(left) + 1 + more, more)?;
        }
    }
    let before = tree.check()?;
    if before.leaves != leaves + 1 {
        let what = format!("{name} of leaves {percent} % full");
        return Err(LabError::Asked(format!("{what} has {} of {leaves}", before.leaves)));
    }
    // Each has a part of the gap behind a key to itself, so none is there twice.
    let part = (ascending(1) - ascending(0) - ABOVE) / inserts.max(1);
    if part == 0 {
        return Err(LabError::Asked(format!(
            "{inserts} inserts are more than keys leave room for"
        )));
    }
    device.renew();
    for index in 0..inserts {
        let [left, above] = [mix64(index) % (leaves * half), mix64(!index) % part];
        let former = tree.insert(ascending(left) + ABOVE + index * part + above, index)?;
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
