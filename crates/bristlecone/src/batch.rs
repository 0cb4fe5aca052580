//! Batches: writes of several pairs, all or nothing.

use crate::error::Error;
use crate::store::{Store, check_key, check_value};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Defect, Medium};
use bristlecone_trees::key::Key;
use bristlecone_trees::{CommittedPairs, PairChange, PairState, Record, TreeError};
use core::ops::Range;
use thiserror::Error;

/// The number of calls for which the first one of a batch takes memory.
const FIRST_CALLS: usize = 16;
/// The largest number of bytes that it takes for their keys and values.
const FIRST_BYTES_MAX: usize = 4096;

/// Writes of several pairs, and conditions on pairs, that [`Store::commit`] does together.
///
/// A batch has one write and one condition for each key: a later call for the same key replaces the
/// earlier one. Conditions are on the pairs before the batch, whatever the order of calls.
///
/// ```
/// use bristlecone::Batch;
/// let batch = Batch::new().put("a", "1").delete("b").require("a", None);
/// assert_eq!(batch.len(), 3);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// In a box, so that each call passes the batch in a register.
    calls: Box<Calls>,
}

/// All calls of methods of a [`Batch`].
#[derive(Clone, Debug, Default)]
struct Calls {
    /// The keys and values of all calls, one behind the other.
    bytes: Vec<u8>,
    list: Vec<Call>,
}

/// A call of a method of [`Batch`].
#[derive(Clone, Debug)]
struct Call {
    /// The first 8 B of the key, which decide most comparisons.
    prefix: u64,
    key: Range<usize>,
    /// The value; `None` if the key is absent.
    value: Option<Range<usize>>,
    is_condition: bool,
}

/// The write and the condition of one key.
#[derive(Clone, Copy, Debug)]
struct Change<'a> {
    key: &'a [u8],
    /// The state that the key must have.
    expected: Option<State<'a>>,
    /// The state that the key gets.
    new: Option<State<'a>>,
}

/// The state of a key.
#[derive(Clone, Copy, Debug)]
enum State<'a> {
    Absent,
    Present(&'a [u8]),
}

impl<'a> State<'a> {
    const fn value(self) -> Option<&'a [u8]> {
        match self {
            Self::Absent => None,
            Self::Present(value) => Some(value),
        }
    }
}

/// Returns the state of `key` in the index; `None` for a value that needs a record.
#[inline(always)]
fn inline_state(key: &[u8], state: State<'_>) -> Option<PairState> {
    match state {
        State::Absent => Some(PairState::Absent),
        State::Present(value) => Record::inline(key, value).map(PairState::Present),
    }
}

/// The error of [`Store::commit`] if a condition of the batch does not hold. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the key {} has another value than the batch requires", key.escape_ascii())]
pub struct Unmet {
    /// The least key whose condition does not hold.
    pub key: Vec<u8>,
    /// The value of that key, or `None` if it was absent.
    pub current: Option<Vec<u8>>,
}

impl Batch {
    /// Returns an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the write of `value` to `key`, replacing any value.
    #[must_use]
    pub fn put(self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.with(key.as_ref(), Some(value.as_ref()), false)
    }

    /// Adds the removal of `key`, if it is present.
    #[must_use]
    pub fn delete(self, key: impl AsRef<[u8]>) -> Self {
        self.with(key.as_ref(), None, false)
    }

    /// Adds the condition that `key` has the value `expected`, or is absent if that is `None`.
    #[must_use]
    pub fn require(self, key: impl AsRef<[u8]>, expected: Option<&[u8]>) -> Self {
        self.with(key.as_ref(), expected, true)
    }

    /// Returns the number of writes and conditions, also of those that a later call replaces.
    pub fn len(&self) -> usize {
        self.calls.list.len()
    }

    /// Returns `true` if the batch has no write and no condition.
    pub fn is_empty(&self) -> bool {
        self.calls.list.is_empty()
    }

