//! Workloads: what is done to which keys, decided before the clock starts.
//!
//! 1. Record `i` has the key [`key_of`]`(seed, i)`: a bijection, so keys are distinct, random, and
//!    the same for every design in a run.
//! 2. A plan names only keys that are there when its turn comes, whatever the other threads do:
//!    what was loaded, what its own thread has inserted. So every operation must succeed, and one
//!    that does not is an error and not a fast miss.
//! 3. The mixes are those that YCSB publishes: a 50/50 read/update, b 95/5 read/update, c read
//!    only, d 95/5 read/insert with reads of the latest, e 95/5 scan/insert, f 50/50
//!    read/read-modify-write.

use super::zipf::{Scramble, Zipf};
use clap::ValueEnum;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Workload {
    /// New keys.
    Insert,
    /// Lookups of keys that are there.
    Get,
    /// The same, in batches of 16.
    Multiget,
    /// New values of keys that are there.
    Update,
    /// Removal of keys that are there, each once.
    Delete,
    /// Scans from a key that is there.
    Scan,
    /// 50 % reads, 50 % updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads.
    C,
    /// 95 % reads of the latest, 5 % inserts.
    D,
    /// 95 % scans, 5 % inserts.
    E,
    /// 50 % reads, 50 % read-modify-writes.
    F,
    /// Opening the pool after a crash, once a repetition.
    ReopenCrash,
    /// Opening the pool after a clean close, once a repetition.
    ReopenClean,
}

/// Which records are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Dist {
    /// All alike.
    Uniform,
    /// Zipfian with exponent 0.99, scrambled.
    Zipfian,
    /// Zipfian with exponent 0.99, the newest most often.
    Latest,
}

impl Workload {
    /// The distribution that the workload is published with; uniform where it is not.
    pub(super) fn dist(self) -> Dist {
        match self {
            Self::D => Dist::Latest,
            Self::A | Self::B | Self::C | Self::E | Self::F => Dist::Zipfian,
            _ => Dist::Uniform,
        }
    }

    /// The name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// How many of `wanted` operations there can be on `records` records: a record is deleted
    /// once.
    pub(super) fn ops(self, wanted: u64, records: u64) -> u64 {
        match self {
            Self::Delete => wanted.min(records),
            Self::ReopenCrash | Self::ReopenClean => 0,
            _ => wanted,
        }
    }

    /// Whether the pool is opened again, and if so whether after a clean close.
    pub(super) fn reopens(self) -> Option<bool> {
        match self {
            Self::ReopenCrash => Some(false),
            Self::ReopenClean => Some(true),
            _ => None,
        }
    }

    /// Of a hundred operations, how many are of the first kind; and both kinds.
    fn mix(self) -> (u32, Kind, Kind) {
        match self {
            Self::Insert => (100, Kind::Insert, Kind::Insert),
            Self::Get | Self::Multiget | Self::C | Self::ReopenCrash | Self::ReopenClean => {
                (100, Kind::Get, Kind::Get)
            }
            Self::Update => (100, Kind::Update, Kind::Update),
            Self::Delete => (100, Kind::Remove, Kind::Remove),
            Self::Scan => (100, Kind::Scan, Kind::Scan),
            Self::A => (50, Kind::Get, Kind::Update),
            Self::B => (95, Kind::Get, Kind::Update),
            Self::D => (95, Kind::Get, Kind::Insert),
            Self::E => (95, Kind::Scan, Kind::Insert),
            Self::F => (50, Kind::Get, Kind::ReadModifyWrite),
        }
    }

    /// New records that a thread adds, at most, in `ops` operations.
    pub(super) fn inserts_max(self, ops: u64) -> u64 {
        match self {
            Self::Insert => ops,
            Self::D | Self::E => ops / 10 + 64,
            _ => 0,
        }
    }
}

