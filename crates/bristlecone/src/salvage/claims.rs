//! The ranges of keys whose pairs are known, so that an older leaf adds nothing to them.

use core::ops::Bound::{Included, Unbounded};
use std::collections::BTreeMap;

/// A set of keys: a union of ranges, each from a key up to another, which is excluded; the last may
/// have no end.
#[derive(Debug, Default)]
pub(super) struct Claims {
    /// The end of each range, by its start. Ranges neither overlap nor touch.
    ranges: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl Claims {
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        match self.ranges.range::<[u8], _>((Unbounded, Included(key))).next_back() {
            Some((_, end)) => end.as_ref().is_none_or(|end| key < end.as_slice()),
            None => false,
        }
    }

    /// Adds the keys from `start` up to `end`, or all from `start` on.
    pub(super) fn add(&mut self, mut start: Vec<u8>, mut end: Option<Vec<u8>>) {
        if end.as_ref().is_some_and(|end| *end <= start) {
            return;
        }
        // A range that begins before this one and reaches it.
        if let Some((earlier, its_end)) = self.ranges.range(..=start.clone()).next_back()
            && its_end.as_ref().is_none_or(|its_end| *its_end >= start)
        {
            start = earlier.clone();
        }
        // Ranges that begin within this one.
        while let Some((next, its_end)) = self.ranges.range(start.clone()..).next()
            && end.as_ref().is_none_or(|end| next <= end)
        {
            let (next, its_end) = (next.clone(), its_end.clone());
            self.ranges.remove(&next);
            end = match (end, its_end) {
                (Some(a), Some(b)) => Some(a.max(b)),
                _ => None,
            };
        }
        self.ranges.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::Claims;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn claims_are_the_union_of_their_ranges(
            ranges in prop::collection::vec((0u8..40, prop::option::of(0u8..40)), 0..12),
        ) {
            let mut claims = Claims::default();
            for &(start, end) in &ranges {
                claims.add(vec![start], end.map(|end| vec![end]));
            }
            for key in 0..42 {
                let expected = ranges
                    .iter()
                    .any(|&(start, end)| start <= key && end.is_none_or(|end| key < end));
                prop_assert_eq!(claims.contains(&[key]), expected, "{}", key);
            }
        }
    }
}