    #[inline]
    fn with(mut self, key: &[u8], value: Option<&[u8]>, is_condition: bool) -> Self {
        self.calls.push(key, value, is_condition);
        self
    }
}

impl Calls {
    #[inline]
    fn push(&mut self, key: &[u8], value: Option<&[u8]>, is_condition: bool) {
        if self.list.is_empty() {
            let call_bytes = key.len() + value.map_or(0, <[u8]>::len);
            self.list.reserve(FIRST_CALLS);
            self.bytes.reserve(FIRST_CALLS.saturating_mul(call_bytes).min(FIRST_BYTES_MAX));
        }
        let prefix = Record::prefix(key);
        let key = self.add(key);
        let value = value.map(|value| self.add(value));
        self.list.push(Call { prefix, key, value, is_condition });
    }

    #[inline]
    fn add(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    /// Returns the changes, one for each key, in the order of the keys.
    fn changes(&self) -> Vec<Change<'_>> {
        // A word for each call: the first bits of its key, above its number.
        let mask = self.list.len().next_power_of_two() as u64 - 1;
        let number = |word: u64| (word & mask) as usize;
        let key = |index: usize| &self.bytes[self.list[index].key.clone()];
        let calls = self.list.iter().zip(0..);
        let mut order: Vec<_> = calls.map(|(call, number)| call.prefix & !mask | number).collect();
        order.sort_unstable();
        for tied in order.chunk_by_mut(|a, b| a & !mask == b & !mask).filter(|tied| tied.len() > 1)
        {
            // Stable: the calls for one key keep their order.
            tied.sort_by(|&a, &b| key(number(a)).cmp(key(number(b))));
        }
        let mut changes: Vec<Change<'_>> = Vec::with_capacity(order.len());
        let mut last_prefix = None;
        for index in order.into_iter().map(number) {
            let (call, key) = (&self.list[index], key(index));
            // Different prefixes need no comparison of the keys.
            let is_next = last_prefix != Some(call.prefix);
            last_prefix = Some(call.prefix);
            if is_next || changes.last().is_none_or(|last| last.key != key) {
                changes.push(Change { key, expected: None, new: None });
            }
            let value = call.value.clone().map(|value| &self.bytes[value]);
            let state = value.map_or(State::Absent, State::Present);
            if let Some(change) = changes.last_mut() {
                *(if call.is_condition { &mut change.expected } else { &mut change.new }) =
                    Some(state);
            }
        }
        changes
    }
}

