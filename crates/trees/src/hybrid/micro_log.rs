//! Splits and deletes of leaves under micro-logs, as in FPTree.
//!
//! A micro-log names the leaves of one operation, so that recovery completes it. The index has an
//! array of them behind the words of its root block. A thread claims one for one operation, as from
//! the log queue of the paper; claims are in DRAM, since a crash ends them.
//!
//! # Micro-log
//!
//! One line, of which an operation uses one half:
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | split, current | commit | the leaf that is split; 0: no split |
//! | 8 | 8 | split, new | commit | the leaf that takes the upper half |
//! | 16 | 8 | delete, current | commit | the leaf that is deleted; 0: no delete |
//! | 24 | 8 | delete, previous | commit | its left neighbour; 0 for the first leaf |
//!
//! # Invariants
//!
//! 1. A thread holds the latches of all leaves that its micro-log names, except of a new leaf that
//!    nothing leads to, until the fence that resets the log. So no other thread changes what a
//!    replay stores.
//! 2. Inner nodes lead to a new leaf, and a deleted block is free, only after that fence. A replay
//!    therefore never meets another use of a block.
//! 3. A reset clears the current leaf last. So a log without a current leaf names no other leaf,
//!    and the next operation does not take over a former one. This relies on the order of stores
//!    to one line.
//! 4. A thread that holds a micro-log waits for no leaf, so it gives the log back.

use super::{Hybrid, HybridSpec, LeafRef, Restarts, Restructuring};
use crate::index::TreeError;
use crate::inner::Direction;
use crate::key::{self, Entry, Key};
use crate::leaf::Leaf;
use bristlecone_pmem::sync::{Exclusive, Guard, OnMedium};
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmPtr, PmWord};
use core::sync::atomic::{AtomicU32, Ordering};

const LINE_WORDS: usize = bristlecone_pmem::line::LINE_WORDS;
const LINE_BYTES: u64 = 8 * LINE_WORDS as u64;
/// The number of micro-logs.
const LOGS: u32 = 31;
/// The size of a root block with micro-logs: its own line, then one line for each log.
pub(super) const ROOT_BYTES: u64 = LINE_BYTES * (1 + LOGS as u64);

/// The word of the root block at which an index states that it has micro-logs, and its value. An
/// index of `fptree` without them is refused.
pub(super) const MAGIC_AT: usize = 3;
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"FPT-LOGS");

/// The claims of threads to micro-logs: bit i is set while a thread uses log i.
#[derive(Debug, Default)]
pub(super) struct LogQueue(AtomicU32);

/// A claim to a micro-log. Dropping it gives the log back.
struct Claim<'a> {
    queue: &'a LogQueue,
    number: u32,
}

impl LogQueue {
    /// Claims the first free log; waits while threads use all of them.
    fn claim<M: Medium>(&self) -> Claim<'_> {
        loop {
            M::yield_point();
            let used = self.0.load(Ordering::Acquire);
            let number = used.trailing_ones();
            if number < LOGS {
                let claimed = used | 1 << number;
                if self
                    .0
                    .compare_exchange(used, claimed, Ordering::AcqRel, Ordering::Acquire)
                    .is_ok()
                {
                    return Claim { queue: self, number };
                }
            } else if !M::spin_hint() {
                std::thread::yield_now();
            }
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.queue.0.fetch_and(!(1 << self.number), Ordering::Release);
    }
}

/// The two words of a micro-log that one operation uses.
#[derive(Clone, Copy)]
struct MicroLog<'a> {
    /// The current leaf, then the other one.
    words: &'a [PmWord],
}

