//! The superblock: the first thing that an open checks.
//!
//! Two copies, at offsets 0x0 and 0x1000, each of 16 words:
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | magic | data | `BRSTLCN1` |
//! | 8 | 8 | version | data | format version |
//! | 16 | 16 | uuid | data | drawn at creation |
//! | 32 | 8 | sequence | data | the copy with the higher one is newer |
//! | 40 | 8 | generation | data | times the pool was opened; latches carry it |
//! | 48 | 8 | `pool_bytes` | data | size; a crash during growth may leave a longer file |
//! | 56 | 8 | clean | data | 1: closed cleanly, the free map is valid; 0: open, or crashed |
//! | 64 | 8 | `image` | data | offset of the free map |
//! | 72 | 8 | `image_bytes` | data | its length |
//! | 80 | 8 | `image_crc` | data | its CRC-32C |
//! | 88 | 32 | spare | data | zero |
//! | 120 | 8 | checksum | commit | CRC-32C of the 15 words before |
//!
//! 1. A copy is written, flushed and fenced before the other is touched, so one copy is whole at
//!    any time.
//! 2. An open writes both copies as not clean before anything else changes. So damage to the newer
//!    copy cannot bring back an older `clean`.

use super::{FORMAT_VERSION, PoolError};
use crate::checksum::checksum_words;
use crate::defect::Defect;
use crate::error::Corrupt;
use crate::layout::{CHUNK_BYTES, POOL_BYTES_MAX, POOL_BYTES_MIN};
use crate::medium::Medium;
use crate::word::{PmPtr, PmWord};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"BRSTLCN1");
pub(super) const COPIES: [u64; 2] = [0, 0x1000];
pub(super) const WORDS: usize = 16;
const CHECKSUM: usize = WORDS - 1;
/// The bound of sequence and generation.
const COUNT_END: u64 = 1 << 62;

/// The fields of a superblock that change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Superblock {
    pub(super) uuid: [u64; 2],
    pub(super) sequence: u64,
    pub(super) generation: u64,
    pub(super) pool_bytes: u64,
    pub(super) free_map: Option<SavedFreeMap>,
}

/// The place, size and checksum of the free map that a clean close saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SavedFreeMap {
    pub(super) at: PmPtr,
    pub(super) bytes: u64,
    pub(super) crc: u32,
}

impl Superblock {
    fn encode(&self) -> [u64; WORDS] {
        let free_map = self.free_map.unwrap_or(SavedFreeMap { at: PmPtr::NULL, bytes: 0, crc: 0 });
        let mut words = [0; WORDS];
        words[..11].copy_from_slice(&[
            MAGIC,
            u64::from(FORMAT_VERSION),
            self.uuid[0],
            self.uuid[1],
            self.sequence,
            self.generation,
            self.pool_bytes,
            u64::from(self.free_map.is_some()),
            free_map.at.offset(),
            free_map.bytes,
            u64::from(free_map.crc),
        ]);
        words[CHECKSUM] = checksum(&words);
        words
    }

    /// Returns the superblock in `words`, which were found at offset `at`, or `None` if they are
    /// damaged: the other copy may be whole.
    ///
    /// # Errors
    /// The copy has a newer version.
    fn decode(words: &[u64; WORDS], at: u64) -> Result<Option<Self>, PoolError> {
        if words[0] != MAGIC || words[CHECKSUM] != checksum(words) {
            return Ok(None);
        }
        if words[1] != u64::from(FORMAT_VERSION) {
            let found = u32::try_from(words[1]).unwrap_or(u32::MAX);
            return Err(PoolError::Version { at: at + 8, found, supported: FORMAT_VERSION });
        }
        let free_map = (words[7] == 1).then(|| SavedFreeMap {
            at: PmPtr::new(words[8]),
            bytes: words[9],
            crc: words[10] as u32,
        });
        Ok(Some(Self {
            uuid: [words[2], words[3]],
            sequence: words[4],
            generation: words[5],
            pool_bytes: words[6],
            free_map,
        }))
    }

    /// Reads both copies and returns the newer one that is whole.
    pub(super) fn read<M: Medium>(medium: &M, copies: [&[PmWord]; 2]) -> Result<Self, PoolError> {
        let read = |copy: &[PmWord]| core::array::from_fn(|i| medium.load(&copy[i]));
        let mut words: [[u64; WORDS]; 2] = copies.map(read);
        if M::INJECTS_DEFECTS && medium.injects(Defect::PoolCreation) {
            for copy in &mut words {
                copy[CHECKSUM] = checksum(copy);
            }
        }
        let first = Self::decode(&words[0], COPIES[0])?;
        let second = Self::decode(&words[1], COPIES[1])?;
        match (first, second) {
            (Some(a), Some(b)) => Ok(if a.sequence > b.sequence { a } else { b }),
            (Some(one), None) | (None, Some(one)) => Ok(one),
            (None, None) if words.iter().all(|copy| copy[0] != MAGIC) => {
                Err(PoolError::NotAPool { found: words[0][0] })
            }
            (None, None) => Err(PoolError::Superblocks),
        }
    }

