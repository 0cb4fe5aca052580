//! Sorting pairs by their first element.
//!
//! The type of a closure includes the generic parameters of the function around it. A sort that
//! gets its closure from a tree's code is therefore compiled once for every tree and node size. The
//! functions here are compiled once for each type of pair.

/// Sorts `pairs` by their first element. Not stable.
pub(crate) fn sort_pairs<A: Ord, B>(pairs: &mut [(A, B)]) {
    pairs.sort_unstable_by(|a, b| a.0.cmp(&b.0));
}

/// The longest input that is sorted by counting ranks. That compares all pairs of keys, at most
/// 496, but takes no branch that the processor could mispredict.
const RANKED_MAX: usize = 32;

/// Returns `items` with their `keys`, in the order of the keys. Not stable. `keys` and `items` have
/// the same length.
pub(crate) fn sorted_by_keys<T: Copy>(keys: &[u64], items: &[T]) -> Vec<(u64, T)> {
    let keyed = keys.iter().copied().zip(items.iter().copied());
    if keys.len() > RANKED_MAX {
        let mut keyed: Vec<_> = keyed.collect();
        sort_pairs(&mut keyed);
        return keyed;
    }
    let mut index_of_rank = [0; RANKED_MAX];
    for (index, &key) in keys.iter().enumerate() {
        let (before, behind) = (&keys[..index], &keys[index + 1..]);
        let rank = before.iter().filter(|&&other| other <= key).count()
            + behind.iter().filter(|&&other| other < key).count();
        index_of_rank[rank] = index;
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
