//! A chunk: 32 KiB of the pool, with a size class and a bit for each of its blocks, or with a bit
//! for each of its pages.

use super::ClassUsage;
use crate::layout::CHUNK_BYTES;
use crate::line::LINE_BYTES;

/// The block sizes, in lines. Above 8 lines there are four sizes for each doubling, so a block
/// wastes at most a fifth.
const CLASS_LINES: [u16; 24] =
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128];
/// The number of size classes.
pub(super) const CLASSES: usize = CLASS_LINES.len();
/// The size of the largest block that shares a chunk with others of its size, in lines.
const SMALL_MAX_LINES: usize = 128;
/// The size of the largest block that shares a chunk with others of its size, in bytes.
pub(super) const SMALL_MAX_BYTES: u64 = (SMALL_MAX_LINES * LINE_BYTES) as u64;
/// The size of a page, in bytes. A larger block takes whole pages, and so wastes at most an eighth.
pub(super) const PAGE_BYTES: u64 = 1 << 10;
/// The number of pages in a chunk.
pub(super) const CHUNK_PAGES: u64 = CHUNK_BYTES / PAGE_BYTES;
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

    /// Returns all classes, the smallest first.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..CLASSES).map(|index| Self(index as u8))
    }

    /// Returns the number of blocks of this class in a chunk.
    pub(super) fn capacity(self) -> u16 {
        (CHUNK_BYTES / self.bytes()) as u16
    }

    /// Returns the usage of `chunks` chunks of this class with `blocks` blocks in use.
    pub(super) fn usage(self, chunks: u64, blocks: u64) -> ClassUsage {
        let free_bytes = (chunks * u64::from(self.capacity()) - blocks) * self.bytes();
        ClassUsage { block_bytes: self.bytes(), chunks, blocks, free_bytes }
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
    /// Divided into pages, of which large blocks use some.
    Pages,
}

/// The number of lists of chunks with space, by the part of their blocks that is in use.
pub(super) const FILLS: usize = 4;
/// The number of those lists whose chunks are so empty that their blocks should move elsewhere.
pub(super) const SPARSE_FILLS: usize = FILLS / 2;

/// The volatile state of a chunk: its use, and a bit for each block or page in use.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) usage: Use,
    /// The number of blocks or pages in use.
    pub(super) used: u16,
    /// The index of the chunk in the list in which it is, if [`Self::list`] names one.
    pub(super) place: u32,
    /// `true` if its blocks move elsewhere and no block is reserved in it.
    pub(super) is_left: bool,
    /// The number of blocks in use above which an attempt to empty the chunk is in vain.
    pub(super) immovable_above: u16,
    /// In a chunk with a class, the bits of its blocks. In a chunk of pages, the bits of the pages
    /// in use in the first word, and those of the pages at which a block begins in the second.
    bits: [u64; 8],
}

impl Chunk {
    pub(super) const FREE: Self = Self {
        usage: Use::Free,
        used: 0,
        place: 0,
        is_left: false,
        immovable_above: u16::MAX,
        bits: [0; 8],
    };

    /// Returns a chunk of `class` without a block in use.
    pub(super) fn of(class: Class) -> Self {
        Self { usage: Use::Small(class), ..Self::FREE }
    }

    /// Returns the class of the chunk and the list in which it belongs, if it has space for a block
    /// of its class.
    pub(super) fn list(&self) -> Option<(Class, usize)> {
        let Use::Small(class) = self.usage else { return None };
        if self.used == 0 || self.used >= class.capacity() || self.is_left {
            return None;
        }
        let fill = usize::from(self.used) * FILLS / usize::from(class.capacity());
        let is_immovable = self.used > self.immovable_above;
        Some((class, if is_immovable { fill.max(SPARSE_FILLS) } else { fill }))
    }

    /// Returns the free bytes that come free for any use if the blocks of the chunk move elsewhere.
    /// 0 if the chunk is not sparse.
    pub(super) fn sparse_bytes(&self) -> u64 {
        match self.list() {
            Some((class, fill)) if fill < SPARSE_FILLS => {
                u64::from(class.capacity() - self.used) * class.bytes()
            }
            _ => 0,
        }
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

    /// Returns the blocks in use of a chunk of a class.
    pub(super) fn blocks(&self, class: Class) -> impl Iterator<Item = u16> + '_ {
        (0..class.capacity()).filter(|&block| self.holds(block))
    }

    /// Returns the bits of the pages in use, and of those at which a block begins. Both are 0 if
    /// the chunk is not divided into pages.
    pub(super) fn pages(&self) -> (u64, u64) {
        if self.usage == Use::Pages { (self.bits[0], self.bits[1]) } else { (0, 0) }
    }

    /// Marks free pages as in use. At `begins` begins the block, if it begins in this chunk.
    pub(super) fn take_pages(&mut self, pages: u64, begins: u64) {
        debug_assert!(self.usage != Use::Free || self.bits == [0; 8]);
        self.usage = Use::Pages;
        self.bits[0] |= pages;
        self.bits[1] |= begins;
        self.used = self.bits[0].count_ones() as u16;
    }

    /// Marks pages in use as free.
    pub(super) fn free_pages(&mut self, pages: u64) {
        self.bits[0] &= !pages;
        self.bits[1] &= !pages;
        self.used = self.bits[0].count_ones() as u16;
        if self.used == 0 {
            self.usage = Use::Free;
        }
    }

    /// Returns the nine words from which [`Self::decode`] makes the chunk again.
    pub(super) fn encode(&self) -> [u64; 9] {
        let mut words = [0; 9];
        words[0] = match self.usage {
            Use::Free => 0,
            Use::Small(class) => 1 | u64::from(class.0) << 8,
            Use::Pages => 2,
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
            2 if argument == 0 => Use::Pages,
            _ => return None,
        };
        let mut chunk = Self { usage, ..Self::FREE };
        chunk.bits.copy_from_slice(&words[1..]);
        let (used, begins) = chunk.pages();
        let is_possible = match usage {
            Use::Free => chunk.bits == [0; 8],
            Use::Small(class) => (class.capacity()..512).all(|block| !chunk.holds(block)),
            Use::Pages => {
                used != 0
                    && used >> CHUNK_PAGES == 0
                    && begins & !used == 0
                    && chunk.bits[2..] == [0; 6]
            }
        };
        let counted = if usage == Use::Pages { &chunk.bits[..1] } else { &chunk.bits[..] };
        chunk.used = counted.iter().map(|word| word.count_ones() as u16).sum();
        if chunk.used == 0 {
            chunk.usage = Use::Free;
        }
        is_possible.then_some(chunk)
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

    #[test]
    fn a_chunk_of_pages_survives_encoding() {
        let mut chunk = Chunk::FREE;
        chunk.take_pages(0b1110, 0b0010);
        chunk.take_pages(1 << 31, 1 << 31);
        let again = Chunk::decode(&chunk.encode()).expect("an encoded chunk decodes");
        assert_eq!((again.pages(), again.used), ((1 << 31 | 0b1110, 1 << 31 | 0b0010), 4));
        for (at, bits) in [(1, 1 << 32), (2, 1), (3, 1)] {
            let mut words = chunk.encode();
            words[at] |= bits; // no page 32; a block that begins at a free page; no third word
            assert!(Chunk::decode(&words).is_none());
        }
        chunk.free_pages(1 << 31 | 0b1110);
        assert_eq!(chunk.usage, Use::Free);
    }
}
