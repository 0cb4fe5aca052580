//! Maintenance workers: threads that do the deferred work of a system while others measure it.
//!
//! They are registered before the first operation, those of the warm-up included, until after the
//! last one. A worker without work sleeps, so it leaves its processor to the measured threads.

use super::pin;
use crate::error::Result;
use crate::system::Session;
use bristlecone_trees::{Key, Maintainer};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

/// The sleep of a worker that found no work: some hundred operations of a thread, and much less
/// than the time in which a log fills between two collections.
const IDLE: Duration = Duration::from_micros(100);

/// A worker of one run.
pub(super) struct MaintenanceWorker<'a> {
    /// The registration, which ends when this is dropped. `None` if the system defers no work.
    pub(super) maintainer: Option<Maintainer>,
    pub(super) processor: Option<usize>,
    pub(super) is_over: &'a AtomicBool,
}

impl MaintenanceWorker<'_> {
    /// Does deferred work until the run is over.
    pub(super) fn run<K: Key, S: Session<K>>(&self, session: &mut S) -> Result<()> {
        if self.maintainer.is_none() {
            return Ok(());
        }
        let _ = self.processor.is_some_and(pin::pin);
        while !self.is_over.load(Ordering::Relaxed) {
            if !session.run_maintenance_step()? {
                std::thread::sleep(IDLE);
            }
        }
        Ok(())
    }
}
