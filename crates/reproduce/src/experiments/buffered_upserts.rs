//! Media writes of an upsert in CCL-BTree, by the number of upserts that a leaf's buffer holds.
//!
//! The paper's law is for upserts of keys that are present. Of each `N + 1` of them, one flushes
//! the buffer and writes the leaf's media unit. The other `N` are logged in entries of 24 B that
//! share units. So an upsert writes `(1 + N * 24 / 256) / (N + 1)` units. The source file that
//! flushes a unit tells whether it is a leaf's or a log's.
//!
//! [`techniques`] counts upserts without the paper's techniques, then with one more each.

use super::form::variants_missing;
use bristlecone_lab::bench::{modelled_device, modelled_medium};
use bristlecone_lab::device::Profile;
use bristlecone_lab::system::DesignTree;
use bristlecone_lab::workload::mix64;
use bristlecone_lab::{LabError, Result};
use bristlecone_pmem::Simulated;
use bristlecone_registry::{CCL_ABLATIONS, CCL_BATCHES};
use bristlecone_trees::ErasedDesign;

/// The greatest number of upserts of a modelled buffer.
pub const BATCH_MAX: usize = 8;

/// The counts of upserts on a modelled device.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Upserts {
    /// The number of media units of leaves written for each upsert.
    pub leaf_units: f64,
    /// The number of media units of logs written for each upsert.
    pub log_units: f64,
    /// The mean number of keys of a leaf.
    pub keys_per_leaf: f64,
}

impl Upserts {
    /// Returns the number of media units written for each upsert.
    pub fn units(&self) -> f64 {
        self.leaf_units + self.log_units
    }
}

/// The bytes that an upsert changes for its caller: a pair.
const USER_BYTES: u64 = 16;

/// The part of a media unit that a log entry takes.
const ENTRY_UNITS: f64 = 24.0 / 256.0;

/// Returns the units that the law gives to an upsert, with buffers of `batch` upserts.
pub fn law(batch: usize) -> f64 {
    let buffered = batch as f64;
    (1.0 + buffered * ENTRY_UNITS) / (buffered + 1.0)
}

/// Counts upserts with buffers of `batch` upserts on a model of `profile`. A pass upserts each of
/// the `few` least of `all` keys once, in an order of its own. Collections run between passes, as
/// on a background thread: the law leaves them out. The pass after the first one is counted. Its
/// log takes chunks that were filled with zeros before.
///
/// # Errors
/// `batch` is over [`BATCH_MAX`], or a tree failed.
///
/// # Panics
/// A source file wrote units that are neither a leaf's nor a log's.
pub fn upserts(batch: usize, profile: &Profile, [all, few]: [u64; 2]) -> Result<Upserts> {
    /// More passes than make a collection due if an eighth of the keys is written.
    const PASSES_MAX: u64 = 8;
    if CCL_BATCHES.is_empty() {
        return Err(variants_missing("ccl-btree"));
    }
    let asked = || LabError::Asked(format!("buffers of 0 to {BATCH_MAX}, not of {batch}"));
    let design = CCL_BATCHES.get(batch).ok_or_else(asked)?;
    let (tree, mut keys) = loaded(design, profile, all)?;
    keys.sort_unstable();
    keys.truncate(few as usize);
    // Opening empties all buffers. So the buffers of leaves that are not written cost no copies.
    let tree = tree.reopen(design)?;
    let _maintainer = tree.index().maintainer();
    for pass in 1..=PASSES_MAX {
        let mut has_collected = batch == 0; // Without a buffer there are no logs.
        while tree.index().run_maintenance_step()? {
            has_collected = true;
        }
        run_pass(&tree, &mut keys, pass)?;
        if has_collected {
            break;
        }
    }
    let mut units = [0; 2];
    for (path, count) in modelled_device(tree.medium()).media_writes_by_file() {
        let file = path.rsplit_once("ccl_btree/").map_or(path, |(_, file)| file);
        match file {
            "settle.rs" => units[0] += count,
            "chunk.rs" | "log.rs" => units[1] += count,
            _ => panic!("units of {path} belong to nothing"),
        }
    }
    let [leaf_units, log_units] = units.map(|count: u64| count as f64 / few as f64);
    let stats = tree.index().check()?;
    let keys_per_leaf = stats.keys as f64 / stats.leaves as f64;
    Ok(Upserts { leaf_units, log_units, keys_per_leaf })
}

/// Upserts each of `keys` once, in an order of this pass, and counts this pass alone.
fn run_pass(tree: &DesignTree<Simulated, u64>, keys: &mut [u64], pass: u64) -> Result<()> {
    let device = modelled_device(tree.medium());
    keys.sort_unstable_by_key(|&key| mix64(key ^ pass));
    device.reset_counts();
    for &key in &*keys {
        let former = tree.index().upsert(key, pass)?;
        debug_assert!(former.is_some(), "only keys that are there are written");
        device.end_op(USER_BYTES);
    }
    device.settle();
    Ok(())
}

/// Returns a tree of `all` keys on a model of `profile`, and its keys.
fn loaded(
    design: &ErasedDesign<Simulated, u64>,
    profile: &Profile,
    all: u64,
) -> Result<(DesignTree<Simulated, u64>, Vec<u64>)> {
    /// The bytes of the medium for each key in leaves and logs, and beside them.
    const ROOM_BYTES: [u64; 2] = [256, 16 << 20];
    let medium = modelled_medium(all * ROOM_BYTES[0] + ROOM_BYTES[1], profile)?;
    let tree = DesignTree::create(design, medium)?;
    let keys: Vec<u64> = (0..all).map(mix64).collect();
    for &key in &keys {
        tree.index().upsert(key, key)?;
    }
    Ok((tree, keys))
}

/// Returns the media units of an upsert without the paper's techniques, then with one more each,
/// and the name of the technique. A pass upserts each of `all` keys once, in an order of its own.
/// The last of `passes` passes is counted; those before it run collections.
///
/// # Errors
/// This build lacks the variants of `ccl-btree`, or a tree failed.
pub fn techniques(profile: &Profile, [all, passes]: [u64; 2]) -> Result<Vec<(&'static str, f64)>> {
    if CCL_ABLATIONS.is_empty() {
        return Err(variants_missing("ccl-btree"));
    }
    let units = |design| -> Result<f64> {
        let (tree, mut keys) = loaded(design, profile, all)?;
        for pass in 1..=passes {
            run_pass(&tree, &mut keys, pass)?;
        }
        tree.index().check()?;
        Ok(modelled_device(tree.medium()).report().media_bytes_per_op
            / profile.media.unit_bytes as f64)
    };
    CCL_ABLATIONS.iter().map(|form| Ok((form.technique, units(&form.form)?))).collect()
}