/// One operation's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Get,
    Insert,
    Update,
    ReadModifyWrite,
    Remove,
    Scan,
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) key: u64,
    pub(super) kind: Kind,
    /// Pairs to scan.
    pub(super) length: u16,
}

/// What one thread does.
#[derive(Debug)]
pub(super) enum Plan {
    /// One operation after the other.
    Each(Vec<Op>),
    /// Lookups of these keys, [`BATCH`] at a time.
    Batches(Vec<u64>),
}

/// Keys of a batch.
pub(super) const BATCH: usize = 16;

impl Plan {
    /// Operations in the plan; each key of a batch is one.
    pub(super) fn ops(&self) -> u64 {
        match self {
            Self::Each(ops) => ops.len() as u64,
            Self::Batches(keys) => keys.len() as u64,
        }
    }
}

/// What plans are made from.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) workload: Workload,
    pub(super) dist: Dist,
    pub(super) records: u64,
    pub(super) ops: u64,
    pub(super) threads: u64,
    pub(super) scan_length: u16,
    pub(super) seed: u64,
}

impl Recipe {
    /// The plan of each thread.
    pub(super) fn plans(&self) -> Vec<Plan> {
        let chooser = Chooser::new(self);
        (0..self.threads).map(|thread| self.plan(thread, &chooser)).collect()
    }

    /// The part of `0..total` that falls to `thread`.
    pub(super) fn share(&self, total: u64, thread: u64) -> core::ops::Range<u64> {
        let bound = |t: u64| (u128::from(total) * u128::from(t) / u128::from(self.threads)) as u64;
        bound(thread)..bound(thread + 1)
    }

    fn plan(&self, thread: u64, chooser: &Chooser) -> Plan {
        let mut rng = SmallRng::seed_from_u64(mix(self.seed ^ mix(thread + 1)));
        let (percent, first, second) = self.workload.mix();
        let share = self.share(self.ops, thread);
        let mut inserted = 0;
        // Each thread has room for as many new records as it has operations.
        let fresh = self.records + share.start;
        let mut choose = |position: u64| {
            let kind = if rng.random_range(0..100) < percent { first } else { second };
            let index = match kind {
                Kind::Insert => {
                    inserted += 1;
                    fresh + inserted - 1
                }
                Kind::Remove => chooser.scramble.apply(position),
                _ => chooser.pick(&mut rng, fresh, inserted),
            };
            let length = match self.workload {
                Workload::E => rng.random_range(1..=self.scan_length),
                _ => self.scan_length,
            };
            Op { key: key_of(self.seed, index), kind, length }
        };
        if self.workload == Workload::Multiget {
            return Plan::Batches(share.map(|position| choose(position).key).collect());
        }
        Plan::Each(share.map(choose).collect())
    }
}

/// Chooses among the records that are there.
struct Chooser {
    dist: Dist,
    records: u64,
    zipf: Zipf,
    scramble: Scramble,
}

impl Chooser {
    fn new(recipe: &Recipe) -> Self {
        let records = recipe.records.max(1);
        let scramble = Scramble::new(records, mix(recipe.seed));
        Self { dist: recipe.dist, records, zipf: Zipf::new(records), scramble }
    }

    /// A record that was loaded, or one of the `inserted` that the thread added from `fresh` on.
    fn pick(&self, rng: &mut SmallRng, fresh: u64, inserted: u64) -> u64 {
        match self.dist {
            Dist::Uniform => rng.random_range(0..self.records),
            Dist::Zipfian => self.scramble.apply(self.zipf.sample(rng)),
            Dist::Latest => match self.zipf.sample(rng) {
                age if age < inserted => fresh + inserted - 1 - age,
                age => self.records - 1 - (age - inserted).min(self.records - 1),
            },
        }
    }
}

