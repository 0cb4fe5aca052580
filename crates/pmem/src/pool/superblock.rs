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
//! | 40 | 8 | generation | data | times the pool was opened, its creation counted |
//! | 48 | 8 | `pool_bytes` | data | size; a crash during growth may leave a longer file |
//! | 56 | 8 | clean | data | 1: closed cleanly, the free map is valid; 0: open, or crashed |
//! | 64 | 8 | `image` | data | clean: offset of the free map; not clean: inode number, or 0 |
//! | 72 | 8 | `image_bytes` | data | clean: its length; not clean: birth of the file, in ns (I3) |
//! | 80 | 8 | `image_crc` | data | clean: its CRC-32C; not clean: 0 |
//! | 88 | 8 | nonce | data | drawn at each creation and open; latches carry its low 24 bits |
//! | 96 | 16 | boot | data | id of the boot in which it was opened; 0: none; ones: torn |
//! | 112 | 8 | features | data | bits; an unknown one in the low half refuses the open |
//! | 120 | 8 | checksum | commit | CRC-32C of the 15 words before |
//!
//! 1. A copy is written, flushed and fenced before the other is touched, so one copy is whole at
//!    any time.
//! 2. An open writes both copies as not clean before anything else changes, and they are durable
//!    before that. So damage to the newer copy cannot bring back an older `clean`, and a clean copy
//!    is the newest statement of a file whose other pages are as the close left them.
//! 3. Until a close, both copies name the file that the pool is open in. So a copy of that file is
//!    told from it. Where inode numbers do not last, they name the type of the file system in place
//!    of the birth.
//! 4. The nonce differs from the one before, and from 0, in its low 24 bits. So every latch word
//!    that the file holds at an open is stale.

use super::{FORMAT_VERSION, PoolError};
use crate::checksum::checksum_words;
use crate::defect::Defect;
use crate::error::Corrupt;
use crate::layout::{CHUNK_BYTES, HEADER_BYTES, POOL_BYTES_MAX, POOL_BYTES_MIN};
use crate::medium::{self, Domain, LockedFile, Medium, MediumError};
use crate::word::{PmPtr, PmWord};
use core::ops::Range;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"BRSTLCN1");
/// The offsets of the two copies of the superblock.
pub(super) const COPIES: [u64; 2] = [0, 0x1000];
pub(super) const WORDS: usize = 16;
const CHECKSUM: usize = WORDS - 1;
const FEATURES: usize = 14;
/// The features that a reader must know. A reader may ignore the others.
const REQUIRED_FEATURES: u64 = 0xffff_ffff;
/// The required features that this library knows.
const KNOWN_FEATURES: u64 = JOURNAL;
/// The feature of a pool that was open with a journal and not closed.
const JOURNAL: u64 = 1;
/// The part of a nonce that latch words carry.
const LATCH_BITS: u64 = (1 << 24) - 1;
/// The bound of sequence and generation.
const COUNT_END: u64 = 1 << 62;
/// The boot id of a pool whose device has refused pages. No boot has it.
const TORN: [u64; 2] = [u64::MAX; 2];

