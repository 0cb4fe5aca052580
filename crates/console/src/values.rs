//! Values of options that both commands have: counts, sizes, domains, NUMA nodes, seeds.

use crate::exit::UsageError;
use bristlecone::{Domain, Placement, PlacementError};
use std::time::Duration;

/// The options `--nodes` and `--stripe`: the NUMA placement of a pool.
#[derive(Debug, clap::Args)]
pub struct Nodes {
    /// NUMA nodes of the pool's stripes, in turn. A thread then allocates from stripes of its own
    /// node.
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    nodes: Vec<u16>,
    /// Size of a stripe, with a unit K, M, G or T.
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "2M",
        requires = "nodes",
        value_parser = bytes,
    )]
    stripe: u64,
}

impl Nodes {
    /// Returns the placement that `make` builds of the nodes and the stripe size, or `None` without
    /// `--nodes`.
    ///
    /// # Errors
    /// [`UsageError`]: there is no such placement, for example a node is named twice.
    pub fn placement(
        &self,
        make: fn(&[u16], u64) -> Result<Placement, PlacementError>,
    ) -> anyhow::Result<Option<Placement>> {
        if self.nodes.is_empty() {
            return Ok(None);
        }
        let placement = make(&self.nodes, self.stripe);
        Ok(Some(placement.map_err(|error| UsageError(error.to_string()))?))
    }
}

/// Parses the name of a persistence domain whose instructions can be executed: not that of a
/// journal, which has none.
///
/// # Errors
/// There is no such domain of that name; the error lists the names.
pub fn domain(text: &str) -> Result<Domain, String> {
    Domain::from_name(text)
        .filter(|&domain| domain != Domain::Disk)
        .ok_or_else(|| "expected one of adr, eadr, process, volatile".to_owned())
}

/// Parses the name of a persistence domain that a benchmark can run in, that of a journal too.
///
/// # Errors
/// There is no domain of that name; the error lists the names.
pub fn measured_domain(text: &str) -> Result<Domain, String> {
    Domain::from_name(text)
        .ok_or_else(|| "expected one of adr, eadr, disk, process, volatile".to_owned())
}

/// Parses a count: `1000`, `200k`, `10M`.
///
/// # Errors
/// `text` is no count, or needs more than 64 bits.
pub fn count(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'M')) => (&text[..at], 1_000_000),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a count, such as 200k".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "the count needs more than 64 bits".to_owned())
}

/// Parses a count that is not 0.
///
/// # Errors
/// The errors of [`count`], and for 0.
pub fn positive_count(text: &str) -> Result<u64, String> {
    match count(text)? {
        0 => Err("expected at least 1".to_owned()),
        number => Ok(number),
    }
}

/// Parses a number of bytes: `4096`, `64K`, `64M`, `2G`, `1T`, each also with `iB` or `B` at the
/// end.
///
/// # Errors
/// `text` is no size, or needs more than 64 bits.
pub fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let suffix = text[digits.len()..].to_ascii_uppercase();
    let unit = suffix.strip_suffix("IB").or_else(|| suffix.strip_suffix('B')).unwrap_or(&suffix);
    let shift = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(format!("unknown unit {suffix:?}; use K, M, G or T")),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a size, such as 64M".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "the size needs more than 64 bits".to_owned())
}

/// Parses a number of seconds: `5`, `0.25`.
///
/// # Errors
/// `text` is no number of seconds, or is negative or too large.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected seconds, such as 2.5".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Returns a seed taken from the clock, below 10^9, for a run without `--seed`.
pub fn seed_from_clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |now| now.as_nanos() as u64 % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("64M"), Ok(64 << 20));
        assert_eq!(bytes("64MiB"), Ok(64 << 20));
        assert_eq!(bytes("2gb"), Ok(2 << 30));
        assert_eq!(bytes("1T"), Ok(1 << 40));
        for wrong in ["", "M", "12X", "-1", "1.5G", "99999999999T"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn counts_have_units() {
        assert_eq!(count("1000"), Ok(1000));
        assert_eq!(count("200k"), Ok(200_000));
        assert_eq!(count("10M"), Ok(10_000_000));
        for wrong in ["", "k", "1G", "-1", "1.5k", "99999999999999999M"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_positive_count_is_not_zero() {
        assert_eq!(positive_count("1k"), Ok(1000));
        assert!(positive_count("0").is_err() && positive_count("0k").is_err());
        assert!(positive_count("x").is_err());
    }

    #[test]
    fn seconds_have_fractions() {
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        assert_eq!(seconds("2.5"), Ok(Duration::from_millis(2500)));
        for wrong in ["", "-1", "1s", "inf", "NaN", "1e300"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn domains_have_names() {
        assert_eq!(domain("process"), Ok(Domain::ProcessCrash));
        assert!(domain("disk").is_err());
        assert_eq!(measured_domain("disk"), Ok(Domain::Disk));
    }
}
