//! A workload with its numbers, and the plans of its threads.

use super::chooser::Chooser;
use super::dist::Dist;
use super::error::WorkloadError;
use super::hash::mix64;
use super::keys::Keys;
use super::named::Workload;
use super::operation::{Op, OpKind, Plan, value_of};
use super::trace::Trace;
use core::ops::Range;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// A workload with the numbers that decide its plans.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The operations, by a name, a mix or a trace.
    pub workload: Workload,
    /// The distribution of operations over records.
    pub dist: Dist,
    /// The number of records that are loaded first.
    pub records: u64,
    /// The percentage of its entries to which a bulk load fills a node. `None`: the records are
    /// inserted one by one.
    pub fill: Option<u32>,
    /// The number of measured operations, of all threads together.
    pub ops: u64,
    /// The number of threads that do operations.
    pub threads: u64,
    /// The number of maintenance workers beside these threads, if the system defers work.
    pub maintenance_threads: u64,
    /// The number of pairs of a scan; in workload e, the greatest number.
    pub scan_length: u16,
    /// The seed of keys and choices.
    pub seed: u64,
    /// The kind of the keys. A trace has keys of its own.
    pub keys: Keys,
    /// The number of operations that start in a second, of all threads together. `None`: each
    /// thread starts an operation when the one before has ended.
    pub rate: Option<f64>,
    /// The number of operations of each thread before the clock starts.
    pub warm_up: u64,
}

impl Default for Recipe {
    /// Returns a thousand lookups by one thread.
    fn default() -> Self {
        Self {
            workload: Workload::Get,
            dist: Dist::Uniform,
            records: 1000,
            fill: None,
            ops: 1000,
            threads: 1,
            maintenance_threads: 0,
            scan_length: Self::SCAN_LENGTH,
            seed: 1,
            keys: Keys::Numbers,
            rate: None,
            warm_up: 0,
        }
    }
}

/// The kinds of operations of a thread, if they must be known before records are chosen.
type Drawn = Option<Vec<OpKind>>;

impl Recipe {
    /// The default number of pairs of a scan.
    pub const SCAN_LENGTH: u16 = 100;

    /// Returns the plan of each thread.
    ///
    /// # Errors
    /// The records or keys are too few for the workload, or it does not go with a rate.
    pub fn plans(&self) -> Result<Vec<Plan>, WorkloadError> {
        if self.rate.is_some() && self.workload == Workload::Multiget {
            return Err(WorkloadError::Rate { workload: self.workload.name().to_owned() });
        }
        if let Some(trace) = self.workload.trace() {
            let (given, needed) = (self.records, trace.records());
            if given != needed {
                return Err(WorkloadError::TraceRecords { given, needed });
            }
            return Ok(trace.plans(self.threads, self.planned()));
        }
        if self.records == 0 && !self.workload.begins_empty() {
            return Err(WorkloadError::NoRecords { workload: self.workload.name().to_owned() });
        }
        self.expect_keys()?;
        let drawn: Vec<Drawn> = (0..self.threads).map(|thread| self.drawn(thread)).collect();
        let deletes = drawn.iter().zip(0..);
        let deletes = deletes.map(|(drawn, thread)| self.deletes(thread, drawn.as_deref()));
        let deletes: Vec<u64> = deletes.collect();
        let doomed = deletes.iter().sum();
        self.expect_survivors(doomed)?;
        let chooser = Chooser::new(self.dist, self.records, doomed, mix64(self.seed));
        let mut plans = Vec::with_capacity(drawn.len());
        let mut first_doomed = 0;
        for ((drawn, thread), deletes) in drawn.iter().zip(0..).zip(deletes) {
            plans.push(self.plan(thread, &chooser, first_doomed, drawn.as_deref()));
            first_doomed += deletes;
        }
        Ok(plans)
    }

    /// Returns the number of operations of all threads, including the warm-up.
    pub(crate) fn planned(&self) -> u64 {
        self.ops + self.warm_up * self.threads
    }

    /// Returns the number of keys that remain after a run that began without records.
    pub(crate) fn keys_left(&self) -> u64 {
        let planned = self.planned();
        self.workload.trace().map_or(planned, |trace| trace.left(planned))
    }

    /// Returns this recipe for one thread that starts one operation after the other, without a
    /// warm-up and without maintenance workers.
    pub(crate) fn by_one_thread(&self) -> Self {
        Self { threads: 1, maintenance_threads: 0, rate: None, warm_up: 0, ..self.clone() }
    }

    /// Returns the kind of the keys.
    pub fn keys(&self) -> &Keys {
        self.workload.trace().map_or(&self.keys, Trace::keys)
    }

