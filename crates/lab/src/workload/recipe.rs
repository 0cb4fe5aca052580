//! A workload with its numbers, and the plans that are made from it.

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

/// What plans are made from.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// What is done.
    pub workload: Workload,
    /// To which records.
    pub dist: Dist,
    /// Records that are loaded first.
    pub records: u64,
    /// Operations, of all threads together.
    pub ops: u64,
    /// Threads.
    pub threads: u64,
    /// Threads beside these that do what a design puts off while operations are measured.
    pub maintenance_threads: u64,
    /// Pairs of a scan; in workload e, the most.
    pub scan_length: u16,
    /// What keys and choices are drawn from.
    pub seed: u64,
    /// What keys are.
    pub keys: Keys,
    /// Operations that are to start in a second, of all threads together; one after the other, as
    /// fast as they go, if none is given.
    pub rate: Option<f64>,
    /// Operations of each thread before those that are measured.
    pub warm_up: u64,
}

impl Default for Recipe {
    /// A thousand lookups by one thread, for a recipe to name only what is different.
    fn default() -> Self {
        Self {
            workload: Workload::Get,
            dist: Dist::Uniform,
            records: 1000,
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

/// What a thread does in turn, where that has to be known beforehand.
type Drawn = Option<Vec<OpKind>>;

impl Recipe {
    /// Pairs of a scan, where nothing else is asked for.
    pub const SCAN_LENGTH: u16 = 100;

    /// The plan of each thread.
    ///
    /// # Errors
    /// There are not the records for it.
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

    /// Operations of all threads, those before the clock starts included.
    pub(crate) fn planned(&self) -> u64 {
        self.ops + self.warm_up * self.threads
    }

    /// Keys that a run leaves that began with nothing.
    pub(crate) fn keys_left(&self) -> u64 {
        let planned = self.planned();
        self.workload.trace().map_or(planned, |trace| trace.left(planned))
    }

    /// Returns this recipe for one thread that starts one operation after the other, without a warm-up
    /// and without maintenance workers.
    pub(crate) fn by_one_thread(&self) -> Self {
        Self { threads: 1, maintenance_threads: 0, rate: None, warm_up: 0, ..self.clone() }
    }

    /// What keys are.
    pub fn keys(&self) -> &Keys {
        self.workload.trace().map_or(&self.keys, Trace::keys)
    }

    /// Token and value of record `index` when it is loaded.
    pub(crate) fn record(&self, index: u64) -> (u64, u64) {
        if let Some(trace) = self.workload.trace() {
            return trace.record(index);
        }
        let token = self.token(index);
        (token, value_of(token, 0))
    }

    /// The token of record `index`: what a plan stores of its key.
    pub fn token(&self, index: u64) -> u64 {
        self.keys().token(self.seed, index)
    }

    /// The part of `0..total` that falls to `thread`.
    pub(crate) fn share(&self, total: u64, thread: u64) -> Range<u64> {
        let bound = |t: u64| (u128::from(total) * u128::from(t) / u128::from(self.threads)) as u64;
        bound(thread)..bound(thread + 1)
    }

    fn rng(&self, thread: u64) -> SmallRng {
        SmallRng::seed_from_u64(mix64(self.seed ^ mix64(thread + 1)))
    }

    /// The kinds of all operations of `thread`, where deletes are among others: how many records
    /// are deleted must be known before one is chosen for anything else.
    fn drawn(&self, thread: u64) -> Drawn {
        /// Sets these draws apart from those of the records.
        const KINDS: u64 = 0x6B69_6E64;
        let among_others = (1..100).contains(&self.workload.percent(OpKind::Remove));
        among_others.then(|| {
            let mut rng = SmallRng::seed_from_u64(mix64(self.seed ^ mix64(thread + 1) ^ KINDS));
            self.share(self.planned(), thread).map(|_| self.workload.draw(&mut rng)).collect()
        })
    }

    /// Records that `thread`, which does what is `drawn`, deletes.
    fn deletes(&self, thread: u64, drawn: Option<&[OpKind]>) -> u64 {
        match drawn {
            Some(kinds) => kinds.iter().filter(|&&kind| kind == OpKind::Remove).count() as u64,
            None if self.workload.percent(OpKind::Remove) == 0 => 0,
            None => self.share(self.planned(), thread).count() as u64,
        }
    }

    /// # Errors
    /// There are fewer keys than records and the room for new ones.
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
    /// More than all records are `doomed`, or all of them where another operation needs one.
    fn expect_survivors(&self, doomed: u64) -> Result<(), WorkloadError> {
        let needs = |kind| !matches!(kind, OpKind::Insert | OpKind::Remove);
        let needed = self.workload.shares().iter().any(|&(kind, _)| needs(kind));
        if doomed + u64::from(needed && doomed > 0) <= self.records {
            return Ok(());
        }
        let workload = self.workload.name().to_owned();
        Err(WorkloadError::Deletes { workload, deletes: doomed, records: self.records })
    }

    /// The plan of `thread`, whose deletes are of the doomed records from `first_doomed` on.
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
