//! What keeps the logs short: entries that count are logged again, in order, in another log, and the old
//! logs are given up. No leaf is written for it.
//!
//! 1. A collection begins where a chunk is full, most entries do not count, and the logs are large
//!    beside the leaves. From then on appends go to the logs of a new epoch.
//! 2. Each write then logs again what a few buffer nodes hold, [`Log::step`](super::log::Log::step) at the most, and looks at
//!    [`LOOK`] at the most, so no write is made to wait for all of it. Nodes that are taken while it runs
//!    hold nothing of the old epoch.
//! 3. A copy has a stamp above all of its leaf, so it is newer than what it is a copy of; and it is fenced
//!    by who makes it, before the next one may end the collection.

use super::CclBTreeIndex;
use super::chunk::{self, LINES_USUAL, Logged};
use super::layout;
use super::log::LINES_A_STEP;
use crate::index::{TreeError, Upkeep};
use crate::inner::{load, store};
use crate::key::Key;
use crate::spec::Cost;
use bristlecone_pmem::sync::{Guard, OnDram, pin};
use bristlecone_pmem::{Corrupt, Medium};
use core::sync::atomic::Ordering;

/// Buffer nodes that one operation looks at: most hold nothing in a tree that has been larger.
const LOOK: usize = 128;

/// What a write may cost beyond its budget, and how seldom.
pub(super) const fn upkeep(batch: usize) -> Upkeep {
    // Each copy is a line; a chunk to begin is two lines and two fences, and one is enough for the copies of
    // a step; one lane is written to by one thread; and the step has a fence of its own, as its end has.
    const STEP: usize = LINES_USUAL / LINES_A_STEP;
    let copies = (STEP * batch) as u32;
    assert!(STEP * batch < chunk::entries(LINES_USUAL));
    Upkeep { most: Cost::new(copies + 2 + 1, 2 + 1 + 1), every: 16 }
}

impl<M: Medium, K: Key, const BATCH: usize> CclBTreeIndex<M, K, BATCH> {
    /// Whether a collection is worth its while, in which case it has begun. Asked with a lane's latch held.
    pub(super) fn is_due(&self) -> bool {
        let (room, live) = self.log.fill();
        let log_bytes = room * chunk::ENTRY_BYTES as u64;
        let leaf_bytes = self.buffers.in_use() * layout::BYTES;
        2 * live <= room && 5 * log_bytes >= leaf_bytes && self.begin()
    }

    /// Begins a collection, unless one is under way.
    fn begin(&self) -> bool {
        let collector = &self.log.collector;
        let Some(_held) = OnDram::<M>::latch(&collector.latch).try_lock() else { return false };
        if load::<M>(&collector.is_running) != 0 {
            return false;
        }
        self.log.begin_epoch(self.log.epoch() + 1);
        collector.cursor.store(0, Ordering::Relaxed);
        collector.end.store(self.buffers.end(), Ordering::Relaxed);
        store::<M>(&collector.is_running, 1);
        true
    }

    /// Does a step of the collection that is under way, if there is one and nobody else is at it.
    #[inline(always)]
    pub(super) fn upkeep(&self, guard: &Guard) -> Result<(), Corrupt> {
        if load::<M>(&self.log.collector.is_running) != 0 { self.step(guard) } else { Ok(()) }
    }

    /// Logs again what a few buffer nodes hold of the former epoch.
    ///
    /// ```text
    /// for each entry that counts: W C F copy        crash: entry or copy, or both, say the same
    /// |
    /// at the end: the former epoch's logs are given up; see `Log::retire_former`
    /// ```
    #[cold]
    fn step(&self, guard: &Guard) -> Result<(), Corrupt> {
        let collector = &self.log.collector;
        let Some(_held) = OnDram::<M>::latch(&collector.latch).try_lock() else { return Ok(()) };
        if load::<M>(&collector.is_running) == 0 {
            return Ok(());
        }
        let end = collector.end.load(Ordering::Relaxed);
        let mut at = collector.cursor.load(Ordering::Relaxed);
        let to = end.min(at + LOOK);
        let mut copied = 0;
        while at < to && copied < self.log.step() {
            copied += usize::from(self.log_again(at, guard)?);
            at += 1;
        }
        if copied > 0 {
            let _ = self.pool.medium().fence();
        }
        collector.cursor.store(at, Ordering::Relaxed);
        if at == end {
            self.log.retire_former(&self.pool, self.root_words()?)?;
            store::<M>(&collector.is_running, 0);
        }
        Ok(())
    }

    /// Logs again what a buffer node holds of the former epoch; where no log takes it, its leaf does.
    /// Whether there was anything; what was logged is not fenced.
    fn log_again(&self, index: usize, guard: &Guard) -> Result<bool, Corrupt> {
        let node = self.node(index);
        // Taken even if it holds nothing: whoever takes the latch later so knows of the new epoch, and
        // whoever had it before has said what was logged in the old one.
        let Some(_held) = node.latch::<M>().lock() else { return Ok(false) };
        let parity = self.log.epoch() & 1;
        let mut has_copied = false;
        for slot in 0..node.meta::<M>().count() {
            let meta = node.meta::<M>();
            if meta.parity(slot) == parity {
                continue;
            }
            let leaf = node.leaf::<M>();
            let stamp = layout::after(node.stamp::<M>());
            let logged = Logged { leaf, stamp, change: node.change::<M>(meta, slot) };
            let appended = self.log.append(&self.pool, self.root_words()?, &logged, || false)?;
            if appended.is_none() {
                self.settle_buffer(&node, &self.leaf(leaf)?, None, guard)?;
                return Ok(true);
            }
            has_copied = true;
            node.set_stamp::<M>(stamp);
            node.set_meta::<M>(meta.logged(slot, parity));
        }
        Ok(has_copied)
    }

    /// Collects now: whatever the logs hold that counts no more is given up. Writes go on meanwhile.
    ///
    /// # Errors
    /// The pool is damaged.
    pub fn collect(&self) -> Result<(), TreeError> {
        let guard = pin();
        if self.begin() || load::<M>(&self.log.collector.is_running) != 0 {
            while load::<M>(&self.log.collector.is_running) != 0 {
                self.step(&guard)?;
            }
        }
        Ok(())
    }
}