/// The key of record `index`.
pub(super) fn key_of(seed: u64, index: u64) -> u64 {
    mix(index.wrapping_add(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

/// A value for `key`: whose key it is can be told from it, whatever the version.
#[inline(always)]
pub(super) fn value_of(key: u64, version: u8) -> u64 {
    !key & !0xFF | u64::from(version)
}

/// Whether `value` is one of `key`'s.
#[inline(always)]
pub(super) fn belongs(key: u64, value: u64) -> bool {
    (value ^ !key) & !0xFF == 0
}

/// The finaliser of splitmix64, a bijection of the words of 64 bits.
pub(super) fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    fn recipe(workload: Workload) -> Recipe {
        let (records, ops, threads) = (1000, 4001, 3);
        let ops = workload.ops(ops, records);
        Recipe { workload, dist: workload.dist(), records, ops, threads, scan_length: 100, seed: 9 }
    }

    fn operations(workload: Workload) -> Vec<Vec<Op>> {
        let each = |plan| match plan {
            Plan::Each(ops) => ops,
            Plan::Batches(_) => panic!("a batch"),
        };
        recipe(workload).plans().into_iter().map(each).collect()
    }

    #[test]
    fn every_operation_finds_its_key() {
        for workload in Workload::value_variants() {
            if *workload == Workload::Multiget {
                continue;
            }
            let loaded: HashSet<u64> = (0..1000).map(|index| key_of(9, index)).collect();
            let mut inserted = HashSet::new();
            let mut removed = HashSet::new();
            let plans = operations(*workload);
            assert_eq!(plans.iter().map(Vec::len).sum::<usize>() as u64, recipe(*workload).ops);
            for ops in plans {
                let mut own = HashSet::new();
                for Op { key, kind, length } in ops {
                    assert!((1..=100).contains(&length));
                    match kind {
                        Kind::Insert => assert!(!loaded.contains(&key) && inserted.insert(key)),
                        Kind::Remove => assert!(loaded.contains(&key) && removed.insert(key)),
                        _ => assert!(loaded.contains(&key) || own.contains(&key)),
                    }
                    if kind == Kind::Insert {
                        own.insert(key);
                    }
                }
                assert!(own.len() as u64 <= workload.inserts_max(1334), "{workload:?}");
            }
        }
    }

    #[test]
    fn mixes_are_those_that_are_published() {
        let published = [
            (Workload::A, 50, Kind::Update),
            (Workload::B, 5, Kind::Update),
            (Workload::D, 5, Kind::Insert),
            (Workload::E, 5, Kind::Insert),
            (Workload::F, 50, Kind::ReadModifyWrite),
        ];
        for (workload, percent, kind) in published {
            let all: Vec<Op> = operations(workload).concat();
            let count = all.iter().filter(|op| op.kind == kind).count();
            let share = count as f64 * 100.0 / all.len() as f64;
            assert!((share - f64::from(percent)).abs() < 4.0, "{workload:?}: {share} %");
        }
        assert!(operations(Workload::C).concat().iter().all(|op| op.kind == Kind::Get));
    }

    #[test]
    fn latest_reads_prefer_what_the_thread_has_just_inserted() {
        let newest: HashMap<u64, u64> = (0..1000).map(|i| (key_of(9, i), i)).collect();
        for ops in operations(Workload::D) {
            let reads = ops.iter().filter(|op| op.kind == Kind::Get);
            let recent = reads.clone().filter(|op| newest.get(&op.key).is_none_or(|&i| i >= 900));
            assert!(recent.count() * 2 > reads.count(), "most reads are of the newest tenth");
        }
    }

    #[test]
    fn a_batch_plan_has_as_many_keys_as_operations() {
        let plans = recipe(Workload::Multiget).plans();
        assert_eq!(plans.iter().map(Plan::ops).sum::<u64>(), 4001);
    }

    #[test]
    fn values_tell_whose_they_are() {
        for key in [0, 1, 255, 256, u64::MAX] {
            assert!(belongs(key, value_of(key, 0)) && belongs(key, value_of(key, 255)));
            assert!(!belongs(key, value_of(key ^ 0x100, 0)));
        }
    }
}