impl MicroLog<'_> {
    /// Sets the current leaf. Durable on return.
    fn set_current<M: Medium>(self, medium: &M, leaf: PmPtr) {
        medium.store(&self.words[0], leaf.offset());
        let _ = medium.persist(&self.words[..1]);
    }

    /// Sets the other leaf. Durable on return.
    fn set_other<M: Medium>(self, medium: &M, leaf: PmPtr) {
        medium.store(&self.words[1], leaf.offset());
        let _ = medium.persist(&self.words[1..]);
    }

    /// Clears the log, the current leaf last. Durable on return.
    ///
    /// ```text
    /// W other leaf = 0          8 B
    /// C current leaf = 0        8 B        after W, in the same line
    /// F their line |            -> durable budget: 1 line, 1 fence
    /// ```
    fn reset<M: Medium>(self, medium: &M) {
        let current_first = M::INJECTS_DEFECTS && medium.injects(Defect::LogCurrentFirst);
        for at in if current_first { [0, 1] } else { [1, 0] } {
            medium.store(&self.words[at], 0);
        }
        let _ = medium.persist(self.words);
    }
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// The bitmap of a full leaf.
    const FULL: u64 = (1 << (S::Leaf::CAPACITY % 64)) - 1;

    /// Returns both halves of a micro-log: for a split, and for a delete.
    fn micro_log(&self, number: u32) -> Result<[MicroLog<'_>; 2], Corrupt> {
        let at = self.root.offset() + LINE_BYTES * (1 + u64::from(number));
        let words = self.pool.words(PmPtr::new(at), LINE_WORDS)?;
        Ok([MicroLog { words: &words[..2] }, MicroLog { words: &words[2..4] }])
    }

    fn bitmap<'a>(leaf: &LeafRef<'a>) -> &'a [PmWord] {
        let at = S::Leaf::BITMAP.expect("a micro-logged design has leaves with a bitmap");
        &leaf.words[at..=at]
    }

    /// Splits a full leaf. The caller inserts its pair by a normal insert afterwards. Durable on
    /// return.
    ///
    /// # Persist order
    ///
    /// ```text
    /// W low key of the right leaf            its lines; only byte-string keys have a record
    /// W log: current leaf       8 B          crash before the cut: replay clears the log, and the
    /// F log |                                right leaf is free
    /// W log: new leaf           8 B
    /// F log |
    /// W right leaf: copy of the left one, its low key, next; bitmap 0
    /// F lines of the right leaf |
    /// W right leaf: bitmap      8 B          the entries from the low key on
    /// F its line |
    /// C left leaf: bitmap       8 B          the other ones; a crash from here on: replay cuts and
    /// F its line |                           links again
    /// W left leaf: next         8 B          the right leaf
    /// F its line |
    /// A reset of the log                     -> durable
    /// budget: lines of a leaf + 6, 7 fences: (14, 7) with leaves of 512 B
    /// ```
    #[cold]
    pub(super) fn split_logged(
        &self,
        leaf: LeafRef<'_>,
        latch_guard: Exclusive<OnMedium<'_, M>>,
    ) -> Result<(), TreeError> {
        let medium = self.pool.medium();
        let sorted = self.sorted_entries(&leaf)?;
        if sorted.len() < 2 || sorted.len() != S::Leaf::CAPACITY {
            let (at, what) = (leaf.at.offset(), "number of entries of a full leaf");
            let (expected, found) = (S::Leaf::CAPACITY as u64, sorted.len() as u64);
            return Err(Corrupt { at, what, expected, found }.into());
        }
        let middle = sorted.len() / 2;
        let above = K::read_entry(&self.pool, sorted[middle].1.entry)?;
        let separator = K::between(&self.pool, sorted[middle - 1].1.entry, K::borrow(&above))?;
        let separator = K::borrow(&separator);
        // In a full leaf the entries are collected in the order of their slots, from slot 0 on.
        let (mut entries, mut upper) = (Vec::with_capacity(S::Leaf::CAPACITY), 0);
        S::Leaf::collect(medium, leaf.words, &mut entries);
        for (slot, tagged) in entries.iter().enumerate() {
            let is_upper = K::order_entry(&self.pool, tagged.entry, separator)?.is_ge();
            upper |= u64::from(is_upper) << slot;
        }
        let right = self.pool.reserve(Self::LEAF_BYTES)?;
        let release_right = |_: &_| self.pool.release(right, Self::LEAF_BYTES);
        let word = K::store_separator(&self.pool, separator).inspect_err(release_right)?;
        let right = self.leaf(right)?;

        let claim = self.micro_logs.claim::<M>();
        let [log, _] = self.micro_log(claim.number)?;
        let next = self.next(&leaf);
        let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
        if injects(Defect::LinkBeforeFill) {
            self.persist_link(&leaf, right.at);
        }
        log.set_current(medium, leaf.at);
        let is_mistaken = injects(Defect::OldNeighbour) && !next.is_null();
        log.set_other(medium, if is_mistaken { next } else { right.at });
        let fenced = self.copy_leaf_to(&leaf, &right, (word, next));
        medium.commit(&Self::bitmap(&right)[0], upper, fenced);
        let fenced = medium.persist(Self::bitmap(&right));
        medium.commit(&Self::bitmap(&leaf)[0], Self::FULL & !upper, fenced);
        let _ = medium.persist(Self::bitmap(&leaf));
        self.persist_link(&leaf, right.at);

        let post = || self.inner.post::<K>(&self.pool, separator, word, right.at);
        let mut latch_guard = Some(latch_guard);
        let (early_post, early_release) = (injects(Defect::RightEarly), injects(Defect::LeftEarly));
        if early_post || early_release {
            post()?;
        }
        if early_release {
            latch_guard = None;
        }
        log.reset(medium);
        drop(claim);
        if !(early_post || early_release) {
            post()?;
        }
        drop(latch_guard);
        Ok(())
    }

    /// Copies `leaf` to the block of `right`, with another low key, the right neighbour `next` and
    /// no valid entry, and fences it.
    fn copy_leaf_to(
        &self,
        leaf: &LeafRef<'_>,
        right: &LeafRef<'_>,
        (low, next): (u64, PmPtr),
    ) -> Fenced {
        let medium = self.pool.medium();
        let mut image = vec![0; 8 * S::Leaf::WORDS];
        medium.copy_out(leaf.words, &mut image);
        let mut set = |at: usize, word: u64| {
            image[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
        };
        set(S::Leaf::LOW, low);
        set(S::Leaf::NEXT, S::Leaf::encode_next(next.offset()));
        set(S::Leaf::LATCH, 0);
        S::Leaf::BITMAP.into_iter().for_each(|at| set(at, 0));
        medium.fill(right.words, &image);
        medium.fence()
    }

    /// Makes `next` the right neighbour of `leaf`. Durable on return.
    fn persist_link(&self, leaf: &LeafRef<'_>, next: PmPtr) {
        let link = &leaf.words[S::Leaf::NEXT..=S::Leaf::NEXT];
        self.pool.medium().store(&link[0], S::Leaf::encode_next(next.offset()));
        let _ = self.pool.medium().persist(link);
    }

    /// Removes `key` and returns its entry, as [`remove_entry`](Self::remove_entry) does. Deletes
    /// the leaf if this is its last entry, unless it is the only leaf.
    pub(super) fn remove_logged(
        &self,
        key: K::Ref<'_>,
        guard: &Guard,
    ) -> Result<Option<Entry>, TreeError> {
        let mut restarts = Restarts::default();
        loop {
            let (leaf, latch_guard) = self.latch_leaf(key)?;
            let Some((slot, _)) = S::Leaf::find::<K, M>(&self.pool, leaf.words, key)? else {
                return Ok(None);
            };
            let is_last = S::Leaf::count(self.pool.medium(), leaf.words) == 1;
            let is_only = self.low(&leaf) == 0 && self.next(&leaf).is_null();
            let removed = if is_last && !is_only {
                drop(latch_guard);
                self.delete_leaf(key, &leaf, guard)?
            } else {
                let entry = S::Leaf::remove(&self.pool, leaf.words, slot);
                drop(latch_guard);
                Some(entry)
            };
            if let Some(entry) = removed {
                let _ = key::retire_entry::<K, M>(&self.pool, entry, guard);
                return Ok(Some(entry));
            }
            restarts.count_unlinked(leaf.at)?;
        }
    }

    /// Latches the leaf that covers the keys just below the separator `low`.
    fn latch_below(&self, low: u64) -> Result<(LeafRef<'_>, Exclusive<OnMedium<'_, M>>), Corrupt> {
        let low = K::read(&self.pool, low)?;
        let mut restarts = Restarts::default();
        loop {
            let route = self.inner.seek::<K>(&self.pool, K::borrow(&low), Direction::Below)?;
            let leaf = self.leaf(route.leaf)?;
            match self.latch(&leaf).lock() {
                Some(latch_guard) => return Ok((leaf, latch_guard)),
                None => restarts.count_unlinked(route.leaf)?,
            }
        }
    }

    /// Deletes `leaf` with its only entry, that of `key`, and returns the entry. Returns `None` and
    /// changes nothing if a concurrent change keeps it from doing so. The caller holds no latch.
    /// Durable on return.
    ///
    /// # Persist order
    ///
    /// ```text
    /// W log: current leaf       8 B          crash before C: the leaf stays if the log does not
    /// F log |                                name its neighbour, else replay deletes it
    /// W log: previous leaf      8 B
    /// F log |
    /// C previous leaf: next     8 B          the right neighbour
    /// F its line |
    /// A reset of the log                     -> durable   budget: 4 lines, 4 fences
    ///
    /// the first leaf
    /// W log: current leaf       8 B          crash before C: replay deletes the leaf
    /// F log |
    /// W right neighbour: low    8 B          the least low key
    /// C root block: first leaf  8 B          the right neighbour
    /// F both lines |                         replay makes either store again
    /// A reset of the log                     -> durable   budget: 4 lines, 3 fences
    /// ```
    #[cold]
    fn delete_leaf(
        &self,
        key: K::Ref<'_>,
        leaf: &LeafRef<'_>,
        guard: &Guard,
    ) -> Result<Option<Entry>, TreeError> {
        let medium = self.pool.medium();
        let low = self.low(leaf);
        let mut left = if low == 0 { None } else { Some(self.latch_below(low)?) };
        if left.as_ref().is_some_and(|(left, _)| left.at == leaf.at) {
            return Ok(None); // it has become the first leaf
        }
        let Some(mut leaf_guard) = self.latch(leaf).lock().map(Some) else { return Ok(None) };
        let linked = match &left {
            Some((left, _)) => self.next(left),
            None => PmPtr::new(self.load(&self.root_words()?[0])),
        };
        let is_unchanged = linked == leaf.at && self.low(leaf) == low;
        if !is_unchanged || S::Leaf::find::<K, M>(&self.pool, leaf.words, key)?.is_none() {
            return Ok(None);
        }
        let mut entries = Vec::with_capacity(S::Leaf::CAPACITY);
        S::Leaf::collect(medium, leaf.words, &mut entries);
        let next = self.next(leaf);
        let [tagged] = entries[..] else { return Ok(None) };
        // The leaf to the right cannot be unlinked meanwhile: that takes the latch of this one.
        let right = match &left {
            Some(_) => None,
            None if next.is_null() => return Ok(None),
            None => {
                let right = self.leaf(next)?;
                let Some(right_guard) = self.latch(&right).lock() else { return Ok(None) };
                Some((right, right_guard))
            }
        };
        let separator = match &right {
            Some((right, _)) => self.low(right),
            None => low,
        };
        let separator_block = K::block(&self.pool, separator)?;

        let claim = self.micro_logs.claim::<M>();
        let [_, log] = self.micro_log(claim.number)?;
        let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
        log.set_current(medium, leaf.at);
        match (&left, &right) {
            (Some((left, _)), _) => {
                log.set_other(medium, left.at);
                self.persist_link(left, next);
            }
            (None, Some((right, _))) => self.persist_first(right)?,
            (None, None) => unreachable!("a leaf without a left neighbour has a right one"),
        }
        let is_freed_early = injects(Defect::BlockEarly);
        if is_freed_early {
            self.inner.unlink::<K>(&self.pool, key, leaf.at)?;
            leaf_guard.take().into_iter().for_each(Exclusive::obsolete);
            self.pool.release(leaf.at, Self::LEAF_BYTES);
        }
        if injects(Defect::NeighbourEarly) {
            left = None;
        }
        log.reset(medium);
        drop(claim);
        if !is_freed_early {
            let unlinked = self.inner.unlink::<K>(&self.pool, key, leaf.at);
            // If damage made this fail, the inner nodes still lead to the leaf. It becomes obsolete
            // all the same, so that no thread writes to it, but it is not freed.
            leaf_guard.take().into_iter().for_each(Exclusive::obsolete);
            unlinked?;
            self.pool.retire(leaf.at, Self::LEAF_BYTES, guard);
        }
        if let Some((block, bytes)) = separator_block {
            // Fails only if the record's length is damaged. The block then stays in use until
            // recovery.
            let _ = self.pool.try_retire(block, bytes, guard);
        }
        drop((left, right));
        Ok(Some(tagged.entry))
    }

    /// Makes `leaf` the first leaf, with the least low key. Durable on return.
    fn persist_first(&self, leaf: &LeafRef<'_>) -> Result<(), Corrupt> {
        let medium = self.pool.medium();
        let first = &self.root_words()?[..1];
        medium.store(&leaf.words[S::Leaf::LOW], 0);
        medium.flush(&leaf.words[S::Leaf::LOW..=S::Leaf::LOW]);
        medium.store(&first[0], leaf.at.offset());
        let _ = medium.persist(first);
        Ok(())
    }

    /// Completes what the micro-logs name, after a crash and before anything else reads the leaves.
    /// A crash during it is repaired by the next open. Durable on return.
    ///
    /// # Errors
    /// A log names what no operation leaves behind.
    pub(super) fn replay_micro_logs(&self) -> Result<(), Corrupt> {
        if S::RESTRUCTURING != Restructuring::MicroLogged {
            return Ok(());
        }
        self.check_magic()?;
        for number in 0..LOGS {
            let [split, delete] = self.micro_log(number)?;
            self.replay(split, |leaf, new| self.replay_split(leaf, new))?;
            self.replay(delete, |leaf, previous| self.replay_delete(leaf, previous))?;
        }
        Ok(())
    }

    /// Calls `complete` with the leaves that a log names, and resets the log, if it names any.
    fn replay(
        &self,
        log: MicroLog<'_>,
        complete: impl FnOnce(&LeafRef<'_>, PmPtr) -> Result<(), Corrupt>,
    ) -> Result<(), Corrupt> {
        let [current, other] = [0, 1].map(|at| self.load(&log.words[at]));
        if current == 0 && other == 0 {
            return Ok(());
        }
        let leaf = PmPtr::new(current);
        if leaf.is_null() || other == current {
            return Err(self.log_damage(leaf, "micro-log without a leaf, or with one twice"));
        }
        let leaf = self.leaf(leaf)?;
        complete(&leaf, PmPtr::new(other))?;
        log.reset(self.pool.medium());
        Ok(())
    }

    /// ```text
    /// C left leaf: bitmap       8 B          all entries that the right leaf has not
    /// F its line |
    /// W left leaf: next         8 B
    /// F its line |
    /// ```
    fn replay_split(&self, leaf: &LeafRef<'_>, new: PmPtr) -> Result<(), Corrupt> {
        let medium = self.pool.medium();
        let bitmap = Self::bitmap(leaf);
        if new.is_null() || self.load(&bitmap[0]) == Self::FULL {
            return Ok(()); // the left leaf is whole, and nothing leads to the right one
        }
        let right = self.leaf(new)?;
        let (linked, after) = (self.next(leaf), self.next(&right));
        if linked != new && linked != after {
            return Err(self.log_damage(leaf.at, "neighbours of the leaves of a split log"));
        }
        medium.store(&bitmap[0], Self::FULL & !self.load(&Self::bitmap(&right)[0]));
        let _ = medium.persist(bitmap);
        self.persist_link(leaf, new);
        Ok(())
    }

    /// The stores are those of a delete.
    fn replay_delete(&self, leaf: &LeafRef<'_>, previous: PmPtr) -> Result<(), Corrupt> {
        let next = self.next(leaf);
        if !previous.is_null() {
            let left = self.leaf(previous)?;
            let linked = self.next(&left);
            if linked != leaf.at && linked != next {
                return Err(self.log_damage(leaf.at, "neighbours of the leaf of a delete log"));
            }
            self.persist_link(&left, next);
            return Ok(());
        }
        let first = PmPtr::new(self.load(&self.root_words()?[0]));
        if first == leaf.at || first == next {
            self.persist_first(&self.leaf(next)?)?;
        }
        Ok(())
    }

    #[cold]
    fn log_damage(&self, leaf: PmPtr, what: &'static str) -> Corrupt {
        Corrupt { at: self.root.offset(), what, expected: 0, found: leaf.offset() }
    }

    fn check_magic(&self) -> Result<(), Corrupt> {
        let words = self.pool.words(self.root, MAGIC_AT + 1)?;
        let (at, found) = (self.root.offset() + 8 * MAGIC_AT as u64, self.load(&words[MAGIC_AT]));
        if found == MAGIC {
            return Ok(());
        }
        Err(Corrupt { at, what: "magic number of micro-logs", expected: MAGIC, found })
    }

    /// Checks that no micro-log names a leaf, as is so while no operation runs.
    ///
    /// # Errors
    /// One does.
    pub(super) fn check_micro_logs(&self) -> Result<(), Corrupt> {
        if S::RESTRUCTURING != Restructuring::MicroLogged {
            return Ok(());
        }
        self.check_magic()?;
        for number in 0..LOGS {
            for word in self.micro_log(number)?.iter().flat_map(|log| log.words) {
                let found = self.load(word);
                if found != 0 {
                    let (at, what) = (self.pool.offset_of(word), "micro-log without an operation");
                    return Err(Corrupt { at: at.offset(), what, expected: 0, found });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
