//! Making the rows refer to the log records that count, when an index is opened.
//!
//! 1. Threads read parts of the logs, and divide the records by the part of the list of leaves
//!    whose range has their key. Then threads take the parts of the list: the leaves, rows and
//!    records of one part are in the cache of a processor at the same time.
//! 2. A part of the list has one thread, which needs no latch.

use super::UnitTreeIndex;
use super::record::{NUMBER_BITS, Position, VersionedChange};
use super::rows::{Pending, REFERENCES, UnitRow, tag_of};
use super::settle::no_space;
use super::unit::{UnitLeaf, UnitWord, check_stamp};
use crate::inner::SeparatedLeaf;
use crate::key::Key;
use crate::parallel::in_parallel;
use bristlecone_pmem::{Corrupt, Medium, sys};

/// The chunks whose records are divided at a time: they fit into a processor's cache.
const CHUNKS: usize = 32;

/// A log record that an open finds, without its value.
#[derive(Clone, Copy, Debug)]
struct FoundRecord {
    /// The key word.
    key: u64,
    version: u64,
    position: Position,
    is_removed: bool,
}

/// A log record as [`DividedRecords`] keeps it.
#[derive(Clone, Copy, Debug, Default)]
struct PackedRecord {
    key: u64,
    /// The version, from the base of the chunk on.
    offset: u32,
    /// Bit 0: a remove; bits 1..13: the number in the chunk; from 13 on the chunk, among those that
    /// are divided at the same time.
    place: u32,
}

const _: () = assert!(CHUNKS <= 1 << (u32::BITS - 1 - NUMBER_BITS));

/// The records of some chunks, divided by parts of the list of leaves.
#[derive(Debug)]
pub(super) struct DividedRecords {
    /// The numbers of the chunks, and their bases.
    chunks: Vec<(usize, u64)>,
    /// The records, ordered by their parts.
    records: Vec<PackedRecord>,
    /// The first record of each part, and the number of records.
    starts: Vec<u32>,
}

impl DividedRecords {
    /// Divides the records of `chunks`, which come with the number of their part, by `parts` parts.
    fn new(chunks: Vec<(usize, u64)>, found: &[(PackedRecord, u32)], parts: usize) -> Self {
        let mut starts = vec![0; parts + 1];
        for &(_, part) in found {
            starts[part as usize + 1] += 1;
        }
        for part in 0..parts {
            starts[part + 1] += starts[part];
        }
        let (mut records, mut next) = (vec![PackedRecord::default(); found.len()], starts.clone());
        for &(record, part) in found {
            let next = &mut next[part as usize];
            records[*next as usize] = record;
            *next += 1;
        }
        Self { chunks, records, starts }
    }

    /// Prefetches the records of a part.
    fn prefetch(&self, part: usize) {
        let [first, last] = [part, part + 1].map(|part| self.starts[part] as usize);
        for record in self.records[first..last].iter().step_by(4).take(8) {
            sys::prefetch(core::ptr::from_ref(record) as usize);
        }
    }

    /// Returns the records of a part.
    fn of_part(&self, part: usize) -> impl Iterator<Item = FoundRecord> {
        let [first, last] = [part, part + 1].map(|part| self.starts[part] as usize);
        self.records[first..last].iter().map(|record| {
            let (chunk, base) = self.chunks[(record.place >> (1 + NUMBER_BITS)) as usize];
            let number = (record.place >> 1 & ((1 << NUMBER_BITS) - 1)) as usize;
            FoundRecord {
                key: record.key,
                version: base + u64::from(record.offset),
                position: Position { chunk, number },
                is_removed: record.place & 1 == 1,
            }
        })
    }
}

/// A search in ascending prefixes. A table of shares of their range narrows it: to a step or two
/// if they are spread evenly.
struct PrefixSearch {
    prefixes: Vec<u64>,
    /// The number of prefixes before each share, and of all.
    shares: Vec<u32>,
    shift: u32,
}

impl PrefixSearch {
    fn new(prefixes: Vec<u64>) -> Self {
        let [first, last] =
            [prefixes.first(), prefixes.last()].map(|end| end.map_or(0, |end| *end));
        let bits = prefixes.len().next_power_of_two().trailing_zeros() + 1;
        let shift = (u64::BITS - (last - first).leading_zeros()).saturating_sub(bits);
        let shares = (0..=(last - first) >> shift).map(|share| {
            prefixes.partition_point(|prefix| (prefix - first) >> shift < share) as u32
        });
        let shares = shares.chain([prefixes.len() as u32]).collect();
        Self { prefixes, shares, shift }
    }

