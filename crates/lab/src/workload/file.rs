//! A workload in a TOML file; `docs/workloads.md` has an example.

use super::dist::Dist;
use super::error::WorkloadError;
use super::keys::Keys;
use super::shares::Mix;
use core::str::FromStr;
use serde::Deserialize;
use std::path::Path;

/// A mix and the other fields of its file. The command line decides absent fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Custom {
    /// The name in results.
    pub name: String,
    /// The percentages of the operations.
    pub mix: Mix,
    /// The distribution of operations over records.
    pub dist: Option<Dist>,
    /// The number of pairs of a scan.
    pub scan_length: Option<u16>,
    /// The number of records that are loaded first.
    pub records: Option<u64>,
    /// The number of operations, of all threads together.
    pub ops: Option<u64>,
    /// The kind of the keys.
    pub keys: Option<Keys>,
}

/// The fields of a file, as TOML has them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    name: Option<String>,
    mix: String,
    dist: Option<String>,
    scan_length: Option<u16>,
    records: Option<u64>,
    ops: Option<u64>,
    keys: Option<String>,
}

impl Custom {
    /// Returns a workload with `mix` and no other field.
    pub fn of(mix: Mix) -> Self {
        let name = mix.to_string();
        Self { name, mix, dist: None, scan_length: None, records: None, ops: None, keys: None }
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, lacks `mix`, or has an unknown or invalid field.
    pub fn read(path: &Path) -> Result<Self, WorkloadError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| WorkloadError::File { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// Parses `text`, the contents of the file at `path`.
    ///
    /// # Errors
    /// The text is not TOML, lacks `mix`, or has an unknown or invalid field.
    pub fn parse(text: &str, path: &Path) -> Result<Self, WorkloadError> {
        let fields: Fields = toml::from_str(text).map_err(|source| WorkloadError::Toml {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        let bad = |field: &'static str| {
            move |source| WorkloadError::Field {
                path: path.to_owned(),
                field,
                source: Box::new(source),
            }
        };
        if fields.scan_length == Some(0) {
            return Err(bad("scan_length")(WorkloadError::Zero));
        }
        if fields.ops == Some(0) {
            return Err(bad("ops")(WorkloadError::Zero));
        }
        let mix = Mix::from_str(&fields.mix).map_err(bad("mix"))?;
        Ok(Self {
            name: fields.name.unwrap_or_else(|| mix.to_string()),
            mix,
            dist: fields.dist.map(|dist| dist.parse()).transpose().map_err(bad("dist"))?,
            scan_length: fields.scan_length,
            records: fields.records,
            ops: fields.ops,
            keys: fields.keys.map(|keys| keys.parse()).transpose().map_err(bad("keys"))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Custom, WorkloadError> {
        Custom::parse(text, Path::new("mine.toml"))
    }

    #[test]
    fn a_file_says_what_is_done() {
        let all = "name = \"sessions\"\nmix = \"get:80+insert:20\"\ndist = \"hotspot:90/5\"\n\
                   scan_length = 10\nrecords = 1000\nops = 500\nkeys = \"var\"\n";
        let custom = parse(all).unwrap();
        assert_eq!((&custom.name[..], custom.scan_length), ("sessions", Some(10)));
        assert_eq!(custom.dist, Some(Dist::Hotspot { ops: 90, records: 5 }));
        assert_eq!((custom.records, custom.ops), (Some(1000), Some(500)));
        assert_eq!(custom.keys, Some(Keys::Various));
        let least = parse("mix = \"get:100\"").unwrap();
        assert_eq!(least, Custom::of("get:100".parse().unwrap()));
    }

    #[test]
    fn the_example_of_the_manual_is_one() {
        let manual = include_str!("../../../../docs/workloads.md");
        let (_, example) = manual.split_once("```toml\n").unwrap();
        let (example, _) = example.split_once("```").unwrap();
        let custom = parse(example).unwrap();
        assert!(custom.dist.is_some() && custom.keys.is_some() && custom.ops.is_some());
    }

    #[test]
    fn a_refusal_names_the_file_and_the_line_or_the_field() {
        for (text, place) in [
            ("", "mix"),
            ("mix = 3", "line 1"),
            ("mix = \"get:100\"\nthreads = 3", "line 2"),
            ("mix = \"get:99\"", "field mix"),
            ("mix = \"get:100\"\ndist = \"normal\"", "field dist"),
            ("mix = \"get:100\"\nscan_length = 0", "field scan_length"),
            ("mix = \"get:100\"\nscan_length = 65536", "line 2"),
            ("mix = \"get:100\"\nops = 0", "field ops"),
            ("mix = \"get:100\"\nrecords = -1", "line 2"),
            ("\u{0}", "line 1"),
            ("mix = \"get:100\"\nkeys = \"no/file\"", "field keys"),
        ] {
            let refusal = parse(text).unwrap_err().to_string();
            assert!(refusal.contains("mine.toml") && refusal.contains(place), "{text}: {refusal}");
        }
    }
}
