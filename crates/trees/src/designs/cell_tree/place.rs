//! The cells in which a key may lie.
//!
//! 1. A key has two near cells, which every lookup reads. An insert takes the emptier one.
//! 2. If both are full, it takes the first of the other cells that is not, in an order that depends
//!    on the key. A filter in the leaf word then sends the lookups of such keys on.

use super::rows::CELLS_MAX;
use super::word::SLOTS_MAX;
use core::hint::select_unpredictable;

/// The largest number of entries of a leaf.
pub(super) const ENTRIES_MAX: usize = SLOTS_MAX * CELLS_MAX;

/// The near cells of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidates(pub(super) [usize; 2]);

impl Candidates {
    /// Returns the near cells among `cells` cells of a key with this hash.
    #[inline(always)]
    pub(super) fn of(hash: u64, cells: usize) -> Self {
        let mixed = hash.wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = mixed ^ mixed >> 31;
        let part = |shift: u32, bound: usize| ((mixed >> shift & 0xffff) as usize * bound) >> 16;
        let first = part(48, cells);
        Self([first, wrap(first + 1 + part(32, cells - 1), cells)])
    }

    /// Returns `true` if `cell` is one of the near cells.
    #[inline(always)]
    pub(super) fn is_near(self, cell: usize) -> bool {
        // A product, not a branch: about half of the entries are in their first near cell.
        (self.0[0] ^ cell) * (self.0[1] ^ cell) == 0
    }

    /// Yields the other ones of `cells` cells, in the order in which inserts and lookups try them.
    pub(super) fn far(self, cells: usize) -> impl Iterator<Item = usize> {
        let [first, second] = self.0;
        (1..cells).map(move |step| wrap(second + step, cells)).filter(move |&cell| cell != first)
    }

    /// Returns the cell for a new entry among `cells` cells of `slots` slots, given the number of
    /// entries of each. `None` if all are full.
    #[inline(always)]
    pub(super) fn choose(
        self,
        (cells, slots): (usize, usize),
        count: impl Fn(usize) -> usize,
    ) -> Option<usize> {
        let [first, second] = self.0;
        let near = if count(first) <= count(second) { first } else { second };
        if count(near) < slots {
            return Some(near);
        }
        self.far(cells).find(|&cell| count(cell) < slots)
    }
}

/// Returns `cell`, which is below twice the number of cells, as the number of a cell.
#[inline(always)]
fn wrap(cell: usize, cells: usize) -> usize {
    if cell >= cells { cell - cells } else { cell }
}

/// The rank of a cell in use that no entry left wants. It is above that of an empty cell, also if
/// all want the cell in use.
const IN_USE: i32 = 200;
const _: () = assert!(2 * ENTRIES_MAX + 1 < IN_USE as usize);

/// Returns the cell of each entry of a new leaf with `cells` cells of `slots` slots, in the order
/// of `places`, their candidates.
///
/// Few cells are used, so that a split writes few lines: an entry goes to a cell in use that has
/// space, if it can to the one that fewer of the entries left want. Otherwise it takes the empty
/// cell that more of them want.
pub(super) fn pack(places: &[Candidates], (cells, slots): (usize, usize)) -> [usize; ENTRIES_MAX] {
    let (mut wanted, mut counts) = ([0; CELLS_MAX], [0; CELLS_MAX]);
    for cell in places.iter().flat_map(|candidates| candidates.0) {
        wanted[cell] += 1;
    }
    // The rank of a cell, by its number of entries, without a branch that depends on the cell: a
    // constant, and a factor of the number of entries left that want the cell.
    let mut by_count = [(IN_USE, -1); SLOTS_MAX + 1];
    (by_count[0], by_count[slots]) = ((1, 1), (0, 0));
    let mut chosen = [0; ENTRIES_MAX];
    for (chosen, candidates) in chosen.iter_mut().zip(places) {
        let rank = |cell: usize| {
            let (constant, factor) = by_count[counts[cell]];
            constant + factor * wanted[cell]
        };
        let [first, second] = candidates.0;
        let near = select_unpredictable(rank(first) >= rank(second), first, second);
        *chosen = if counts[near] < slots {
            near
        } else {
            far_in_use(*candidates, &counts[..cells], slots)
        };
        counts[*chosen] += 1;
        wanted[first] -= 1;
        wanted[second] -= 1;
    }
    chosen
}

/// Returns the far cell of an entry whose near cells are full, given the number of entries of each
/// cell of `slots` slots: one in use, if it can.
#[cold]
fn far_in_use(candidates: Candidates, counts: &[usize], slots: usize) -> usize {
    let in_use = |&cell: &usize| (1..slots).contains(&counts[cell]);
    let cell = candidates.far(counts.len()).find(in_use);
    let cell = cell.or_else(|| candidates.choose((counts.len(), slots), |cell| counts[cell]));
    cell.unwrap_or_else(|| unreachable!("a leaf has space for the entries of another"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    fn of(key: u64, cells: usize) -> Candidates {
        Candidates::of(u64::hash(key), cells)
    }

    #[test]
    fn near_cells_are_distinct_and_each_cell_is_as_likely() {
        for cells in [3, 7, 15] {
            let mut counts = vec![[0; 2]; cells];
            for key in 0..30_000 {
                let candidates = of(key, cells);
                let [first, second] = candidates.0;
                assert_ne!(first, second, "{key}");
                counts[first][0] += 1;
                counts[second][1] += 1;
                let mut all: Vec<_> = candidates.far(cells).chain(candidates.0).collect();
                all.sort_unstable();
                assert_eq!(all, (0..cells).collect::<Vec<_>>(), "{key}");
            }
            let expected = 30_000 / cells;
            let is_even = |count: usize| count.abs_diff(expected) < expected / 8;
            assert!(counts.iter().flatten().all(|&count| is_even(count)), "{counts:?}");
        }
    }

    #[test]
    fn a_packed_leaf_has_fewer_cells_in_use() {
        let places: Vec<_> = (0..18).map(|key| of(key, 15)).collect();
        let packed = &pack(&places, (15, 3))[..18];
        let mut in_use = packed.to_vec();
        in_use.sort_unstable();
        in_use.dedup();
        assert!(in_use.len() <= 9, "{packed:?}");
        assert!(places.iter().zip(packed).all(|(candidates, &cell)| candidates.is_near(cell)));
    }

    #[test]
    fn keys_with_the_same_near_cells_fill_a_leaf() {
        let cases = [(45, 15, 3), (9, 3, 3), (4, 7, 3), (0, 15, 3), (ENTRIES_MAX, 15, 4)];
        for (count, cells, slots) in cases {
            let mut counts = vec![0; cells];
            for &cell in &pack(&vec![of(1, cells); count], (cells, slots))[..count] {
                counts[cell] += 1;
            }
            assert!(counts.iter().all(|&count| count <= slots), "{counts:?}");
            assert_eq!(
                of(1, cells).choose((cells, slots), |cell| counts[cell]).is_none(),
                count == slots * cells
            );
        }
    }
}