    /// Returns the number of the last of the prefixes that is at most `prefix`, or else 0.
    #[inline(always)]
    fn find(&self, prefix: u64) -> usize {
        let Some(above) = prefix.checked_sub(self.prefixes[0]) else { return 0 };
        let share = ((above >> self.shift) as usize).min(self.shares.len() - 2);
        let [first, last] = [self.shares[share], self.shares[share + 1]].map(|at| at as usize);
        let within = self.prefixes[first..last].partition_point(|start| *start <= prefix);
        (first + within).saturating_sub(1)
    }
}

impl<M: Medium, K: Key, const BYTES: usize> UnitTreeIndex<M, K, BYTES> {
    /// Reads all logs, on up to `threads` threads, and divides their records by the parts of
    /// `share` leaves.
    ///
    /// # Errors
    /// A line or a version is damaged, or keys with records have logs.
    pub(super) fn divide_records(
        &self,
        leaves: &[SeparatedLeaf],
        share: usize,
        threads: usize,
    ) -> Result<Vec<DividedRecords>, Corrupt> {
        let chunks = self.log.numbers();
        if !K::EXACT && !chunks.is_empty() {
            let (what, found) = ("logs of an index whose keys have records", chunks.len() as u64);
            return Err(Corrupt { at: self.root.offset(), what, expected: 0, found });
        }
        let parts =
            PrefixSearch::new(leaves.iter().step_by(share).map(|leaf| leaf.prefix).collect());
        let jobs: Vec<_> = chunks.chunks(chunks.len().div_ceil(threads).max(1)).collect();
        let divided = in_parallel(threads, &jobs, |chunks| {
            let mut found = Vec::new();
            let divide = |chunks: &[usize]| {
                found.clear();
                let mut bases = Vec::with_capacity(CHUNKS);
                for (index, &chunk) in chunks.iter().enumerate() {
                    let base = self.find_records((chunk, index), &parts, &mut found)?;
                    bases.push((chunk, base));
                }
                Ok(DividedRecords::new(bases, &found, parts.prefixes.len()))
            };
            chunks.chunks(CHUNKS).map(divide).collect::<Result<Vec<_>, Corrupt>>()
        });
        let divided = divided.into_iter().collect::<Result<Vec<_>, Corrupt>>()?;
        Ok(divided.into_iter().flatten().collect())
    }

    /// Appends the records of a chunk, number `index` of those that are divided, to `found`, with
    /// the numbers of the parts of the list that have their keys. Returns the base of the chunk.
    fn find_records(
        &self,
        (chunk, index): (usize, usize),
        parts: &PrefixSearch,
        found: &mut Vec<(PackedRecord, u32)>,
    ) -> Result<u64, Corrupt> {
        let base = self.log.base(&self.pool, chunk)?;
        self.log.for_each_record(&self.pool, chunk, |position, record| {
            let VersionedChange { change, version } = record;
            check_stamp(self.root, version)?;
            let part = parts.find(K::entry_prefix(&self.pool, change.entry)?);
            let place = (index << NUMBER_BITS | position.number) << 1;
            let place = (place | usize::from(change.is_removed)) as u32;
            let offset = (version - base) as u32;
            found.push((PackedRecord { key: change.entry.key, offset, place }, part as u32));
            Ok(())
        })?;
        Ok(base)
    }

