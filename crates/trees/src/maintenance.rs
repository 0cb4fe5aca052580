//! Background maintenance: application threads do deferred work, such as log garbage collection, in
//! place of writers.
//!
//! 1. Nothing here spawns a thread. A maintenance worker is an application thread that registers as
//!    a [`Maintainer`] and calls
//!    [`PmIndex::run_maintenance_step`](crate::PmIndex::run_maintenance_step) in a loop.
//! 2. Registration is advice. A worker takes the same steps as a writer, under the same latches, so
//!    what is durable, what readers see and every persist order do not depend on it. Therefore the
//!    count needs no memory order, and a worker that stalls costs space and nothing else.
//! 3. A writer reads the count only when work is due. It then leaves the work to the workers,
//!    unless they are far behind; each design defines how far that is.

use bristlecone_pmem::Medium;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// The number of registered workers. The alignment gives it a pair of cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct WorkerCount(AtomicUsize);

/// The maintenance workers of an index.
#[derive(Debug, Default)]
pub struct Maintainers(Arc<WorkerCount>);

impl Maintainers {
    /// Registers a worker until the returned value is dropped.
    pub fn register(&self) -> Maintainer {
        self.0.0.fetch_add(1, Relaxed);
        Maintainer(Arc::clone(&self.0))
    }

    /// Returns `true` if at least one worker is registered.
    #[inline]
    pub fn are_registered<M: Medium>(&self) -> bool {
        M::yield_point();
        self.0.0.load(Relaxed) > 0
    }
}

/// The registration of a maintenance worker; dropping it unregisters the worker. See
/// [`PmIndex::maintainer`](crate::PmIndex::maintainer).
///
/// It may be sent to another thread. It may outlive its index and has no effect then.
#[derive(Debug)]
#[must_use = "dropping this unregisters the worker"]
pub struct Maintainer(Arc<WorkerCount>);

impl Drop for Maintainer {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}
