//! What keeps the logs short: entries that count are logged again, in order, in another log, and the old
//! logs are given up. No leaf is written for it.
//!
//! 1. A collection begins where a chunk is full, most entries do not count, and the logs are large
//!    beside the leaves. From then on appends go to the logs of a new epoch.
//! 2. Each write then logs again what a few buffer nodes hold, [`LaneLogs::step`](super::log::LaneLogs::step) at the most, and looks at
//!    [`LOOK`] at the most, so no write is made to wait for all of it. Nodes that are taken while it runs
//!    hold nothing of the old epoch.
//!    While the index has [keepers](crate::maintenance), these begin it and take its steps. Writes do so only once the
//!    logs are twice as large as where a collection begins, which is asked where a chunk is full: from then on to
//!    the end of that collection.
//! 3. A copy has a stamp above all of its leaf, so it is newer than what it is a copy of; and it is fenced
//!    by who makes it, before the next one may end the collection.

use super::CclBTreeIndex;
use super::chunk::{self, LINES_USUAL, Logged};
use super::layout;
use super::log::{DUE, HELPED, IDLE, LINES_A_STEP, RUNNING};
use crate::index::{MaintenanceCost, TreeError};
use crate::inner::{load, store};
use crate::key::Key;
use crate::spec::Cost;
use bristlecone_pmem::sync::{Guard, OnDram, pin};
use bristlecone_pmem::{Corrupt, Medium};
use core::sync::atomic::Ordering;

/// Buffer nodes that one operation looks at: most hold nothing in a tree that has been larger.
const LOOK: usize = 128;

/// What a write may cost beyond its budget, and how seldom.
pub(super) const fn maintenance_cost(batch: usize) -> MaintenanceCost {
    // Each copy is a line; to begin a chunk takes two lines and two fences; one thread writes to one lane;
    // the step has a fence of its own, as its end has.
    const STEP: usize = LINES_USUAL / LINES_A_STEP;
    let copies = (STEP * batch) as u32;
    let chunks = 1 + copies / chunk::entries(LINES_USUAL) as u32;
    MaintenanceCost { most: Cost::new(copies + 2 * chunks + 1, 2 * chunks + 2), every: 16 }
}

impl<M: Medium, K: Key, const BATCH: usize> CclBTreeIndex<M, K, BATCH> {
    /// Whether a collection has begun, which is asked where a chunk is full, with a lane's latch held. One that is
    /// worth its while begins at once, or is left to a keeper; but where that was said before, and the logs are
    /// twice as large as they need be, it begins in any case, and writes take its steps.
    pub(super) fn is_due(&self) -> bool {
        let (room, live) = self.log.fill();
        if !self.is_worth_it(room, live) {
            return false;
        }
        if !self.maintainers.are_registered::<M>() {
            return self.begin(RUNNING);
        }
        if self.phase() == IDLE || !self.is_worth_it(room / 2, live) {
            self.pass(IDLE, DUE);
            return false;
        }
        self.pass(RUNNING, HELPED);
        self.begin(HELPED)
    }

    /// Whether a collection is worth its while where the logs have room for so many entries.
    fn is_worth_it(&self, room: u64, live: u64) -> bool {
        let log_bytes = room * chunk::ENTRY_BYTES as u64;
        let leaf_bytes = self.buffers.in_use() * layout::BYTES;
        2 * live <= room && 5 * log_bytes >= leaf_bytes
    }

    fn phase(&self) -> u64 {
        load::<M>(&self.log.phase)
    }

    /// Goes from one phase to another, if it is in that one.
    fn pass(&self, from: u64, to: u64) {
        M::yield_point();
        let phase = &self.log.phase;
        let _ = phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Begins a collection, unless one is under way.
    fn begin(&self, phase: u64) -> bool {
        let collector = &self.log.collector;
        let Some(_held) = OnDram::<M>::latch(&collector.latch).try_lock() else { return false };
        if self.phase() >= RUNNING {
            return false;
        }
        self.log.begin_epoch(self.log.epoch() + 1);
        collector.cursor.store(0, Ordering::Relaxed);
        collector.end.store(self.buffers.end(), Ordering::Relaxed);
        store::<M>(&self.log.phase, phase);
        true
    }

    /// Does a step of the collection that is under way, or due, if there is one, and nobody else is at it, or is
    /// there to do it.
    #[inline(always)]
    pub(super) fn maintain_log(&self, guard: &Guard) -> Result<(), Corrupt> {
        if self.phase() == IDLE { Ok(()) } else { self.collect_unless_kept(guard) }
    }

    #[cold]
    fn collect_unless_kept(&self, guard: &Guard) -> Result<(), Corrupt> {
        if self.phase() < HELPED && self.maintainers.are_registered::<M>() {
            return Ok(());
        }
        self.collect_some(guard).map(|_| ())
    }

    /// Begins the collection that is due, and does a step of the one that is under way. False if there is none, or
    /// somebody else is at it.
    pub(super) fn collect_some(&self, guard: &Guard) -> Result<bool, Corrupt> {
        match self.phase() {
            IDLE => return Ok(false),
            DUE => _ = self.begin(RUNNING),
            _ => {}
        }
        self.step(guard)
    }

    /// Logs again what a few buffer nodes hold of the former epoch; false if there is none, or somebody else is
    /// at it.
    ///
    /// ```text
    /// for each entry that counts: W C F copy        crash: entry or copy, or both, say the same
    /// |
    /// at the end: the former epoch's logs are given up; see `LaneLogs::retire_former`
    /// ```
    #[cold]
    fn step(&self, guard: &Guard) -> Result<bool, Corrupt> {
        let collector = &self.log.collector;
        let Some(_held) = OnDram::<M>::latch(&collector.latch).try_lock() else { return Ok(false) };
        if self.phase() < RUNNING {
            return Ok(false);
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
            store::<M>(&self.log.phase, IDLE);
        }
        Ok(true)
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
        self.begin(RUNNING);
        while self.phase() >= RUNNING {
            self.step(&guard)?;
        }
        Ok(())
    }
}
