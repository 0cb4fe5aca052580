//! The iterator over a range of keys, from either end or both.
//!
//! 1. A scan fetches pairs in batches. Between two calls of `next` it holds no pin and no latch, so
//!    a scan may be kept for any time.
//! 2. The front has fetched keys below those that are left, and the back keys above them. So no key
//!    is returned twice and the order holds, whatever other threads write.
//! 3. A key that is present throughout the scan is returned. A key that is inserted or deleted
//!    meanwhile may be missing. Each returned pair was current at some moment within the call that
//!    fetched its batch, and may have been replaced since.

use crate::error::Error;
use crate::store::Store;
use bristlecone_pmem::{FileMedium, Medium};
use bristlecone_trees::Order;
use core::fmt;
use core::iter::FusedIterator;
use core::ops::{
    Bound, ControlFlow, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};
use std::collections::VecDeque;

/// A pair of a store: the key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);
/// The lower and the upper bound of a range of keys.
pub type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// The number of pairs in the first batch. Each later batch is twice as long, up to
/// [`BATCH_PAIRS_MAX`].
const BATCH_PAIRS: usize = 8;
/// The number of pairs in the longest batch.
const BATCH_PAIRS_MAX: usize = 256;
/// The sum of value lengths at which a batch ends.
const BATCH_BYTES: usize = 256 << 10;

/// A range of keys: any of Rust's range types, or a pair of [`Bound`]s, over any type of bytes.
///
/// Unlike `RangeBounds`, it needs no type of key for `..`.
///
/// ```
/// use bristlecone::KeyRange;
/// use std::ops::Bound;
///
/// let (low, high) = ("a"..="q").into_bounds();
/// assert_eq!(low, Bound::Included(b"a".to_vec()));
/// assert_eq!(high, Bound::Included(b"q".to_vec()));
/// ```
pub trait KeyRange {
    /// Returns the lower and the upper bound, as owned keys.
    fn into_bounds(self) -> Bounds;
}

fn owned(key: impl AsRef<[u8]>) -> Vec<u8> {
    key.as_ref().to_vec()
}

