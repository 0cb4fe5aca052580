//! The formats of bulk data, one pair a line.
//!
//! | format | line | holds |
//! | --- | --- | --- |
//! | `tsv` | key, tab, value, both [escaped](crate::escape) | any bytes |
//! | `jsonl` | an object with `key` and `value`, see [`json`] | any bytes |
//! | `lines` | the raw key; the value is empty | keys without a newline |

use crate::{escape, json};
use bristlecone::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use clap::ValueEnum;
use std::io::{self, Write};

/// A format of bulk data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Key, tab, value. A tab, newline or backslash in them is written `\t`, `\n`, `\\`.
    Tsv,
    /// An object with `key` and `value`, or with `key_hex` and `value_hex` if not UTF-8.
    Jsonl,
    /// Keys alone, with empty values.
    Lines,
}

impl Format {
    /// Returns the length of the longest line that holds a legal pair, without its newline. A
    /// longer line is no pair, so a reader need not keep more of it.
    pub const fn line_bytes_max(self) -> usize {
        let (key, value) = (KEY_BYTES_MAX, VALUE_BYTES_MAX);
        match self {
            Self::Tsv => escape::BYTES_MAX * (key + value) + 1,
            Self::Jsonl => json::BYTES_MAX * (key + value) + json::FRAME_BYTES_MAX,
            Self::Lines => key,
        }
    }

    /// Parses a line without its newline, and returns key and value.
    ///
    /// # Errors
    /// The line is no pair in this format; the error says why.
    pub fn read(self, line: &[u8]) -> Result<(Vec<u8>, Vec<u8>), String> {
        match self {
            Self::Lines => Ok((line.to_vec(), Vec::new())),
            Self::Jsonl => json::read_pair(line),
            Self::Tsv => {
                let tab = line.iter().position(|&byte| byte == b'\t');
                let tab = tab.ok_or_else(|| "there is no tab between key and value".to_owned())?;
                let field = |text| {
                    escape::read(text).ok_or_else(|| {
                        r"a backslash precedes another byte than t, n or a backslash".to_owned()
                    })
                };
                Ok((field(&line[..tab])?, field(&line[tab + 1..])?))
            }
        }
    }

    /// Writes a pair and a newline.
    ///
    /// # Errors
    /// The output is closed; or the key has a newline, which the format `lines` cannot write.
    pub fn write(self, out: &mut impl Write, key: &[u8], value: &[u8]) -> io::Result<()> {
        match self {
            Self::Tsv => {
                escape::write(out, key)?;
                out.write_all(b"\t")?;
                escape::write(out, value)?;
            }
            Self::Jsonl => serde_json::to_writer(&mut *out, &json::pair(key, value))?,
            Self::Lines => Self::write_line(out, key)?,
        }
        out.write_all(b"\n")
    }

    /// Writes a key and a newline, in the format of a pair's key.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_key(self, out: &mut impl Write, key: &[u8]) -> io::Result<()> {
        match self {
            Self::Tsv => escape::write(out, key)?,
            Self::Jsonl => {
                let mut object = serde_json::Map::new();
                json::put(&mut object, "key", key);
                serde_json::to_writer(&mut *out, &object)?;
            }
            Self::Lines => Self::write_line(out, key)?,
        }
        out.write_all(b"\n")
    }

    fn write_line(out: &mut impl Write, key: &[u8]) -> io::Result<()> {
        if key.contains(&b'\n') {
            let what =
                "the format lines cannot write a key with a newline; use --format tsv or jsonl";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        out.write_all(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_survive_the_round_trip_in_every_format() {
        let all: Vec<u8> = (0..=255).collect();
        for format in [Format::Tsv, Format::Jsonl] {
            for (key, value) in [(&b""[..], &b""[..]), (&all, b"\t\n\\"), (b"a\tb", &all)] {
                let mut line = Vec::new();
                format.write(&mut line, key, value).unwrap();
                assert_eq!(line.pop(), Some(b'\n'));
                assert!(!line.contains(&b'\n'), "{format:?}: a pair is one line");
                assert_eq!(format.read(&line), Ok((key.to_vec(), value.to_vec())));
            }
        }
        assert_eq!(Format::Lines.read(br"a\tb"), Ok((br"a\tb".to_vec(), Vec::new())));
        assert!(Format::Lines.write(&mut Vec::new(), b"a\nb", b"").is_err());
    }

    #[test]
    fn the_longest_pair_is_no_longer_than_a_line_may_be() {
        for (format, byte) in [(Format::Tsv, b'\\'), (Format::Jsonl, 1), (Format::Lines, b'k')] {
            let (key, value) = ([byte; KEY_BYTES_MAX], vec![byte; VALUE_BYTES_MAX]);
            let mut line = Vec::new();
            format.write(&mut line, &key, &value).unwrap();
            line.pop();
            let spare = format.line_bytes_max().checked_sub(line.len());
            assert!(spare.is_some_and(|spare| spare < 4096), "{format:?}: {spare:?}");
        }
    }

    #[test]
    fn a_tab_in_a_value_needs_no_escape_on_the_way_in() {
        assert_eq!(Format::Tsv.read(b"k\ta\tb"), Ok((b"k".to_vec(), b"a\tb".to_vec())));
        assert!(Format::Tsv.read(b"no tab").is_err());
    }
}
