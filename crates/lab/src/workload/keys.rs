//! The kinds of keys, and the rendering of a key from its token.
//!
//! A plan stores a token of 8 B for each key. The key is rendered from it when its turn comes,
//! while the clock runs, without an allocation. The cost is the same for every system: nothing for
//! a number, the printing of some digits for a made-up byte string, an access to memory for a line
//! of a file.

use super::error::WorkloadError;
use super::hash::{mix64, nth_word};
use super::set::KeySet;
use bristlecone_trees::{Key, Text};
use core::fmt;
use core::str::FromStr;
use serde::{Serialize, Serializer};
use std::path::Path;
use std::sync::Arc;

/// The kind of the keys. A clone is cheap: it copies at most a reference count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keys {
    /// Integers of 8 B.
    #[default]
    Numbers,
    /// Byte strings of 16 hexadecimal digits.
    Digits,
    /// Byte strings of `user` and 16 hexadecimal digits.
    User,
    /// Byte strings of a common prefix of 48 B and 16 hexadecimal digits.
    Prefixed,
    /// Byte strings of 8 to 100 B, all lengths equally frequent. The first 8 B distinguish them.
    Various,
    /// The keys of a file.
    Set(Arc<KeySet>),
}

/// The kinds with a fixed name.
const NAMED: [(&str, Keys); 5] = [
    ("u64", Keys::Numbers),
    ("16", Keys::Digits),
    ("20", Keys::User),
    ("64", Keys::Prefixed),
    ("var", Keys::Various),
];
/// The names of the key sets that `scripts/key-sets.sh` puts into [`SETS_FOLDER`].
const SETS: [&str; 8] =
    ["words", "ipv4", "ipv6", "cities", "city-names", "paths", "lemmas", "unicode-names"];
/// The folder of the key sets, relative to the working folder.
const SETS_FOLDER: &str = "key-sets";

/// The prefix of the keys of [`Keys::User`].
const USER: [u8; 4] = *b"user";
/// The prefix of the keys of [`Keys::Prefixed`].
const PREFIX: [u8; 48] = *b"https://www.example.org/accounts/2026/profile/id";
/// The length of the longest key that is rendered, in bytes.
const BYTES_MAX: usize = 100;
/// The length of the shortest key of [`Keys::Various`], in bytes.
const BYTES_MIN: usize = 8;
/// The bytes of a key of [`Keys::Various`] behind its number.
const REST: [u8; BYTES_MAX - BYTES_MIN] =
    *b"/the-quick-brown-fox-jumps-over-the-lazy-dog/pack-my-box-with-five-dozen-liquor-jugs/0123456";
/// The shift from the index of a key in a set to its token. The low byte of a token must be free:
/// values hold their version there.
const INDEX_SHIFT: u32 = 8;

impl Keys {
    /// Returns the name in results.
    pub fn name(&self) -> &str {
        match self {
            Self::Set(set) => set.name(),
            Self::Numbers => "u64",
            Self::Digits => "16",
            Self::User => "20",
            Self::Prefixed => "64",
            Self::Various => "var",
        }
    }

    /// Returns `true` if the keys are byte strings, and `false` if they are integers of 8 B.
    pub fn are_bytes(&self) -> bool {
        match self {
            Self::Numbers => false,
            Self::Set(set) => set.are_bytes(),
            _ => true,
        }
    }

    /// Returns the mean length in bytes.
    pub fn mean_bytes(&self) -> f64 {
        match self {
            Self::Numbers => 8.0,
            Self::Digits => 16.0,
            Self::User => 20.0,
            Self::Prefixed => 64.0,
            Self::Various => (BYTES_MIN + BYTES_MAX) as f64 / 2.0,
            Self::Set(set) => set.mean_bytes(),
        }
    }

    /// Returns the number of keys, or `None` if there is no limit.
    pub fn count(&self) -> Option<u64> {
        match self {
            Self::Set(set) => Some(set.count()),
            _ => None,
        }
    }

    /// Returns the token of key `index`, which is below [`count`](Self::count). Keys that a file
    /// gives do not depend on `seed`.
    pub(super) fn token(&self, seed: u64, index: u64) -> u64 {
        match self {
            Self::Set(_) => index << INDEX_SHIFT,
            _ => nth_word(seed, index),
        }
    }

    /// Calls `read` with the key of `token` as a trace has it: a number in digits, a byte string as
    /// it is.
    pub(super) fn with_printed<R>(&self, token: u64, read: impl FnOnce(&[u8]) -> R) -> R {
        let mut buffer = KeyBuffer::default();
        if self.are_bytes() {
            return read(self.bytes(token, &mut buffer));
        }
        read(u64::render(self, token, &mut buffer).to_string().as_bytes())
    }

    /// Returns the byte string of `token`.
    #[inline]
    fn bytes<'a>(&'a self, token: u64, buffer: &'a mut KeyBuffer) -> &'a [u8] {
        let buffer = &mut buffer.0;
        match self {
            Self::Numbers => {
                buffer[..8].copy_from_slice(&token.to_be_bytes());
                &buffer[..8]
            }
            Self::Digits => prefixed(buffer, &[], token),
            Self::User => prefixed(buffer, &USER, token),
            Self::Prefixed => prefixed(buffer, &PREFIX, token),
            Self::Various => {
                buffer[..BYTES_MIN].copy_from_slice(&token.to_be_bytes());
                buffer[BYTES_MIN..].copy_from_slice(&REST);
                let lengths = (BYTES_MAX - BYTES_MIN + 1) as u64;
                &buffer[..BYTES_MIN + (mix64(token) % lengths) as usize]
            }
            Self::Set(set) => set.bytes((token >> INDEX_SHIFT) as usize),
        }
    }
}

