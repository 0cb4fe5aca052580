//! Executions in which one thread is interrupted once, at each of its accesses in turn.
//!
//! A defect may show only if other threads do all of their work at one certain access of a long
//! operation. Few random schedules interrupt it there.

use super::Run;
use crate::outcome::Finding;
use crate::scenario::index::session::Op;
use crate::threads::scheduler::Scheduler;
use bristlecone_trees::Key;

/// The executions for each random schedule.
const PER_SCHEDULE: u64 = 8;

/// The order in which an execution runs the threads.
#[derive(Clone, Copy)]
pub(super) enum Interleaving {
    Serial,
    /// A thread, counted from 0, runs up to one of its accesses; then all others run.
    Interrupted(usize, u64),
    /// The schedule of a seed.
    Seed(u64),
}

impl Interleaving {
    /// Returns the first line of a trace.
    pub(super) fn describe(self, preemptions: u32) -> String {
        match self {
            Self::Serial => "  one thread after the other\n".into(),
            Self::Interrupted(thread, at) => {
                format!("  thread {} is interrupted at its access {at}\n", thread + 1)
            }
            Self::Seed(seed) => {
                format!("  schedule of seed {seed:#x}, {preemptions} preemptions\n")
            }
        }
    }
}

impl<K: Key> Run<'_, K> {
    /// Interrupts each of two threads once, at eight places for each of `schedules` at equal
    /// distances, if one of the threads scans or maintains. Judges the results alone: the random
    /// schedules explore the crashes. `accesses` is the number of both threads.
    pub(super) fn interrupt(&mut self, schedules: u64, accesses: u64) -> Result<(), Finding> {
        let is_long = |op: &Op<K>| matches!(op, Op::Scan(_) | Op::MultiGet(_) | Op::RunMaintenance);
        let threads = &self.scenario.threads;
        if threads.len() != 2 || !threads.iter().flatten().any(is_long) {
            return Ok(());
        }
        let distance = accesses.div_ceil((schedules * PER_SCHEDULE).max(1)).max(1);
        for thread in 0..2 {
            for at in (0..accesses).step_by(distance as usize) {
                if self.tally.violating > 0 || self.tally.hangs {
                    return Ok(());
                }
                let result = self.execute(Scheduler::interrupted(thread, at, 2), true)?;
                let is_over = result.preemptions == 0;
                self.judge(result, Interleaving::Interrupted(thread, at));
                if is_over {
                    break; // The thread has fewer accesses.
                }
            }
        }
        Ok(())
    }
}
