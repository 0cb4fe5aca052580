//! Reading the logs: all of them at the same time, each by itself; and then what they say together.
//!
//! 1. Of a leaf the base with the greatest sequence number counts, and the deltas after it. Where a record
//!    lies says nothing: a copy may lie beside its original.
//! 2. A leaf is one of the tree if the first leaf, or another leaf of the tree, leads to it. So a right
//!    leaf whose left one does not name it yet, or names it no more, does not count.
//! 3. What does not count is not looked into: the records of its keys may be gone.
//! 4. The newest chunk of a log is not read: it is empty, or has copies alone, see invariant 3 of `log`.
//! 5. Reading takes memory for what was read alone: nothing is believed about numbers and sizes.

use super::chunk::LogChunk;
use super::log::{ChunkRing, head_word};
use super::record::{Base, Kind, Range};
use super::tuning::Tuning;
use crate::key::Key;
use crate::parallel::{in_parallel, thread_count};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};
use core::cmp::Ordering;
use std::collections::HashMap;

/// Number of the first leaf, which is never merged away.
pub(super) const FIRST_LEAF: u64 = 0;

/// A base and its sequence number.
#[derive(Clone, Copy, Debug)]
struct Newest {
    sequence: u64,
    at: PmPtr,
    items: usize,
}

/// The records of a leaf.
#[derive(Debug, Default)]
struct Chain {
    base: Option<Newest>,
    /// With their sequence numbers, in no order.
    deltas: Vec<(u64, PmPtr)>,
}

/// What a log holds.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    pub(super) ring: ChunkRing,
    /// Whether the newest chunk is not empty: a crash came while it was filled.
    pub(super) is_cut_off: bool,
    /// The greatest number of a leaf.
    pub(super) last_leaf: u64,
    chains: HashMap<u64, Chain>,
}

/// A leaf of the tree, and its range.
#[derive(Debug)]
pub(super) struct LeafChain<K: Key> {
    pub(super) leaf: u64,
    pub(super) base: PmPtr,
    pub(super) items: usize,
    pub(super) base_sequence: u64,
    pub(super) deltas: Vec<PmPtr>,
    pub(super) word: u64,
    pub(super) low: K::Owned,
    pub(super) high: Option<K::Owned>,
}

impl Chain {
    fn base(&mut self, base: Newest) {
        if self.base.is_none_or(|newest| newest.sequence < base.sequence) {
            self.base = Some(base);
            self.deltas.retain(|delta| delta.0 > base.sequence);
        }
    }

    fn delta(&mut self, sequence: u64, at: PmPtr) {
        if self.base.is_none_or(|base| base.sequence < sequence) {
            self.deltas.push((sequence, at));
        }
    }
}

/// What the log whose head is the chunk at `head` holds. There are no more chunks than the pool has
/// room for, so the walk ends whatever the pool holds.
fn replay<M: Medium, T: Tuning>(
    pool: &Pool<M>,
    log: usize,
    head: PmPtr,
    lines: usize,
) -> Result<Replayed, Corrupt> {
    let most = pool.medium().len() / super::chunk::bytes(lines);
    let mut chunks = Vec::new();
    let mut at = head;
    while !at.is_null() {
        let chunk = LogChunk::open(pool, at, lines)?;
        chunks.push(chunk);
        if chunks.len() as u64 > most {
            let (found, what) = (chunks.len() as u64, "chunks of a log have no end");
            return Err(Corrupt { at: at.offset(), what, expected: most, found });
        }
        at = PmPtr::new(pool.medium().load(chunk.next_word()));
    }
    let mut replayed = Replayed::default();
    replayed.ring.linked = chunks.iter().rev().map(|chunk| chunk.at).collect();
    chunks.sort_unstable_by_key(|chunk| chunk.uses);
    if let Some(twice) = chunks.windows(2).find(|two| two[0].uses == two[1].uses) {
        let (at, what) = (twice[1].at.offset(), "two chunks of a log have the same use");
        return Err(Corrupt { at, what, expected: twice[1].uses + 1, found: twice[1].uses });
    }
    replayed.ring.chunks = chunks.iter().map(|chunk| chunk.at).collect();
    let Some((newest, others)) = chunks.split_last() else { return Ok(replayed) };
    for (place, chunk) in others.iter().enumerate() {
        let line = replayed.read::<M, T>(pool, log, chunk)?;
        if line > 1 {
            let ring = &mut replayed.ring;
            (ring.filled, ring.uses, ring.line) = (place + 1, chunk.uses, line);
        }
    }
    replayed.ring.newest = newest.uses;
    replayed.is_cut_off = (1..lines).any(|line| newest.is_sealed(pool.medium(), line));
    Ok(replayed)
}

