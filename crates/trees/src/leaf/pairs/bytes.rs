//! A leaf of pairs in the bytes of a file, for a reader that must not map the pool.

use super::{PairLeaf, STATE, State, load_tagged_entry, note, slots, verify};
use crate::fingerprint;
use crate::key::{Key, Record};
use crate::leaf::{Leaf, TaggedEntry, link};
use bristlecone_pmem::{Corrupt, PmPtr};

/// The bit of a latch word that marks a leaf which no pointer reaches any more.
const OBSOLETE: u64 = 1 << 1;

/// A copy of a leaf that may be damaged. All methods are total: any bytes give a result or an
/// error.
#[derive(Clone, Debug)]
pub struct LeafBytes {
    at: u64,
    words: [u64; PairLeaf::WORDS],
}

impl LeafBytes {
    /// The size of a leaf in bytes.
    pub const BYTES: usize = 8 * PairLeaf::WORDS;

    /// Returns the leaf at offset `at` of a file, whose bytes are `bytes`, without its newest write
    /// if a crash has torn that one.
    pub fn new(at: u64, bytes: &[u8; Self::BYTES]) -> Self {
        let (words, _) = bytes.as_chunks();
        let mut words: [_; PairLeaf::WORDS] =
            core::array::from_fn(|i| u64::from_le_bytes(words[i]));
        if let Ok(State(settled)) = note::settled(at, |word| words[word], false) {
            words[STATE] = settled;
        }
        Self { at, words }
    }

    /// Returns the offset of the leaf.
    pub const fn at(&self) -> u64 {
        self.at
    }

    /// Compares the leaf with its checksum.
    ///
    /// # Errors
    /// The leaf is damaged, or of a kind unknown to this release.
    pub fn verify(&self) -> Result<(), Corrupt> {
        verify(self.at, |word| self.words[word])
    }

    /// Returns the offset of the right neighbour; null for the last leaf.
    ///
    /// # Errors
    /// The link does not have its check.
    pub fn next(&self) -> Result<PmPtr, Corrupt> {
        link::checked(self.at + 8 * PairLeaf::NEXT as u64, self.words[PairLeaf::NEXT])
    }

    /// Returns `true` if a merge has moved the entries of this leaf to its left neighbour. The
    /// latch word says so, which is transient: after a power cut it may say nothing.
    pub const fn is_merged_away(&self) -> bool {
        self.words[PairLeaf::LATCH] & OBSOLETE != 0
    }

    /// Returns the separator word of the low key.
    pub const fn low(&self) -> u64 {
        self.words[PairLeaf::LOW]
    }

    /// Returns `true` if an entry of the leaf names a record and has the fingerprint of `key`, the
    /// key of that record. Only then can the record vouch for an entry of a damaged leaf.
    pub fn names_record_of(&self, tagged: TaggedEntry, key: &[u8]) -> bool {
        !Record::is_inline(tagged.entry.encoding)
            && fingerprint::of(Record::hash(key)) == tagged.fingerprint
    }

    /// Yields the entries that the state word says are valid, with their fingerprints.
    pub fn entries(&self) -> impl Iterator<Item = TaggedEntry> {
        slots(State(self.words[STATE]).valid())
            .map(|slot| load_tagged_entry(|word| self.words[word], slot))
    }
}
