//! Which records are chosen.
//!
//! The loaded records are parted in those that some thread may delete and those that stay, which
//! every thread may choose at any time. Each has a position: `0..doomed` are deleted, `doomed..`
//! stay. From positions to records leads a bijection, scrambled or straight, so that no record is
//! both.

use super::error::WorkloadError;
use super::recipe::{Recipe, mix};
use super::zipf::{Scramble, Zipf};
use core::fmt;
use core::str::FromStr;
use rand::RngExt;
use rand::rngs::SmallRng;
use serde::{Serialize, Serializer};

/// Which records are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dist {
    /// All alike.
    Uniform,
    /// Zipfian with exponent 0.99, scrambled.
    Zipfian,
    /// Zipfian with exponent 0.99, the newest most often.
    Latest,
    /// In the order in which they were loaded, each thread from the beginning of its share on.
    Sequential,
    /// Some of them more often: alike among these, and alike among the others.
    Hotspot {
        /// Operations on the hot records, in percent.
        ops: u8,
        /// Hot records, in percent.
        records: u8,
    },
}

impl Dist {
    /// 80 % of the operations on 20 % of the records.
    pub const HOTSPOT: Self = Self::Hotspot { ops: 80, records: 20 };

    /// Those with a plain name.
    const PLAIN: [(&str, Self); 5] = [
        ("uniform", Self::Uniform),
        ("zipfian", Self::Zipfian),
        ("latest", Self::Latest),
        ("sequential", Self::Sequential),
        ("hotspot", Self::HOTSPOT),
    ];
}

impl fmt::Display for Dist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (Self::PLAIN.iter().find(|(_, dist)| dist == self), self) {
            (Some((name, _)), _) => f.write_str(name),
            (None, Self::Hotspot { ops, records }) => write!(f, "hotspot:{ops}/{records}"),
            (None, _) => unreachable!("all others have a plain name"),
        }
    }
}

impl FromStr for Dist {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let plain = Self::PLAIN.iter().find(|(name, _)| *name == text).map(|&(_, dist)| dist);
        plain.or_else(|| hotspot(text)).ok_or_else(|| WorkloadError::Dist { text: text.to_owned() })
    }
}

fn hotspot(text: &str) -> Option<Dist> {
    let (ops, records) = text.strip_prefix("hotspot:")?.split_once('/')?;
    let percent = |text: &str| text.parse().ok().filter(|percent: &u8| (1..100).contains(percent));
    Some(Dist::Hotspot { ops: percent(ops)?, records: percent(records)? })
}

impl Serialize for Dist {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Chooses among the records that are there.
pub(super) struct Chooser {
    dist: Dist,
    /// Records that some thread deletes.
    doomed: u64,
    /// Records that stay; at least 1, though a workload that chooses none may have none.
    staying: u64,
    zipf: Zipf,
    scramble: Scramble,
}

impl Chooser {
    /// A chooser for `recipe`, of whose records `doomed` are deleted.
    pub(super) fn new(recipe: &Recipe, doomed: u64) -> Self {
        let staying = (recipe.records - doomed).max(1);
        let scramble = Scramble::new(recipe.records.max(1), mix(recipe.seed));
        Self { dist: recipe.dist, doomed, staying, zipf: Zipf::new(staying), scramble }
    }

    /// The `nth` record to be deleted.
    pub(super) fn doomed(&self, nth: u64) -> u64 {
        debug_assert!(nth < self.doomed);
        self.record(nth)
    }

    /// A record that stays, or one of the `inserted` that the thread added from `fresh` on, for the
    /// operation at `position` of the run.
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

    /// The record at `position`.
    fn record(&self, position: u64) -> u64 {
        match self.dist {
            // By age: the oldest are deleted, the newest read.
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
        Chooser::new(&Recipe { dist, records, seed: 3, ..Recipe::default() }, doomed)
    }

    #[test]
    fn a_distribution_is_written_as_it_is_read() {
        for text in ["uniform", "zipfian", "latest", "sequential", "hotspot", "hotspot:99/1"] {
            assert_eq!(text.parse::<Dist>().unwrap().to_string(), text);
        }
        assert_eq!("hotspot:80/20".parse::<Dist>().unwrap().to_string(), "hotspot");
        for text in ["", "hotspot:", "hotspot:80", "hotspot:0/20", "hotspot:80/100", "uniform:1"] {
            assert!(text.parse::<Dist>().is_err(), "{text}");
        }
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
