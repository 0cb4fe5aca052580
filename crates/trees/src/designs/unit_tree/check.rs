//! The check of the whole index.

use super::UnitTreeIndex;
use super::record::{Position, VersionedChange};
use super::recover::ListedLeaf;
use super::rows::{UnitRow, tag_of};
use super::unit::{UNITS, UnitLeaf, home_of};
use crate::index::{TreeError, TreeStats};
use crate::inner::{Direction, InnerNodes};
use crate::key::Key;
use crate::leaf_table::check_range;
use bristlecone_pmem::{Corrupt, Medium};

impl<M: Medium, K: Key, const BYTES: usize> UnitTreeIndex<M, K, BYTES> {
    /// Checks invariants 1, 2 and 4 of the design, that rows, units and logs agree, and that a
    /// lookup finds each entry. Returns the counts.
    pub(super) fn collect_stats(&self) -> Result<TreeStats, TreeError> {
        let mut stats = TreeStats {
            height: self.inner.height() + 1,
            inner_nodes: self.inner.node_count(),
            dram_bytes: self.inner.dram_bytes() + self.rows.bytes() + self.log.dram_bytes(),
            ..TreeStats::default()
        };
        stats.count_block(&self.pool, Some(self.root_block()))?;
        for block in self.log.blocks() {
            stats.count_block(&self.pool, Some(block))?;
        }
        let mut by_descent = Vec::new();
        self.inner.for_each_leaf(&mut |separated| by_descent.push(separated));
        let by_chain = self.walk()?;
        if by_chain.len() != by_descent.len() || by_chain.len() as u64 != self.rows.in_use() {
            let (expected, found) = (by_chain.len() as u64, by_descent.len() as u64);
            let what = "inner nodes and list have different numbers of leaves";
            return Err(Corrupt { at: self.root.offset(), what, expected, found }.into());
        }
        for (at, (linked, separated)) in by_chain.iter().zip(&by_descent).enumerate() {
            let row = self.rows.row(separated.leaf as usize);
            let prefix = K::prefix(K::borrow(&linked.low));
            let leaf = row.leaf::<M>();
            if (leaf, separated.prefix, separated.word) != (linked.at, prefix, linked.word) {
                let (at, what) = (linked.at.offset(), "inner nodes and list name different leaves");
                return Err(Corrupt { at, what, expected: at, found: leaf.offset() }.into());
            }
            let high = by_chain.get(at + 1).map(|next| &next.low);
            self.check_leaf((linked, high), row, &mut stats)?;
        }
        for number in self.log.numbers() {
            let check = |_, record| self.check_record(&record);
            self.log.for_each_record(&self.pool, number, check)?;
        }
        Ok(stats)
    }

    /// Checks that a record that counts is the newest of its key, or that the row refers to a newer
    /// one.
    fn check_record(&self, record: &VersionedChange) -> Result<(), Corrupt> {
        let key = K::read_entry(&self.pool, record.change.entry)?;
        let hash = K::hash(K::borrow(&key));
        let route = self.inner.seek::<K>(&self.pool, K::borrow(&key), Direction::Key)?;
        let row = self.rows.row(route.leaf.offset() as usize);
        let leaf = self.leaf(row)?;
        if record.version <= leaf.word(self.pool.medium(), home_of(hash)).stamp() {
            return Ok(());
        }
        let state = self.key_state(row, leaf, (K::borrow(&key), hash))?;
        let newest = match state.reference {
            Some((at, _)) => {
                let position = Position::of_word(row.position::<M>(at));
                self.log.record(&self.pool, position)?.map_or(0, |newest| newest.version)
            }
            None => 0,
        };
        if newest >= record.version {
            return Ok(());
        }
        let what = "log record that counts, without a reference";
        Err(Corrupt { at: leaf.at.offset(), what, expected: record.version, found: newest })
    }

    fn check_leaf(
        &self,
        (linked, high): (&ListedLeaf<K>, Option<&K::Owned>),
        row: UnitRow<'_>,
        stats: &mut TreeStats,
    ) -> Result<(), Corrupt> {
        let (pool, medium) = (&*self.pool, self.pool.medium());
        let leaf = UnitLeaf::<BYTES>::new(pool, linked.at)?;
        let damaged = |what, found| Corrupt { at: linked.at.offset(), what, expected: 0, found };
        for (place, entry) in leaf.entries(medium) {
            let home = K::with_entry(pool, entry, |key| home_of(K::hash(key)))?;
            if place.unit != home && !row.is_spilled::<M>(home) {
                return Err(damaged("entry that a lookup does not find", entry.key));
            }
            stats.count_entry::<K, M>(pool, entry)?;
        }
        let pending = row.pending::<M>();
        if leaf.used(medium) + pending.fresh > UnitLeaf::<BYTES>::CAPACITY {
            return Err(damaged("leaf has no space for its logged writes", pending.fresh as u64));
        }
        let (mut fresh, mut removed) = (0, 0);
        for at in 0..pending.count {
            let position = Position::of_word(row.position::<M>(at));
            let Some(record) = self.log.record(pool, position)? else {
                return Err(damaged("reference without a record", row.position::<M>(at).into()));
            };
            let key = K::read_entry(pool, record.change.entry)?;
            let hash = K::hash(K::borrow(&key));
            let home = home_of(hash);
            let is_tagged = row.tagged::<M>(tag_of(hash)).filter(|&other| {
                let change = self.log.change(pool, row.position::<M>(other));
                change.is_ok_and(|change| change.entry.key == record.change.entry.key)
            });
            if is_tagged.collect::<Vec<_>>() != [at] {
                return Err(damaged("reference that a lookup does not find", record.version));
            }
            let counts = leaf.word(medium, home).stamp() < record.version;
            if !counts || record.version > row.version::<M>() {
                return Err(damaged("reference to a record that does not count", record.version));
            }
            let place = (home, row.is_spilled::<M>(home));
            fresh += usize::from(leaf.find::<K, M>(pool, place, K::borrow(&key))?.is_none());
            removed += usize::from(record.change.is_removed);
        }
        if (fresh, removed) != (pending.fresh, pending.removed) {
            return Err(damaged("numbers of the references of a row", pending.fresh as u64));
        }
        if (0..UNITS).any(|unit| leaf.word(medium, unit).stamp() > row.version::<M>()) {
            return Err(damaged("stamp above the version of a leaf", row.version::<M>()));
        }
        let pairs = self.contents(row, leaf)?;
        check_range::<K>(linked.at, &pairs, &linked.low, high)?;
        stats.leaves += 1;
        stats.keys += pairs.len() as u64;
        stats.count_block(pool, Some((linked.at, BYTES as u64)))?;
        stats.count_block(pool, K::block(pool, linked.word)?)
    }
}
