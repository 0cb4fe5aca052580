//! The words of a simulated medium, in DRAM, reached by index.
//!
//! 1. The first word is aligned to a page, so lines of the arena are lines of the pool.
//! 2. The words never move. The arena has as many as it can ever grow to.
//! 3. A thread passes the words of a dropped arena to its next one, because an exploration makes
//!    many. All words past the greatest length of an arena are zero.

use bristlecone_pmem::PmWord;
use bristlecone_pmem::line::{LINE_BYTES, lines};
use bristlecone_pmem::medium::MediumError;
use core::cell::RefCell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

const ALIGN_BYTES: usize = 4096;
const WORD_BYTES: usize = 8;
/// The number of arenas whose words a thread keeps.
const KEPT: usize = 8;

thread_local! {
    /// Words of dropped arenas, all of them zero.
    static SPARE: RefCell<Vec<Box<[AtomicU64]>>> = const { RefCell::new(Vec::new()) };
}

/// The words that stand for persistent memory.
#[derive(Debug)]
pub(crate) struct Arena {
    cells: Box<[AtomicU64]>,
    first: usize,
    /// The address of the first word.
    address: usize,
    count: usize,
    len: AtomicU64,
    /// The greatest length so far.
    high: AtomicU64,
}

impl Arena {
    /// Returns `bytes` of zeros that can grow to `reserve_bytes`.
    pub(crate) fn new(bytes: u64, reserve_bytes: u64) -> Self {
        assert!(bytes <= reserve_bytes);
        let count = reserve_bytes as usize / WORD_BYTES;
        let total = count + ALIGN_BYTES / WORD_BYTES;
        let spare = SPARE.with_borrow_mut(|spare| {
            let fits = spare.iter().position(|cells| cells.len() == total);
            fits.map(|index| spare.swap_remove(index))
        });
        let fresh = || core::iter::repeat_with(AtomicU64::default).take(total).collect();
        let cells: Box<[_]> = spare.unwrap_or_else(fresh);
        let start = cells.as_ptr().addr();
        let address = start.next_multiple_of(ALIGN_BYTES);
        let first = (address - start) / WORD_BYTES;
        let [len, high] = [bytes, bytes].map(AtomicU64::new);
        Self { cells, first, address, count, len, high }
    }

    /// Returns all words, those of the reserve included.
    #[inline(always)]
    pub(crate) fn cells(&self) -> &[AtomicU64] {
        &self.cells[self.first..self.first + self.count]
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        NonNull::from(self.cells()).cast()
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    pub(crate) fn set_len(&self, bytes: u64) {
        self.len.store(bytes, Ordering::Relaxed);
        self.high.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Notes that words up to `bytes` may be stored, whatever the length is (I3).
    pub(crate) fn admit(&self, bytes: u64) {
        self.high.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Copies contents and length of `source`.
    pub(crate) fn copy_from(&self, source: &Self) {
        let words =
            (source.len().max(self.high.load(Ordering::Relaxed)) / WORD_BYTES as u64) as usize;
        for (target, source) in self.cells()[..words].iter().zip(source.cells()) {
            target.store(source.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.set_len(source.len());
    }

    /// Returns the index of the first word that differs from `other`.
    pub(crate) fn first_difference(&self, other: &Self) -> Option<usize> {
        // Usually no word differs, so a block of words is compared without a branch for each.
        const BLOCK: usize = 64;
        let differs = |(here, there): (&AtomicU64, &AtomicU64)| {
            here.load(Ordering::Relaxed) ^ there.load(Ordering::Relaxed)
        };
        let words = self.len() as usize / WORD_BYTES;
        let (here, there) = (&self.cells()[..words], &other.cells()[..words]);
        let mut blocks = here.chunks(BLOCK).zip(there.chunks(BLOCK));
        let block = blocks.position(|(here, there)| {
            here.iter().zip(there).fold(0, |all, pair| all | differs(pair)) != 0
        })?;
        let mut pairs = here.iter().zip(there).skip(block * BLOCK);
        pairs.position(|pair| differs(pair) != 0).map(|place| block * BLOCK + place)
    }

    /// Grows to `bytes`. The words past the old end are zero already (I3).
    pub(crate) fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        let limit = (self.count * WORD_BYTES) as u64;
        if bytes > limit {
            return Err(MediumError::Limit { wanted: bytes, limit });
        }
        self.len.fetch_max(bytes, Ordering::Relaxed);
        self.high.fetch_max(bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the index of `word`, which must belong to the arena.
    #[inline(always)]
    pub(crate) fn index(&self, word: &PmWord) -> usize {
        (core::ptr::from_ref(word).addr() - self.address) / WORD_BYTES
    }

    /// Returns the first line that holds one of `words`, and the number of such lines.
    pub(crate) fn lines_of(&self, words: &[PmWord]) -> Option<(u32, u32)> {
        let mut touched = lines(words.as_ptr().addr(), core::mem::size_of_val(words));
        let first = (touched.next()? - self.address) / LINE_BYTES;
        Some((first as u32, 1 + touched.count() as u32))
    }

    /// Loads a word that is known by its address.
    #[inline(always)]
    pub(crate) fn load(&self, word: &PmWord) -> u64 {
        debug_assert!(self.index(word) < self.count, "the word belongs to the arena");
        word.cell().load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> u64 {
        self.cells()[index].load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(crate) fn set(&self, index: usize, value: u64) {
        self.cells()[index].store(value, Ordering::Release);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        let mut cells = core::mem::take(&mut self.cells);
        let used = self.high.load(Ordering::Relaxed) as usize / WORD_BYTES;
        for cell in &mut cells[self.first..self.first + used] {
            *cell.get_mut() = 0;
        }
        // The thread-local is gone if the thread is ending; then the words are freed.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < KEPT {
                spare.push(cells);
            }
        });
    }
}

/// Returns `bytes` as words, the last one padded with zeros.
pub(crate) fn words_of(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(WORD_BYTES).map(|chunk| {
        let mut word = [0; WORD_BYTES];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    })
}
