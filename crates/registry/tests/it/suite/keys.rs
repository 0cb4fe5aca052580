//! Keys for the suite: numbers become keys of either kind, in spaces that are hard for trees.

use bristlecone_trees::{Key, Text};

/// The distribution of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// Adjacent keys.
    Dense,
    /// In groups of 32, far apart; strings share long prefixes within a group.
    Clustered,
    /// The extremes of what is legal: 0 and `u64::MAX`; the empty string, zeros, the longest.
    Edges,
    /// Keys anywhere in the space.
    Scattered,
}

/// All distributions.
pub(crate) const SPACES: [Space; 4] =
    [Space::Dense, Space::Clustered, Space::Edges, Space::Scattered];

/// A kind of key that the suite can make.
pub(crate) trait TestKey: Key {
    /// Returns the `n`-th key of the space. Different numbers mostly give different keys, not
    /// always.
    fn nth(space: Space, n: u64) -> Self::Owned;
}

/// An odd number, so that multiplying by it permutes the words.
const SCATTER: u64 = 0xD134_2543_DE82_EF95;

impl TestKey for u64 {
    fn nth(space: Space, n: u64) -> u64 {
        match space {
            Space::Dense => n,
            Space::Clustered => (n >> 5).wrapping_mul(0x0001_0000_0000_1000) + (n & 31),
            Space::Edges if n.is_multiple_of(2) => n / 2,
            Space::Edges => u64::MAX - n / 2,
            Space::Scattered => n.wrapping_mul(SCATTER),
        }
    }
}

impl TestKey for Text {
    fn nth(space: Space, n: u64) -> Vec<u8> {
        match space {
            Space::Dense => format!("{n:08}").into_bytes(),
            Space::Clustered => {
                format!("a/prefix/that/all/share/{:04}/{}", n >> 5, n & 31).into_bytes()
            }
            Space::Edges => edge_text(n),
            Space::Scattered => {
                let bytes = n.wrapping_mul(SCATTER).to_be_bytes();
                bytes.into_iter().cycle().take((n * 7 % 41) as usize).collect()
            }
        }
    }
}

fn edge_text(n: u64) -> Vec<u8> {
    match n {
        0..=40 => vec![0; n as usize],
        41 => vec![0xff; 4096],
        42 => vec![0; 4096],
        43 => vec![b'a'; 4096],
        44 => vec![0xff; 4095],
        _ => {
            // Zeros before, within and after the key: padding must not look like the key.
            let mut key = vec![0; (n % 7) as usize];
            key.extend_from_slice(&n.to_be_bytes()[6..]);
            key.resize(key.len() + (n % 5) as usize, 0);
            key
        }
    }
}
