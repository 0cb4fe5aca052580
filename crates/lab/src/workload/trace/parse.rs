//! The text of a trace: one operation in each line.
//!
//! | line | operation |
//! | --- | --- |
//! | `load KEY VALUE` | a pair that is loaded before the clock starts; before all operations |
//! | `get KEY ...`, `gets KEY ...` | a lookup of each key |
//! | `put KEY VALUE` | an upsert |
//! | `del KEY`, `delete KEY [noreply]` | a remove of a key that may be absent |
//! | `scan KEY N` | the first N pairs from the key on |
//! | `set KEY FLAGS EXPTIME BYTES [noreply]` | memcached's upsert; the value follows |
//! | `# ...`, nothing | no operation |
//!
//! Spaces separate words. Lines end with or without a carriage return. In a key, `%` and two
//! hexadecimal digits are one byte. For any bytes the parser returns a trace or the number of a
//! wrong line; it never panics.

use super::text::{TraceStep, TraceText, word};
use bristlecone_trees::key::KEY_BYTES_MAX;
use std::collections::HashMap;

/// The number of a line, from 1 on, and the rule that it breaks.
pub(super) type Wrong = (usize, &'static str);

/// Parses the text of a trace.
pub(super) fn parse(text: &[u8]) -> Result<TraceText, Wrong> {
    let mut lines = Lines { rest: text, number: 0 };
    let mut parsed = Parsed::default();
    while let Some(line) = lines.next() {
        let words: Vec<&[u8]> = line.split(|&b| b == b' ').filter(|w| !w.is_empty()).collect();
        let number = lines.number;
        parsed.line(&words, &mut lines).map_err(|what| (number, what))?;
    }
    if parsed.text.steps.is_empty() {
        return Err((lines.number.max(1), "is the last, and there is no operation"));
    }
    Ok(parsed.text)
}

/// The lines that are not parsed yet.
struct Lines<'a> {
    rest: &'a [u8],
    /// The number of the line that was returned last.
    number: usize,
}

impl<'a> Lines<'a> {
    /// Returns the next line without its end.
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let end = self.rest.iter().position(|&byte| byte == b'\n');
        let line = &self.rest[..end.unwrap_or(self.rest.len())];
        self.rest = &self.rest[end.map_or(self.rest.len(), |end| end + 1)..];
        self.number += 1;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }

    /// Returns the next `bytes` bytes, if a line ends behind them.
    fn block(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (block, rest) = self.rest.split_at_checked(bytes)?;
        let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
        self.rest = match rest {
            [] => rest,
            [b'\n', rest @ ..] => rest,
            _ => return None,
        };
        self.number += block.split(|&byte| byte == b'\n').count();
        Some(block)
    }
}

#[derive(Default)]
struct Parsed {
    text: TraceText,
    /// The index of each key in the text's keys.
    known: HashMap<Vec<u8>, usize>,
    /// For each key, `true` if it is loaded.
    loaded: Vec<bool>,
}

impl Parsed {
    /// Parses a line of these words, and the value that follows a `set`.
    fn line(&mut self, words: &[&[u8]], lines: &mut Lines<'_>) -> Result<(), &'static str> {
        let (key, step) = match *words {
            [] => return Ok(()),
            [first, ..] if first.starts_with(b"#") => return Ok(()),
            [b"load", key, value] => return self.load(key, word(value)),
            [b"get" | b"gets", ref keys @ ..] if !keys.is_empty() => {
                for key in keys {
                    self.step(key, TraceStep::Get)?;
                }
                return Ok(());
            }
            [b"put", key, value] => (key, TraceStep::Put(word(value))),
            [b"del" | b"delete", key] | [b"delete", key, b"noreply"] => (key, TraceStep::Delete),
            [b"scan", key, length] => {
                let length = number(length).filter(|&length| length > 0);
                let length = length.and_then(|length| u16::try_from(length).ok());
                (
                    key,
                    TraceStep::Scan(
                        length.ok_or("scans a number of pairs that is not 1 to 65535")?,
                    ),
                )
            }
            [b"set", key, flags, time, bytes] | [b"set", key, flags, time, bytes, b"noreply"] => {
                if number(flags).is_none()
                    || number(time.strip_prefix(b"-").unwrap_or(time)).is_none()
                {
                    return Err("has flags or a time that are no numbers");
                }
                let bytes = number(bytes).and_then(|bytes| usize::try_from(bytes).ok());
                let bytes = bytes.ok_or("has a length that is no number")?;
                let value =
                    lines.block(bytes).ok_or("is not followed by as many bytes as it says")?;
                (key, TraceStep::Put(word(value)))
            }
            [b"load" | b"get" | b"gets" | b"put" | b"del" | b"delete" | b"scan" | b"set", ..] => {
                return Err("has too few words or too many; docs/workloads.md says which");
            }
            _ => return Err("is no operation: load, get, put, del, scan, set, delete"),
        };
        self.step(key, step)
    }

    fn step(&mut self, key: &[u8], step: TraceStep) -> Result<(), &'static str> {
        let key = self.key(key)?;
        self.text.steps.push((key, step));
        Ok(())
    }

    fn load(&mut self, key: &[u8], value: u64) -> Result<(), &'static str> {
        if !self.text.steps.is_empty() {
            return Err("loads behind an operation; what is loaded goes in front of all");
        }
        let key = self.key(key)?;
        if core::mem::replace(&mut self.loaded[key], true) {
            return Err("loads a key for the second time");
        }
        self.text.loads.push((key, value));
        Ok(())
    }

    /// Returns the index of the key that is written as `word`.
    fn key(&mut self, word: &[u8]) -> Result<usize, &'static str> {
        let key = unescaped(word);
        if key.len() > KEY_BYTES_MAX {
            return Err("has a key that is longer than 4096 B");
        }
        let next = self.text.keys.len();
        let index = *self.known.entry(key.clone()).or_insert(next);
        if index == next {
            self.text.keys.push(key);
            self.loaded.push(false);
        }
        Ok(index)
    }
}

/// Parses a number, which may have leading zeros.
fn number(word: &[u8]) -> Option<u64> {
    let digits = word.iter().all(u8::is_ascii_digit);
    core::str::from_utf8(word).ok().filter(|_| digits)?.parse().ok()
}

/// Returns the bytes that `word` stands for. A `%` without two digits stands for itself.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let digit = |at: usize| char::from(*word.get(at)?).to_digit(16);
    let mut bytes = Vec::with_capacity(word.len());
    let mut at = 0;
    while at < word.len() {
        let escape = digit(at + 1).zip(digit(at + 2)).filter(|_| word[at] == b'%');
        bytes.push(escape.map_or(word[at], |(high, low)| (high << 4 | low) as u8));
        at += if escape.is_some() { 3 } else { 1 };
    }
    bytes
}
