//! Executions in which one thread is interrupted once.
//!
//! 1. It is interrupted at each of its accesses in turn: a defect may show only if other threads do
//!    all of their work at one certain access of a long operation. Few random schedules interrupt
//!    it there.
//! 2. It is stopped at each of its exposed points in turn: what others have seen and returned from
//!    must outlive a power failure, while the thread has not yet made it durable.

use super::Run;
use crate::outcome::Finding;
use crate::scenario::index::session::Op;
use crate::threads::scheduler::Scheduler;
use crate::trace::TraceEntry;
use crate::trace::call::Call;
use bristlecone_trees::Key;

/// The executions for each random schedule.
const PER_SCHEDULE: u64 = 8;

/// The order in which an execution runs the threads.
#[derive(Clone, Copy)]
pub(super) enum Interleaving {
    Serial,
    /// A thread, counted from 0, runs up to one of its accesses; then all others run.
    Interrupted(usize, u64),
    /// A thread, counted from 0, runs up to the exposed point of a number, at `time`; then the
    /// other one runs, and the power may fail whenever that one has returned.
    Stopped {
        thread: usize,
        point: u64,
        time: u32,
    },
    /// The schedule of a seed.
    Seed(u64),
}

impl Interleaving {
    /// Returns whether all crashes of the execution are explored, and it counts as a schedule.
    pub(super) fn is_whole(self) -> bool {
        matches!(self, Self::Serial | Self::Seed(_))
    }

    /// Returns the first line of a trace.
    pub(super) fn describe(self, preemptions: u32) -> String {
        match self {
            Self::Serial => "  one thread after the other\n".into(),
            Self::Interrupted(thread, at) => {
                format!("  thread {} is interrupted at its access {at}\n", thread + 1)
            }
            Self::Stopped { thread, point, .. } => {
                format!("  thread {} stops at its exposed point {point}\n", thread + 1)
            }
            Self::Seed(seed) => {
                format!("  schedule of seed {seed:#x}, {preemptions} preemptions\n")
            }
        }
    }
}

impl<K: Key> Run<'_, K> {
    /// Interrupts each of two threads once, at eight places for each of `schedules` at equal
    /// distances, if one of the threads scans, commits or maintains. Judges the results alone: the
    /// random schedules explore the crashes. `accesses` is the number of both threads.
    pub(super) fn interrupt(&mut self, schedules: u64, accesses: u64) -> Result<(), Finding> {
        let is_long = |op: &Op<K>| {
            matches!(op, Op::Scan(_) | Op::MultiGet(_) | Op::Commit(_) | Op::RunMaintenance)
        };
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

    /// Stops each of two threads once, at eight of its exposed points for each of `schedules` at
    /// equal distances, until the other one waits or has returned from all of its operations.
    /// Explores the crashes at each return. Without `schedules` it does nothing.
    pub(super) fn stop(&mut self, schedules: u64) -> Result<(), Finding> {
        if schedules == 0 || self.scenario.threads.len() != 2 || self.crashes.is_empty() {
            return Ok(());
        }
        for thread in 0..2 {
            self.medium.stop_at(thread, u64::MAX);
            self.execute(Scheduler::interrupted(thread, u64::MAX, 2), true)?;
            let points = self.medium.exposed_points();
            let distance = points.div_ceil(schedules * PER_SCHEDULE).max(1);
            for point in (0..points).step_by(distance as usize) {
                if self.tally.violating > 0 || self.tally.hangs {
                    return Ok(());
                }
                self.medium.stop_at(thread, point);
                let result = self.execute(Scheduler::interrupted(thread, u64::MAX, 2), true)?;
                let Some(time) = self.medium.stopped() else { break };
                self.judge(result, Interleaving::Stopped { thread, point, time });
            }
        }
        Ok(())
    }
}

/// Returns the moments right after the other thread has returned from an operation, while a thread
/// is stopped.
pub(super) fn returns(order: Interleaving, entries: &[TraceEntry], calls: &[Call]) -> Vec<u32> {
    let Interleaving::Stopped { thread, time, .. } = order else { return Vec::new() };
    let is_own = |entry: &TraceEntry| entry.thread == thread as u32 + 1;
    let stopped = entries.iter().skip(time as usize).take_while(|entry| !is_own(entry));
    let until = time + stopped.count() as u32;
    let ends = calls.iter().map(|call| call.returned).filter(|at| (time..until).contains(at));
    let mut moments: Vec<u32> = ends.map(|at| at + 1).collect();
    moments.sort_unstable();
    // The parts of an operation are acknowledged one right after the other.
    let is_return = |at: u32| calls.iter().any(|call| call.returned == at);
    moments.retain(|&moment| !is_return(moment));
    moments
}
