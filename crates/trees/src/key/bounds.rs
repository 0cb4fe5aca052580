//! Where a scan begins and ends.

use super::Key;
use core::ops::Bound;

/// Whether `key` is not below the bound at which a scan starts.
pub(crate) fn after<K: Key>(from: Bound<K::Ref<'_>>, key: K::Ref<'_>) -> bool {
    match from {
        Bound::Included(from) => K::compare(key, from).is_ge(),
        Bound::Excluded(from) => K::compare(key, from).is_gt(),
        Bound::Unbounded => true,
    }
}

/// Whether `key` is not above the bound at which a scan ends.
pub(crate) fn before<K: Key>(to: Bound<K::Ref<'_>>, key: K::Ref<'_>) -> bool {
    match to {
        Bound::Included(to) => K::compare(key, to).is_le(),
        Bound::Excluded(to) => K::compare(key, to).is_lt(),
        Bound::Unbounded => true,
    }
}
