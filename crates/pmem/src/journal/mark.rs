//! The mark: what an open must know of the journal before it reads it.
//!
//! Two sectors of the pool file, written in turn, each of 16 words and zeros:
//!
//! | offset | bytes | field | meaning |
//! | --- | --- | --- | --- |
//! | 0 | 8 | magic | `BRSTLCNJ` |
//! | 8 | 8 | sequence | one more at each writing; the higher one counts |
//! | 16 | 8 | nonce | random, drawn at each open with a journal and by `make_whole` |
//! | 24 | 8 | needs | 1: the pool needs its journal; 0: it is whole |
//! | 32 | 8 | `segment_bytes` | size of a segment |
//! | 40 | 8 | segments | number of files |
//! | 48 | 8 | segment | where a replay starts: number of the segment |
//! | 56 | 8 | offset | the offset in it |
//! | 64 | 8 | position | the position of the first record there |
//! | 72 | 8 | chain | the sum of the frame before |
//! | 80 | 8 | needed | the position that pages of the pool need |
//! | 88 | 32 | | zeros |
//! | 120 | 8 | checksum | CRC-32C of the 15 words before |

use super::error::JournalError;
use super::frame::SECTOR_BYTES;
use super::point::{Geometry, Point};
use crate::checksum::checksum_words;
use crate::error::Corrupt;
use std::fs::File;
use std::os::unix::fs::FileExt;

const WORDS: usize = 16;
const CHECKSUM: usize = WORDS - 1;
/// The bounds of the sectors in the pool file. No page of working memory is written there.
pub(super) const MARK_BYTES: core::ops::Range<usize> = 0x800..0xc00;

/// The mark of a journal, as one of its sectors holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(super) sequence: u64,
    pub(super) nonce: u64,
    pub(super) needs: bool,
    pub(super) geometry: Geometry,
    pub(super) start: Point,
    pub(super) needed: u64,
}

impl Mark {
    /// The first word of a mark.
    pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"BRSTLCNJ");
    /// The offsets of the two sectors in the pool file.
    pub(crate) const SECTORS: [u64; 2] = [0x800, 0xa00];

    /// Reads the newer of the two marks in the first page of a pool file, or `None` if it has none.
    ///
    /// # Errors
    /// A sector holds something else than a mark, or a mark with impossible sizes.
    pub(crate) fn read(page: &[u8]) -> Result<Option<Self>, Corrupt> {
        let [first, second] = Self::SECTORS.map(|at| Self::decode(page, at));
        Ok(match (first?, second?) {
            (Some(a), Some(b)) => Some(if a.sequence > b.sequence { a } else { b }),
            (a, b) => a.or(b),
        })
    }

    /// Returns `true` if the pool file alone is not whole.
    pub(crate) fn needs_journal(&self) -> bool {
        self.needs
    }

    /// Returns `true` if the pool needs a journal for which no checkpoint has written a mark.
    pub(super) fn is_first(&self) -> bool {
        self.needs && self.start == Point::first(self.nonce) && self.needed == 0
    }

    /// Makes the mark, which was read in `pool`, survive a power cut: a process that was killed may
    /// have left it in the cache of the system, and a sync that failed may have called it clean.
    pub(super) fn settle(&self, pool: &File) -> Result<(), JournalError> {
        let (at, sector) = self.encode();
        let settled = pool.write_all_at(&sector, at).and_then(|()| pool.sync_data());
        settled.map_err(|e| JournalError::system("write the journal's mark", e))
    }

    /// Returns the offset at which the mark is written, and its sector.
    pub(super) fn encode(&self) -> (u64, Vec<u8>) {
        let mut words = [0; WORDS];
        words[..11].copy_from_slice(&[
            Self::MAGIC,
            self.sequence,
            self.nonce,
            u64::from(self.needs),
            self.geometry.segment_bytes,
            self.geometry.segments,
            self.start.segment,
            self.start.offset,
            self.start.position,
            u64::from(self.start.chain),
            self.needed,
        ]);
        words[CHECKSUM] = checksum_words(words[..CHECKSUM].iter().copied());
        let mut sector: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        sector.resize(SECTOR_BYTES as usize, 0);
        (Self::SECTORS[(self.sequence % 2) as usize], sector)
    }

    fn decode(page: &[u8], at: u64) -> Result<Option<Self>, Corrupt> {
        let (words, _) = page[at as usize..at as usize + WORDS * 8].as_chunks();
        let words: [u64; WORDS] = core::array::from_fn(|i| u64::from_le_bytes(words[i]));
        if words == [0; WORDS] {
            return Ok(None);
        }
        let expected = checksum_words(words[..CHECKSUM].iter().copied());
        let corrupt = |what, expected, found| Corrupt { at, what, expected, found };
        if words[0] != Self::MAGIC || words[CHECKSUM] != expected {
            return Err(corrupt("checksum of the journal's mark", expected, words[CHECKSUM]));
        }
        let geometry = Geometry { segment_bytes: words[4], segments: words[5] };
        if geometry.segment_bytes < 4 * SECTOR_BYTES
            || !geometry.segment_bytes.is_multiple_of(SECTOR_BYTES)
            || !(1..=SEGMENTS_MAX).contains(&geometry.segments)
        {
            return Err(corrupt("size of a segment in the journal's mark", 0, words[4]));
        }
        if words[7] > geometry.segment_bytes || !words[7].is_multiple_of(SECTOR_BYTES) {
            return Err(corrupt("start in the journal's mark", geometry.segment_bytes, words[7]));
        }
        for found in [1, 6, 8, 10].map(|index| words[index]) {
            if found >= COUNT_END {
                return Err(corrupt("number in the journal's mark", COUNT_END, found));
            }
        }
        Ok(Some(Self {
            sequence: words[1],
            nonce: words[2],
            needs: words[3] != 0,
            geometry,
            start: Point {
                segment: words[6],
                offset: words[7],
                position: words[8],
                chain: words[9] as u32,
            },
            needed: words[10],
        }))
    }
}

/// The bound of each count. No real journal counts so far.
const COUNT_END: u64 = 1 << 62;
/// The largest number of segments.
pub(super) const SEGMENTS_MAX: u64 = 4096;
