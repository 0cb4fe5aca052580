//! Locking and replacing leaves below inner nodes that have lock arrays.
//!
//! A thread waits for a lock without the node's latch. Then it compares its key with the separators
//! around the leaf, as others may have split, replaced or merged it. It descends again only if the
//! node has lost keys, which the node counts.

use super::locks::{LockArray, child_word, free_lock, leaf_of, lock_of, wait_for};
use super::node::NodeView;
use super::nodes::{Replaced, SeparatedChild};
use super::{Direction, InnerNodes, LeafRoute, Restart};
use crate::key::Key;
use crate::node_latch::HeldLatch;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, Pool};

/// Takes the lock of the leaf at the end of `route` or, if other threads have changed the node
/// above meanwhile, of the leaf below that node which `key` leads to. Returns the leaf, too.
#[inline(always)]
pub(crate) fn lock_leaf<'a, M: Medium, K: Key, I: InnerNodes<M>>(
    inner: &'a I,
    pool: &Pool<M>,
    route: &LeafRoute,
    locks: &'a LockArray,
    key: K::Ref<'_>,
    direction: Direction,
) -> Result<Result<(PmPtr, HeldLatch<'a, M>), Restart>, Corrupt> {
    let node = inner.node(route.parent);
    let losses = node.losses();
    if !inner.is_current(route) {
        return Ok(Err(Restart));
    }
    let mut child = route.leaf.offset();
    loop {
        let Some(guard) = wait_for(locks, child, || node.losses() == losses) else {
            return Ok(Err(Restart));
        };
        let is_taken_as_is = M::INJECTS_DEFECTS && pool.medium().injects(Defect::LockUnchecked);
        if is_taken_as_is || inner.is_current(route) {
            return Ok(Ok((leaf_of(child), guard)));
        }
        let Some(proper) = recheck::<M, K, I>(inner, pool, (route.parent, losses), key, direction)?
        else {
            return Ok(Err(Restart));
        };
        if lock_of(proper) == lock_of(child) {
            return Ok(Ok((leaf_of(proper), guard)));
        }
        child = proper;
    }
}

/// Returns the child of a lowest node that `key` leads to, or `None` if the node has lost keys
/// since it counted `losses`.
#[cold]
fn recheck<M: Medium, K: Key, I: InnerNodes<M>>(
    inner: &I,
    pool: &Pool<M>,
    (index, losses): (usize, u64),
    key: K::Ref<'_>,
    direction: Direction,
) -> Result<Option<u64>, Corrupt> {
    let node = inner.node(index);
    loop {
        let Some(version) = node.latch().read() else { return Ok(None) };
        if node.losses() != losses {
            return Ok(None);
        }
        let position = inner.checked_position::<K>(pool, index, version, key, direction)?;
        let Ok(at) = position else { continue };
        let child = node.child(at);
        if node.latch().validate(version) {
            return Ok(Some(child));
        }
    }
}

/// Replaces the child `full` by the new leaves, after a call of `publish`. Returns `false`, and
/// does not call it, if the node above has no room. The caller holds the full leaf's lock, which
/// `lower` inherits.
///
/// # Errors
/// The record of a separator is damaged, or the node leads to another leaf: nothing has changed.
pub(crate) fn replace_leaf<M: Medium, K: Key, I: InnerNodes<M>>(
    inner: &I,
    pool: &Pool<M>,
    key: K::Ref<'_>,
    replaced: &Replaced<K::Ref<'_>>,
    publish: impl FnOnce(),
) -> Result<bool, Corrupt> {
    let (index, at, _guard) = inner.latch_above::<K>(pool, key)?;
    let node = inner.node(index);
    if replaced.upper.is_some() && node.count() == I::FANOUT {
        return Ok(false);
    }
    let word = inner.swung(index, at, replaced.full, replaced.lower)?;
    publish();
    node.set_child(at, word);
    if let Some((separator, word, leaf)) = replaced.upper {
        let child = child_word(leaf, free_lock(node));
        inner.insert(index, at, SeparatedChild { prefix: K::prefix(separator), word, child });
    }
    Ok(true)
}
