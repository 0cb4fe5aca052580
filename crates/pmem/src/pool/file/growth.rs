//! How a pool grows.

use super::{Medium, MediumError, Ordering, Pool, PoolError, Superblock};
use crate::layout::{CHUNK_BYTES, POOL_BYTES_MAX};

impl<M: Medium> Pool<M> {
    /// Bounds the size to which [`reserve`](Self::reserve) may grow the pool, in bytes.
    pub fn limit(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        self.heap.lock().prefer_growth(true);
    }

    /// Grows the pool to at least `bytes`, while it is in use. Durable at return.
    ///
    /// ```text
    /// grow the medium          crash here: the file is longer than the superblock says; ignored
    /// W both superblocks, one after the other; F | each    -> durable
    /// ```
    ///
    /// # Errors
    /// The medium cannot grow so far. Nothing has changed then.
    pub fn grow(&self, bytes: u64) -> Result<(), PoolError> {
        self.grow_locked(&mut self.superblock.lock(), bytes)
    }

    fn grow_locked(&self, superblock: &mut Superblock, bytes: u64) -> Result<(), PoolError> {
        let limit = self.bytes_max.load(Ordering::Relaxed).min(POOL_BYTES_MAX);
        if bytes > limit {
            return Err(MediumError::Limit { wanted: bytes, limit }.into());
        }
        let bytes = bytes.next_multiple_of(CHUNK_BYTES);
        if bytes <= superblock.pool_bytes {
            return Ok(());
        }
        self.medium.grow(bytes)?;
        superblock.pool_bytes = bytes;
        superblock.write_both(&self.medium, self.superblock_copies()?);
        let mut heap = self.heap.lock();
        heap.extend(bytes);
        heap.prefer_growth(true);
        Ok(())
    }

    /// Grows by half, within reason; by just what is needed if there is no room for more. Does
    /// nothing if the pool has grown since it was found full at `full_at` bytes: whoever was there
    /// first has made room.
    ///
    /// Where a zone is out of room and others are not, the pool grows by whole rounds of stripes, so
    /// that each zone has more. If it cannot, blocks come from any zone until it has grown again.
    #[cold]
    pub(super) fn grow_for(&self, wanted: u64, full_at: u64) -> Result<(), PoolError> {
        let mut superblock = self.superblock.lock();
        let old = superblock.pool_bytes;
        if old != full_at {
            return Ok(());
        }
        let least = wanted.checked_next_multiple_of(CHUNK_BYTES).unwrap_or(u64::MAX);
        let least = old.saturating_add(least);
        let ample = (old + (old / 2).clamp(1 << 20, 1 << 30)).max(least);
        if let Some(placement) = &self.placement
            && self.heap.lock().prefers_growth()
        {
            let round = placement.round_bytes();
            let rounds = ample.max(old + round).checked_next_multiple_of(round).unwrap_or(u64::MAX);
            return match self.grow_locked(&mut superblock, rounds) {
                Err(PoolError::Medium(_)) => {
                    self.heap.lock().prefer_growth(false);
                    Ok(())
                }
                other => other,
            };
        }
        let grown = self.grow_locked(&mut superblock, ample);
        match grown.or_else(|_| self.grow_locked(&mut superblock, least)) {
            Err(PoolError::Medium(reason)) => Err(PoolError::Full { wanted, reason }),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests;
