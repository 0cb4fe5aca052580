//! The floor: the accesses to persistent memory that an operation of any index makes at least,
//! without an index.
//!
//! 1. A key's line is computed from the key alone. A read loads a word of it. A write loads a word,
//!    stores another one of the same line, and flushes and fences the line. A scan loads as many
//!    lines as its pairs fill.
//! 2. The pool has the size that the designs get. There are as many lines as its pairs fill at
//!    16 B each, one beside the other: no index has fewer.
//! 3. In the serial floor the place of a line also depends on the word that the operation before
//!    loaded, which is 0. So each cache miss waits for the one before. In the pipelined floor the
//!    processor may overlap operations as far as it can.

use super::{MemoryUse, OnMedium, Session, System};
use crate::error::Result;
use crate::workload::value_of;
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Medium, PmPtr, PmWord, Pool, PoolError};
use bristlecone_trees::Key;
use core::fmt;
use core::hint::black_box;

/// The overlap of the operations of a floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Each operation waits for the load of the one before.
    Serial,
    /// Operations depend on their keys alone.
    Pipelined,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Serial => "floor-serial",
            Self::Pipelined => "floor-pipelined",
        })
    }
}

/// Bytes of a pool for each key of a design, and of the floor.
pub(crate) const KEY_ROOM_BYTES: u64 = 64;
/// Bytes of a pool beside those of its keys.
pub(crate) const BASE_ROOM_BYTES: u64 = 8 << 20;

/// The offset of the first line, behind all that a pool without an index stores.
const FIRST_LINE: u64 = 1 << 20;

/// The number of pairs of 16 B in a line.
const PAIRS: usize = LINE_BYTES / 16;

/// A pool that holds lines and no index.
pub(crate) struct LineArray<M: Medium> {
    pool: Pool<M>,
    overlap: Overlap,
}

impl<M: Medium> LineArray<M> {
    /// Creates a pool on `medium`, which has room for at least one line.
    pub(crate) fn create(medium: M, overlap: Overlap) -> Result<Self> {
        let lines = Self { pool: Pool::create(medium)?, overlap };
        lines.words()?;
        Ok(lines)
    }

    /// Returns the words of all lines.
    fn words(&self) -> Result<&[PmWord]> {
        let bytes = self.pool.medium().len().saturating_sub(BASE_ROOM_BYTES);
        let lines = ((bytes / KEY_ROOM_BYTES) as usize).div_ceil(PAIRS).max(1);
        let words = self.pool.words(PmPtr::new(FIRST_LINE), lines * LINE_WORDS);
        Ok(words.map_err(PoolError::from)?)
    }
}

impl<M: Medium, K: Key> System<K> for LineArray<M> {
    type Session<'a> = LineSession<'a, M>;

    fn sessions(&mut self, threads: u64) -> Vec<LineSession<'_, M>> {
        let (medium, overlap) = (self.pool.medium(), self.overlap);
        let words = self.words().expect("`create` has checked the lines");
        (0..threads).map(|_| LineSession { medium, words, overlap, loaded: 0 }).collect()
    }

    fn memory(&mut self) -> Result<Option<MemoryUse>> {
        let words = self.words()?;
        Ok(Some(MemoryUse { pm_bytes: 8 * words.len() as u64, dram_bytes: 0 }))
    }
}

impl<M: Medium> OnMedium for LineArray<M> {
    type Medium = M;

    fn medium(&self) -> &M {
        self.pool.medium()
    }
    fn close(self) -> Result<()> {
        Ok(self.pool.close()?)
    }
}

/// One thread's access to the lines.
pub(crate) struct LineSession<'a, M> {
    medium: &'a M,
    words: &'a [PmWord],
    overlap: Overlap,
    /// The word that the last operation loaded: 0.
    loaded: u64,
}

impl<'a, M: Medium> LineSession<'a, M> {
    /// Loads the first word of the line of `hash`, and returns the line.
    #[inline(always)]
    fn load(&mut self, hash: u64) -> &'a [PmWord] {
        let hash = match self.overlap {
            Overlap::Serial => hash.wrapping_add(self.loaded),
            Overlap::Pipelined => hash,
        };
        let lines = (self.words.len() / LINE_WORDS) as u128;
        let line = ((u128::from(hash) * lines) >> u64::BITS) as usize;
        let words = &self.words[line * LINE_WORDS..(line + 1) * LINE_WORDS];
        self.loaded = self.medium.load(&words[0]);
        words
    }

    /// ```text
    /// W value                   8 B
    /// F line |                  -> durable   budget: 1 line, 1 fence
    /// ```
    #[inline(always)]
    fn write(&mut self, hash: u64, value: u64) -> bool {
        let line = self.load(hash);
        self.medium.store(&line[1], value ^ self.loaded);
        let _ = self.medium.persist(line);
        true
    }
}

/// The value of a key of 8 B is computed from the key, and from the word that was loaded. So the
/// check of an answer waits for the load.
impl<M: Medium, K: Key> Session<K> for LineSession<'_, M> {
    #[inline]
    fn get(&mut self, key: K::Ref<'_>) -> Result<Option<u64>> {
        self.load(K::hash(key));
        Ok(Some(value_of(K::prefix(key), 0) ^ self.loaded))
    }
    fn multi_get(&mut self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<()> {
        for (&key, value) in keys.iter().zip(values) {
            *value = Session::<K>::get(self, key)?;
        }
        Ok(())
    }
    #[inline]
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        Ok(self.write(K::hash(key), value))
    }
    #[inline]
    fn update(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        Ok(self.write(K::hash(key), value))
    }
    #[inline]
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool> {
        Ok(self.write(K::hash(key), 0))
    }
    fn scan(&mut self, key: K::Ref<'_>, length: usize) -> Result<usize> {
        self.load(K::hash(key));
        let first = K::hash(key) as usize % self.words.len() / LINE_WORDS;
        let lines = length.div_ceil(PAIRS);
        let last = (first + lines).min(self.words.len() / LINE_WORDS);
        let mut sum = 0;
        for line in first..last {
            sum ^= self.medium.load(&self.words[line * LINE_WORDS]);
        }
        black_box(sum);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bristlecone_pmem::Mapped;
    use bristlecone_pmem::medium::Count;

    #[test]
    fn a_write_costs_a_line_and_a_fence_and_a_read_nothing() {
        for overlap in [Overlap::Serial, Overlap::Pipelined] {
            let room = BASE_ROOM_BYTES + 4000 * KEY_ROOM_BYTES;
            let medium = Count::new(Mapped::anonymous(room).unwrap());
            let mut lines = LineArray::create(medium, overlap).unwrap();
            lines.pool.medium().take();
            for session in &mut System::<u64>::sessions(&mut lines, 1) {
                assert!(Session::<u64>::insert(session, 7, 70).unwrap());
                assert!(Session::<u64>::update(session, 7, 71).unwrap());
                assert!(Session::<u64>::remove(session, 7).unwrap());
                assert_eq!(Session::<u64>::get(session, 7).unwrap(), Some(value_of(7, 0)));
                assert_eq!(Session::<u64>::scan(session, 7, 100).unwrap(), 100);
            }
            let counts = lines.pool.medium().take();
            assert_eq!((counts.lines, counts.fences), (3, 3), "{overlap}");
            let memory = System::<u64>::memory(&mut lines).unwrap().unwrap();
            assert!((64_000..80_000).contains(&memory.pm_bytes), "{memory:?}");
        }
    }
}
