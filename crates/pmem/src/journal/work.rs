//! Counts of the work of a journal, which [`JournalStats`](super::JournalStats) shows.

use super::disk::Place;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

/// Counts of what threads did.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// The number of times that checkpoints have written the whole pool.
    pub(super) checkpoints: AtomicU64,
    pub(super) waits: AtomicU64,
    pub(super) groups: AtomicU64,
    pub(super) largest_group: AtomicU64,
    pub(super) stalls: AtomicU64,
}

impl Work {
    /// Counts a sync for which `waiting` threads have waited.
    pub(super) fn count_group(&self, waiting: u64) {
        self.waits.fetch_add(waiting, Ordering::Relaxed);
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.largest_group.fetch_max(waiting, Ordering::Relaxed);
    }
}

/// Counts of what went to the disk: for segments first, for the pool file second.
#[derive(Debug, Default)]
pub(super) struct DiskWork {
    pub(super) bytes: [AtomicU64; 2],
    pub(super) syncs: [AtomicU64; 2],
    /// The time of the syncs of segments.
    pub(super) sync_nanos: AtomicU64,
}

impl DiskWork {
    /// Counts a write of `bytes` bytes to a file.
    pub(super) fn count_write(&self, place: Place, bytes: usize) {
        self.bytes[usize::from(place == Place::Pool)].fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts a sync of a file.
    pub(super) fn count_sync(&self, place: Place, time: Duration) {
        let is_pool = place == Place::Pool;
        self.syncs[usize::from(is_pool)].fetch_add(1, Ordering::Relaxed);
        if !is_pool {
            self.sync_nanos.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
        }
    }
}
