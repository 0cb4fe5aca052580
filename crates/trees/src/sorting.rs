//! Sorting pairs by their first element.
//!
//! The type of a closure includes the generic parameters of the function around it. A sort that
//! gets its closure from a tree's code is therefore compiled once for every tree and node size. The
//! functions here are compiled once for each type of pair.

use bristlecone_pmem::sys::{self, RANKED_MAX};

/// Sorts `pairs` by their first element. Not stable.
pub(crate) fn sort_pairs<A: Ord, B>(pairs: &mut [(A, B)]) {
    pairs.sort_unstable_by(|a, b| a.0.cmp(&b.0));
}

/// Returns the rank of each of `keys` in ascending order. `None` if two are equal, or if there is
/// no way that is faster than sorting.
#[inline]
fn ranks(keys: &[u64]) -> Option<[u64; RANKED_MAX]> {
    let mut padded = [0; RANKED_MAX];
    padded.get_mut(..keys.len())?.copy_from_slice(keys);
    let ranks = sys::ranks(&padded, keys.len())?;
    // Each of two equal keys has the rank of the first one.
    let sum: u64 = ranks[..keys.len()].iter().sum();
    let distinct = keys.len() * keys.len().saturating_sub(1) / 2;
    (sum == distinct as u64).then_some(ranks)
}

/// Returns `items` with their `keys`, in the order of the keys. Not stable. `keys` and `items` have
/// the same length.
pub(crate) fn sorted_by_keys<T: Copy>(keys: &[u64], items: &[T]) -> Vec<(u64, T)> {
    let Some(ranks) = ranks(keys) else {
        let mut keyed: Vec<_> = keys.iter().copied().zip(items.iter().copied()).collect();
        sort_pairs(&mut keyed);
        return keyed;
    };
    let mut index_of_rank = [0; RANKED_MAX];
    for (index, &rank) in ranks[..keys.len()].iter().enumerate() {
        index_of_rank[rank as usize] = index;
    }
    index_of_rank[..keys.len()].iter().map(|&index| (keys[index], items[index])).collect()
}

/// Sorts `pairs` by their first element. Stable: equal pairs keep their order.
pub(crate) fn sort_pairs_stably<A: Ord, B>(pairs: &mut [(A, B)]) {
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sorted_by_keys_pairs_each_item_with_its_key(keys in prop::collection::vec(prop_oneof![0..9_u64, any::<u64>()], 0..70)) {
            let items: Vec<_> = (0..keys.len()).collect();
            let ordered = sorted_by_keys(&keys, &items);
            prop_assert!(ordered.is_sorted_by_key(|&(key, _)| key));
            prop_assert!(ordered.iter().all(|&(key, item)| keys[item] == key));
            let mut left: Vec<_> = ordered.iter().map(|&(_, item)| item).collect();
            left.sort_unstable();
            prop_assert_eq!(left, items);
        }
    }
}
