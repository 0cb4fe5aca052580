//! What the shift of entries flushes in an inner node of persistent memory: whole lines, or each entry.
//!
//! FAST & FAIR and WO-tree shift the entries of an inner node in place, and flush a line once, after its last
//! entry has moved. So an entry that comes in the middle of a full node of `n` lines costs `n / 2` of them, and
//! not a flush for each entry that moves. WO-tree's inner nodes are in DRAM here; FAST & FAIR's are not, and
//! are shifted in the same way, so it is theirs that are counted.

use super::integer_form;
use bristlecone_lab::Result;
use bristlecone_lab::bench::{counter, counting_medium};
use bristlecone_lab::system::DesignTree;
use core::ops::Range;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng};
use std::collections::BTreeSet;

/// Bytes of a node: 16 lines.
pub const NODE_BYTES: usize = 1024;

/// What was counted in inner nodes that were nearly full.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Shifts {
    /// Entries of the inner nodes, on the average.
    pub entries: f64,
    /// Lines flushed in the inner node for an entry that comes first; one that comes last costs one line.
    pub front_lines: f64,
}

/// Leaves between which inserts are counted: with so few the inner node has a line of entries, with so many it
/// is nearly full.
const FEW: Range<u64> = 2..5;
const MANY: Range<u64> = 48..u64::MAX;

/// Where the entry comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Front,
    Back,
}

/// Lines of inserts that split a leaf, and the entries of the inner node then.
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

/// Counts inserts that split the first leaf, or the last, of a tree with one inner node: they differ in the
/// place of the entry that the inner node gets, and in the place of the pair in its leaf. What the latter
/// makes is known from trees whose inner node is nearly empty.
///
/// # Errors
/// A tree refused.
pub fn shifts() -> Result<Shifts> {
    const TREES: u64 = 24;
    let count = |end, leaves: &Range<u64>| -> Result<Tally> {
        let mut tally = Tally::default();
        for seed in 0..TREES {
            one_tree(seed, end, leaves, &mut tally)?;
        }
        Ok(tally)
    };
    let front = count(End::Front, &MANY)?;
    let apart = front.mean_lines() - count(End::Back, &MANY)?.mean_lines();
    let in_leaf = count(End::Front, &FEW)?.mean_lines() - count(End::Back, &FEW)?.mean_lines();
    let entries = front.entries as f64 / front.inserts.max(1) as f64;
    Ok(Shifts { entries, front_lines: 1.0 + apart - in_leaf })
}

fn one_tree(seed: u64, end: End, leaves: &Range<u64>, tally: &mut Tally) -> Result<()> {
    const POOL_BYTES: u64 = 4 << 20;
    /// As many keys are in the outermost leaf for certain. With few of them the room at the end would be
    /// used up: each new key is nearer to it, by a part of so many.
    const OUTERMOST: usize = 24;
    /// Inserts between two looks at the tree, before it matters.
    const LOOK_EVERY: usize = 32;
    let design = integer_form("fast-fair", NODE_BYTES)?;
    let tree = DesignTree::create(&design, counting_medium(POOL_BYTES)?)?;
    let (counter, tree) = (counter(tree.medium()), tree.index());
    let mut rng = StdRng::seed_from_u64(seed);
    let mut keys = BTreeSet::new();
    let mut stats = tree.check()?;
    while stats.inner_nodes <= 1 && stats.leaves < leaves.end {
        let is_counted = stats.leaves >= leaves.start;
        // Far from 0 and from the greatest key, so that there is room at both ends.
        let key = match end {
            _ if !is_counted => rng.random_range(1 << 62..3 << 62),
            End::Front => rng.random_range(0..*keys.iter().nth(OUTERMOST).expect("there are more")),
            End::Back => {
                let least = keys.iter().rev().nth(OUTERMOST).expect("there are more");
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