impl<M: Medium, const LEAF_BYTES: usize> Store<M, LEAF_BYTES> {
    /// Does all writes of `batch` if all of its conditions hold. Otherwise changes nothing and
    /// returns [`Unmet`]. Durable on return.
    ///
    /// # Guarantees
    ///
    /// - A crash that the file's [`Domain`](crate::Domain) covers leaves all writes or none.
    /// - For methods that take one key, the batch is one atomic step: once one of them has found a
    ///   write of it, all of them find all of its writes. No write of another thread comes between
    ///   the conditions and the writes. Two batches that have a key in common are done one after
    ///   the other.
    /// - A [`scan`](Self::scan) is not a snapshot, and a [`multi_get`](Self::multi_get) is one read
    ///   after the other: what they read before the batch is of before, and what they read later is
    ///   of after. A scan finds all of a batch or none within each leaf.
    ///
    /// All leaves of the batch are latched while it writes, some microseconds a pair. Writes of
    /// these leaves wait meanwhile, and so do reads.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// use bristlecone::Batch;
    /// store.put("cones in the basket", "3")?;
    /// let take = Batch::new()
    ///     .require("cones in the basket", Some(b"3"))
    ///     .put("cones in the basket", "2")
    ///     .put("cones in the pocket", "1");
    /// assert!(store.commit(&take)?.is_ok());
    /// let unmet = store.commit(&take)?.unwrap_err(); // there are 2 now
    /// assert_eq!(unmet.current.as_deref(), Some(&b"2"[..]));
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`put`](Self::put), for any key. No pair has changed.
    ///
    /// # Persist order
    /// ```text
    /// N records           their lines     not for pairs of up to 8 B + 8 B
    /// index.commit: .. |                  crash before C: the old state; the records are free
    ///   C |               8 B             crash after C: all writes
    ///                     -> durable      budget: the records' lines and the index's; 2 fences
    /// ```
    pub fn commit(&self, batch: &Batch) -> Result<Result<(), Unmet>, Error> {
        self.check_process()?;
        let changes = batch.calls.changes();
        for Change { key, new, .. } in &changes {
            check_key(key)?;
            new.and_then(State::value).map_or(Ok(()), check_value)?;
        }
        self.complete_write(|| self.try_commit(&changes))
    }

    fn try_commit(&self, batch: &[Change<'_>]) -> Result<Result<(), Unmet>, TreeError> {
        let guard = self.pool().pin(); // I2 of `exchange`
        let mut changes: Vec<_> = batch
            .iter()
            .map(|&Change { key, new, .. }| PairChange {
                key,
                expected: None,
                new: new.and_then(|new| inline_state(key, new)),
            })
            .collect();
        let mut has_records = false;
        loop {
            let unmet = self.find_unmet(batch, &mut changes, &guard);
            // Nothing points to the new records yet.
            if let Some(unmet) = unmet.inspect_err(|_| drop(self.release_new(&changes)))? {
                if !(M::INJECTS_DEFECTS && self.pool().medium().injects(Defect::UnmetLeaks)) {
                    self.release_new(&changes)?;
                }
                return Ok(Err(unmet));
            }
            if !has_records {
                self.write_records(batch, &mut changes)?; // an unmet condition takes no space
                has_records = true;
            }
            match self.index.commit_pairs(&changes) {
                Ok(Some(CommittedPairs { formers })) => {
                    for former in formers {
                        self.retire(former, &guard);
                    }
                    return Ok(Ok(()));
                }
                Ok(None) => {} // a pair of a condition has changed since
                Err(error) => {
                    self.release_new(&changes)?;
                    return Err(error);
                }
            }
        }
    }

    /// Writes the records of the new values that need one into `changes`. Durable after the next
    /// fence.
    fn write_records(
        &self,
        batch: &[Change<'_>],
        changes: &mut [PairChange<'_>],
    ) -> Result<(), TreeError> {
        for (index, &Change { key, new, .. }) in batch.iter().enumerate() {
            if changes[index].new.is_some() {
                continue;
            }
            let Some(State::Present(value)) = new else { continue };
            match Record::write(self.pool(), key, value) {
                Ok(value) => changes[index].new = Some(PairState::Present(value)),
                Err(error) => {
                    self.release_new(changes)?;
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// Compares the pairs of all conditions. Sets what the index must find in `changes`, or returns
    /// the first condition that does not hold.
    fn find_unmet(
        &self,
        batch: &[Change<'_>],
        changes: &mut [PairChange<'_>],
        guard: &Guard,
    ) -> Result<Option<Unmet>, TreeError> {
        for (change, Change { expected, .. }) in changes.iter_mut().zip(batch) {
            let Some(expected) = expected else { continue };
            let key = change.key;
            let found = self.index.get_pair(key)?;
            if !self.is_value(key, found, expected.value(), guard)? {
                let current = self.copied_value(key, found, guard)?;
                return Ok(Some(Unmet { key: key.into(), current }));
            }
            change.expected = Some(found.into());
        }
        Ok(None)
    }

    /// Frees the records of new values, to which the index never pointed.
    #[cold]
    fn release_new(&self, changes: &[PairChange<'_>]) -> Result<(), TreeError> {
        let mut new = changes.iter().filter_map(|change| change.new?.value());
        Ok(new.try_for_each(|value| self.release(value))?)
    }
}
