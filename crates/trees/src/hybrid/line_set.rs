//! A set of lines of a pool. Its memory goes by the lines that it holds, not by the size of the
//! pool that a superblock claims.

use bristlecone_pmem::PmPtr;
use bristlecone_pmem::line::LINE_BYTES;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use std::sync::OnceLock;

/// The words of a part: 8 KiB, for the lines of 4 MiB of the pool.
const PART_WORDS: usize = 1024;
/// The bytes of the pool whose lines one part has.
const PART_SPAN: u64 = (PART_WORDS * 64 * LINE_BYTES) as u64;

/// The bits of the lines of one span of the pool.
type Part = [AtomicU64; PART_WORDS];

/// A set of lines: a bitmap in parts. A part gets memory when its first line is added.
pub(super) struct LineSet(Vec<OnceLock<Box<Part>>>);

impl LineSet {
    /// Returns an empty set of lines of a pool of `bytes` bytes.
    pub(super) fn of(bytes: u64) -> Self {
        Self((0..bytes.div_ceil(PART_SPAN)).map(|_| OnceLock::new()).collect())
    }

    pub(super) fn contains(&self, at: PmPtr) -> bool {
        let (part, word, mask) = place(at);
        self.0[part].get().is_some_and(|part| part[word].load(Relaxed) & mask != 0)
    }

    /// Adds a line and returns `true` if the set had it before.
    pub(super) fn set(&self, at: PmPtr) -> bool {
        let (part, word, mask) = place(at);
        let part = self.0[part].get_or_init(|| Box::new([const { AtomicU64::new(0) }; PART_WORDS]));
        part[word].fetch_or(mask, Relaxed) & mask != 0
    }
}

/// Returns the part and the word that hold the bit of the line at `at`, and a mask of the bit.
fn place(at: PmPtr) -> (usize, usize, u64) {
    let line = at.offset() % PART_SPAN / LINE_BYTES as u64;
    ((at.offset() / PART_SPAN) as usize, (line / 64) as usize, 1 << (line % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bitmap for all of it would take 32 GiB.
    #[test]
    fn a_set_of_lines_of_16_tib_has_memory_for_those_that_it_holds() {
        const BYTES: u64 = 16 << 40;
        let set = LineSet::of(BYTES);
        let lines = [0, 64, 4096, PART_SPAN - 64, PART_SPAN, 7 << 40, BYTES - 64].map(PmPtr::new);
        for line in lines {
            assert!(!set.contains(line));
            assert!(!set.set(line), "{line:?} is new");
            assert!(set.set(line) && set.contains(line));
        }
        assert!(!set.contains(PmPtr::new(128)) && !set.contains(PmPtr::new(7 << 40 | 64)));
        assert_eq!(set.0.iter().filter(|part| part.get().is_some()).count(), 4);
    }
}