impl Replayed {
    /// Reads a chunk; gives the first line after which none is sealed.
    fn read<M: Medium, T: Tuning>(
        &mut self,
        pool: &Pool<M>,
        log: usize,
        chunk: &LogChunk<'_>,
    ) -> Result<usize, Corrupt> {
        let (mut line, mut end) = (1, 1);
        while line < chunk.lines() {
            let Some(found) = chunk.record(pool, line)? else {
                if chunk.is_sealed(pool.medium(), line) {
                    end = line + 1;
                }
                line += 1;
                continue;
            };
            let head = found.head;
            if T::log_of(head.leaf) != log {
                let (at, what) = (found.at.offset(), "a record of a leaf of another log");
                return Err(Corrupt { at, what, expected: log as u64, found: head.leaf });
            }
            let chain = self.chains.entry(head.leaf).or_default();
            match head.kind {
                Kind::Base(items) => {
                    chain.base(Newest { sequence: head.sequence, at: found.at, items });
                }
                Kind::Put | Kind::Removed => chain.delta(head.sequence, found.at),
            }
            self.last_leaf = self.last_leaf.max(head.leaf);
            line += head.lines();
            end = line;
        }
        Ok(end)
    }
}

/// What all logs hold.
pub(super) fn replay_all<M: Medium, T: Tuning>(
    pool: &Pool<M>,
    root: &[PmWord],
    lines: usize,
) -> Result<Vec<Replayed>, Corrupt> {
    let heads: Vec<_> = (0..T::LOGS)
        .map(|log| (log, PmPtr::new(pool.medium().load(head_word(root, log)))))
        .collect();
    in_parallel(thread_count::<M>(pool.medium().len()), &heads, |&(log, head)| {
        replay::<M, T>(pool, log, head, lines)
    })
    .into_iter()
    .collect()
}

/// The leaves of the tree, from left to right. Each is taken out of what was replayed, so the walk ends
/// whatever the pool holds.
pub(super) fn leaves<M: Medium, K: Key, T: Tuning>(
    pool: &Pool<M>,
    replayed: &mut [Replayed],
    root: PmPtr,
) -> Result<Vec<LeafChain<K>>, Corrupt> {
    let mut leaves = Vec::<LeafChain<K>>::new();
    let (mut next, mut led) = (Some(FIRST_LEAF), (root, 0));
    while let Some(leaf) = next {
        let chain = replayed[T::log_of(leaf)].chains.remove(&leaf);
        let Some((base, deltas)) = chain.and_then(|chain| Some((chain.base?, chain.deltas))) else {
            let (at, what) = (led.0.offset(), "a leaf is named that has no base, or twice");
            return Err(Corrupt { at, what, expected: 1, found: leaf });
        };
        let Range { right, low: word, high } =
            Base::new(pool, base.at, base.items)?.range(pool.medium());
        let low = K::read(pool, word)?;
        let follows = leaves.last().is_none_or(|left| {
            let left = K::borrow(&left.low);
            K::compare(left, K::borrow(&low)) == Ordering::Less
        });
        if !follows || word != led.1 {
            let (at, what) = (base.at.offset(), "low key of a leaf");
            return Err(Corrupt { at, what, expected: led.1, found: word });
        }
        if let Some(left) = leaves.last_mut() {
            left.high = Some(low.clone());
        }
        leaves.push(LeafChain {
            leaf,
            base: base.at,
            items: base.items,
            base_sequence: base.sequence,
            deltas: in_sequence::<T>(&base, deltas)?,
            word,
            low,
            high: None,
        });
        (next, led) = (right, (base.at, high));
    }
    Ok(leaves)
}

/// The deltas after a base, in the order of their sequence numbers, each once and none missing.
fn in_sequence<T: Tuning>(
    base: &Newest,
    mut deltas: Vec<(u64, PmPtr)>,
) -> Result<Vec<PmPtr>, Corrupt> {
    deltas.sort_unstable_by_key(|&(sequence, at)| (sequence, at.offset()));
    deltas.dedup_by_key(|&mut (sequence, _)| sequence);
    let expected = (1..).map(|more| base.sequence + more);
    let gap = deltas.iter().zip(expected).find(|((found, _), expected)| found != expected);
    if let Some((&(found, at), expected)) = gap {
        let what = "sequence number of a delta";
        return Err(Corrupt { at: at.offset(), what, expected, found });
    }
    if deltas.len() > T::DELTAS {
        let (at, what) = (base.at.offset(), "deltas of a chain");
        let (expected, found) = (T::DELTAS as u64, deltas.len() as u64);
        return Err(Corrupt { at, what, expected, found });
    }
    Ok(deltas.into_iter().map(|(_, at)| at).collect())
}
