//! Reading the logs: all logs in parallel, then the list of leaves across them.
//!
//! 1. Of each leaf, the base with the greatest sequence number and the deltas after it are valid.
//!    The position of a record means nothing: a copy may exist beside its original.
//! 2. A leaf belongs to the tree if it is the first leaf or another leaf of the tree names it. So a
//!    right leaf that its left neighbour does not name yet, or no longer names, does not count.
//! 3. Invalid records are not read further, because their key records may be freed.
//! 4. The newest chunk of a log is not read: it is empty or holds only copies (invariant 3 of
//!    `log`).
//! 5. Memory is allocated only for records that were read: no count or size in the file is trusted.

use super::chunk::LogChunk;
use super::log::{ChunkRing, head_word};
use super::record::{Base, Kind, Range};
use super::tuning::Tuning;
use crate::key::Key;
use crate::parallel::{in_parallel, thread_count};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};
use core::cmp::Ordering;
use std::collections::HashMap;

/// The number of the first leaf, which is never merged into another.
pub(super) const FIRST_LEAF: u64 = 0;

/// A base with its offset, size and sequence number.
#[derive(Clone, Copy, Debug)]
struct NewestBase {
    sequence: u64,
    at: PmPtr,
    items: usize,
}

/// The records found for one leaf.
#[derive(Debug, Default)]
struct Chain {
    base: Option<NewestBase>,
    /// Deltas with their sequence numbers, in no order.
    deltas: Vec<(u64, PmPtr)>,
}

/// The contents of one log.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    pub(super) ring: ChunkRing,
    /// `true` if the newest chunk is not empty: a crash interrupted its filling.
    pub(super) is_reserve_dirty: bool,
    /// The greatest leaf number.
    pub(super) last_leaf: u64,
    chains: HashMap<u64, Chain>,
}

/// A leaf of the tree: its records and its range.
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
    fn base(&mut self, base: NewestBase) {
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

/// Reads the log whose first chunk is at `head`. The pool's size bounds the number of chunks, so
/// the loop ends whatever the pool holds.
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
            let (found, what) = (chunks.len() as u64, "endless list of log chunks");
            return Err(Corrupt { at: at.offset(), what, expected: most, found });
        }
        at = PmPtr::new(pool.medium().load(chunk.next_word()));
    }
    let mut replayed = Replayed::default();
    replayed.ring.linked = chunks.iter().rev().map(|chunk| chunk.at).collect();
    chunks.sort_unstable_by_key(|chunk| chunk.uses);
    if let Some(twice) = chunks.windows(2).find(|two| two[0].uses == two[1].uses) {
        let (at, what) = (twice[1].at.offset(), "two chunks of a log with the same use number");
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
    replayed.is_reserve_dirty = (1..lines).any(|line| newest.is_sealed(pool.medium(), line));
    Ok(replayed)
}

impl Replayed {
    /// Reads a chunk and returns its first line with no sealed line after it.
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
                let (at, what) = (found.at.offset(), "record in the wrong log");
                return Err(Corrupt { at, what, expected: log as u64, found: head.leaf });
            }
            let chain = self.chains.entry(head.leaf).or_default();
            match head.kind {
                Kind::Base(items) => {
                    chain.base(NewestBase { sequence: head.sequence, at: found.at, items });
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

/// Reads all logs in parallel.
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

/// Returns the leaves of the tree from left to right. Removes each from `replayed`, so the walk
/// ends whatever the pool holds.
pub(super) fn leaves<M: Medium, K: Key, T: Tuning>(
    pool: &Pool<M>,
    replayed: &mut [Replayed],
    root: PmPtr,
) -> Result<Vec<LeafChain<K>>, Corrupt> {
    let mut leaves = Vec::<LeafChain<K>>::new();
    let (mut next, mut pointer) = (Some(FIRST_LEAF), (root, 0));
    while let Some(leaf) = next {
        let chain = replayed[T::log_of(leaf)].chains.remove(&leaf);
        let Some((base, deltas)) = chain.and_then(|chain| Some((chain.base?, chain.deltas))) else {
            let (at, what) = (
                pointer.0.offset(),
                "pointer to a leaf without a base, or second pointer to a leaf",
            );
            return Err(Corrupt { at, what, expected: 1, found: leaf });
        };
        let Range { right, low: word, high } =
            Base::new(pool, base.at, base.items)?.range(pool.medium());
        let low = K::read(pool, word)?;
        let follows = leaves.last().is_none_or(|left| {
            let left = K::borrow(&left.low);
            K::compare(left, K::borrow(&low)) == Ordering::Less
        });
        if !follows || word != pointer.1 {
            let (at, what) = (base.at.offset(), "low key of a leaf");
            return Err(Corrupt { at, what, expected: pointer.1, found: word });
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
        (next, pointer) = (right, (base.at, high));
    }
    Ok(leaves)
}

/// Returns the deltas after a base, by ascending sequence number, without duplicates. Fails if one
/// is missing.
fn in_sequence<T: Tuning>(
    base: &NewestBase,
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
