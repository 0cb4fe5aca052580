//! Ordered walks: ranges, prefixes, both ways, from both ends at once.
//!
//! 1. Pairs are fetched in batches; between two calls of `next` nothing is pinned or latched, so a
//!    scan may be kept for as long as one likes.
//! 2. What the front has fetched lies before what is left, and that before what the back has
//!    fetched. So no pair is given twice and the order never breaks, whatever others write.
//! 3. A pair that is there all the time is given for certain; one that comes or goes meanwhile may
//!    be given or not; each that is given was there at some moment of the scan, whole.

use crate::error::Error;
use crate::store::Store;
use bristlecone_pmem::sync::pin;
use bristlecone_pmem::{Mapped, Medium};
use bristlecone_trees::key::{Stored, Value};
use bristlecone_trees::{Order, Record};
use core::fmt;
use core::iter::FusedIterator;
use core::ops::{
    Bound, ControlFlow, Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};
use std::collections::VecDeque;

/// A key and its value.
pub type Pair = (Vec<u8>, Vec<u8>);
/// The ends of a range of keys.
pub type Bounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Pairs of the first batch; each later one is twice as long, up to [`BATCH_PAIRS_MAX`].
const BATCH_PAIRS: usize = 8;
/// Pairs of the longest batch.
const BATCH_PAIRS_MAX: usize = 256;
/// A batch ends once its values come to this many bytes.
const BATCH_BYTES: usize = 256 << 10;

/// A range of keys: any of Rust's, or a pair of [`Bound`]s, over anything that is bytes. Unlike
/// with `RangeBounds`, the type of key need not be spelled out for `..`.
pub trait KeyRange {
    /// Both ends.
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

/// What a scan shows keys and values to.
type Read<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// The keys that begin with `prefix`.
pub(crate) fn prefix_bounds(prefix: &[u8]) -> Bounds {
    // The least key past them: without the 0xff at its end, the last byte one higher.
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

impl<M: Medium> Store<M> {
    /// The pairs whose keys lie in `range`, in order; `.rev()` for descending order. An end before
    /// the start is an empty range.
    pub fn scan(&self, range: impl KeyRange) -> Scan<'_, M> {
        Scan::new(self, range.into_bounds())
    }

    /// The pairs whose keys begin with `prefix`, in order.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Scan<'_, M> {
        Scan::new(self, prefix_bounds(prefix.as_ref()))
    }

    /// All pairs, in order.
    pub fn iter(&self) -> Scan<'_, M> {
        self.scan(..)
    }

    /// Shows the pairs whose keys lie in `range` to `read`, in order, until it breaks. As
    /// [`scan`](Self::scan), but no pair costs an allocation. `read` may use the store; blocks that
    /// anybody frees are not used again before this returns, so it is for reading, and not for work that
    /// takes long.
    ///
    /// ```
    /// # use bristlecone::{Order, Store};
    /// # use std::ops::ControlFlow;
    /// # fn main() -> Result<(), bristlecone::Error> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = Store::open_or_create(dir.path().join("rings.pool"))?;
    /// # for year in 1900..2000 { store.put(format!("{year}"), "1.2 mm")?; }
    /// let mut rings = 0;
    /// store.scan_with("1950".."1960", Order::Ascending, |_year, _width| {
    ///     rings += 1;
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(rings, 10);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// The store is damaged; pairs before the damage were shown.
    pub fn scan_with(
        &self,
        range: impl KeyRange,
        order: Order,
        mut read: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let bounds = range.into_bounds();
        if is_empty(&bounds) {
            return Ok(());
        }
        self.walk(&bounds, order, &mut read)
    }

    fn walk(&self, (low, high): &Bounds, order: Order, read: Read<'_>) -> Result<(), Error> {
        let (mut bytes, mut damage) = (Vec::new(), None);
        let guard = pin(); // I2
        let mut visit = |key: &[u8], value: Value| {
            let shown = Record::stored(self.pool(), value).and_then(|stored| {
                if let Stored::Inline(inline, length) = stored {
                    return Ok(read(key, &inline[..length]));
                }
                self.copy_stored(key, stored, &guard, &mut bytes)?;
                Ok(read(key, &bytes))
            });
            shown.unwrap_or_else(|corrupt| {
                damage = Some(corrupt);
                ControlFlow::Break(())
            })
        };
        let walked = self.index.scan_pairs((as_slice(low), as_slice(high)), order, &mut visit);
        walked.map_err(|e| self.error(e))?;
        damage.map_or(Ok(()), |damage| Err(self.damaged(damage)))
    }

    /// Counts the pairs by walking all keys: O(n). Exact if nobody writes meanwhile.
    ///
    /// # Errors
    /// The store is damaged.
    pub fn len(&self) -> Result<u64, Error> {
        const BATCH_KEYS: u64 = 4096;
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
                None => return Ok(count),
            }
        }
    }

    /// Whether there is no pair.
    ///
    /// # Errors
    /// The store is damaged.
    pub fn is_empty(&self) -> Result<bool, Error> {
        let mut empty = true;
        let mut visit = |_: &[u8], _| {
            empty = false;
            ControlFlow::Break(())
        };
        let all = (Bound::Unbounded, Bound::Unbounded);
        self.index.scan_pairs(all, Order::Ascending, &mut visit).map_err(|e| self.error(e))?;
        Ok(empty)
    }
}

impl<'a, M: Medium> IntoIterator for &'a Store<M> {
    type Item = Result<Pair, Error>;
    type IntoIter = Scan<'a, M>;

    fn into_iter(self) -> Scan<'a, M> {
        self.iter()
    }
}

/// The pairs of a range, in order, from either end or both. After an error it is at its end.
#[must_use = "a scan fetches nothing until it is asked"]
pub struct Scan<'a, M: Medium = Mapped> {
    store: &'a Store<M>,
    /// Fetched from the front, ascending.
    front: Batch,
    /// What is left between front and back; none once all is fetched.
    left: Option<Bounds>,
    /// Fetched from the back, descending.
    back: Batch,
    batch_pairs: usize,
}

/// Pairs that were fetched and not given yet, all in one piece of memory.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Where the bytes of each pair begin, and how many are key and value.
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
        let place = self.pairs.pop_front()?;
        Some(self.pair(place))
    }

    fn pop_back(&mut self) -> Option<Pair> {
        let place = self.pairs.pop_back()?;
        Some(self.pair(place))
    }

    /// The key of the pair that was fetched last.
    fn last_key(&self) -> Option<Vec<u8>> {
        self.pairs.back().map(|&(at, key, _)| self.bytes[at..at + key].to_vec())
    }
}

impl<'a, M: Medium> Scan<'a, M> {
    fn new(store: &'a Store<M>, bounds: Bounds) -> Self {
        let left = (!is_empty(&bounds)).then_some(bounds);
        let (front, back) = Default::default();
        Self { store, front, left, back, batch_pairs: BATCH_PAIRS }
    }

    /// Fetches a batch from the end where `order` begins. If something is wrong after the first
    /// pair of it, those before are given first, and the next fetch meets it again.
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

impl<M: Medium> Iterator for Scan<'_, M> {
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

impl<M: Medium> DoubleEndedIterator for Scan<'_, M> {
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

impl<M: Medium> FusedIterator for Scan<'_, M> {}

impl<M: Medium> fmt::Debug for Scan<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan").field("left", &self.left).finish_non_exhaustive()
    }
}

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Whether no key can lie between the bounds.
fn is_empty((low, high): &Bounds) -> bool {
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