    /// Returns token and value of record `index` at the load.
    pub(crate) fn record(&self, index: u64) -> (u64, u64) {
        if let Some(trace) = self.workload.trace() {
            return trace.record(index);
        }
        let token = self.token(index);
        (token, value_of(token, 0))
    }

    /// Returns the token of record `index`, which a plan stores in place of its key.
    pub fn token(&self, index: u64) -> u64 {
        self.keys().token(self.seed, index)
    }

    /// Returns the part of `0..total` that belongs to `thread`.
    pub(crate) fn share(&self, total: u64, thread: u64) -> Range<u64> {
        let bound = |t: u64| (u128::from(total) * u128::from(t) / u128::from(self.threads)) as u64;
        bound(thread)..bound(thread + 1)
    }

    fn rng(&self, thread: u64) -> SmallRng {
        SmallRng::seed_from_u64(mix64(self.seed ^ mix64(thread + 1)))
    }

    /// Draws the kinds of all operations of `thread`, if deletes are mixed with others. The number
    /// of deleted records must be known before any record is chosen.
    fn drawn(&self, thread: u64) -> Drawn {
        /// Separates these draws from those of the records.
        const KINDS: u64 = 0x6B69_6E64;
        let among_others = (1..100).contains(&self.workload.percent(OpKind::Remove));
        among_others.then(|| {
            let mut rng = SmallRng::seed_from_u64(mix64(self.seed ^ mix64(thread + 1) ^ KINDS));
            self.share(self.planned(), thread).map(|_| self.workload.draw(&mut rng)).collect()
        })
    }

    /// Returns the number of records that `thread` deletes. `drawn` are its kinds of operations.
    fn deletes(&self, thread: u64, drawn: Option<&[OpKind]>) -> u64 {
        match drawn {
            Some(kinds) => kinds.iter().filter(|&&kind| kind == OpKind::Remove).count() as u64,
            None if self.workload.percent(OpKind::Remove) == 0 => 0,
            None => self.share(self.planned(), thread).count() as u64,
        }
    }

    /// # Errors
    /// The keys are fewer than the records and the room for new ones.
    fn expect_keys(&self) -> Result<(), WorkloadError> {
        let inserts = if self.workload.percent(OpKind::Insert) == 0 { 0 } else { self.planned() };
        match self.keys().count() {
            Some(count) if count < self.records.saturating_add(inserts) => {
                let (keys, records) = (self.keys().name().to_owned(), self.records);
                Err(WorkloadError::FewKeys { keys, count, records, inserts })
            }
            _ => Ok(()),
        }
    }

    /// # Errors
    /// There are fewer records than `doomed`, or no record remains for the other operations.
    fn expect_survivors(&self, doomed: u64) -> Result<(), WorkloadError> {
        let needs = |kind| !matches!(kind, OpKind::Insert | OpKind::Remove);
        let needed = self.workload.shares().iter().any(|&(kind, _)| needs(kind));
        if doomed + u64::from(needed && doomed > 0) <= self.records {
            return Ok(());
        }
        let workload = self.workload.name().to_owned();
        Err(WorkloadError::Deletes { workload, deletes: doomed, records: self.records })
    }

    /// Returns the plan of `thread`, which deletes the doomed records from number `first_doomed`
    /// on.
    fn plan(
        &self,
        thread: u64,
        chooser: &Chooser,
        first_doomed: u64,
        drawn: Option<&[OpKind]>,
    ) -> Plan {
        let mut rng = self.rng(thread);
        let share = self.share(self.planned(), thread);
        let (mut inserted, mut deleted) = (0, 0);
        // Each thread has room for as many new records as it has operations.
        let fresh = self.records + share.start;
        let start = share.start;
        let mut choose = |position: u64| {
            let kind = match drawn {
                Some(kinds) => kinds[(position - start) as usize],
                None => self.workload.draw(&mut rng),
            };
            let index = match kind {
                OpKind::Insert => {
                    inserted += 1;
                    fresh + inserted - 1
                }
                OpKind::Remove => {
                    deleted += 1;
                    chooser.doomed(first_doomed + deleted - 1)
                }
                _ => chooser.pick(&mut rng, position, fresh, inserted),
            };
            let length = match self.workload {
                Workload::E => rng.random_range(1..=self.scan_length),
                _ => self.scan_length,
            };
            Op { token: self.token(index), kind, length }
        };
        if self.workload == Workload::Multiget {
            return Plan::Batches(share.map(|position| choose(position).token).collect());
        }
        Plan::Each(share.map(choose).collect())
    }
}

#[cfg(test)]
mod tests;
