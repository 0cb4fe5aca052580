//! The distribution of operations over records, by name.

use super::error::WorkloadError;
use core::fmt;
use core::str::FromStr;
use serde::{Serialize, Serializer};

/// The distribution of operations over the loaded records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dist {
    /// Every record with the same probability.
    Uniform,
    /// Zipfian with exponent 0.99; a bijection scatters the frequent records.
    Zipfian,
    /// Zipfian with exponent 0.99; the newest record is the most frequent.
    Latest,
    /// The records in the order of the load. Each thread begins at its share.
    Sequential,
    /// Some records more often than the others; uniform within both groups.
    Hotspot {
        /// The percentage of operations on hot records.
        ops: u8,
        /// The percentage of records that are hot.
        records: u8,
    },
}

impl Dist {
    /// The default hot spot: 80 % of the operations on 20 % of the records.
    pub const HOTSPOT: Self = Self::Hotspot { ops: 80, records: 20 };

    /// The distributions that have a plain name.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
