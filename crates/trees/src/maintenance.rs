//! Maintainers: threads of whoever uses an index that do the work which its design puts off, so that writers
//! need not.
//!
//! 1. Nothing here spawns a thread. Whoever has one registers it as a [`Maintainer`] and calls
//!    [`PmIndex::tend`](crate::PmIndex::run_maintenance_step) with it.
//! 2. Registering is advice. What is durable, what readers see and in which order anything persists does not
//!    depend on it: who tends takes the same steps as a writer, under the same latches. So the count needs
//!    no order, and a keeper that stalls, or is forgotten, costs room and nothing else.
//! 3. A writer looks at the count where there is work to do, and not otherwise. It then leaves the work to
//!    maintainers, unless they are far behind; each design says how far that is.

use bristlecone_pmem::Medium;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::Arc;

/// Maintainers that are registered, on a line that nothing else shares.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Count(AtomicUsize);

/// The keepers of an index.
#[derive(Debug, Default)]
pub struct Maintainers(Arc<Count>);

impl Maintainers {
    /// Registers one more.
    pub fn register(&self) -> Maintainer {
        self.0.0.fetch_add(1, Relaxed);
        Maintainer(Arc::clone(&self.0))
    }

    /// Whether there are any.
    #[inline]
    pub fn are_registered<M: Medium>(&self) -> bool {
        M::yield_point();
        self.0.0.load(Relaxed) > 0
    }
}

/// A keeper of an index, for as long as this lives: see [`PmIndex::keeper`](crate::PmIndex::maintainer). It may
/// be sent to another thread, and may outlive its index, of which it then is no burden.
#[derive(Debug)]
#[must_use = "a keeper that is dropped keeps nothing"]
pub struct Maintainer(Arc<Count>);

impl Drop for Maintainer {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}