/// The fields of a superblock that change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Superblock {
    pub(super) uuid: [u64; 2],
    pub(super) sequence: u64,
    pub(super) generation: u64,
    pub(super) pool_bytes: u64,
    pub(super) free_map: Option<SavedFreeMap>,
    /// The random number of the last creation or open.
    pub(super) nonce: u64,
    /// The id of the boot of the machine in which the pool was last opened; zeros: not known, or
    /// the pool survives a restart; all ones: the device has refused pages.
    pub(super) boot_id: [u64; 2],
    pub(super) features: u64,
    /// The [identity](Medium::file_id) of the file in which the pool is open; zeros: closed, or not
    /// known.
    pub(super) file_id: [u64; 2],
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
        let [inode, birth] = self.file_id;
        let place = |map: SavedFreeMap| [map.at.offset(), map.bytes, u64::from(map.crc)];
        let [image, image_bytes, image_crc] = self.free_map.map_or([inode, birth, 0], place);
        let mut words = [0; WORDS];
        words[..CHECKSUM].copy_from_slice(&[
            MAGIC,
            u64::from(FORMAT_VERSION),
            self.uuid[0],
            self.uuid[1],
            self.sequence,
            self.generation,
            self.pool_bytes,
            u64::from(self.free_map.is_some()),
            image,
            image_bytes,
            image_crc,
            self.nonce,
            self.boot_id[0],
            self.boot_id[1],
            self.features,
        ]);
        words[CHECKSUM] = checksum(&words);
        words
    }

    /// Returns the superblock in `words`, which were found at offset `at`, or `None` if they are
    /// damaged: the other copy may be whole.
    ///
    /// # Errors
    /// The copy has another version, or needs a feature that this library does not know.
    fn decode(words: &[u64; WORDS], at: u64) -> Result<Option<Self>, PoolError> {
        if words[0] != MAGIC || words[CHECKSUM] != checksum(words) {
            return Ok(None);
        }
        if words[1] != u64::from(FORMAT_VERSION) {
            let found = u32::try_from(words[1]).unwrap_or(u32::MAX);
            let (at, supported) = (at + 8, FORMAT_VERSION);
            return Err(if found < supported {
                PoolError::OldVersion { at, found, supported }
            } else {
                PoolError::Version { at, found, supported }
            });
        }
        let unknown = words[FEATURES] & REQUIRED_FEATURES & !KNOWN_FEATURES;
        if unknown != 0 {
            let at = at + 8 * FEATURES as u64;
            return Err(PoolError::Feature { at, bit: unknown.trailing_zeros() });
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
            nonce: words[11],
            boot_id: [words[12], words[13]],
            features: words[FEATURES],
            file_id: if free_map.is_some() { [0; 2] } else { [words[8], words[9]] },
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

    /// Begins an open, or the creation, on `medium`: marks the pool as open in its file, counts it,
    /// and draws the nonce. The caller writes the copies.
    pub(super) fn begin<M: Medium>(&mut self, medium: &M) {
        self.free_map = None;
        self.generation += 1;
        self.nonce = next_nonce(medium.draw(), self.generation, self.nonce);
        let is_durable = medium.domain().covers(Domain::Disk);
        self.boot_id = if is_durable { [0; 2] } else { medium.boot_id() };
        self.file_id = medium.file_id();
        self.features &= !JOURNAL;
        if medium.domain() == Domain::Disk {
            self.features |= JOURNAL;
        }
    }

    /// Ends an open: the file needs no journal any more, and a copy of it is whole. The caller
    /// writes a copy.
    pub(super) fn end(&mut self) {
        self.features &= !JOURNAL;
        self.file_id = [0; 2];
    }

    /// Marks the pool as one that may be torn, because a sync of its pages failed: the system
    /// reports that once, and may then drop the pages that it could not write. The mark is best
    /// effort: the device may refuse it, too.
    pub(super) fn write_torn<M: Medium>(&mut self, medium: &M, copies: [&[PmWord]; 2]) {
        self.boot_id = TORN;
        self.write_both(medium, copies);
        let _ = medium.sync_front(HEADER_BYTES);
    }

    /// Returns `true` if all pages of the pool were durable when this was written.
    pub(super) fn is_closed(&self) -> bool {
        self.free_map.is_some() || self.boot_id == [0; 2]
    }

    /// Checks that no restart of the machine can have lost writes of the pool. A clean close has
    /// made all of them durable. In a domain that covers a power cut each operation does so, and an
    /// open writes no boot id. The domain of this medium says nothing: the file may be a copy.
    ///
    /// # Errors
    /// The pool was open in the cache of a file when the machine, or another one, was running under
    /// another boot id, or the device has refused pages.
    pub(super) fn check_boot<M: Medium>(&self, medium: &M) -> Result<(), PoolError> {
        let now = medium.boot_id();
        let is_known = self.boot_id == TORN || now != [0; 2];
        if self.is_closed() || !is_known || self.boot_id == now {
            return Ok(());
        }
        let [opened_in, now] =
            [self.boot_id, now].map(|[a, b]| u128::from(a) << 64 | u128::from(b));
        Err(PoolError::MayBeTorn { opened_in, now })
    }

    /// Checks that the pool was closed, or was open in the file that has the id `found`. A copy
    /// that was made while a process wrote mixes pages of different times. One that was made after
    /// the process had died is whole; nothing in it says which of the two it is. A copy within a
    /// file system whose numbers do not last is not told.
    ///
    /// # Errors
    /// The pool was not closed, and was open in another file.
    pub(super) fn check_file(&self, found: [u64; 2]) -> Result<(), PoolError> {
        let original = self.file_id;
        let are_known = original != [0; 2] && found != [0; 2];
        let [original_birth, birth] = [original[1], found[1]];
        // The birth tells a copy that got the number of a removed original.
        let is_other_birth = original_birth != birth && original_birth != 0 && birth != 0;
        if are_known && (original[0] != found[0] || is_other_birth) {
            return Err(PoolError::UnclosedCopy { original: original[0], found: found[0] });
        }
        Ok(())
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

/// Returns the error for a medium that is shorter than any pool: it holds a pool that was cut
/// short, or none.
pub(super) fn too_short<M: Medium>(medium: &M) -> PoolError {
    let bytes = medium.len();
    let first = |at| medium::words_at(medium, PmPtr::new(at), 1).map(|word| medium.load(&word[0]));
    if COPIES.into_iter().any(|at| first(at).is_ok_and(|word| word == MAGIC)) {
        return PoolError::Truncated { expected: POOL_BYTES_MIN, found: bytes };
    }
    match first(0) {
        Ok(found) => PoolError::NotAPool { found },
        Err(_) => PoolError::TooSmall { bytes, minimum: POOL_BYTES_MIN },
    }
}

/// Returns the nonce of an open: the number `drawn`, changed until its low 24 bits differ from 0
/// and from those of the nonce before. A medium that draws no numbers gets one of the generation.
fn next_nonce(drawn: u64, generation: u64, before: u64) -> u64 {
    let mut nonce = drawn ^ mix(generation);
    while [0, before & LATCH_BITS].contains(&(nonce & LATCH_BITS)) {
        nonce = mix(nonce);
    }
    nonce
}

/// Returns the number after `state` in a `SplitMix64` stream.
fn mix(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// The state of a file, as far as its first bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// The file has no bytes.
    Empty,
    /// The file is what an interrupted creation leaves: at most as long as the smallest pool, and
    /// zero except for superblocks without the first magic number. It holds nothing.
    Unfinished,
    /// The header is zero, but the file is longer than an interrupted creation leaves it, or not
    /// zero behind the header. It may have been a pool.
    Zeros,
    /// A superblock has the magic number. The file is a pool, if perhaps a damaged one.
    Pool,
    /// The file begins with other bytes, which are given here.
    Foreign(u64),
}

impl FileState {
    /// Reads the state of `file`: at most as many bytes as the smallest pool has.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(file: &File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let mut bytes = vec![0; length.min(POOL_BYTES_MIN) as usize];
        let mut read = 0;
        while read < bytes.len() {
            match file.read_at(&mut bytes[read..], read as u64) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(read);
        Ok(Self::of(&bytes, length))
    }

    /// Returns the state of a file of `length` bytes that begins with `bytes`.
    fn of(bytes: &[u8], length: u64) -> Self {
        let word = |at: u64| {
            let mut word = [0; 8];
            let from = bytes.get(at as usize..).unwrap_or_default();
            let count = from.len().min(8);
            word[..count].copy_from_slice(&from[..count]);
            u64::from_le_bytes(word)
        };
        let is_superblock = |at: usize| COPIES.iter().any(|&copy| superblock(copy).contains(&at));
        let is_zero = |range: Range<usize>| {
            let used = bytes.iter().enumerate().take(range.end).skip(range.start);
            used.into_iter().all(|(at, &byte)| byte == 0 || is_superblock(at))
        };
        match word(COPIES[0]) {
            _ if bytes.is_empty() => Self::Empty,
            MAGIC => Self::Pool,
            // Creation writes the magic number of copy 0 last.
            0 if length <= POOL_BYTES_MIN && is_zero(0..bytes.len()) => Self::Unfinished,
            _ if word(COPIES[1]) == MAGIC => Self::Pool,
            0 if is_zero(0..HEADER_BYTES as usize) => Self::Zeros,
            found => Self::Foreign(found),
        }
    }
}

/// Returns the range of the copy at `at`.
fn superblock(at: u64) -> Range<usize> {
    at as usize..at as usize + WORDS * 8
}

/// Checks that this library reads the version and the features of the pool in `file`, as far as its
/// superblocks say. One that is damaged, or that the system cannot read, says nothing.
///
/// # Errors
/// A superblock is whole, and this library does not read its version or lacks a feature that it
/// needs.
pub fn check_version(file: &File) -> Result<(), PoolError> {
    for at in COPIES {
        let mut copy = [0; 8 * WORDS];
        if file.read_exact_at(&mut copy, at).is_ok() {
            let (words, _) = copy.as_chunks();
            Superblock::decode(&core::array::from_fn(|i| u64::from_le_bytes(words[i])), at)?;
        }
    }
    Ok(())
}

/// Returns `true` if all pages of the pool in `file` are durable, as far as its superblocks say:
/// its last user has closed it. Returns `false` without a whole superblock, and if the file has
/// been cut short.
///
/// # Errors
/// The file cannot be read.
pub fn is_closed(file: &File) -> io::Result<bool> {
    let bytes = file.metadata()?.len();
    Ok(newest(file)?.is_some_and(|newest| newest.is_closed() && newest.check(bytes).is_ok()))
}

/// Checks that the pool in a file was closed, or was open in this file, as far as its superblocks
/// say. So a copy that an open refuses can be told before its journal is used.
///
/// # Errors
/// [`PoolError::UnclosedCopy`], or the file cannot be read.
pub fn check_original(locked: &LockedFile) -> Result<(), PoolError> {
    let newest = newest(locked.file()).map_err(|e| MediumError::system("read the file", e))?;
    newest.map_or(Ok(()), |newest| newest.check_file(locked.file_id()))
}

/// Returns the newer superblock of the pool in `file`, or `None` if no copy is whole, one is of
/// another version, or the file is too short.
fn newest(file: &File) -> io::Result<Option<Superblock>> {
    let mut newest: Option<Superblock> = None;
    for at in COPIES {
        let mut bytes = [0; 8 * WORDS];
        match file.read_exact_at(&mut bytes, at) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let (words, _) = bytes.as_chunks();
        let words = core::array::from_fn(|i| u64::from_le_bytes(words[i]));
        let Ok(copy) = Superblock::decode(&words, at) else { return Ok(None) };
        if copy.is_some_and(|copy| newest.is_none_or(|newest| copy.sequence > newest.sequence)) {
            newest = copy;
        }
    }
    Ok(newest)
}

/// Returns `true` if `file` contains no pool and nothing else: it is empty, or a crash interrupted
/// the creation of a pool in it. So overwriting it loses nothing.
///
/// # Errors
/// The file cannot be read.
pub fn holds_nothing(file: &File) -> io::Result<bool> {
    Ok(matches!(FileState::read(file)?, FileState::Empty | FileState::Unfinished))
}

fn checksum(words: &[u64; WORDS]) -> u64 {
    checksum_words(words[..CHECKSUM].iter().copied())
}

#[cfg(test)]
mod tests;
