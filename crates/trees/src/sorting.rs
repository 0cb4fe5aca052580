//! Pairs in the order of their firsts.
//!
//! A closure belongs to whatever generic function it stands in, so a sort that is given one there is
//! compiled for every tree at every node size. These are compiled once for a type of pairs.

/// Sorts `pairs`; which of two equal ones comes first is open.
pub(crate) fn sort_pairs<A: Ord, B>(pairs: &mut [(A, B)]) {
    pairs.sort_unstable_by(|a, b| a.0.cmp(&b.0));
}

/// Up to so many keys each is compared with each other one, without a branch that could be guessed wrong.
const COUNTED_MAX: usize = 32;

/// `items` in the order of their `keys`, with them; which of two equal ones comes first is open. There
/// are as many keys as items.
pub(crate) fn in_order<T: Copy>(keys: &[u64], items: &[T]) -> Vec<(u64, T)> {
    let keyed = keys.iter().copied().zip(items.iter().copied());
    if keys.len() > COUNTED_MAX {
        let mut keyed: Vec<_> = keyed.collect();
        sort_pairs(&mut keyed);
        return keyed;
    }
    let mut index_at = [0; COUNTED_MAX];
    for (index, &key) in keys.iter().enumerate() {
        let (former, others) = (&keys[..index], &keys[index + 1..]);
        let rank = former.iter().filter(|&&other| other <= key).count()
            + others.iter().filter(|&&other| other < key).count();
        index_at[rank] = index;
    }
    index_at[..keys.len()].iter().map(|&index| (keys[index], items[index])).collect()
}

/// Sorts `pairs`; of two equal ones the first stays first.
pub(crate) fn sort_pairs_stably<A: Ord, B>(pairs: &mut [(A, B)]) {
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn in_order_is_a_sort(keys in prop::collection::vec(prop_oneof![0..9_u64, any::<u64>()], 0..70)) {
            let items: Vec<_> = (0..keys.len()).collect();
            let ordered = in_order(&keys, &items);
            prop_assert!(ordered.is_sorted_by_key(|&(key, _)| key));
            prop_assert!(ordered.iter().all(|&(key, item)| keys[item] == key));
            let mut left: Vec<_> = ordered.iter().map(|&(_, item)| item).collect();
            left.sort_unstable();
            prop_assert_eq!(left, items);
        }
    }
}
