//! Checks of an index or a pool that every oracle makes.

use crate::outcome::Finding;
use crate::subject::design::Index;
use bristlecone_pmem::{Pool, Simulated};
use bristlecone_trees::{Key, Order, TreeError, TreeStats};
use core::ops::{Bound, ControlFlow};

/// Returns the bounds of a full scan.
pub(crate) const fn everything<T>() -> (Bound<T>, Bound<T>) {
    (Bound::Unbounded, Bound::Unbounded)
}

pub(crate) fn failed(what: &str, error: &TreeError) -> Finding {
    Finding::new(what, "no error", error.to_string())
}

pub(crate) fn check<K: Key>(index: &Index<K>) -> Result<TreeStats, Finding> {
    index.check().map_err(|error| failed("the index fails its check", &error))
}

/// Checks that the structures that a close saved were durable when it named them. No crash may
/// leave that to a checksum.
pub(crate) fn saved(pool: &Pool<Simulated>) -> Result<(), Finding> {
    match pool.rebuilt_count() {
        0 => Ok(()),
        times => {
            let what = "what a close had saved is damaged";
            Err(Finding::new(what, "nothing made anew", format!("{times} times")))
        }
    }
}

/// Checks that the reserved blocks are the reachable ones, and that saved structures were
/// undamaged.
pub(crate) fn leaks(pool: &Pool<Simulated>, stats: &TreeStats) -> Result<(), Finding> {
    saved(pool)?;
    let usage = pool.usage();
    let expected = (stats.blocks + 1, stats.pm_bytes + bristlecone_pmem::pool::HEADER_BYTES);
    let found = (usage.blocks, usage.used_bytes);
    if found == expected {
        return Ok(());
    }
    let what = "what is allocated is not what is reachable";
    let show = |(blocks, bytes)| format!("{blocks} blocks of {bytes} B, the header included");
    Err(Finding::new(what, show(expected), show(found)))
}

pub(crate) fn pairs<K: Key>(index: &Index<K>) -> Vec<(K::Owned, u64)> {
    let mut pairs = Vec::new();
    let _ = index.scan(everything(), Order::Ascending, &mut |key, value| {
        pairs.push((K::to_owned(key), value));
        ControlFlow::Continue(())
    });
    pairs
}
