//! Pairs in the order of their firsts.
//!
//! A closure belongs to whatever generic function it stands in, so a sort that is given one there is
//! compiled for every tree at every node size. These are compiled once for a type of pairs.

use crate::key::Key;

/// Sorts `pairs`; which of two equal ones comes first is open.
pub(crate) fn sort_pairs<A: Ord, B>(pairs: &mut [(A, B)]) {
    pairs.sort_unstable_by(|a, b| a.0.cmp(&b.0));
}

/// Sorts `pairs`; of two equal ones the first stays first.
pub(crate) fn sort_pairs_stably<A: Ord, B>(pairs: &mut [(A, B)]) {
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
}

/// Sorts pairs whose firsts are keys; which of two equal ones comes first is open. Most keys differ in
/// their prefixes, which are numbers.
pub(crate) fn sort_by_key<K: Key, B>(pairs: &mut [(K::Owned, B)]) {
    pairs.sort_unstable_by(|(a, _), (b, _)| {
        let (before, after) = (K::prefix(K::borrow(a)), K::prefix(K::borrow(b)));
        before.cmp(&after).then_with(|| a.cmp(b))
    });
}
