//! Lines that the shift of entries flushes in a persistent node.
//!
//! WO-tree shifts the entries of an inner node in place. It flushes a line once, after its last
//! entry has moved. So an entry in the middle of a full node of `n` lines costs `n / 2` flushes,
//! not one for each entry that moves.

use super::integer_form;
use bristlecone_lab::Result;
use bristlecone_lab::bench::{counter, counting_medium};
use bristlecone_lab::system::DesignTree;
use core::ops::Range;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng};
use std::collections::BTreeSet;

/// The size of a node in bytes: 16 lines.
pub const NODE_BYTES: usize = 1024;
const POOL_BYTES: u64 = 4 << 20;

/// The counts of inner nodes that were nearly full.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Shifts {
    /// The mean number of entries of the inner nodes.
    pub entries: f64,
    /// The mean number of lines flushed in the inner node for an entry in its middle. An entry
    /// behind all others costs one line.
    pub middle_lines: f64,
}

/// The numbers of leaves between which inserts are counted. With `FEW`, the inner node has one line
/// of entries; with `MANY`, it is full but for three at most.
const FEW: Range<u64> = 2..5;
const MANY: Range<u64> = 59..u64::MAX;

/// The position of the new entry in the inner node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Middle,
    Back,
}

/// The lines of inserts that split a leaf, and the entries of the inner node at that time.
#[derive(Default)]
struct Tally {
    inserts: u64,
    lines: u64,
    entries: u64,
}

impl Tally {
    fn mean_lines(&self) -> f64 {
        self.lines as f64 / self.inserts.max(1) as f64
    }
}

/// Counts inserts that split the middle or the last leaf of a tree of design `name` with one inner
/// node. Two things differ between them: the position of the new entry in the inner node, and that
/// of the pair in its leaf. Trees whose inner node is nearly empty show the effect of the second,
/// which is subtracted.
///
/// # Errors
/// The design does not exist, has no nodes of this size, or a tree failed.
pub fn shifts(name: &str) -> Result<Shifts> {
    const TREES: u64 = 24;
    let count = |place, leaves: &Range<u64>| -> Result<Tally> {
        let mut tally = Tally::default();
        for seed in 0..TREES {
            one_tree(name, seed, (place, leaves), &mut tally)?;
        }
        Ok(tally)
    };
    let middle = count(Place::Middle, &MANY)?;
    let apart = middle.mean_lines() - count(Place::Back, &MANY)?.mean_lines();
    let in_leaf = count(Place::Middle, &FEW)?.mean_lines() - count(Place::Back, &FEW)?.mean_lines();
    let entries = middle.entries as f64 / middle.inserts.max(1) as f64;
    Ok(Shifts { entries, middle_lines: 1.0 + apart - in_leaf })
}

/// Counts inserts at each place of a leaf, which has `entries` entries after them. Returns the mean
/// number of lines flushed, all that an insert flushes among them.
///
/// # Errors
/// As [`shifts`].
pub fn in_leaf(name: &str, entries: u64) -> Result<f64> {
    let design = integer_form(name, NODE_BYTES)?;
    let mut lines = 0;
    for place in 0..entries {
        let tree = DesignTree::create(&design, counting_medium(POOL_BYTES)?)?;
        let (counter, tree) = (counter(tree.medium()), tree.index());
        for number in 1..entries {
            tree.insert(10 * number, number)?;
        }
        let _ = counter.take();
        tree.insert(10 * place + 5, place)?;
        lines += counter.take().lines;
    }
    Ok(lines as f64 / entries as f64)
}

fn one_tree(
    name: &str,
    seed: u64,
    (place, leaves): (Place, &Range<u64>),
    tally: &mut Tally,
) -> Result<()> {
    /// The outermost leaf has at least this many keys. Each new key is nearer to the end by a
    /// fraction that depends on this number; with a small one, the key space at the end would be
    /// used up. So many in the middle lie in one leaf, or in two.
    const OUTERMOST: usize = 24;
    /// The number of uncounted inserts between two checks of the tree.
    const LOOK_EVERY: usize = 32;
    let design = integer_form(name, NODE_BYTES)?;
    let tree = DesignTree::create(&design, counting_medium(POOL_BYTES)?)?;
    let (counter, tree) = (counter(tree.medium()), tree.index());
    let mut rng = StdRng::seed_from_u64(seed);
    let mut keys = BTreeSet::new();
    let mut stats = tree.check()?;
    while stats.inner_nodes <= 1 && stats.leaves < leaves.end {
        let is_counted = stats.leaves >= leaves.start;
        // Keys lie far from 0 and from the greatest key, so that both ends have space.
        let key = match place {
            _ if !is_counted => rng.random_range(1 << 62..3 << 62),
            Place::Middle => {
                let middle = (keys.len() - OUTERMOST) / 2;
                let mut near = keys.iter().skip(middle).step_by(OUTERMOST);
                let mut next = || *near.next().expect("the tree has more keys");
                rng.random_range(next()..next())
            }
            Place::Back => {
                let least = keys.iter().rev().nth(OUTERMOST).expect("the tree has more keys");
                rng.random_range(*least..=u64::MAX)
            }
        };
        let _ = counter.take();
        if tree.insert(key, key)?.is_some() {
            continue;
        }
        let lines = counter.take().lines;
        keys.insert(key);
        if !is_counted && keys.len() % LOOK_EVERY != 0 {
            continue;
        }
        let after = tree.check()?;
        if is_counted && after.leaves > stats.leaves && after.inner_nodes == stats.inner_nodes {
            tally.inserts += 1;
            tally.lines += lines;
            tally.entries += stats.leaves - 1;
        }
        stats = after;
    }
    Ok(())
}
