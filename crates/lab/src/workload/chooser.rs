//! The choice of a record for each operation.
//!
//! The loaded records are divided into those that a thread may delete and those that stay. Every
//! thread may choose a record that stays at any time. Each record has a position: the records at
//! `0..doomed` are deleted, those at `doomed..` stay. A bijection, scrambled or straight, maps
//! positions to records, so no record is in both parts.

use super::dist::Dist;
use super::zipf::{Scramble, Zipf};
use rand::RngExt;
use rand::rngs::SmallRng;

/// Chooses a loaded record for each operation.
pub(super) struct Chooser {
    dist: Dist,
    /// The number of records that threads delete.
    doomed: u64,
    /// The number of records that stay. At least 1, which a workload that chooses none never uses.
    staying: u64,
    zipf: Zipf,
    scramble: Scramble,
}

impl Chooser {
    /// Returns a chooser among `records` records, of which `doomed` are deleted. `seed` decides how
    /// positions are scrambled.
    pub(super) fn new(dist: Dist, records: u64, doomed: u64, seed: u64) -> Self {
        let staying = (records - doomed).max(1);
        let scramble = Scramble::new(records.max(1), seed);
        Self { dist, doomed, staying, zipf: Zipf::new(staying), scramble }
    }

    /// Returns record number `nth` of those that are deleted.
    pub(super) fn doomed(&self, nth: u64) -> u64 {
        debug_assert!(nth < self.doomed);
        self.record(nth)
    }

    /// Returns a record that stays, or one of the `inserted` records that the thread added from
    /// `fresh` on. `position` is that of the operation in the run.
    pub(super) fn pick(&self, rng: &mut SmallRng, position: u64, fresh: u64, inserted: u64) -> u64 {
        let nth = match self.dist {
            Dist::Uniform => rng.random_range(0..self.staying),
            Dist::Zipfian => self.zipf.sample(rng),
            Dist::Latest => match self.zipf.sample(rng) {
                age if age < inserted => return fresh + inserted - 1 - age,
                age => self.staying - 1 - (age - inserted).min(self.staying - 1),
            },
            Dist::Sequential => position % self.staying,
            Dist::Hotspot { ops, records } => self.hot_or_cold(rng, ops, records),
        };
        self.record(self.doomed + nth)
    }

    fn hot_or_cold(&self, rng: &mut SmallRng, ops: u8, records: u8) -> u64 {
        let hot = (u128::from(self.staying) * u128::from(records) / 100) as u64;
        let hot = hot.clamp(1, self.staying);
        if hot == self.staying || rng.random_range(0..100) < ops {
            rng.random_range(0..hot)
        } else {
            rng.random_range(hot..self.staying)
        }
    }

    /// Returns the record at `position`.
    fn record(&self, position: u64) -> u64 {
        match self.dist {
            // In the order of age: threads delete the oldest records and read the newest.
            Dist::Latest | Dist::Sequential => position,
            Dist::Uniform | Dist::Zipfian | Dist::Hotspot { .. } => self.scramble.apply(position),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use std::collections::HashSet;

    const HOT: Dist = Dist::Hotspot { ops: 90, records: 10 };

    fn chooser(dist: Dist, records: u64, doomed: u64) -> Chooser {
        Chooser::new(dist, records, doomed, 3)
    }

    #[test]
    fn what_is_chosen_is_never_deleted() {
        let mut rng = SmallRng::seed_from_u64(1);
        for dist in [Dist::Uniform, Dist::Zipfian, Dist::Latest, Dist::Sequential, HOT] {
            for (records, doomed) in [(1000, 0), (1000, 400), (1000, 999), (1, 0)] {
                let chooser = chooser(dist, records, doomed);
                let deleted: HashSet<u64> = (0..doomed).map(|nth| chooser.doomed(nth)).collect();
                assert_eq!(deleted.len() as u64, doomed, "each is deleted once");
                for position in 0..5000 {
                    let record = chooser.pick(&mut rng, position, records, 0);
                    assert!(record < records && !deleted.contains(&record), "{dist}: {record}");
                }
            }
        }
    }

    #[test]
    fn hot_records_are_as_hot_as_they_are_said_to_be() {
        let chooser = chooser(HOT, 1000, 0);
        let hot: HashSet<u64> = (0..100).map(|position| chooser.record(position)).collect();
        let mut rng = SmallRng::seed_from_u64(2);
        let drawn = (0..10_000).filter(|&at| hot.contains(&chooser.pick(&mut rng, at, 0, 0)));
        // The standard deviation is 30.
        assert!(drawn.count().abs_diff(9000) < 200);
    }

    #[test]
    fn a_sequence_goes_through_all_records_in_turn() {
        let chooser = chooser(Dist::Sequential, 10, 4);
        let mut rng = SmallRng::seed_from_u64(2);
        let picked: Vec<u64> = (0..8).map(|at| chooser.pick(&mut rng, at, 0, 0)).collect();
        assert_eq!(picked, [4, 5, 6, 7, 8, 9, 4, 5]);
    }
}