/// Writes `prefix` and the 16 hexadecimal digits of `token` to `buffer`.
#[inline]
fn prefixed<'a>(buffer: &'a mut [u8; BYTES_MAX], prefix: &[u8], token: u64) -> &'a [u8] {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let (head, rest) = buffer.split_at_mut(prefix.len());
    head.copy_from_slice(prefix);
    for (pair, byte) in rest[..16].as_chunks_mut::<2>().0.iter_mut().zip(token.to_be_bytes()) {
        *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 0xF)]];
    }
    &buffer[..prefix.len() + 16]
}

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Keys {
    type Err = WorkloadError;

    /// Parses a name, the name of a key set, or the path of a file with one key in each line.
    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        if let Some((_, named)) = NAMED.into_iter().find(|(name, _)| *name == text) {
            return Ok(named);
        }
        let path = if SETS.contains(&text) && !Path::new(text).exists() {
            Path::new(SETS_FOLDER).join(text).with_extension("txt")
        } else {
            Path::new(text).to_owned()
        };
        if !path.exists() {
            return Err(WorkloadError::Keys {
                path,
                known: NAMED.map(|(name, _)| name).join(", "),
                sets: SETS.join(", "),
            });
        }
        Ok(Self::Set(Arc::new(KeySet::read(&path)?)))
    }
}

impl Serialize for Keys {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A buffer that holds any rendered key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyBuffer([u8; BYTES_MAX]);

impl Default for KeyBuffer {
    fn default() -> Self {
        Self([0; BYTES_MAX])
    }
}

/// A kind of key that systems take, and its rendering from a token.
pub(crate) trait Render: Key {
    /// The key as bytes, in the same order as keys, for a system that takes only byte strings.
    type Bytes<'a>: AsRef<[u8]> + Copy + Default;

    /// Renders the key of `token`.
    fn render<'a>(keys: &'a Keys, token: u64, buffer: &'a mut KeyBuffer) -> Self::Ref<'a>;
    /// Returns the bytes of `key`.
    fn bytes(key: Self::Ref<'_>) -> Self::Bytes<'_>;
}

impl Render for u64 {
    type Bytes<'a> = [u8; 8];

    #[inline(always)]
    fn render(keys: &Keys, token: u64, _: &mut KeyBuffer) -> u64 {
        match keys {
            Keys::Set(set) => set.number((token >> INDEX_SHIFT) as usize),
            _ => token,
        }
    }
    #[inline(always)]
    fn bytes(key: Self::Ref<'_>) -> Self::Bytes<'_> {
        key.to_be_bytes()
    }
}

impl Render for Text {
    type Bytes<'a> = &'a [u8];

    #[inline(always)]
    fn render<'a>(keys: &'a Keys, token: u64, buffer: &'a mut KeyBuffer) -> &'a [u8] {
        keys.bytes(token, buffer)
    }
    #[inline(always)]
    fn bytes(key: Self::Ref<'_>) -> Self::Bytes<'_> {
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_are_distinct_and_as_long_as_they_are_said_to_be() {
        for (name, keys) in NAMED {
            assert_eq!(name.parse::<Keys>().unwrap(), keys);
            let mut buffer = KeyBuffer::default();
            let mut distinct = HashSet::new();
            let mut total = 0;
            for index in 0..10_000 {
                let key = Text::render(&keys, keys.token(7, index), &mut buffer).to_vec();
                assert!((8..=100).contains(&key.len()));
                total += key.len();
                assert!(distinct.insert(key), "{name}: {index}");
            }
            let mean = total as f64 / 10_000.0;
            // The standard deviation of the mean of the various lengths is 0.27.
            assert!((mean - keys.mean_bytes()).abs() < 2.0, "{name}: {mean}");
        }
    }

    #[test]
    fn keys_look_as_the_manual_says() {
        let mut buffer = KeyBuffer::default();
        let mut text = |keys: Keys| {
            String::from_utf8(Text::render(&keys, 0xAB, &mut buffer).to_vec()).unwrap()
        };
        assert_eq!(text(Keys::Digits), "00000000000000ab");
        assert_eq!(text(Keys::User), "user00000000000000ab");
        assert!(text(Keys::Prefixed).starts_with("https://") && PREFIX.len() == 48);
    }

    #[test]
    fn a_number_is_its_own_key() {
        let keys = Keys::Numbers;
        let token = keys.token(1, 2);
        assert_eq!(u64::render(&keys, token, &mut KeyBuffer::default()), token);
    }

    #[test]
    fn what_is_neither_a_name_nor_a_file_is_refused_with_where_to_get_it() {
        for text in ["no/such/file", "words"] {
            let refusal = text.parse::<Keys>().unwrap_err().to_string();
            assert!(
                refusal.contains("scripts/key-sets.sh") && refusal.contains("var"),
                "{refusal}"
            );
        }
    }
}
