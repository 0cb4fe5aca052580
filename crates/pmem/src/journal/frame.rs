//! Frames: the records that one drain writes to a segment.
//!
//! A frame is a header of 64 B, records of 72 B, and zeros up to a whole sector.
//!
//! | offset | bytes | field | meaning |
//! | --- | --- | --- | --- |
//! | 0 | 8 | magic | `BRSTLCNF` |
//! | 8 | 8 | nonce | the random number of the open |
//! | 16 | 8 | position | of the first record |
//! | 24 | 8 | count | records, at least 1 |
//! | 32 | 8 | sum | CRC-32C of the header, without this word, and the records |
//! | 40 | 24 | | zeros |
//! | 64 | 72 each | records | number of a line; its 64 B |

use crate::checksum::checksum_append;

const MAGIC: u64 = u64::from_le_bytes(*b"BRSTLCNF");
/// The size of the header, in bytes.
pub(super) const HEADER_BYTES: usize = 64;
/// The size of a record, in bytes: the number of a line, and the line.
pub(super) const RECORD_BYTES: usize = 72;
/// The size of a sector, in bytes. A disk writes it whole or not at all.
pub(super) const SECTOR_BYTES: u64 = 512;
/// The largest number of records in a frame: 256 KiB.
pub(super) const RECORDS_MAX: u64 = 3640;
/// The offset of the sum.
const SUM_AT: usize = 32;

/// The frame that a reader expects: its open, its first record, the sum of the frame before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) nonce: u64,
    pub(super) position: u64,
    pub(super) chain: u32,
}

/// Returns the size of a frame of `records`, in bytes.
pub(super) fn bytes(records: u64) -> u64 {
    (HEADER_BYTES as u64 + records * RECORD_BYTES as u64).next_multiple_of(SECTOR_BYTES)
}

/// Completes the frame in `buffer`, which holds room for the header and the records, and returns
/// its sum.
pub(super) fn seal(buffer: &mut Vec<u8>, frame: Expected) -> u32 {
    let count = (buffer.len() - HEADER_BYTES) / RECORD_BYTES;
    debug_assert_eq!(buffer.len(), HEADER_BYTES + count * RECORD_BYTES);
    let header = [MAGIC, frame.nonce, frame.position, count as u64];
    buffer[..HEADER_BYTES].fill(0);
    for (target, word) in buffer.chunks_mut(8).zip(header) {
        target.copy_from_slice(&word.to_le_bytes());
    }
    let sum = sum_of(buffer, frame.chain);
    buffer[SUM_AT..SUM_AT + 8].copy_from_slice(&u64::from(sum).to_le_bytes());
    buffer.resize(bytes(count as u64) as usize, 0);
    sum
}

/// Returns the number of records that a header announces, or `None` if it is not the header of the
/// `expected` frame.
pub(super) fn announced(header: &[u8], expected: Expected) -> Option<u64> {
    let found = [0, 1, 2, 3].map(|index| word(header, index));
    let [magic, nonce, position, count] = found;
    let is_expected = [magic, nonce, position] == [MAGIC, expected.nonce, expected.position];
    (is_expected && (1..=RECORDS_MAX).contains(&count)).then_some(count)
}

/// Returns the nonce of the open that has written the frame with this header, or `None` if it is
/// that of no frame.
pub(super) fn nonce_of(header: &[u8]) -> Option<u64> {
    (word(header, 0) == MAGIC).then(|| word(header, 1))
}

/// Returns the sum of the whole `frame` of `count` records, or `None` if it is not the one in its
/// header.
pub(super) fn checked(frame: &[u8], count: u64, chain: u32) -> Option<u32> {
    let sum = sum_of(&frame[..HEADER_BYTES + count as usize * RECORD_BYTES], chain);
    (word(frame, SUM_AT / 8) == u64::from(sum)).then_some(sum)
}

/// Returns the number of the line and the line of each record of `frame`.
pub(super) fn records(frame: &[u8], count: u64) -> impl Iterator<Item = (u64, [u64; 8])> {
    let records = frame[HEADER_BYTES..].chunks_exact(RECORD_BYTES).take(count as usize);
    records.map(|record| (word(record, 0), core::array::from_fn(|i| word(record, i + 1))))
}

/// Adds a record to `buffer`.
pub(super) fn push(buffer: &mut Vec<u8>, line: u64, words: [u64; 8]) {
    let mut record = [0; RECORD_BYTES];
    let (targets, _) = record.as_chunks_mut();
    for (target, word) in targets.iter_mut().zip([line].into_iter().chain(words)) {
        *target = word.to_le_bytes();
    }
    buffer.extend_from_slice(&record);
}

fn sum_of(frame: &[u8], chain: u32) -> u32 {
    let head = checksum_append(chain, &frame[..SUM_AT]);
    checksum_append(head, &frame[SUM_AT + 8..])
}

fn word(bytes: &[u8], index: usize) -> u64 {
    let (words, _) = bytes.as_chunks();
    u64::from_le_bytes(words[index])
}
