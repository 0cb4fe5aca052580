//! The oracle for batches: other threads, and recovery, find all of a batch or nothing of it.
//!
//! It judges a batch if no other operation writes one of its keys and each write changes a value.
//! Then the value of a key tells whether the batch is done.
//!
//! 1. At the end, and after a recovery, all of its keys tell the same.
//! 2. A read that finds the batch done comes after each read that does not, unless they overlap.

use crate::outcome::Finding;
use crate::scenario::index::session::{Op, show};
use crate::trace::NEVER;
use crate::trace::call::{Answer, Call};
use bristlecone_trees::Key;
use std::collections::BTreeMap;

/// Checks all batches of an execution. `value_of` returns the values at its end, or those of a
/// recovery.
pub(super) fn check<K: Key>(
    threads: &[Vec<Op<K>>],
    calls: &[Call],
    model: &BTreeMap<K::Owned, u64>,
    value_of: &dyn Fn(&K::Owned) -> Option<u64>,
) -> Result<(), Finding> {
    let all = threads.iter().flatten();
    for batch in all {
        let Op::Commit(changes) = batch else { continue };
        let is_judged = |(key, value): &(K::Owned, Option<u64>)| {
            model.get(key) != value.as_ref() && writers(threads, key) == 1
        };
        if changes.iter().all(is_judged) {
            is_whole::<K>(changes, value_of)?;
            is_seen_at_once(threads, calls, changes)?;
        }
    }
    Ok(())
}

/// Returns the number of operations that may write `key`.
fn writers<K: Key>(threads: &[Vec<Op<K>>], key: &K::Owned) -> usize {
    let writes = |op: &&Op<K>| match op {
        Op::Commit(changes) => changes.iter().any(|(other, _)| other == key),
        Op::Get(_) => false,
        op => op.key().as_ref() == Some(key),
    };
    threads.iter().flatten().filter(writes).count()
}

/// Checks rule 1.
fn is_whole<K: Key>(
    changes: &[(K::Owned, Option<u64>)],
    value_of: &dyn Fn(&K::Owned) -> Option<u64>,
) -> Result<(), Finding> {
    let done = changes.iter().filter(|(key, value)| value_of(key) == *value).count();
    if done == 0 || done == changes.len() {
        return Ok(());
    }
    let found = format!("{done} of {} writes", changes.len());
    Err(Finding::new("a batch is done in part", "all of its writes or none", found))
}

/// Checks rule 2.
fn is_seen_at_once<K: Key>(
    threads: &[Vec<Op<K>>],
    calls: &[Call],
    changes: &[(K::Owned, Option<u64>)],
) -> Result<(), Finding> {
    let reads = calls.iter().filter(|call| call.returned != NEVER).filter_map(|call| {
        let key = match &threads[call.thread][call.place] {
            Op::Get(key) => key,
            Op::MultiGet(keys) => &keys[call.part],
            _ => return None,
        };
        let Answer::Value(found) = call.answer else { return None };
        let (_, value) = changes.iter().find(|(other, _)| other == key)?;
        Some((call, key, found == *value))
    });
    let reads: Vec<_> = reads.collect();
    for (first, _, _) in reads.iter().filter(|(_, _, is_done)| *is_done) {
        let stale = |(later, _, is_done): &&(&Call, &K::Owned, bool)| {
            !is_done && first.returned < later.invoked
        };
        if let Some((_, key, _)) = reads.iter().find(stale) {
            let what = "a read finds a batch done, and a later one does not";
            let found = format!("the old value of {}", show::<K>(key));
            return Err(Finding::new(what, "all writes of the batch", found));
        }
    }
    Ok(())
}
