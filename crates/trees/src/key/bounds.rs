//! Comparing keys with the bounds of a scan.

use super::Key;
use core::ops::Bound;

/// Returns `true` if `key` satisfies the lower bound `from`.
pub(crate) fn satisfies_start<K: Key>(from: Bound<K::Ref<'_>>, key: K::Ref<'_>) -> bool {
    match from {
        Bound::Included(from) => K::compare(key, from).is_ge(),
        Bound::Excluded(from) => K::compare(key, from).is_gt(),
        Bound::Unbounded => true,
    }
}

/// Returns `true` if `key` satisfies the upper bound `to`.
pub(crate) fn satisfies_end<K: Key>(to: Bound<K::Ref<'_>>, key: K::Ref<'_>) -> bool {
    match to {
        Bound::Included(to) => K::compare(key, to).is_le(),
        Bound::Excluded(to) => K::compare(key, to).is_lt(),
        Bound::Unbounded => true,
    }
}
