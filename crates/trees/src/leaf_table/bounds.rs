//! The range of a leaf, which recovery compares its entries with.

use super::misplaced_key;
use crate::key::{Entry, Key};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, Pool};

/// The range of a leaf, with the prefixes of the keys that bound it.
pub(crate) struct LeafBounds<'a, K: Key> {
    low: &'a K::Owned,
    high: Option<&'a K::Owned>,
    least: u64,
    end: Option<u64>,
}

impl<'a, K: Key> LeafBounds<'a, K> {
    pub(crate) fn new(low: &'a K::Owned, high: Option<&'a K::Owned>) -> Self {
        let prefix = |key| K::prefix(K::borrow(key));
        Self { low, high, least: prefix(low), end: high.map(prefix) }
    }

    /// Returns the prefix of the key that ends the range.
    pub(crate) fn end(&self) -> Option<u64> {
        self.end
    }

    /// Returns `true` if the key of an entry lies in the range of the right neighbour, which has
    /// the entry, too. The prefixes alone tell most keys.
    ///
    /// # Errors
    /// The key is below the range, or damaged.
    #[inline(always)]
    pub(crate) fn is_behind<M: Medium>(
        &self,
        pool: &Pool<M>,
        at: PmPtr,
        entry: Entry,
    ) -> Result<bool, Corrupt> {
        let prefix = if K::PREFIX_IN_ENTRY { Some(K::entry_prefix(pool, entry)?) } else { None };
        let is_above = prefix.is_some_and(|prefix| prefix > self.least);
        if !is_above && K::order_entry(pool, entry, K::borrow(self.low))?.is_lt() {
            return Err(misplaced_key(at, entry.key));
        }
        if prefix.zip(self.end).is_some_and(|(prefix, end)| prefix < end) {
            return Ok(false);
        }
        let Some(high) = self.high.map(K::borrow) else { return Ok(false) };
        if K::order_entry(pool, entry, high)?.is_lt() {
            return Ok(false);
        }
        K::verify_mismatch(pool, entry, high)?;
        Ok(true)
    }
}
