//! The growth of a pool.

use super::{Medium, MediumError, Ordering, Pool, PoolError, Superblock};
use crate::defect::Defect;
use crate::layout::{CHUNK_BYTES, POOL_BYTES_MAX};
use parking_lot::MutexGuard;

impl<M: Medium> Pool<M> {
    /// Sets the size up to which [`reserve`](Self::reserve) may grow the pool, in bytes.
    pub fn limit(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        self.heap.lock().prefer_growth(true);
    }

    /// Grows the pool to at least `bytes`, while other threads use it. Durable on return.
    ///
    /// ```text
    /// grow the medium          crash here: the file is longer than the superblock says; ignored
    /// W both superblocks, one after the other; F | each    -> durable
    /// ```
    ///
    /// # Errors
    /// The medium cannot grow that far. Nothing has changed then.
    pub fn grow(&self, bytes: u64) -> Result<(), PoolError> {
        self.grow_locked(&mut self.lock_superblock(), bytes)
    }

    /// Locks the superblock. The holder accesses the medium, so a medium that controls the schedule
    /// may have switched it away: let it run.
    fn lock_superblock(&self) -> MutexGuard<'_, Superblock> {
        loop {
            if let Some(superblock) = self.superblock.try_lock() {
                return superblock;
            }
            if !M::spin_hint() {
                return self.superblock.lock();
            }
        }
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
        if M::INJECTS_DEFECTS && self.medium.injects(Defect::GrowthEarly) {
            self.heap.lock().extend(bytes); // Other threads publish blocks that a crash cuts off.
        }
        superblock.write_both(&self.medium, self.superblock_copies()?);
        let mut heap = self.heap.lock();
        heap.extend(bytes);
        heap.prefer_growth(true);
        Ok(())
    }

    /// Grows the pool by half, but by at least 1 MiB and at most 1 GiB; by just `wanted` if there
    /// is no space for more. Does nothing if the pool has grown since this thread found it full at
    /// `full_at` bytes, because another thread has made space.
    ///
    /// If one zone has no space but others have, the pool grows by whole rounds of stripes, so that
    /// each zone gets space. If it cannot, blocks come from any zone until the pool has grown
    /// again.
    #[cold]
    pub(super) fn grow_for(&self, wanted: u64, full_at: u64) -> Result<(), PoolError> {
        let mut superblock = self.lock_superblock();
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
