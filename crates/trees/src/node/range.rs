//! The range of keys that a node may hold.

use super::View;
use crate::key::Key;
use bristlecone_pmem::{Corrupt, Medium};
use core::cmp::Ordering;

/// Checks that the key in word `word` of a node is above the previous key, at or above the node's
/// low bound, and below its high bound.
///
/// # Errors
/// It is not.
pub(crate) fn check_order<M: Medium, K: Key>(
    view: View<'_, M>,
    word: usize,
    previous: Option<&K::Owned>,
    (low, high): (Option<&K::Owned>, Option<&K::Owned>),
    key: &K::Owned,
) -> Result<(), Corrupt> {
    let compare = |other: &K::Owned| K::compare(K::borrow(key), K::borrow(other));
    let prefix = |key: &K::Owned| K::prefix(K::borrow(key));
    let failed = |what, bound: &K::Owned| view.corrupt(word, what, prefix(bound), prefix(key));
    match (previous, low, high) {
        (Some(previous), ..) if compare(previous) != Ordering::Greater => {
            Err(failed("key out of order", previous))
        }
        (_, Some(low), _) if compare(low) == Ordering::Less => {
            Err(failed("key below its node's range", low))
        }
        (_, _, Some(high)) if compare(high) != Ordering::Less => {
            Err(failed("key above its node's range", high))
        }
        _ => Ok(()),
    }
}
