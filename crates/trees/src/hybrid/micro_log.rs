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
//! | 32 | 8 | split, low | data | separator word of the new leaf, if the split names one |
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
//! 5. A log that names a new leaf has its low key, and the record of that is durable: both are
//!    flushed before the fence of the current leaf. So a replay needs no block and no separator.

mod delete;
mod split;

use super::{Hybrid, HybridSpec, LeafRef, Restructuring};
use crate::key::Key;
use crate::leaf::Leaf;
use bristlecone_pmem::pool::HEADER_BYTES;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, PmWord};
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
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"FPT-LOG2");

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
    /// Sets the current leaf. Durable on return, with all else that is stored to the line.
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

    /// Returns both halves of a micro-log, for a split and for a delete, and the word for the low
    /// key of a split.
    fn micro_log(&self, number: u32) -> Result<([MicroLog<'_>; 2], &PmWord), Corrupt> {
        let at = self.root.offset() + LINE_BYTES * (1 + u64::from(number));
        let words = self.pool.words(PmPtr::new(at), LINE_WORDS)?;
        Ok(([MicroLog { words: &words[..2] }, MicroLog { words: &words[2..4] }], &words[4]))
    }

    fn bitmap<'a>(leaf: &LeafRef<'a>) -> &'a [PmWord] {
        let at = S::Leaf::BITMAP.expect("a micro-logged design has leaves with a bitmap");
        &leaf.words[at..=at]
    }

    /// Makes `next` the right neighbour of `leaf`. Durable on return.
    fn persist_link(&self, leaf: &LeafRef<'_>, next: PmPtr) {
        let link = &leaf.words[S::Leaf::NEXT..=S::Leaf::NEXT];
        self.pool.medium().store(&link[0], S::Leaf::encode_next(next.offset()));
        let _ = self.pool.medium().persist(link);
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
            let ([split, delete], low) = self.micro_log(number)?;
            self.replay(split, |leaf, new| self.replay_split(leaf, new, self.load(low)))?;
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

    /// Completes a split that names a new leaf: from its beginning if the left leaf is whole.
    ///
    /// ```text
    /// A copy to the right leaf               if the left leaf is whole
    /// C left leaf: bitmap       8 B          all entries that the right leaf has not
    /// F its line |
    /// W left leaf: next         8 B
    /// F its line |
    /// ```
    fn replay_split(&self, leaf: &LeafRef<'_>, new: PmPtr, low: u64) -> Result<(), Corrupt> {
        let medium = self.pool.medium();
        let bitmap = Self::bitmap(leaf);
        if new.is_null() {
            return Ok(()); // the left leaf is whole, and nothing names a right one
        }
        let right = self.leaf(new)?;
        if self.load(&bitmap[0]) == Self::FULL {
            if !(M::INJECTS_DEFECTS && medium.injects(Defect::CopyTrusted)) {
                self.copy_again(leaf, &right, low)?;
            }
        } else {
            let (linked, after) = (self.next(leaf), self.next(&right));
            if linked != new && linked != after {
                return Err(self.log_damage(leaf.at, "neighbours of the leaves of a split log"));
            }
        }
        medium.store(&bitmap[0], Self::FULL & !self.load(&Self::bitmap(&right)[0]));
        let _ = medium.persist(bitmap);
        self.persist_link(leaf, new);
        Ok(())
    }

    /// Copies the upper half of a whole leaf to the block of a right one, whose contents are
    /// undefined, from the low key on that the log names.
    fn copy_again(&self, leaf: &LeafRef<'_>, right: &LeafRef<'_>, low: u64) -> Result<(), Corrupt> {
        let root = self.root.offset()..self.root.offset() + Self::ROOT_BYTES;
        let is_used = root.contains(&right.at.offset()) || right.at.offset() < HEADER_BYTES;
        if is_used || self.is_linked(right.at)? {
            return Err(self.log_damage(right.at, "new leaf of a split log"));
        }
        let separator = K::read(&self.pool, low)?;
        let upper = self.upper_half(leaf, K::borrow(&separator))?;
        if upper == 0 || upper == Self::FULL {
            return Err(self.log_damage(leaf.at, "low key of a split log"));
        }
        let _ = self.fill_right(leaf, right, (low, self.next(leaf)), upper);
        Ok(())
    }

    /// Returns `true` if the chain leads to the leaf at `at`.
    fn is_linked(&self, at: PmPtr) -> Result<bool, Corrupt> {
        let leaves_max = self.pool.medium().len() / Self::LEAF_BYTES;
        let mut linked = PmPtr::new(self.load(&self.root_words()?[0]));
        for _ in 0..leaves_max {
            if linked.is_null() || linked == at {
                return Ok(linked == at);
            }
            linked = self.next(&self.leaf(linked)?);
        }
        Err(self.log_damage(linked, "chain of leaves that returns to a leaf"))
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
            for word in self.micro_log(number)?.0.iter().flat_map(|log| log.words) {
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
