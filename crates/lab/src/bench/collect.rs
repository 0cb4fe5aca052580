//! Collectors: threads that do what a subject puts off, while others measure it.
//!
//! They are keepers of the index from before the first operation to after the last one, those of the warm-up
//! included. One that finds nothing to do sleeps: so it leaves its processor to who needs it.

use super::pin;
use super::subject::Actor;
use crate::error::Result;
use bristlecone_trees::{Key, Maintainer};
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

/// How long a collector that has nothing to do sleeps: some hundred operations of a thread, and so much less
/// than what a log gathers between two collections.
const IDLE: Duration = Duration::from_micros(100);

/// What a collector is told.
pub(super) struct Post<'a> {
    pub(super) keeper: Option<Maintainer>,
    pub(super) processor: Option<usize>,
    pub(super) is_over: &'a AtomicBool,
}

/// Tends a subject until all is over.
pub(super) fn run_worker<K: Key, A: Actor<K>>(actor: &mut A, post: &Post<'_>) -> Result<()> {
    if post.keeper.is_none() {
        return Ok(());
    }
    let _ = post.processor.is_some_and(pin::pin);
    while !post.is_over.load(Ordering::Relaxed) {
        if !actor.run_maintenance_step()? {
            std::thread::sleep(IDLE);
        }
    }
    Ok(())
}
