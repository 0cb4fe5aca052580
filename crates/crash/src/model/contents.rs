//! The contents that a persist unit can have after a crash, as cubes instead of a list.
//!
//! 1. A unit holds all words of its first items, at least one word of the next item, and no word of
//!    later items. A store is an item of one word; only a fill has more.
//! 2. A cube is the set of contents for one newest item in which the words `set` are present and
//!    each of the words `free` may be present or not. The cube of item 0 is the content without any
//!    item.
//! 3. The cubes of a unit are disjoint and in the order of their items.

use crate::model::history::Item;

/// A set of contents of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cube {
    /// The number of items that are present, the last one perhaps in part.
    pub(crate) item: u32,
    /// The words of the last item that are present, one bit each.
    pub(crate) set: u8,
    /// The words of the last item that may be present or not, one bit each.
    pub(crate) free: u8,
}

impl Cube {
    /// The content without any item.
    pub(crate) const BASE: Self = Self { item: 0, set: 0, free: 0 };

    /// Returns all contents whose newest item has number `item`, counted from 1.
    pub(crate) fn newest(item: u32, mask: u8) -> Self {
        Self { item, set: 0, free: mask }.normal()
    }

    /// Returns the number of contents. I1 excludes the one without any word of the newest item.
    pub(crate) fn count(self) -> u64 {
        let all = 1 << self.free.count_ones();
        if self.item > 0 && self.set == 0 { all - 1 } else { all }
    }

    /// Moves the only free word into `set` where no other word of the item is present (I1).
    fn normal(self) -> Self {
        if self.set == 0 && self.free.is_power_of_two() {
            Self { set: self.free, free: 0, ..self }
        } else {
            self
        }
    }

    /// Returns the content with the most words.
    pub(crate) fn full(self) -> Self {
        Self { set: self.set | self.free, free: 0, ..self }
    }

    /// Splits the cube at the free word `bit`: the contents with that word, and those without it.
    fn split(self, bit: u8) -> (Self, Option<Self>) {
        let free = self.free & !bit;
        let with = Self { set: self.set | bit, free, ..self };
        let without = Self { free, ..self }.normal();
        (with, (without.set | without.free != 0).then_some(without))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Known(u64),
    Either { new: u64, old: u64 },
}

/// The items of a unit, newest last, and the word that they lie on.
#[derive(Clone, Copy)]
pub(crate) struct UnitContents<'a> {
    /// The indices of the unit's items in `all`.
    pub(crate) items: &'a [u32],
    pub(crate) all: &'a [Item],
    /// The value of the word without any item.
    pub(crate) base: u64,
}

impl UnitContents<'_> {
    fn item(&self, number: u32) -> &Item {
        &self.all[self.items[number as usize - 1] as usize]
    }

    /// Returns the word at `place` if exactly the first `count` items are present.
    fn after(&self, count: u32, place: usize) -> u64 {
        let stored = (1..=count).rev().map(|number| self.item(number));
        let mut stored = stored.filter(|item| item.mask & (1 << place) != 0);
        stored.next().map_or(self.base, |item| item.values[place])
    }

    fn value(&self, cube: Cube, place: usize) -> Value {
        let bit = 1 << place;
        if cube.set & bit != 0 {
            return Value::Known(self.item(cube.item).values[place]);
        }
        let old = self.after(cube.item.saturating_sub(1), place);
        if cube.free & bit == 0 {
            return Value::Known(old);
        }
        Value::Either { new: self.item(cube.item).values[place], old }
    }

    /// Appends the different values of the word at `place` to `found`, the newest first.
    pub(crate) fn values(&self, cubes: &[Cube], place: usize, found: &mut Vec<u64>) {
        let mut add = |value| {
            if !found.contains(&value) {
                found.push(value);
            }
        };
        for &cube in cubes.iter().rev() {
            match self.value(cube, place) {
                Value::Known(value) => add(value),
                Value::Either { new, old } => {
                    add(new);
                    add(old);
                }
            }
        }
    }

    /// Returns `true` if every item stores the word at `place` as a latch, or clears it.
    pub(crate) fn is_latch(&self, place: usize) -> bool {
        let stored = self.items.iter().map(|&item| &self.all[item as usize]);
        let mut stored = stored.filter(|item| item.mask & (1 << place) != 0);
        stored.all(|item| item.is_transient || item.values[place] == 0)
    }

    /// Keeps the contents in which the bits `mask` of the word at `place` are those of `wanted`.
    pub(crate) fn keep(&self, cubes: &mut Vec<Cube>, place: usize, mask: u64, wanted: u64) {
        let is_wanted = |value: u64| (value ^ wanted) & mask == 0;
        // A cube never becomes two: a free word that holds `wanted` either way stays free.
        cubes.retain_mut(|cube| match self.value(*cube, place) {
            Value::Known(value) => is_wanted(value),
            Value::Either { new, old } => {
                let (with, without) = cube.split(1 << place);
                match (is_wanted(new), is_wanted(old)) {
                    (true, true) => true,
                    (true, false) => {
                        *cube = with;
                        true
                    }
                    (false, true) => without.is_some_and(|without| {
                        *cube = without;
                        true
                    }),
                    (false, false) => false,
                }
            }
        });
    }
}