impl KeyRange for RangeFull {
    fn into_bounds(self) -> Bounds {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for Range<K> {
    fn into_bounds(self) -> Bounds {
        (Bound::Included(owned(self.start)), Bound::Excluded(owned(self.end)))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeInclusive<K> {
    fn into_bounds(self) -> Bounds {
        let (start, end) = self.into_inner();
        (Bound::Included(owned(start)), Bound::Included(owned(end)))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeFrom<K> {
    fn into_bounds(self) -> Bounds {
        (Bound::Included(owned(self.start)), Bound::Unbounded)
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeTo<K> {
    fn into_bounds(self) -> Bounds {
        (Bound::Unbounded, Bound::Excluded(owned(self.end)))
    }
}

impl<K: AsRef<[u8]>> KeyRange for RangeToInclusive<K> {
    fn into_bounds(self) -> Bounds {
        (Bound::Unbounded, Bound::Included(owned(self.end)))
    }
}

impl<K: AsRef<[u8]>> KeyRange for (Bound<K>, Bound<K>) {
    fn into_bounds(self) -> Bounds {
        (self.0.map(owned), self.1.map(owned))
    }
}

/// A function that a walk calls with each key and value.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// Returns the bounds of the keys that begin with `prefix`.
pub(crate) fn prefix_bounds(prefix: &[u8]) -> Bounds {
    // The least key above them: the prefix without trailing 0xff, its last byte one higher.
    let mut past = prefix.to_vec();
    while past.pop_if(|byte| *byte == u8::MAX).is_some() {}
    let end = match past.last_mut() {
        Some(byte) => {
            *byte += 1;
            Bound::Excluded(past)
        }
        None => Bound::Unbounded,
    };
    (Bound::Included(prefix.to_vec()), end)
}

impl<'a, M: Medium, const LEAF_BYTES: usize> IntoIterator for &'a Store<M, LEAF_BYTES> {
    type Item = Result<Pair, Error>;
    type IntoIter = Scan<'a, M, LEAF_BYTES>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// An iterator over the pairs of a range, in ascending byte order; [`Store::scan`] returns it.
///
/// It is double-ended: [`rev`](Iterator::rev) gives descending order, and a caller may take pairs
/// from both ends. [`Store::scan`] lists its guarantees beside writers: it is not a snapshot, and a
/// pair may have been replaced since its batch was fetched. It allocates a key
/// and a value for each pair; [`Store::scan_with`] does not. After an error it returns `None`.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
/// store.put("pinus longaeva", "4855 years")?;
/// store.put("sequoia", "3266 years")?;
/// let mut scan = store.iter();
/// assert_eq!(scan.next_back().unwrap()?.0, b"sequoia");
/// assert_eq!(scan.next().unwrap()?.0, b"pinus longaeva");
/// assert!(scan.next().is_none());
/// # Ok::<(), bristlecone::Error>(())
/// ```
#[must_use = "a scan reads nothing until `next` is called"]
pub struct Scan<'a, M: Medium = FileMedium, const LEAF_BYTES: usize = 1024> {
    store: &'a Store<M, LEAF_BYTES>,
    /// The pairs fetched from the front, ascending.
    front: Batch,
    /// The range between front and back; `None` after all of it was fetched.
    left: Option<Bounds>,
    /// The pairs fetched from the back, descending.
    back: Batch,
    batch_pairs: usize,
}

/// The pairs that were fetched and not returned yet, in one buffer.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// The offset of each pair in the buffer, and the lengths of its key and value.
    pairs: VecDeque<(usize, usize, usize)>,
}

impl Batch {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.pairs.push_back((self.bytes.len(), key.len(), value.len()));
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.pairs.clear();
    }

    fn pair(&self, (at, key, value): (usize, usize, usize)) -> Pair {
        let (key, value) = self.bytes[at..at + key + value].split_at(key);
        (key.to_vec(), value.to_vec())
    }

    fn pop_front(&mut self) -> Option<Pair> {
        let span = self.pairs.pop_front()?;
        Some(self.pair(span))
    }

    fn pop_back(&mut self) -> Option<Pair> {
        let span = self.pairs.pop_back()?;
        Some(self.pair(span))
    }

    /// Returns the key of the pair that was fetched last.
    fn last_key(&self) -> Option<Vec<u8>> {
        self.pairs.back().map(|&(at, key, _)| self.bytes[at..at + key].to_vec())
    }
}

impl<'a, M: Medium, const LEAF_BYTES: usize> Scan<'a, M, LEAF_BYTES> {
    pub(crate) fn new(store: &'a Store<M, LEAF_BYTES>, bounds: Bounds) -> Self {
        let left = (!is_empty(&bounds)).then_some(bounds);
        let (front, back) = Default::default();
        Self { store, front, left, back, batch_pairs: BATCH_PAIRS }
    }

    /// Fetches a batch from the end where `order` begins. If the walk meets damage after the first
    /// pair of the batch, the scan returns the pairs before it; the next fetch fails.
    fn fetch(&mut self, order: Order) -> Result<(), Error> {
        let Some(bounds) = self.left.take() else { return Ok(()) };
        let batch = match order {
            Order::Ascending => &mut self.front,
            Order::Descending => &mut self.back,
        };
        batch.clear();
        let (mut bytes, mut complete) = (0, true);
        let walked = self.store.walk(&bounds, order, &mut |key, value| {
            bytes += value.len();
            batch.push(key, value);
            complete = batch.pairs.len() < self.batch_pairs && bytes < BATCH_BYTES;
            if complete { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        let Some(last) = batch.last_key() else { return walked };
        self.batch_pairs = (self.batch_pairs * 2).min(BATCH_PAIRS_MAX);
        if !complete || walked.is_err() {
            let left = match order {
                Order::Ascending => (Bound::Excluded(last), bounds.1),
                Order::Descending => (bounds.0, Bound::Excluded(last)),
            };
            self.left = (!is_empty(&left)).then_some(left);
        }
        Ok(())
    }
}

impl<M: Medium, const LEAF_BYTES: usize> Iterator for Scan<'_, M, LEAF_BYTES> {
    type Item = Result<Pair, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.front.pairs.is_empty()
            && let Err(error) = self.fetch(Order::Ascending)
        {
            self.back.clear();
            return Some(Err(error));
        }
        self.front.pop_front().or_else(|| self.back.pop_back()).map(Ok)
    }
}

impl<M: Medium, const LEAF_BYTES: usize> DoubleEndedIterator for Scan<'_, M, LEAF_BYTES> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.back.pairs.is_empty()
            && let Err(error) = self.fetch(Order::Descending)
        {
            self.front.clear();
            return Some(Err(error));
        }
        self.back.pop_front().or_else(|| self.front.pop_back()).map(Ok)
    }
}

impl<M: Medium, const LEAF_BYTES: usize> FusedIterator for Scan<'_, M, LEAF_BYTES> {}

impl<M: Medium, const LEAF_BYTES: usize> fmt::Debug for Scan<'_, M, LEAF_BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("left", &self.left).finish_non_exhaustive()
    }
}

pub(crate) fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Returns `true` if no key can lie between the bounds.
pub(crate) fn is_empty((low, high): &Bounds) -> bool {
    match (low, high) {
        (Bound::Unbounded, Bound::Excluded(high)) => high.is_empty(),
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (
            Bound::Included(low) | Bound::Excluded(low),
            Bound::Included(high) | Bound::Excluded(high),
        ) => low >= high,
    }
}
