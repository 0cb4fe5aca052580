//! Helpers for the unit tests of trees with a leaf table.

use crate::index::{Order, PmIndex};
use crate::key::Key;
use bristlecone_pmem::medium::Count;
use bristlecone_pmem::{Mapped, Medium, Pool};
use core::ops::{Bound, ControlFlow};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns an empty index on a medium that counts lines and fences.
pub(crate) fn counted<I: PmIndex<Count<Mapped>, u64>>() -> I {
    let medium = Count::new(Mapped::anonymous(1 << 20).unwrap());
    I::create(Arc::new(Pool::create(medium).unwrap()), "t").unwrap()
}

/// Returns the numbers of lines and fences that `act` causes.
pub(crate) fn cost<K: Key, I: PmIndex<Count<Mapped>, K>>(
    index: &I,
    act: impl FnOnce(&I),
) -> (u64, u64) {
    index.pool().medium().take();
    act(index);
    let counts = index.pool().medium().take();
    (counts.lines, counts.fences)
}

pub(crate) fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

/// Returns all pairs of the index, by a descending scan.
pub(crate) fn pairs<M: Medium, I: PmIndex<M, u64>>(index: &I) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    let all = (Bound::Unbounded, Bound::Unbounded);
    let scan = index.scan(all, Order::Descending, &mut |key, value| {
        found.insert(key, value);
        ControlFlow::Continue(())
    });
    scan.unwrap();
    found
}