/// Returns the number of contents in `cubes`.
pub(crate) fn count(cubes: &[Cube]) -> u64 {
    cubes.iter().map(|cube| cube.count()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn item(time: u32, words: &[(usize, u64)]) -> Item {
        let mut item = Item {
            unit: 0,
            time,
            sealed: u32::MAX,
            mask: 0,
            is_transient: false,
            is_whole: false,
            values: [0; 8],
        };
        for &(place, value) in words {
            item.mask |= 1 << place;
            item.values[place] = value;
        }
        item
    }

    /// Returns every content by brute force, once for each way to reach it.
    fn spell_out(all: &[Item]) -> Vec<[u64; 8]> {
        let mut contents = vec![[100; 8]];
        let mut full = [100; 8];
        for item in all {
            for subset in 1..=255_u8 {
                if subset & !item.mask == 0 {
                    let mut content = full;
                    (0..8)
                        .filter(|place| subset & (1 << place) != 0)
                        .for_each(|place| content[place] = item.values[place]);
                    contents.push(content);
                }
            }
            for place in (0..8).filter(|place| item.mask & (1 << place) != 0) {
                full[place] = item.values[place];
            }
        }
        contents
    }

    #[test]
    fn narrowing_keeps_exactly_the_contents_that_agree() {
        // Stores, a fill that repeats a value, and later stores to words of the fill.
        let all = [
            item(0, &[(0, 1)]),
            item(1, &[(0, 2), (1, 2), (2, 100), (5, 7)]),
            item(2, &[(1, 3)]),
            item(3, &[(0, 1)]),
            item(4, &[(5, 7), (6, 7)]),
        ];
        let items: Vec<u32> = (0..5).collect();
        let contents = UnitContents { items: &items, all: &all, base: 100 };
        let mut cubes = vec![Cube::BASE];
        cubes.extend((1..).zip(&all).map(|(number, item)| Cube::newest(number, item.mask)));
        let every = spell_out(&all);
        assert_eq!(count(&cubes), every.len() as u64);
        assert_eq!(every.len(), 1 + 1 + 15 + 1 + 1 + 3);
        narrow(&contents, &cubes, &every, 0);
    }

    /// Narrows by each word in turn, to each of its values, and compares with the list.
    fn narrow(contents: &UnitContents<'_>, cubes: &[Cube], every: &[[u64; 8]], place: usize) {
        assert_eq!(count(cubes), every.len() as u64);
        if place == 8 {
            assert!(every.iter().all(|content| content == &every[0]));
            return;
        }
        let mut values = Vec::new();
        contents.values(cubes, place, &mut values);
        let expected: BTreeSet<u64> = every.iter().map(|content| content[place]).collect();
        assert_eq!(values.iter().copied().collect::<BTreeSet<_>>(), expected);
        for value in values {
            let mut kept = cubes.to_vec();
            contents.keep(&mut kept, place, u64::MAX, value);
            let agreeing: Vec<_> =
                every.iter().copied().filter(|content| content[place] == value).collect();
            narrow(contents, &kept, &agreeing, place + 1);
        }
    }
}
