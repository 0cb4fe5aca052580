//! Compaction: records leave chunks that are mostly free, so that the chunks can be used for blocks
//! of any size.
//!
//! 1. A record moves as a `put` of the same value would: one store of 8 B moves the entry, with
//!    which the new record becomes durable, and the old one is retired. So a crash leaves the old
//!    record or the new one, and recovery frees the other.
//! 2. The pool chooses chunks without knowing what is in them. A block is a record only if the
//!    index points to it from the entry of the key that it holds. Any other block stays.
//! 3. The index moves an entry only if it still names the old record. So a write by another thread
//!    is never undone.

use crate::error::Error;
use crate::store::Store;
use bristlecone_pmem::alloc::Evacuation;
use bristlecone_pmem::{Defect, Medium, PmPtr};
use bristlecone_trees::{Record, TreeError};

/// The number of blocks, and their bytes, at which one write stops moving records. It ends the
/// chunk that it has begun: at most 255 blocks more, some hundreds of microseconds in all.
const BLOCKS_MAX: usize = 128;
const BYTES_MAX: u64 = 128 << 10;

impl<M: Medium, const LEAF_BYTES: usize> Store<M, LEAF_BYTES> {
    /// Moves records together, so that space between them can be used for records of any size.
    ///
    /// The file is divided into chunks of 32 KiB, each for records of one size. After many deletes
    /// most chunks hold a few records each. This empties every chunk that is at most half full, if
    /// its records fit into others. The file does not shrink: later writes use the space.
    ///
    /// A `put` does the same in small steps when little of the file is free, before it lets the
    /// file grow. So a call is seldom necessary. It takes about as long as a `put` of each moved
    /// record. All other methods may run meanwhile; no pair is missing at any time.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// for year in 0..2000 {
    ///     store.put(format!("ring {year}"), "wide enough for a record")?;
    /// }
    /// for year in (0..2000).filter(|year| year % 10 > 0) {
    ///     store.delete(format!("ring {year}"))?;
    /// }
    /// let before = store.stats();
    /// store.compact()?;
    /// assert!(store.stats().free_bytes > before.free_bytes);
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// No pair has changed.
    /// - [`Error::Full`]: there is no space for a single record more.
    /// - [`Error::Damaged`]: a record is damaged, or a node on the path to it.
    /// - [`Error::ForkedChild`]: a parent of this process opened the store.
    pub fn compact(&self) -> Result<(), Error> {
        self.check_process()?;
        while let Some(evacuation) = self.pool().begin_evacuation() {
            self.evacuate(&evacuation).map_err(|e| self.error(e))?;
        }
        self.pool().collect();
        self.settle_writes()
    }

    /// Moves some records out of sparse chunks, as many as one write may. Returns `true` if it has
    /// emptied a chunk. An error stops it: the writer has done its own work.
    #[cold]
    pub(crate) fn compact_some(&self, mut is_wanted: impl FnMut() -> bool) -> bool {
        let (mut blocks, mut bytes, mut has_moved) = (0, 0, false);
        while is_wanted()
            && blocks < BLOCKS_MAX
            && bytes < BYTES_MAX
            && let Some(evacuation) = self.pool().begin_evacuation()
        {
            blocks += evacuation.blocks.len();
            bytes += evacuation.blocks.len() as u64 * evacuation.block_bytes;
            match self.evacuate(&evacuation) {
                Ok(moved) => has_moved |= moved == evacuation.blocks.len(),
                Err(_) => break,
            }
        }
        has_moved
    }

    /// Moves the records of a chunk. Returns the number that it has moved.
    fn evacuate(&self, evacuation: &Evacuation) -> Result<usize, TreeError> {
        let mut moved = 0;
        let ended = evacuation.blocks.iter().try_for_each(|&block| {
            moved += usize::from(self.move_record(PmPtr::new(block))?);
            Ok(())
        });
        self.pool().end_evacuation(evacuation);
        ended.map(|()| moved)
    }

    /// Moves the record at `at` to a new block, or returns `false` if there is none.
    ///
    /// ```text
    /// N record            its lines
    /// index.replace: .. |             crash before C: the old record; the new one is free
    ///   C                 8 B         crash after C: the new record; the old one is free
    /// ```
    fn move_record(&self, at: PmPtr) -> Result<bool, TreeError> {
        let pool = self.pool();
        let mut guard = pool.pin(); // I2 of `store`
        let Ok((key, old)) = Record::at(pool, at) else { return Ok(false) };
        if self.index.get_pair(&key)? != Some(old) {
            return Ok(false);
        }
        if M::INJECTS_DEFECTS && pool.medium().injects(Defect::CompactRepinned) {
            // More than once, so that one of a few hundred interruptions comes between.
            for _ in 0..16 {
                drop(guard);
                guard = pool.pin();
            }
        }
        let value = self.value(&key, old, &guard)?;
        let new = Record::write(pool, &key, &value)?;
        let moved = self.index.replace_pair(&key, old, new);
        self.free_loser(Some(old), Some(new), &moved, &guard)?;
        moved
    }
}
