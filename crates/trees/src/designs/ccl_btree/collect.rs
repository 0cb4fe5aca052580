//! Log garbage collection: live entries are logged again in the logs of a new epoch, then the old
//! logs are freed. No leaf is written for it.
//!
//! 1. A thread asks for a collection when its chunk is full, and every 10 000 entries. One is due
//!    if the entries of the epoch have more than a fifth of the leaves' size, and either more than
//!    half of them are garbage, counted in writes that settled, or they have more than the leaves'
//!    size. From its begin, appends go to a new epoch.
//! 2. Each write after that runs one step: it logs again at most [`NODES_MAX`] buffer nodes and
//!    visits at most [`VISIT_MAX`]. So no write waits for a whole collection. A node taken during a
//!    collection has no entries of the old epoch. While the index has [maintenance
//!    workers](crate::maintenance), they begin collections and run the steps, as the background
//!    thread of the paper does. Writes join in only if a collection would be due with logs half the
//!    size, until it ends.
//! 3. A copy gets a stamp above all others of its leaf, so it is newer than its original. The
//!    thread that makes it fences it before the next step can end the collection.

use super::CclBTreeIndex;
use super::buffer::{BATCH_MAX, BufferNode};
use super::chunk::{self, LogEntry};
use super::layout;
use super::log::{DUE, HELPED, IDLE, RUNNING};
use super::techniques::Techniques;
use crate::index::{MaintenanceCost, TreeError};
use crate::inner::{load, store};
use crate::key::Key;
use crate::spec::Cost;
use bristlecone_pmem::sync::{Guard, OnDram};
use bristlecone_pmem::{Corrupt, Defect, Medium};
use core::sync::atomic::Ordering;

/// The most buffer nodes that one step visits. Most nodes may be empty in a tree that was larger.
const VISIT_MAX: usize = 128;

/// The most buffer nodes that one step logs again. In a small pool fewer do, so that their entries
/// fit in one new chunk.
const NODES_MAX: usize = 16;
/// The lines of a chunk for each buffer node that a step logs again.
const LINES_A_NODE: usize = 4;

const _: () = assert!(NODES_MAX * LINES_A_NODE <= chunk::LINES_MIN);
const _: () = assert!(BATCH_MAX <= chunk::entries(LINES_A_NODE));

/// Returns the cost of log GC within a write, and its frequency.
pub(super) const fn maintenance_cost(batch: usize) -> MaintenanceCost {
    // Each copy is a line, and one that crosses the end of a line is two, with a fence between
    // them. One thread writes to one lane, so the copies of a step begin at most one chunk more
    // than they fill; beginning a chunk takes two lines and two fences, and one more of the copies
    // may cross. A step ends with a fence, and so does the collection.
    let copies = NODES_MAX * batch;
    let crossing = chunk::crossing(copies) as u32 + 1;
    let chunks = 1 + (copies / chunk::entries(chunk::LINES_MIN)) as u32;
    let most = Cost::new(copies as u32 + crossing + 2 * chunks + 1, crossing + 2 * chunks + 2);
    MaintenanceCost { most, every: 16 }
}

impl<M: Medium, K: Key, const BATCH: usize, T: Techniques> CclBTreeIndex<M, K, BATCH, T> {
    /// Returns `true` if this call began a collection. A thread calls it with its lane latched. A
    /// worthwhile collection begins at once, or becomes due for a maintenance worker. If one was
    /// already due and the logs have twice the size, it begins in any case, and writes run its
    /// steps.
    pub(super) fn is_due(&self) -> bool {
        let [appended, settled] = self.log.fill();
        if !self.is_worthwhile(appended, settled) {
            return false;
        }
        if !self.maintainers.are_registered::<M>() {
            return self.begin(RUNNING);
        }
        if self.phase() == IDLE || !self.is_worthwhile(appended / 2, settled / 2) {
            self.change_phase(IDLE, DUE);
            return false;
        }
        self.change_phase(RUNNING, HELPED);
        self.begin(HELPED)
    }

    /// Returns `true` if a collection is worthwhile after `appended` entries, of which `settled`
    /// are garbage. An entry that another of its key replaces is not counted as garbage. So logs
    /// larger than the leaves are collected in any case.
    fn is_worthwhile(&self, appended: u64, settled: u64) -> bool {
        let log_bytes = appended * chunk::ENTRY_BYTES as u64;
        let leaf_bytes = self.buffers.in_use() * layout::BYTES;
        5 * log_bytes > leaf_bytes && (2 * settled > appended || log_bytes > leaf_bytes)
    }

    fn phase(&self) -> u64 {
        load::<M>(&self.log.phase)
    }

    /// Changes the phase from `from` to `to`, if it is `from`.
    fn change_phase(&self, from: u64, to: u64) {
        M::yield_point();
        let phase = &self.log.phase;
        let _ = phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Begins a collection. Returns `false` if one is running.
    fn begin(&self, phase: u64) -> bool {
        let collector = &self.log.collector;
        let Some(_held) = OnDram::<M>::latch(&collector.latch).try_lock() else { return false };
        if self.phase() >= RUNNING {
            return false;
        }
        self.log.begin_epoch();
        if !(M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::CursorKept)) {
            collector.cursor.store(0, Ordering::Relaxed);
        }
        collector.end.store(self.buffers.end(), Ordering::Relaxed);
        store::<M>(&self.log.phase, phase);
        true
    }