    /// Writes both copies of a new pool. Durable on return.
    ///
    /// ```text
    /// W both copies, but not their magic numbers
    /// F both |           crash before C: no magic number, so no pool yet
    /// C magic numbers of both    crash after either: a pool, whole in that copy
    /// F both |                   -> durable   budget: 6 lines, 2 fences
    /// ```
    pub(super) fn write_new<M: Medium>(&mut self, medium: &M, copies: [&[PmWord]; 2]) {
        let order = [copies[1], copies[0]];
        let without_magic = !(M::INJECTS_DEFECTS && medium.injects(Defect::PoolCreation));
        for copy in order {
            self.sequence += 1;
            for (word, value) in copy.iter().zip(self.encode()).skip(usize::from(without_magic)) {
                medium.store(word, value);
            }
            medium.flush(copy);
        }
        let [first, second] = order;
        medium.commit(&first[0], MAGIC, medium.fence());
        medium.store(&second[0], MAGIC); // The fence above covers both copies.
        for copy in order {
            medium.flush(&copy[..1]);
        }
        let _ = medium.fence();
        debug_assert_eq!(self.sequence, 2, "the sequence of a new pool begins at 0");
    }

    /// Writes the older copy and leaves the other unchanged. Durable on return.
    ///
    /// ```text
    /// W copy            2 lines       crash here: whole, or its checksum fails; the other is whole
    /// F copy |          -> durable    budget: 2 lines, 1 fence
    /// ```
    pub(super) fn write_one<M: Medium>(&mut self, medium: &M, copies: [&[PmWord]; 2]) {
        self.sequence += 1;
        let copy = copies[(self.sequence % 2) as usize];
        for (word, value) in copy.iter().zip(self.encode()) {
            medium.store(word, value);
        }
        let _ = medium.persist(copy);
    }

    /// Writes both copies, one after the other. Durable on return.
    pub(super) fn write_both<M: Medium>(&mut self, medium: &M, copies: [&[PmWord]; 2]) {
        self.write_one(medium, copies);
        self.write_one(medium, copies);
    }

    /// Checks the fields against the size of the medium.
    ///
    /// # Errors
    /// The medium is too short, or a field has an impossible value.
    pub(super) fn check(&self, medium_bytes: u64) -> Result<(), PoolError> {
        if self.pool_bytes > medium_bytes {
            return Err(PoolError::Truncated { expected: self.pool_bytes, found: medium_bytes });
        }
        let corrupt = |at, what, expected, found| Corrupt { at, what, expected, found };
        if self.pool_bytes < POOL_BYTES_MIN
            || self.pool_bytes > POOL_BYTES_MAX
            || !self.pool_bytes.is_multiple_of(CHUNK_BYTES)
        {
            let minimum = POOL_BYTES_MIN;
            let what = "pool size in the superblock";
            return Err(corrupt(48, what, minimum, self.pool_bytes).into());
        }
        // No real pool counts to 2^62; such a value is damage.
        for (at, what, found) in [
            (32, "sequence in the superblock", self.sequence),
            (40, "generation in the superblock", self.generation),
        ] {
            if found >= COUNT_END {
                return Err(corrupt(at, what, COUNT_END, found).into());
            }
        }
        Ok(())
    }
}

/// Returns `true` if `file` contains no pool: all of it is zero except the two superblocks, and the
/// one at offset 0 has no magic number. Creation writes that number last. So the file is new, or a
/// crash interrupted its creation, and overwriting it loses nothing.
///
/// # Errors
/// The file cannot be read.
pub fn holds_nothing(file: &File) -> io::Result<bool> {
    let spare = [8..WORDS * 8, COPIES[1] as usize..COPIES[1] as usize + WORDS * 8];
    let mut buffer = vec![0; 1 << 20];
    let mut start = 0;
    loop {
        let bytes = match file.read_at(&mut buffer, start as u64) {
            Ok(0) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let is_spare = |at: usize| spare.iter().any(|range| range.contains(&(start + at)));
        if buffer[..bytes].iter().enumerate().any(|(at, &byte)| byte != 0 && !is_spare(at)) {
            return Ok(false);
        }
        start += bytes;
    }
}

fn checksum(words: &[u64; WORDS]) -> u64 {
    checksum_words(words[..CHECKSUM].iter().copied())
}

#[cfg(test)]
mod tests;
