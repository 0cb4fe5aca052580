//! The cells in which a key may lie.
//!
//! 1. A key has four candidates, distinct in a leaf of seven or more cells. In a leaf of three, the
//!    fourth is the first one again, so a key may lie in any cell.
//! 2. An insert takes the emptier of the first two, which every lookup reads. It takes the emptier
//!    of the others only if both are full, and then sets the overflow bit of the first one.

use super::rows::CELLS_MAX;
use super::word::SLOTS;
use crate::leaf::slots;
use core::cmp::Reverse;

/// The candidates of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidates(pub(super) [usize; 4]);

impl Candidates {
    /// Returns the candidates among `cells` cells of a key with this hash.
    #[inline(always)]
    pub(super) fn of(hash: u64, cells: usize) -> Self {
        let mixed = hash.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = mixed ^ mixed >> 31;
        let part = |shift: u32, bound: usize| ((mixed >> shift & 0xffff) as usize * bound) >> 16;
        let step = (cells - 1) / 3;
        let first = part(48, cells);
        let second = first + 1 + part(32, step);
        let third = second + 1 + part(16, step);
        let fourth = third + 1 + part(0, step);
        let wrap = |cell: usize| if cell >= cells { cell - cells } else { cell };
        Self([first, wrap(second), wrap(third), wrap(fourth)])
    }

    /// Returns `true` if an entry in `cell` needs no overflow bit.
    pub(super) fn is_near(self, cell: usize) -> bool {
        self.0[..2].contains(&cell)
    }

    /// Returns the cell for a new entry, given the number of entries of each cell. `None` if all
    /// candidates are full.
    #[inline(always)]
    pub(super) fn choose(self, count: impl Fn(usize) -> usize) -> Option<usize> {
        let [first, second, third, fourth] = self.0;
        let emptier = |a, b| if count(a) <= count(b) { a } else { b };
        let near = emptier(first, second);
        if count(near) < SLOTS {
            return Some(near);
        }
        let far = emptier(third, fourth);
        (count(far) < SLOTS).then_some(far)
    }
}

/// Returns the cell of each entry of a new leaf, in the order of `places`, the candidates of up to
/// 64 entries. `None` if an entry finds no cell.
///
/// Few cells are used, so that a split writes few lines: cell after cell takes as many entries as
/// it can, those first that have the least choice.
pub(super) fn pack(places: &[Candidates], cells: usize) -> Option<Vec<usize>> {
    let mut wanted_by = [0u64; CELLS_MAX];
    for (index, Candidates([first, second, ..])) in places.iter().enumerate() {
        wanted_by[*first] |= 1 << index;
        wanted_by[*second] |= 1 << index;
    }
    let (mut chosen, mut counts) = (vec![None; places.len()], [0; CELLS_MAX]);
    let mut left = u64::MAX.checked_shr(64 - places.len() as u32).unwrap_or(0);
    loop {
        let demand = |cell: usize| (wanted_by[cell] & left).count_ones() as usize;
        let gain = |&cell: &usize| (demand(cell).min(SLOTS), Reverse(demand(cell)));
        let cell = (0..cells).max_by_key(gain).filter(|&cell| demand(cell) > 0);
        let Some(cell) = cell else { break };
        let choice_beside = |index: &usize| {
            let [first, second, ..] = places[*index].0;
            demand(if first == cell { second } else { first })
        };
        let mut takers: Vec<_> = slots(wanted_by[cell] & left).collect();
        takers.sort_by_key(choice_beside);
        takers.truncate(SLOTS);
        for &index in &takers {
            chosen[index] = Some(cell);
            left &= !(1 << index);
        }
        counts[cell] = takers.len();
        wanted_by[cell] = 0;
    }
    // Entries whose first two candidates are full.
    for index in slots(left) {
        let cell = places[index].choose(|cell| counts[cell])?;
        counts[cell] += 1;
        chosen[index] = Some(cell);
    }
    chosen.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    fn of(key: u64, cells: usize) -> Candidates {
        Candidates::of(u64::hash(key), cells)
    }

    #[test]
    fn candidates_are_distinct_and_each_cell_is_as_likely() {
        for cells in [7, 15] {
            let mut counts = vec![[0; 4]; cells];
            for key in 0..30_000 {
                let candidates = of(key, cells).0;
                let mut sorted = candidates.to_vec();
                sorted.sort_unstable();
                sorted.dedup();
                assert_eq!(sorted.len(), 4, "{candidates:?} of {cells} cells");
                for (rank, &cell) in candidates.iter().enumerate() {
                    counts[cell][rank] += 1;
                }
            }
            let expected = 30_000 / cells;
            let is_even = |count: usize| count.abs_diff(expected) < expected / 8;
            assert!(counts.iter().flatten().all(|&count| is_even(count)), "{counts:?}");
        }
    }

    #[test]
    fn a_key_may_lie_in_each_of_three_cells() {
        for key in 0..100 {
            let [a, b, c, d] = of(key, 3).0;
            assert!(d == a && a + b + c == 3 && a != b && b != c, "{key}");
        }
    }

    #[test]
    fn a_packed_leaf_has_fewer_cells_in_use() {
        let places: Vec<_> = (0..19).map(|key| of(key, 15)).collect();
        let packed = pack(&places, 15).expect("19 entries fit into 45 slots");
        let mut in_use = packed.clone();
        in_use.sort_unstable();
        in_use.dedup();
        assert!(in_use.len() <= 9, "{packed:?}");
        assert!(places.iter().zip(&packed).all(|(candidates, cell)| candidates.0.contains(cell)));
    }

    #[test]
    fn keys_with_the_same_full_candidates_find_no_cell() {
        let places = vec![of(1, 15); 4 * SLOTS + 1];
        assert!(pack(&places[1..], 15).is_some() && pack(&places, 15).is_none());
        assert_eq!(pack(&[], 15), Some(Vec::new()));
    }
}