    /// Returns `true` if a collection is running or due.
    #[inline(always)]
    pub(super) fn is_collecting(&self) -> bool {
        self.phase() != IDLE
    }

    /// Runs a step of the collection that is running or due, unless another thread runs one or
    /// maintenance workers keep up.
    #[cold]
    pub(super) fn collect_unless_maintained(&self, guard: &Guard) -> Result<(), Corrupt> {
        if self.phase() < HELPED && self.maintainers.are_registered::<M>() {
            return Ok(());
        }
        self.try_collect_step(guard).map(|_| ())
    }

    /// Begins the collection that is due, and runs a step of a running one. Returns `false` if
    /// there is none or another thread runs a step.
    pub(super) fn try_collect_step(&self, guard: &Guard) -> Result<bool, Corrupt> {
        match self.phase() {
            IDLE => return Ok(false),
            DUE => _ = self.begin(RUNNING),
            _ => {}
        }
        self.collect_step(guard)
    }

    /// Logs entries of the previous epoch again, for a few buffer nodes. Returns `false` if no
    /// collection runs or another thread runs a step.
    ///
    /// ```text
    /// for each live entry: W C F copy        crash: original, copy or both: equivalent
    /// |
    /// at the end: as `LaneLogs::retire_previous_epoch`
    /// ```
    #[cold]
    fn collect_step(&self, guard: &Guard) -> Result<bool, Corrupt> {
        let collector = &self.log.collector;
        let Some(_held) = OnDram::<M>::latch(&collector.latch).try_lock() else { return Ok(false) };
        if self.phase() < RUNNING {
            return Ok(false);
        }
        let end = collector.end.load(Ordering::Relaxed);
        let mut at = collector.cursor.load(Ordering::Relaxed);
        let to = end.min(at + VISIT_MAX);
        let mut copied = 0;
        let most = NODES_MAX.min(chunk::lines(self.pool.medium().len()) / LINES_A_NODE);
        while at < to && copied < most {
            copied += usize::from(self.relog(at, guard)?);
            at += 1;
        }
        if copied > 0 {
            let _ = self.pool.medium().fence();
        }
        collector.cursor.store(at, Ordering::Relaxed);
        if at == end {
            self.log.retire_previous_epoch(&self.pool, self.root_words()?, guard)?;
            store::<M>(&self.log.phase, IDLE);
        }
        Ok(true)
    }

    /// Logs a buffer node's entries of the previous epoch again, without a fence. If no log has
    /// space, settles the buffer instead. Returns `true` if there were any.
    fn relog(&self, index: usize, guard: &Guard) -> Result<bool, Corrupt> {
        let node = self.node(index);
        // The latch is taken even if the buffer is empty. A thread that held it earlier has
        // recorded its entries of the old epoch; one that takes it later sees the new epoch.
        let Some(_held) = node.latch::<M>().lock() else { return Ok(false) };
        let parity = self.log.epoch() & 1;
        if !T::LOCAL {
            return self.settle_former(&node, parity, guard);
        }
        let mut has_copied = false;
        for slot in 0..node.meta::<M>().count() {
            let meta = node.meta::<M>();
            if meta.parity(slot) == parity {
                continue;
            }
            let stamp = layout::after(node.stamp::<M>());
            let logged = LogEntry { stamp, change: node.change::<M>(meta, slot) };
            let appended = self.log.append(&self.pool, self.root_words()?, &logged, || false)?;
            if appended.is_none() {
                self.settle_buffer(&node, &self.leaf(node.leaf::<M>())?, None, guard)?;
                return Ok(true);
            }
            has_copied = true;
            node.set_stamp::<M>(stamp);
            node.set_meta::<M>(meta.logged(slot, parity));
        }
        Ok(has_copied)
    }

    /// Settles a buffer with entries of another parity than `parity`, which is that of the epoch.
    /// Returns `true` if there were any.
    fn settle_former(
        &self,
        node: &BufferNode<'_>,
        parity: u64,
        guard: &Guard,
    ) -> Result<bool, Corrupt> {
        let meta = node.meta::<M>();
        let former = (0..meta.count()).filter(|&slot| meta.parity(slot) != parity).count();
        if former > 0 {
            self.settle_buffer(node, &self.leaf(node.leaf::<M>())?, None, guard)?;
            self.log.discount_settled(former); // They are no garbage of this epoch.
        }
        Ok(former > 0)
    }

    /// Collects now: frees all log chunks without live entries. Writes may run at the same time.
    ///
    /// # Errors
    /// The pool is damaged.
    pub fn collect(&self) -> Result<(), TreeError> {
        let guard = self.pool.pin();
        self.begin(RUNNING);
        while self.phase() >= RUNNING {
            self.collect_step(&guard)?;
        }
        Ok(())
    }
}
