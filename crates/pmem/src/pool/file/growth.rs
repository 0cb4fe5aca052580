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

    /// Sets the largest step by which the pool grows ahead of its need, in bytes. Default: 64 MiB.
    pub fn set_growth_step(&self, bytes: u64) {
        self.growth_bytes.store(bytes.max(CHUNK_BYTES), Ordering::Relaxed);
    }

    /// Grows the pool to at least `bytes`, while other threads use it. Durable on return.
    ///
    /// ```text
    /// grow the medium          crash here: the file is longer than the superblock says; ignored
    /// sync its length |        before a superblock names it
    /// W both superblocks, one after the other; F | each    -> durable
    /// ```
    ///
    /// # Errors
    /// The medium cannot grow that far. Nothing has changed then.
    pub fn grow(&self, bytes: u64) -> Result<(), PoolError> {
        self.grow_locked(&mut self.lock_superblock(), bytes, bytes)?;
        self.heap.lock().keep_pages();
        Ok(())
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

    /// Grows the pool to at least `least` bytes, and to `ample` at most.
    fn grow_locked(
        &self,
        superblock: &mut Superblock,
        least: u64,
        ample: u64,
    ) -> Result<(), PoolError> {
        let limit = self.bytes_max.load(Ordering::Relaxed).min(POOL_BYTES_MAX);
        if least > limit {
            return Err(MediumError::Limit { wanted: least, limit }.into());
        }
        let least = least.next_multiple_of(CHUNK_BYTES);
        if least <= superblock.pool_bytes {
            return Ok(());
        }
        let ample = ample.min(limit / CHUNK_BYTES * CHUNK_BYTES).max(least);
        let bytes = self.medium.grow_between(least, ample)? / CHUNK_BYTES * CHUNK_BYTES;
        self.medium.sync_length()?;
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

    /// Returns the size to which a pool of `old` bytes grows if it needs `least`: half as much
    /// again, by at least 1 MiB and at most a [step](Self::set_growth_step). Under a placement that
    /// is a whole number of rounds of stripes, so that each zone gets space.
    fn ample(&self, old: u64, least: u64) -> u64 {
        let step = self.growth_bytes.load(Ordering::Relaxed);
        let ample = old.saturating_add((old / 2).max(1 << 20).min(step)).max(least);
        let Some(placement) = &self.placement else { return ample };
        let round = placement.round_bytes();
        let rounds = ample.max(old.saturating_add(round)).checked_next_multiple_of(round);
        rounds.unwrap_or(u64::MAX)
    }

    /// Prepares the next step if less than half of it is left. `left` is the free space.
    #[inline(always)]
    pub(super) fn prepare_if_low(&self, pool_bytes: u64, left: u64) {
        let step = self.growth_bytes.load(Ordering::Relaxed);
        if M::PREPARES_GROWTH && left < (pool_bytes / 4).min(step / 2) {
            self.prepare(pool_bytes);
        }
    }

    #[cold]
    fn prepare(&self, pool_bytes: u64) {
        let limit = self.bytes_max.load(Ordering::Relaxed).min(POOL_BYTES_MAX);
        let ample = self.ample(pool_bytes, 0).min(limit / CHUNK_BYTES * CHUNK_BYTES);
        if ample > pool_bytes {
            self.medium.prepare_growth(ample);
        }
    }

    /// Grows the pool by a step, or by what `wanted` lacks at its end if there is no space for
    /// more; see [`ample`](Self::ample). Does nothing if the pool has grown since this thread found
    /// it full at `full_at` bytes, because another thread has made space.
    ///
    /// If one zone has no space but others have, the pool grows by whole rounds of stripes. If it
    /// cannot, blocks come from any zone until the pool has grown again.
    #[cold]
    pub(super) fn grow_for(&self, wanted: u64, full_at: u64) -> Result<(), PoolError> {
        let mut superblock = self.lock_superblock();
        let old = superblock.pool_bytes;
        if old != full_at {
            return Ok(());
        }
        let least = wanted.checked_next_multiple_of(CHUNK_BYTES).unwrap_or(u64::MAX);
        let least = least.saturating_sub(self.heap.lock().free_end_bytes()).max(CHUNK_BYTES);
        let least = old.saturating_add(least);
        let ample = self.ample(old, least);
        if self.placement.is_some() && self.heap.lock().prefers_growth() {
            return match self.grow_locked(&mut superblock, ample, ample) {
                Err(PoolError::Medium(_)) => {
                    self.heap.lock().prefer_growth(false);
                    Ok(())
                }
                other => other,
            };
        }
        match self.grow_locked(&mut superblock, least, ample) {
            // More space would not help: nothing is written any more.
            Err(PoolError::Medium(MediumError::Poisoned)) => Err(MediumError::Poisoned.into()),
            Err(PoolError::Medium(reason)) => Err(PoolError::Full { wanted, reason }),
            other => other,
        }
    }
}

#[cfg(test)]
mod tests;
