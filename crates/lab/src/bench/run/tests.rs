//! The run, on a map that counts its lookups and can be slow.

use super::*;
use crate::bench::counting_medium;
use crate::system::{DesignTree, MemoryUse};
use crate::workload::Workload;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A map behind a lock that counts its lookups. The first lookup takes `stall`.
#[derive(Default)]
struct Stalling {
    map: Mutex<HashMap<u64, u64>>,
    lookups: AtomicU64,
    stall: Duration,
}

impl Stalling {
    fn of(recipe: &Recipe, stall: Duration) -> Self {
        let map = Mutex::new((0..recipe.records).map(|index| recipe.record(index)).collect());
        Self { map, stall, ..Self::default() }
    }

    fn with<R>(&self, read: impl FnOnce(&mut HashMap<u64, u64>) -> R) -> R {
        read(&mut self.map.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl System for Stalling {
    type Session<'a> = &'a Self;

    fn sessions(&mut self, threads: u64) -> Vec<&Self> {
        (0..threads).map(|_| &*self).collect()
    }
    fn memory(&mut self) -> Result<Option<MemoryUse>> {
        Ok(None)
    }
}

impl Session for &Stalling {
    fn get(&mut self, key: u64) -> Result<Option<u64>> {
        let start = Instant::now();
        if self.lookups.fetch_add(1, Ordering::Relaxed) == 0 {
            while start.elapsed() < self.stall {}
        }
        Ok(self.with(|map| map.get(&key).copied()))
    }
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<()> {
        for (&key, value) in keys.iter().zip(values) {
            *value = self.get(key)?;
        }
        Ok(())
    }
    fn insert(&mut self, key: u64, value: u64) -> Result<bool> {
        Ok(self.with(|map| map.insert(key, value)).is_none())
    }
    fn update(&mut self, key: u64, value: u64) -> Result<bool> {
        self.insert(key, value).map(|new| !new)
    }
    fn remove(&mut self, key: u64) -> Result<bool> {
        Ok(self.with(|map| map.remove(&key)).is_some())
    }
    fn scan(&mut self, _: u64, length: usize) -> Result<usize> {
        Ok(length)
    }
}

fn run(recipe: &Recipe, stall: Duration) -> Result<(Measured, u64)> {
    let mut system = Stalling::of(recipe, stall);
    let measured = measure(&mut system, recipe, &recipe.plans()?)?;
    Ok((measured, system.lookups.load(Ordering::Relaxed)))
}

#[test]
fn what_waits_behind_a_slow_operation_is_slow_too() {
    // A thousand operations are scheduled within about 10 ms, and the first takes 40 ms. No other
    // one ends before that on any machine, and none is scheduled later than 30 ms. So each takes at
    // least 10 ms.
    let recipe = Recipe { rate: Some(1e5), ..Recipe::default() };
    let (measured, lookups) = run(&recipe, Duration::from_millis(40)).unwrap();
    assert_eq!((measured.ops, lookups), (1000, 1000));
    let open = measured.open.unwrap();
    assert_eq!(open.latencies.len(), 1000, "every operation counts");
    assert!(open.latencies.min() >= 10_000_000, "{}", open.latencies.min());
    assert!(measured.samples.is_empty());
}

#[test]
fn operations_of_the_warm_up_are_done_and_not_measured() {
    for rate in [None, Some(1e7)] {
        for (workload, threads) in [(Workload::Get, 1), (Workload::Get, 3), (Workload::Multiget, 2)]
        {
            if rate.is_some() && workload == Workload::Multiget {
                continue;
            }
            let recipe = Recipe { workload, threads, rate, warm_up: 50, ..Recipe::default() };
            let (measured, lookups) = run(&recipe, Duration::ZERO).unwrap();
            assert_eq!((measured.ops, lookups), (1000, 1000 + 50 * threads));
            assert_eq!(measured.open.is_some(), rate.is_some());
        }
    }
}

#[test]
fn batches_do_not_start_at_a_rate() {
    let recipe = Recipe { workload: Workload::Multiget, rate: Some(1e5), ..Recipe::default() };
    assert!(run(&recipe, Duration::ZERO).unwrap_err().to_string().contains("--rate"));
}

#[test]
fn a_wrong_answer_gives_no_figure() {
    let recipe = Recipe::default();
    let mut system = Stalling::of(&Recipe { seed: 2, ..recipe.clone() }, Duration::ZERO);
    let done = measure(&mut system, &recipe, &recipe.plans().unwrap());
    assert!(matches!(done, Err(LabError::Wrong { wrong: 1000, ops: 1000 })), "{done:?}");
}

#[test]
fn maintenance_workers_run_beside_a_system_that_defers_work() {
    let workers = |name: &str| {
        let numbers = Recipe { ops: 5000, maintenance_threads: 2, ..Recipe::default() };
        let recipe = Recipe { workload: Workload::Update, warm_up: 100, ..numbers };
        let entry = bristlecone_registry::default_size(name).unwrap();
        let design = entry.simulated.numbers.unwrap();
        let mut tree = DesignTree::create(&design, counting_medium(8 << 20).unwrap()).unwrap();
        load(&mut tree, &recipe).unwrap();
        let measured = measure(&mut tree, &recipe, &recipe.plans().unwrap()).unwrap();
        assert_eq!(measured.ops, 5000);
        measured.maintenance_threads
    };
    assert_eq!(workers("btree-ls-r"), 2);
    assert_eq!(workers("fptree"), 0);
}
