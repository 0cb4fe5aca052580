//! The recorder's trace of a script, as events that a processor can show.

use super::script::{ScriptHost, run_script};
use crate::config::RESERVE_BYTES;
use crate::guard::guarded;
use crate::medium::arena::Arena;
use crate::medium::recorder::Recorder;
use crate::outcome::Finding;
use crate::trace::{CallSite, Event, StoreRole, Trace};
use bristlecone_pmem::Simulated;
use bristlecone_pmem::medium::MediumError;
use bristlecone_registry::{DesignEntry, Forms};
use bristlecone_trees::{TreeError, TreeStats};
use core::ops::Range;

/// An event of the recorder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordedEffect {
    /// A store of one word of 8 B.
    Store { word: u32, new: u64, role: StoreRole },
    /// Stores of consecutive words without order, and flushes of their lines unless they bypassed
    /// the cache.
    Fill { first: u32, new: Vec<u64> },
    /// A flush of one line.
    Flush { line: u32 },
    /// A fence of the thread.
    Fence,
}

/// An event, with its call site and the number of its operation.
#[derive(Clone, Debug)]
pub(crate) struct ScriptEvent {
    pub(crate) effect: RecordedEffect,
    pub(crate) at: CallSite,
    pub(crate) operation: u32,
}

/// The number of operations and events of a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptTotals {
    /// The number of operations.
    pub operations: u64,
    /// The number of operations after which there are more leaves.
    pub splits: u64,
    /// The number of operations after which there are fewer leaves.
    pub merges: u64,
    /// The number of stores of one word, without those to latches.
    pub stores: u64,
    /// The number of stores to latches.
    pub transient: u64,
    /// The number of words that were filled in bulk.
    pub filled: u64,
    /// The number of flushed lines, without those of fills.
    pub flushes: u64,
    /// The number of fences.
    pub fences: u64,
}

/// Runs the script of `name` on a recorder that begins with `image`: once for the trace, and once
/// more to inspect the index after each operation, because the check may touch latches.
pub(crate) fn record(
    name: &str,
    image: &[u64],
) -> Result<(Vec<ScriptEvent>, ScriptTotals), Finding> {
    let (_, looked) = record_once(name, image, true)?;
    let (entries, recorded) = record_once(name, image, false)?;
    let ScriptTotals { splits, merges, .. } = looked;
    Ok((entries, ScriptTotals { splits, merges, ..recorded }))
}

fn record_once(
    name: &str,
    image: &[u64],
    looks: bool,
) -> Result<(Vec<ScriptEvent>, ScriptTotals), Finding> {
    let arena = Arena::new(image.len() as u64 * 8, RESERVE_BYTES);
    image.iter().enumerate().for_each(|(index, &word)| arena.set(index, word));
    let recorder = Recorder::spare(RESERVE_BYTES, None);
    recorder.reset(&arena);
    let mut host = Recording { recorder, looks, leaves: 0, totals: ScriptTotals::default() };
    guarded(|| {
        let fails = |error: String| Finding::new("the script fails", "no error", error);
        let recorded = run_script(name, &mut host).map_err(|error| fails(error.to_string()))?;
        recorded.map_err(|error| fails(error.to_string()))
    })?;
    let (trace, _) = host.recorder.finish().map_err(|bypassed| {
        let what = "a store went around the medium";
        Finding::new(what, "every store recorded", format!("at {:#x}", bypassed.at))
    })?;
    let mut totals = host.totals;
    let entries = entries(&trace);
    for entry in &entries {
        match &entry.effect {
            RecordedEffect::Store { role: StoreRole::Transient, .. } => totals.transient += 1,
            RecordedEffect::Store { .. } => totals.stores += 1,
            RecordedEffect::Fill { new, .. } => totals.filled += new.len() as u64,
            RecordedEffect::Flush { .. } => totals.flushes += 1,
            RecordedEffect::Fence => totals.fences += 1,
        }
    }
    Ok((entries, totals))
}

fn entries(trace: &Trace) -> Vec<ScriptEvent> {
    let mut entries = Vec::new();
    let mut operation = 0;
    for entry in &trace.entries {
        let mut add = |effect| entries.push(ScriptEvent { effect, at: entry.at, operation });
        match &entry.event {
            &Event::Store { word, new, role, .. } => add(RecordedEffect::Store { word, new, role }),
            Event::Fill { first, new } => {
                add(RecordedEffect::Fill { first: *first, new: new.clone() });
            }
            Event::Flush { first, lines } => {
                (*first..first + lines).for_each(|line| add(RecordedEffect::Flush { line }));
            }
            Event::Fence => add(RecordedEffect::Fence),
            Event::Invoke { operation: number } => operation = *number,
            // No instruction causes these.
            Event::Grow { .. }
            | Event::SyncLength
            | Event::Poison { .. }
            | Event::Renew { .. }
            | Event::Rely { .. }
            | Event::Await(_)
            | Event::Return { .. } => {}
        }
    }
    entries
}

/// Returns the words that a fill stores.
pub(crate) fn words_of(first: u32, new: &[u64]) -> Range<u32> {
    first..first + new.len() as u32
}

struct Recording {
    recorder: Recorder,
    looks: bool,
    leaves: u64,
    totals: ScriptTotals,
}

impl ScriptHost for Recording {
    type Medium = Simulated;

    fn forms(row: &'static DesignEntry) -> &'static Forms<Simulated> {
        &row.simulated
    }

    fn open(&mut self) -> Result<Simulated, MediumError> {
        Ok((&self.recorder).into())
    }

    fn before(&mut self, number: u32) {
        self.totals.operations += 1;
        self.recorder.invoke(number);
    }

    fn after(
        &mut self,
        stats: &mut dyn FnMut() -> Result<TreeStats, TreeError>,
    ) -> Result<(), TreeError> {
        if !self.looks {
            return Ok(());
        }
        let leaves = stats()?.leaves;
        self.totals.splits += u64::from(leaves > self.leaves && self.leaves > 0);
        self.totals.merges += u64::from(leaves < self.leaves);
        self.leaves = leaves;
        Ok(())
    }
}
