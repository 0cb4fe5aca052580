//! Reads of several pairs as owned values: ranges, prefixes, batches of keys, counts.

use crate::error::Error;
use crate::scan::{KeyRange, Scan, as_slice, prefix_bounds};
use crate::store::Store;
use bristlecone_pmem::Medium;
use bristlecone_trees::Order;
use core::ops::{Bound, ControlFlow};

impl<M: Medium, const LEAF_BYTES: usize> Store<M, LEAF_BYTES> {
    /// Returns an iterator over the pairs whose keys lie in `range`, in ascending byte order.
    ///
    /// Use [`rev`](Iterator::rev) for descending order. A range is any of Rust's, or a pair of
    /// [`Bound`]s; an end before the start is an empty range.
    ///
    /// # Guarantees
    ///
    /// The iterator is not a snapshot. It fetches pairs in batches, of 8 pairs at first and of up
    /// to 256 later, and holds no latch between calls. Whatever other threads do:
    ///
    /// - Keys come in order, and no key comes twice.
    /// - Each pair was whole and current at some moment within the call of `next` that fetched its
    ///   batch. When it is returned it may have been replaced or deleted, also by the calling
    ///   thread: a scan may show a value that is older than one that a [`get`](Self::get) has
    ///   returned since. To see a later write for sure, use `get`, or begin another scan.
    /// - A key that is present from the first call of `next` to the last is returned. A key that is
    ///   inserted or deleted meanwhile may be returned or not.
    /// - A value is one that no crash which the file's [`Domain`](crate::Domain) covers can undo.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// for name in ["bristlecone pine", "larch", "sequoia"] {
    ///     store.put(name, "a tree")?;
    /// }
    /// let mut names = Vec::new();
    /// for pair in store.scan("a".."q").rev() {
    ///     let (key, _value) = pair?; // the greatest key first
    ///     names.push(key);
    /// }
    /// assert_eq!(names, [&b"larch"[..], b"bristlecone pine"]);
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// An item is [`Error::Damaged`] if the scan meets damage; the iterator ends after it.
    pub fn scan(&self, range: impl KeyRange) -> Scan<'_, M, LEAF_BYTES> {
        Scan::new(self, range.into_bounds())
    }

    /// Returns an iterator over the pairs whose keys begin with `prefix`, in ascending byte order.
    ///
    /// Guarantees and errors are those of [`scan`](Self::scan).
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// store.put("pinus longaeva", "4855 years")?;
    /// store.put("sequoia", "3266 years")?;
    /// assert_eq!(store.prefix("pinus").count(), 1);
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Scan<'_, M, LEAF_BYTES> {
        Scan::new(self, prefix_bounds(prefix.as_ref()))
    }

    /// Returns an iterator over all pairs, in ascending byte order of their keys.
    ///
    /// Guarantees and errors are those of [`scan`](Self::scan). `for pair in &store` does the same.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// store.put("pinus longaeva", "4855 years")?;
    /// store.put("sequoia", "3266 years")?;
    /// let (last_key, _) = store.iter().next_back().unwrap()?;
    /// assert_eq!(last_key, b"sequoia");
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    pub fn iter(&self) -> Scan<'_, M, LEAF_BYTES> {
        self.scan(..)
    }

    /// Returns the values of `keys`, in the order of `keys`; `None` for each absent key.
    ///
    /// Up to 32 lookups run interleaved, so that their cache misses overlap. That is faster than
    /// one [`get`](Self::get) after the other. Each lookup is atomic, all together are not: the
    /// values may come from different moments. This allocates one vector and a copy of each value.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// store.put("sequoia", "3266 years")?;
    /// let values = store.multi_get(&["larch", "sequoia"])?;
    /// assert_eq!(values, [None, Some(b"3266 years".to_vec())]);
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`get`](Self::get). No value is returned then.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut values = Vec::with_capacity(keys.len());
        self.multi_get_with(keys, |_, value| values.push(value.map(<[u8]>::to_vec)))?;
        Ok(values)
    }

    /// Counts the pairs by walking all leaves: O(n).
    ///
    /// The count is exact if no thread writes meanwhile. Otherwise it includes each pair that
    /// exists throughout the walk.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// store.put("sequoia", "3266 years")?;
    /// assert_eq!(store.len()?, 1);
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Damaged`]: a node is damaged.
    pub fn len(&self) -> Result<u64, Error> {
        const BATCH_KEYS: u64 = 4096;
        self.check_process()?;
        let mut count = 0;
        let mut low = Bound::Unbounded;
        loop {
            let (mut seen, mut last) = (0, None);
            let mut visit = |key: &[u8], _| {
                seen += 1;
                if seen < BATCH_KEYS {
                    return ControlFlow::Continue(());
                }
                last = Some(key.to_vec());
                ControlFlow::Break(())
            };
            let bounds = (as_slice(&low), Bound::Unbounded);
            self.index
                .scan_pairs(bounds, Order::Ascending, &mut visit)
                .map_err(|e| self.error(e))?;
            count += seen;
            match last {
                Some(key) => low = Bound::Excluded(key),
                None => break,
            }
        }
        self.settle_scanned();
        Ok(count)
    }

    /// Returns `true` if the store holds no pair. Reads no further than the first pair.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// assert!(store.is_empty()?);
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Damaged`]: a node is damaged.
    pub fn is_empty(&self) -> Result<bool, Error> {
        self.check_process()?;
        let mut empty = true;
        let mut visit = |_: &[u8], _| {
            empty = false;
            ControlFlow::Break(())
        };
        let all = (Bound::Unbounded, Bound::Unbounded);
        self.index.scan_pairs(all, Order::Ascending, &mut visit).map_err(|e| self.error(e))?;
        self.settle_scanned();
        Ok(empty)
    }
}
