//! Pairs in the order of their firsts.
//!
//! A closure belongs to whatever generic function it stands in, so a sort that is given one there is
//! compiled for every tree at every node size. These are compiled once for a type of pairs.

/// Sorts `pairs`; which of two equal ones comes first is open.
pub(crate) fn sort_pairs<A: Ord, B>(pairs: &mut [(A, B)]) {
    pairs.sort_unstable_by(|a, b| a.0.cmp(&b.0));
}

/// Sorts `pairs`; of two equal ones the first stays first.
pub(crate) fn sort_pairs_stably<A: Ord, B>(pairs: &mut [(A, B)]) {
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
}
