//! Writes of lines of memory without an index: what an instruction that writes back costs alone.

use super::options::Flushing;
use crate::error::Result;
use crate::workload::mix64;
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Domain, Mapped, Medium, PmPtr, PmWord, Pool, PoolError};
use std::time::{Duration, Instant};

/// The offset of the first line, behind all that an empty pool stores.
const FIRST_LINE: usize = 1 << 20;

/// Lines of a pool without an index.
#[derive(Debug)]
pub struct LineWrites<M: Medium = Mapped> {
    pool: Pool<M>,
    lines: usize,
}

impl LineWrites {
    /// Maps `lines` lines of this machine's memory, which `flushing` writes back, and writes each
    /// once, so that all pages are present.
    ///
    /// # Errors
    /// The system refuses the memory, or the processor lacks the instruction.
    pub fn new(lines: usize, flushing: Flushing) -> Result<Self> {
        let medium = Mapped::anonymous((FIRST_LINE + lines * LINE_BYTES) as u64)?;
        let writes = Self::over(flushing.emulate(medium, Domain::Adr)?, lines)?;
        writes.time(0..lines, false)?;
        Ok(writes)
    }

    /// Writes as many lines as there are, in the order of their addresses or in one that no
    /// prefetcher predicts, and flushes each if `is_flushed`. Returns the time.
    ///
    /// # Errors
    /// The pool is damaged.
    pub fn write(&self, is_sequential: bool, is_flushed: bool) -> Result<Duration> {
        let lines = self.lines;
        if is_sequential {
            return self.time(0..lines, is_flushed);
        }
        self.time((0..lines as u64).map(|index| mix64(index) as usize % lines), is_flushed)
    }
}

impl<M: Medium> LineWrites<M> {
    fn over(medium: M, lines: usize) -> Result<Self> {
        Ok(Self { pool: Pool::create(medium)?, lines })
    }

    /// Stores to each word of the lines of `order`. One fence at the end waits for all flushes.
    fn time(&self, order: impl Iterator<Item = usize>, is_flushed: bool) -> Result<Duration> {
        let first = PmPtr::new(FIRST_LINE as u64);
        let words = self.pool.words(first, self.lines * LINE_WORDS).map_err(PoolError::from)?;
        let medium = self.pool.medium();
        let start = Instant::now();
        for line in order {
            let words: &[PmWord] = &words[line * LINE_WORDS..(line + 1) * LINE_WORDS];
            for word in words {
                medium.store(word, line as u64 + 1);
            }
            if is_flushed {
                medium.flush(&words[..1]);
            }
        }
        let _ = medium.fence();
        Ok(start.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bristlecone_pmem::medium::Count;

    #[test]
    fn each_line_is_written_whole_and_flushed_once_if_at_all() {
        const LINES: usize = 100;
        let bytes = (FIRST_LINE + LINES * LINE_BYTES) as u64;
        let writes = LineWrites::over(Count::new(Mapped::anonymous(bytes).unwrap()), LINES);
        let writes = writes.unwrap();
        for (is_flushed, lines) in [(false, 0), (true, LINES as u64)] {
            writes.pool.medium().take();
            writes.time((0..LINES).rev(), is_flushed).unwrap();
            let counts = writes.pool.medium().take();
            assert_eq!(counts.words, (LINES * LINE_WORDS) as u64);
            assert_eq!((counts.lines, counts.fences), (lines, 1));
        }
    }

    #[test]
    fn lines_of_memory_are_written_in_both_orders() {
        let writes = LineWrites::new(1000, Flushing::Serial).unwrap();
        for is_sequential in [false, true] {
            writes.write(is_sequential, true).unwrap();
            let first = writes.pool.words(PmPtr::new(FIRST_LINE as u64), LINE_WORDS).unwrap();
            let mut medium = first.iter().map(|word| writes.pool.medium().load(word));
            assert!(medium.all(|word| word == 1), "all words of a line have its number");
        }
    }
}
