//! What the command line says; each command keeps its own arguments beside its code.

use crate::command::{
    advise, bench, check, crash, create, del, demo, designs, dump, get, load, put, reproduce, scan,
    stat, torture,
};
use crate::failure::Usage;
use bristlecone_pmem::Domain;
use bristlecone_pmem::numa::{Placement, PlacementError};
use clap::{Parser, Subcommand};

/// An ordered key-value store for persistent memory, and a laboratory for the trees behind it.
#[derive(Debug, Parser)]
#[command(name = "bristlecone", version, about, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// Print the answer as JSON: one object, or one object a line.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 the answer is no, 2 wrong use, \
     3 the pool is damaged or foreign, 4 the system refused.";

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Args),
    Create(create::Args),
    Put(put::Args),
    Get(get::Args),
    Del(del::Args),
    Scan(scan::Args),
    Stat(stat::Args),
    Check(check::Args),
    Load(load::Args),
    Dump(dump::Args),
    Designs(designs::Args),
    Bench(bench::Args),
    Reproduce(reproduce::Args),
    Advise(advise::Args),
    Crash(crash::Args),
    Torture(torture::Args),
}

/// On which nodes a pool is.
#[derive(Debug, clap::Args)]
pub(crate) struct Nodes {
    /// NUMA nodes that the stripes of the pool belong to in turn; a thread then takes memory of its own.
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    nodes: Vec<u16>,
    /// Bytes of a stripe.
    #[arg(long, value_name = "SIZE", default_value = "2M", requires = "nodes", value_parser = bytes)]
    stripe: u64,
}

impl Nodes {
    /// What was asked for, if anything was, of memory that `of` is for.
    pub(crate) fn placement(
        &self,
        of: fn(&[u16], u64) -> Result<Placement, PlacementError>,
    ) -> anyhow::Result<Option<Placement>> {
        if self.nodes.is_empty() {
            return Ok(None);
        }
        let placement = of(&self.nodes, self.stripe);
        Ok(Some(placement.map_err(|error| Usage(error.to_string()))?))
    }
}

/// A domain by its name.
pub(crate) fn domain(text: &str) -> Result<Domain, String> {
    Domain::from_name(text).ok_or_else(|| "one of adr, eadr, process, volatile".to_owned())
}

/// A count: `1000`, `200k`, `10M`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'M')) => (&text[..at], 1_000_000),
        _ => (text, 1),
    };
    let number: u64 = digits.parse().map_err(|_| "a count is expected, such as 200k".to_owned())?;
    number.checked_mul(factor).ok_or_else(|| "more than 64 bits can say".to_owned())
}

/// A number of bytes: `4096`, `64K`, `64M`, `2G`, `1T`, each also with `iB` or `B` behind it.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let suffix = text[digits.len()..].to_ascii_uppercase();
    let unit = suffix.strip_suffix("IB").or_else(|| suffix.strip_suffix('B')).unwrap_or(&suffix);
    let shift = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        "T" => 40,
        _ => return Err(format!("{suffix:?} is no unit; there are K, M, G and T")),
    };
    let number: u64 = digits.parse().map_err(|_| "a number is expected, such as 64M".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "more than 64 bits can say".to_owned())
}

/// A seed that nobody chose.
pub(crate) fn clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |now| now.as_nanos() as u64 % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_of_the_arguments_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example() {
        for command in Cli::command().get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let example = format!("bristlecone {}", command.get_name());
            assert!(help.contains(&example), "{} has no example", command.get_name());
        }
    }

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
}
