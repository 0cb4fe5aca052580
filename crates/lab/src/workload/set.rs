//! The keys of a file, one in each line.
//!
//! 1. Keys are distinct, not empty, and at most 4096 B long.
//! 2. If every line is a number as [`canonical`] defines it, the keys are integers of 8 B.
//!    Otherwise they are the bytes of the lines.
//! 3. A fixed seed shuffles the keys, because most files are sorted and the load follows this
//!    order. Keys that are neighbours in this order lie side by side in memory.

use super::error::WorkloadError;
use bristlecone_trees::key::KEY_BYTES_MAX;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use std::collections::HashSet;
use std::path::Path;

/// The distinct keys of a file, shuffled.
#[derive(Debug, PartialEq, Eq)]
pub struct KeySet {
    name: String,
    keys: Listed,
}

#[derive(Debug, PartialEq, Eq)]
enum Listed {
    Numbers(Vec<u64>),
    /// All keys in one buffer, and the end of each.
    Bytes {
        text: Vec<u8>,
        ends: Vec<usize>,
    },
}

impl KeySet {
    /// Reads the keys of the file at `path`. The set has the name of the file.
    ///
    /// # Errors
    /// The file cannot be read or is empty, or a line is empty, too long, or a repetition.
    pub fn read(path: &Path) -> Result<Self, WorkloadError> {
        /// The seed of the order.
        const SEED: u64 = 0x6B65_7973;
        let text = std::fs::read(path)
            .map_err(|source| WorkloadError::File { path: path.to_owned(), source })?;
        let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let bad =
            |line, what| WorkloadError::KeyLine { path: path.to_owned(), line: line + 1, what };
        let text = text.strip_suffix(b"\n").unwrap_or(&text);
        let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
        let mut seen = HashSet::with_capacity(lines.len());
        for (index, line) in lines.iter().enumerate() {
            if line.is_empty() {
                return Err(bad(index, "is empty"));
            }
            if line.len() > KEY_BYTES_MAX {
                return Err(bad(index, "is longer than the 4096 B of a key"));
            }
            if !seen.insert(*line) {
                return Err(bad(index, "repeats an earlier one"));
            }
        }
        drop(seen);
        lines.shuffle(&mut SmallRng::seed_from_u64(SEED));
        Ok(Self::new(name, &lines))
    }

    /// Returns the set of `keys`, which are distinct, in this order.
    pub(super) fn new(name: String, keys: &[&[u8]]) -> Self {
        let numbers: Option<Vec<u64>> = keys.iter().map(|key| canonical(key)).collect();
        if let Some(numbers) = numbers {
            return Self { name, keys: Listed::Numbers(numbers) };
        }
        let mut text = Vec::with_capacity(keys.iter().map(|key| key.len()).sum());
        let mut ends = Vec::with_capacity(keys.len());
        for key in keys {
            text.extend_from_slice(key);
            ends.push(text.len());
        }
        Self { name, keys: Listed::Bytes { text, ends } }
    }

    /// Returns the name in results.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of keys.
    pub fn count(&self) -> u64 {
        match &self.keys {
            Listed::Numbers(numbers) => numbers.len() as u64,
            Listed::Bytes { ends, .. } => ends.len() as u64,
        }
    }

    pub(super) fn are_bytes(&self) -> bool {
        matches!(self.keys, Listed::Bytes { .. })
    }

    pub(super) fn mean_bytes(&self) -> f64 {
        match &self.keys {
            Listed::Numbers(_) => 8.0,
            Listed::Bytes { text, ends } => text.len() as f64 / ends.len().max(1) as f64,
        }
    }

    /// Returns key `index` of a set of byte strings.
    #[inline]
    pub(super) fn bytes(&self, index: usize) -> &[u8] {
        match &self.keys {
            Listed::Bytes { text, ends } => {
                let start = if index == 0 { 0 } else { ends[index - 1] };
                &text[start..ends[index]]
            }
            Listed::Numbers(_) => unreachable!("only targets of numbers take a set of numbers"),
        }
    }

    /// Returns key `index` of a set of numbers.
    #[inline]
    pub(super) fn number(&self, index: usize) -> u64 {
        match &self.keys {
            Listed::Numbers(numbers) => numbers[index],
            Listed::Bytes { .. } => unreachable!("only targets of bytes take a set of bytes"),
        }
    }
}

/// Parses `text` as a number without a sign or a leading zero.
pub(super) fn canonical(text: &[u8]) -> Option<u64> {
    let plain =
        text.iter().all(u8::is_ascii_digit) && (text.len() == 1 || text.first() != Some(&b'0'));
    if !plain {
        return None;
    }
    core::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(text: &[u8]) -> Result<KeySet, String> {
        let mut file = tempfile::Builder::new().suffix(".txt").tempfile().unwrap();
        file.write_all(text).unwrap();
        KeySet::read(file.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn lines_are_keys_in_an_order_that_is_always_the_same() {
        let lines: Vec<String> = (0..1000).map(|i| format!("key-{i:04}\n")).collect();
        let text = lines.concat();
        let set = read(text.as_bytes()).unwrap();
        assert_eq!((set.count(), set.are_bytes()), (1000, true));
        assert!((set.mean_bytes() - 8.0).abs() < 1e-9);
        let keys: Vec<&[u8]> = (0..1000).map(|index| set.bytes(index)).collect();
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        assert_ne!(keys, sorted);
        assert!(sorted.iter().zip(text.lines()).all(|(key, line)| *key == line.as_bytes()));
        let again = read(text.as_bytes()).unwrap();
        assert!((0..1000).all(|index| set.bytes(index) == again.bytes(index)));
    }

    #[test]
    fn lines_that_are_all_numbers_are_numbers() {
        let set = read(b"0\n18446744073709551615\n7").unwrap();
        let mut numbers = [set.number(0), set.number(1), set.number(2)];
        numbers.sort_unstable();
        assert_eq!((numbers, set.are_bytes()), ([0, 7, u64::MAX], false));
        for text in ["0\n18446744073709551616\n", "0\n07\n", "0\n+7\n", "0\n7 \n"] {
            assert!(read(text.as_bytes()).unwrap().are_bytes(), "{text}");
        }
        assert!(read(b"0\n\xFF\n").unwrap().are_bytes());
    }

    #[test]
    fn a_refusal_names_the_line() {
        let long = [b"a\n", &[b'k'; 4097][..]].concat();
        for (text, line, what) in [
            (&b""[..], "line 1", "empty"),
            (b"a\n\nb\n", "line 2", "empty"),
            (b"a\nb\na\n", "line 3", "repeats"),
            (&long, "line 2", "4096"),
        ] {
            let refusal = read(text).unwrap_err();
            assert!(refusal.contains(line) && refusal.contains(what), "{refusal}");
        }
    }
}
