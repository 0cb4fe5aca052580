//! A chunk: 32 KiB of the pool, with a size class and a bit for each of its blocks.

use crate::layout::CHUNK_BYTES;
use crate::line::LINE_BYTES;

/// The block sizes, in lines. Above 8 lines there are four sizes for each doubling, so a block
/// wastes at most a fifth.
const CLASS_LINES: [u16; 28] = [
    1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160,
    192, 224, 256,
];
/// The number of size classes.
pub(super) const CLASSES: usize = CLASS_LINES.len();
/// The size of the largest block that shares a chunk, in lines.
const SMALL_MAX_LINES: usize = 256;
/// The size of the largest block that shares a chunk, in bytes.
pub(super) const SMALL_MAX_BYTES: u64 = (SMALL_MAX_LINES * LINE_BYTES) as u64;
/// The smallest class whose blocks hold that number of lines, by the number.
const CLASS_OF_LINES: [Class; SMALL_MAX_LINES + 1] = {
    let mut classes = [Class(0); SMALL_MAX_LINES + 1];
    let (mut lines, mut class) = (0, 0);
    while lines <= SMALL_MAX_LINES {
        if lines > CLASS_LINES[class] as usize {
            class += 1;
        }
        classes[lines] = Class(class as u8);
        lines += 1;
    }
    classes
};

/// A size class: the size of the blocks into which a chunk is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Class(u8);

impl Class {
    /// Returns the smallest class whose blocks hold `bytes`.
    pub(super) fn of(bytes: u64) -> Self {
        debug_assert!(bytes <= SMALL_MAX_BYTES);
        CLASS_OF_LINES[bytes.div_ceil(LINE_BYTES as u64) as usize]
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(super) fn bytes(self) -> u64 {
        u64::from(CLASS_LINES[self.index()]) * LINE_BYTES as u64
    }

    /// Returns the number of blocks of this class in a chunk.
    pub(super) fn capacity(self) -> u16 {
        (CHUNK_BYTES / self.bytes()) as u16
    }

    /// Returns the block that begins `within` bytes into a chunk of this class, or `None` if none
    /// does.
    pub(super) fn block_at(self, within: u64) -> Option<u16> {
        let (line, lines) = ((within / LINE_BYTES as u64) as u16, CLASS_LINES[self.index()]);
        let block = line / lines;
        let begins = within.is_multiple_of(LINE_BYTES as u64) && line == block * lines;
        (begins && block < self.capacity()).then_some(block)
    }
}

/// The use of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// Free for any use.
    Free,
    /// Divided into blocks of one class.
    Small(Class),
    /// The first chunk of a large block of that number of chunks.
    Large(u32),
    /// Any later chunk of a large block.
    Tail,
}

/// The volatile state of a chunk: its use, and a bit for each block in use.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) usage: Use,
    /// The number of bits that are set.
    pub(super) used: u16,
    /// `true` if the chunk is in its class's list of chunks with space.
    pub(super) listed: bool,
    bits: [u64; 8],
}

impl Chunk {
    pub(super) const FREE: Self = Self { usage: Use::Free, used: 0, listed: false, bits: [0; 8] };

    /// Returns a chunk of `class` without a block in use, as one that is in the list.
    pub(super) fn of(class: Class) -> Self {
        Self { usage: Use::Small(class), listed: true, ..Self::FREE }
    }

    /// Reserves the lowest free block of a chunk of `class`, or returns `None` if all are in use.
    pub(super) fn take(&mut self, class: Class) -> Option<u16> {
        for (index, word) in self.bits.iter_mut().enumerate() {
            let block = index as u16 * 64 + word.trailing_ones() as u16;
            if *word != u64::MAX && block < class.capacity() {
                *word |= *word + 1;
                self.used += 1;
                return Some(block);
            }
        }
        None
    }

    /// Sets the bit of `block`, or returns `false` if it is set already.
    ///
    /// The count changes in a branch, not by adding `fresh`. When rustc 1.95 optimises, it drops
    /// that addition, and a chunk with blocks in use then counts as empty.
    pub(super) fn set(&mut self, block: u16) -> bool {
        let (index, bit) = (usize::from(block / 64), 1 << (block % 64));
        let fresh = self.bits[index] & bit == 0;
        if fresh {
            self.bits[index] |= bit;
            self.used += 1;
        }
        fresh
    }

    /// Clears the bit of `block`, or returns `false` if it is clear already.
    pub(super) fn clear(&mut self, block: u16) -> bool {
        let (index, bit) = (usize::from(block / 64), 1 << (block % 64));
        let was_set = self.bits[index] & bit != 0;
        if was_set {
            self.bits[index] &= !bit;
            self.used -= 1;
        }
        was_set
    }

    /// Returns `true` if `block` is in use.
    pub(super) fn holds(&self, block: u16) -> bool {
        self.bits[usize::from(block / 64)] & (1 << (block % 64)) != 0
    }

    /// Returns the nine words from which [`Self::decode`] makes the chunk again.
    pub(super) fn encode(&self) -> [u64; 9] {
        let mut words = [0; 9];
        words[0] = match self.usage {
            Use::Free => 0,
            Use::Small(class) => 1 | u64::from(class.0) << 8,
            Use::Large(count) => 2 | u64::from(count) << 8,
            Use::Tail => 3,
        };
        words[1..].copy_from_slice(&self.bits);
        words
    }

    /// Returns the chunk that `words` encode, or `None` if no chunk has that encoding.
    pub(super) fn decode(words: &[u64; 9]) -> Option<Self> {
        let argument = words[0] >> 8;
        let usage = match words[0] & 0xff {
            0 if argument == 0 => Use::Free,
            1 if argument < CLASSES as u64 => Use::Small(Class(argument as u8)),
            2 => Use::Large(u32::try_from(argument).ok()?),
            3 if argument == 0 => Use::Tail,
            _ => return None,
        };
        let mut chunk = Self { usage, ..Self::FREE };
        chunk.bits.copy_from_slice(&words[1..]);
        let capacity = if let Use::Small(class) = usage { class.capacity() } else { 0 };
        if (capacity..512).any(|block| chunk.holds(block)) {
            return None;
        }
        chunk.used = chunk.bits.iter().map(|word| word.count_ones() as u16).sum();
        Some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_the_smallest_that_holds_the_bytes() {
        for bytes in 0..=SMALL_MAX_BYTES {
            let class = Class::of(bytes);
            assert!(class.bytes() >= bytes);
            assert!(class.index() == 0 || u64::from(CLASS_LINES[class.index() - 1]) * 64 < bytes);
        }
    }

    #[test]
    fn a_chunk_reserves_each_block_once_and_survives_encoding() {
        let class = Class::of(600);
        let mut chunk = Chunk { usage: Use::Small(class), ..Chunk::FREE };
        let taken: Vec<_> = std::iter::from_fn(|| chunk.take(class)).collect();
        assert_eq!(taken, (0..class.capacity()).collect::<Vec<_>>());
        assert!(chunk.clear(7) && !chunk.clear(7));
        assert_eq!(chunk.take(class), Some(7));
        let again = Chunk::decode(&chunk.encode()).expect("an encoded chunk decodes");
        assert_eq!((again.used, again.usage), (chunk.used, chunk.usage));
        let mut words = chunk.encode();
        words[8] = 1 << 63; // no block 511 in this class
        assert!(Chunk::decode(&words).is_none());
    }
}