    /// Makes the rows of part number `part` of the list, with these leaves, refer to those of its
    /// records that count. Returns the greatest version of a record.
    ///
    /// # Errors
    /// A row has no room for its references, or a leaf for the keys that only they have.
    pub(super) fn refer_part(
        &self,
        (part, leaves): (usize, &[SeparatedLeaf]),
        divided: &[DividedRecords],
    ) -> Result<u64, Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let search = PrefixSearch::new(leaves.iter().map(|leaf| leaf.prefix).collect());
        let view = |number: usize| {
            let row = self.rows.row(leaves[number].leaf as usize);
            Ok((row, self.leaf(row)?))
        };
        let stamps = |number| Ok(view(number)?.1.unit_words(medium).map(UnitWord::stamp));
        let stamps = (0..leaves.len()).map(stamps).collect::<Result<Vec<_>, Corrupt>>()?;
        let (mut newest, mut counting) = (0, Vec::new());
        for (at, batch) in divided.iter().enumerate() {
            if let Some(next) = divided.get(at + 2) {
                next.prefetch(part);
            }
            counting.clear();
            for record in batch.of_part(part) {
                newest = newest.max(record.version);
                let key = K::read(pool, record.key)?;
                let number = search.find(K::prefix(K::borrow(&key)));
                if record.version > stamps[number][Self::home_of_key(&key)] {
                    counting.push((record, number));
                }
            }
            for (record, number) in &counting {
                let (row, leaf) = view(*number)?;
                self.refer_to(record, row, leaf)?;
            }
        }
        for number in 0..leaves.len() {
            let (row, leaf) = view(number)?;
            let fresh = row.pending::<M>().fresh;
            if fresh > 0 && leaf.used(medium) + fresh > UnitLeaf::<BYTES>::CAPACITY {
                return Err(no_space(leaf));
            }
        }
        Ok(newest)
    }

    /// Makes a row refer to a record that counts, if no newer one of its key does.
    ///
    /// # Errors
    /// The row has no room for a reference.
    fn refer_to(
        &self,
        record: &FoundRecord,
        row: UnitRow<'_>,
        leaf: UnitLeaf<'_, BYTES>,
    ) -> Result<(), Corrupt> {
        let pool = &*self.pool;
        row.set_version::<M>(row.version::<M>().max(record.version));
        let key = K::read(pool, record.key)?;
        let hash = K::hash(K::borrow(&key));
        let state = self.key_state(row, leaf, (K::borrow(&key), hash))?;
        let (pending, position) = (row.pending::<M>(), record.position.word());
        let removed = pending.removed + usize::from(record.is_removed);
        if let Some((at, former)) = state.reference {
            let other = Position::of_word(row.position::<M>(at));
            let other = self.log.record(pool, other)?.map_or(0, |other| other.version);
            if record.version > other {
                let removed = removed.saturating_sub(usize::from(former.is_removed));
                row.replace::<M>(at, position, Pending { removed, ..pending });
            }
            return Ok(());
        }
        if pending.count == REFERENCES {
            return Err(no_space(leaf));
        }
        let fresh = pending.fresh + usize::from(state.entry.is_none());
        row.add::<M>(tag_of(hash), position, Pending { fresh, removed, ..pending });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_search_finds_the_last_prefix_that_is_not_above(
            prefixes in prop::collection::btree_set(
                prop_oneof![any::<u64>(), 0..100u64, u64::MAX - 9..=u64::MAX], 1..80),
            others in prop::collection::vec(any::<u64>(), 20),
        ) {
            let prefixes: Vec<_> = prefixes.into_iter().collect();
            let search = PrefixSearch::new(prefixes.clone());
            let near = prefixes
                .iter()
                .flat_map(|at| [at.saturating_sub(1), *at, at.saturating_add(1)]);
            for sought in near.chain(others) {
                let last = prefixes.iter().rposition(|prefix| *prefix <= sought).unwrap_or(0);
                prop_assert_eq!(search.find(sought), last);
            }
        }

        #[test]
        fn divided_records_are_those_that_were_found(
            found in prop::collection::vec(
                (any::<u64>(), any::<u32>(), 0..3usize, 0..3069usize, any::<bool>(), 0..5u32),
                0..100,
            ),
        ) {
            let chunks = vec![(7, 1000), (9, 0), (1, 1 << 40)];
            let packed = found.iter().map(|&(key, offset, chunk, number, is_removed, part)| {
                let place = (chunk << NUMBER_BITS | number) << 1 | usize::from(is_removed);
                (PackedRecord { key, offset, place: place as u32 }, part)
            });
            let packed: Vec<_> = packed.collect();
            let divided = DividedRecords::new(chunks.clone(), &packed, 5);
            for part in 0..5 {
                let of_part = divided.of_part(part).map(|record| {
                    (record.key, record.version, record.position, record.is_removed)
                });
                let expected = found.iter().filter(|found| found.5 as usize == part);
                let expected = expected.map(|&(key, offset, chunk, number, is_removed, _)| {
                    let (chunk, base) = chunks[chunk];
                    (key, base + u64::from(offset), Position { chunk, number }, is_removed)
                });
                prop_assert!(of_part.eq(expected));
            }
        }
    }
}
