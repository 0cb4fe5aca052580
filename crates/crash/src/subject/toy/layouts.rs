//! The layouts of the toys. Each has a right order of steps, and a place for each defect that it
//! stands for.

use super::{Node, Pair, ToyLayout, WORDS};
use bristlecone_pmem::{Corrupt, Defect, Medium};

/// The words of a line of 64 B.
const LINE: usize = 8;

fn injects<M: Medium>(node: Node<'_, M>, defect: Defect) -> bool {
    M::INJECTS_DEFECTS && node.medium.injects(defect)
}

/// Returns a checksum of three words, other than 0.
fn mix(words: [u64; 3]) -> u64 {
    let mixed = words.into_iter().fold(0x9E37_79B9_7F4A_7C15, |mixed: u64, word| {
        (mixed ^ word).wrapping_mul(0xDA94_2042_E4DD_58B5).rotate_left(23)
    });
    mixed | 1
}

/// Records in a row behind a count, where the newest record of a key counts: children of a node, or
/// items of a cache.
///
/// Line 0: count (commit). Line 1: the newest number. A line each: kind, key, value, number, time.
pub(crate) struct Items;

impl Items {
    const NEWEST: usize = LINE;
    const FIRST: usize = 2 * LINE;
    const CAPACITY: usize = WORDS / LINE - 2;
    const PUT: u64 = 1;
    const REMOVED: u64 = 2;

    /// ```text
    /// W record, newest number    crash before C: the record is not counted
    /// F them |
    /// C count                    8 B
    /// F count |                  -> durable
    /// ```
    fn append<M: Medium>(node: Node<'_, M>, kind: u64, pair: Pair) -> Result<bool, Corrupt> {
        let count = node.load_below(0, Self::CAPACITY + 1)?;
        if count == Self::CAPACITY {
            return Ok(false);
        }
        let is_late = injects(node, Defect::TimeLate);
        let number = count as u64 + 1;
        let at = Self::FIRST + count * LINE;
        let record = [kind, pair.0, pair.1, number, u64::from(!is_late)];
        for (word, value) in (at..).zip(record) {
            node.store(word, value);
        }
        node.store(Self::NEWEST, number);
        node.flush(at, LINE);
        if !injects(node, Defect::CasVolatile) {
            node.flush(Self::NEWEST, 1);
        }
        let _ = node.medium.fence();
        node.store(0, number);
        if !injects(node, Defect::ChildCount) {
            node.persist(0, 1);
        }
        if is_late {
            node.store(at + 4, 1);
        }
        Ok(true)
    }
}

impl ToyLayout for Items {
    const NAME: &'static str = "toy-items";

    fn pairs<M: Medium>(node: Node<'_, M>) -> Result<Vec<Pair>, Corrupt> {
        let mut pairs: Vec<Pair> = Vec::new();
        for at in (Self::FIRST..).step_by(LINE).take(node.load_below(0, Self::CAPACITY + 1)?) {
            let [kind, key, value, number, time] =
                core::array::from_fn(|word| node.load(at + word));
            if number > node.load(Self::NEWEST) {
                return Err(node.damage(at + 3, number)); // It will be given out again.
            }
            if time == 0 {
                continue; // It has expired.
            }
            pairs.retain(|pair| pair.0 != key);
            if kind == Self::PUT {
                pairs.push((key, value));
            }
        }
        Ok(pairs)
    }

    fn put<M: Medium>(node: Node<'_, M>, pair: Pair) -> Result<bool, Corrupt> {
        Self::append(node, Self::PUT, pair)
    }

    fn remove<M: Medium>(node: Node<'_, M>, key: u64) -> Result<bool, Corrupt> {
        Self::append(node, Self::REMOVED, (key, 0))
    }
}

/// A node whose keys lack their common prefix, its path; changed as a whole, by copy-on-write.
///
/// Word 0: the half that counts (commit). Word 1: the path of that half. Each half: path, count,
/// pairs.
pub(crate) struct Prefixed;

impl Prefixed {
    const HALVES: [usize; 2] = [LINE, WORDS / 2];
    const CAPACITY: usize = (WORDS / 2 - LINE - 2) / 2;

    /// ```text
    /// W the other half    crash before C: it does not count
    /// F it |
    /// C which half        8 B
    /// W path              nothing relies on it
    /// F them |            -> durable
    /// ```
    fn replace<M: Medium>(node: Node<'_, M>, pairs: &[Pair]) -> Result<bool, Corrupt> {
        if pairs.len() > Self::CAPACITY {
            return Ok(false);
        }
        let half = 1 - node.load_below(0, 2)?;
        let at = Self::HALVES[half];
        let path = pairs.iter().map(|pair| pair.0).min().unwrap_or(0);
        node.store(at, path);
        node.store(at + 1, pairs.len() as u64);
        for (word, pair) in (at + 2..).step_by(2).zip(pairs) {
            node.store(word, pair.0 - path);
            node.store(word + 1, pair.1);
        }
        node.persist(at, 2 + 2 * pairs.len());
        node.store(0, half as u64);
        node.store(1, path);
        node.persist(0, 2);
        Ok(true)
    }
}

impl ToyLayout for Prefixed {
    const NAME: &'static str = "toy-prefixed";

    fn pairs<M: Medium>(node: Node<'_, M>) -> Result<Vec<Pair>, Corrupt> {
        let at = Self::HALVES[node.load_below(0, 2)?];
        let count = node.load_below(at + 1, Self::CAPACITY + 1)?;
        let path = node.load(if injects(node, Defect::PathApart) { 1 } else { at });
        let words = (at + 2..).step_by(2).take(count);
        Ok(words.map(|word| (node.load(word).wrapping_add(path), node.load(word + 1))).collect())
    }

    fn put<M: Medium>(node: Node<'_, M>, pair: Pair) -> Result<bool, Corrupt> {
        let mut pairs = Self::pairs(node)?;
        pairs.retain(|other| other.0 != pair.0);
        pairs.push(pair);
        Self::replace(node, &pairs)
    }

    fn remove<M: Medium>(node: Node<'_, M>, key: u64) -> Result<bool, Corrupt> {
        let mut pairs = Self::pairs(node)?;
        pairs.retain(|pair| pair.0 != key);
        Self::replace(node, &pairs)
    }
}

/// A directory of buckets that doubles.
///
/// Word 0: depth (commit). From word 8: the directory, a bucket's number plus one each. Then the
/// buckets: a bitmap (commit), pairs.
pub(crate) struct Directory;

impl Directory {
    const DEPTH_MAX: usize = 5;
    const BUCKETS: usize = 4;
    const ENTRIES: usize = LINE;
    const FIRST: usize = Self::ENTRIES + (1 << Self::DEPTH_MAX);
    const BUCKET_WORDS: usize = (WORDS - Self::FIRST) / Self::BUCKETS;
    const SLOTS: usize = (Self::BUCKET_WORDS - 1) / 2;

    /// Returns the first word of the bucket of `key`, if the directory names one.
    fn home<M: Medium>(node: Node<'_, M>, key: u64) -> Result<Option<usize>, Corrupt> {
        let size = 1 << node.load_below(0, Self::DEPTH_MAX + 1)?;
        let entry = Self::ENTRIES + (mix([key, 0, 0]) >> 32) as usize % size;
        let bucket = node.load_below(entry, Self::BUCKETS + 1)?;
        Ok(bucket.checked_sub(1).map(|bucket| Self::FIRST + bucket * Self::BUCKET_WORDS))
    }

    /// Returns the slots of the pairs of the bucket at `at`, with their words.
    fn slots<M: Medium>(node: Node<'_, M>, at: usize) -> impl Iterator<Item = (usize, usize)> {
        let bitmap = node.load(at);
        let is_there = move |slot: &usize| bitmap >> slot & 1 == 1;
        (0..Self::SLOTS).filter(is_there).map(move |slot| (slot, at + 1 + 2 * slot))
    }

    /// ```text
    /// W upper half    crash before C: the depth does not reach it
    /// F it |
    /// C depth         8 B
    /// F depth |       -> durable
    /// ```
    fn double<M: Medium>(node: Node<'_, M>, depth: usize) {
        let size = 1 << depth;
        if injects(node, Defect::DepthFirst) {
            node.set(0, depth as u64 + 1);
        }
        for entry in Self::ENTRIES..Self::ENTRIES + size {
            node.store(entry + size, node.load(entry));
        }
        node.persist(Self::ENTRIES + size, size);
        node.set(0, depth as u64 + 1);
    }
}

impl ToyLayout for Directory {
    const NAME: &'static str = "toy-directory";

    fn init() -> Vec<u64> {
        let mut words = vec![0; Self::ENTRIES + Self::BUCKETS];
        words[0] = Self::BUCKETS.trailing_zeros().into();
        (1..).zip(&mut words[Self::ENTRIES..]).for_each(|(bucket, word)| *word = bucket);
        words
    }

    fn pairs<M: Medium>(node: Node<'_, M>) -> Result<Vec<Pair>, Corrupt> {
        let mut pairs = Vec::new();
        for at in (Self::FIRST..).step_by(Self::BUCKET_WORDS).take(Self::BUCKETS) {
            for (_, word) in Self::slots(node, at) {
                let key = node.load(word);
                if Self::home(node, key)? == Some(at) {
                    pairs.push((key, node.load(word + 1)));
                }
            }
        }
        Ok(pairs)
    }

    fn put<M: Medium>(node: Node<'_, M>, pair: Pair) -> Result<bool, Corrupt> {
        let depth = node.load_below(0, Self::DEPTH_MAX + 1)?;
        let pairs = Self::pairs(node)?;
        let is_new = pairs.iter().all(|other| other.0 != pair.0);
        if is_new && pairs.len() >= 1 << depth && depth < Self::DEPTH_MAX {
            Self::double(node, depth);
        }
        let Some(at) = Self::home(node, pair.0)? else { return Err(node.damage(0, pair.0)) };
        if let Some((_, word)) = Self::slots(node, at).find(|&(_, word)| node.load(word) == pair.0)
        {
            node.set(word + 1, pair.1);
            return Ok(true);
        }
        let slot = node.load(at).trailing_ones() as usize;
        if slot >= Self::SLOTS {
            return Ok(false);
        }
        node.store(at + 1 + 2 * slot, pair.0);
        node.store(at + 2 + 2 * slot, pair.1);
        node.persist(at + 1 + 2 * slot, 2);
        node.set(at, node.load(at) | 1 << slot);
        Ok(true)
    }

    fn remove<M: Medium>(node: Node<'_, M>, key: u64) -> Result<bool, Corrupt> {
        let Some(at) = Self::home(node, key)? else { return Err(node.damage(0, key)) };
        if let Some((slot, _)) = Self::slots(node, at).find(|&(_, word)| node.load(word) == key) {
            node.set(at, node.load(at) & !(1 << slot));
        }
        Ok(true)
    }
}

/// Records in a row, where the newest record of a key counts, each whole if its checksum is right.
///
/// A line each: kind, key, value, checksum (commit), dead or alive.
pub(crate) struct Summed;

impl Summed {
    const CAPACITY: usize = WORDS / LINE;
    const PUT: u64 = 1;
    const REMOVED: u64 = 2;

    fn record<M: Medium>(node: Node<'_, M>, at: usize) -> [u64; 5] {
        core::array::from_fn(|word| node.load(at + word))
    }

    /// Returns the first word of the first record that is not whole.
    fn end<M: Medium>(node: Node<'_, M>) -> usize {
        let is_torn = |&at: &usize| {
            let [kind, key, value, sum, _] = Self::record(node, at);
            sum != mix([kind, key, value])
        };
        (0..WORDS).step_by(LINE).find(is_torn).unwrap_or(Self::CAPACITY * LINE)
    }

    /// ```text
    /// W record, its checksum    in any order: all of it, or none
    /// F record |                -> durable
    /// ```
    fn append<M: Medium>(node: Node<'_, M>, kind: u64, pair: Pair) -> bool {
        let at = Self::end(node);
        if at == WORDS {
            return false;
        }
        let record = [kind, pair.0, pair.1, mix([kind, pair.0, pair.1]), 0];
        for (word, value) in (at..).zip(record) {
            node.store(word, value);
        }
        node.persist(at, LINE);
        true
    }
}

impl ToyLayout for Summed {
    const NAME: &'static str = "toy-summed";

    fn pairs<M: Medium>(node: Node<'_, M>) -> Result<Vec<Pair>, Corrupt> {
        let mut pairs: Vec<Pair> = Vec::new();
        for at in (0..Self::end(node)).step_by(LINE) {
            let [kind, key, value, _, dead] = Self::record(node, at);
            if dead == 1 {
                continue;
            }
            pairs.retain(|pair| pair.0 != key);
            if kind == Self::PUT {
                pairs.push((key, value));
            }
        }
        Ok(pairs)
    }

    fn put<M: Medium>(node: Node<'_, M>, pair: Pair) -> Result<bool, Corrupt> {
        Ok(Self::append(node, Self::PUT, pair))
    }

    fn remove<M: Medium>(node: Node<'_, M>, key: u64) -> Result<bool, Corrupt> {
        Ok(Self::append(node, Self::REMOVED, (key, 0)))
    }

    /// ```text
    /// W checksum = 0    of a torn record, which is none with or without it
    /// F checksum |
    /// ```
    fn recover<M: Medium>(node: Node<'_, M>) -> Result<(), Corrupt> {
        let at = Self::end(node);
        if at == WORDS || Self::record(node, at) == [0; 5] {
            return Ok(());
        }
        if injects(node, Defect::SumFirst) {
            let [kind, key, value, ..] = Self::record(node, at);
            node.set(at + 3, mix([kind, key, value]));
            node.set(at + 4, 1);
        } else {
            node.set(at + 3, 0);
        }
        Ok(())
    }
}

/// Cells for pairs, a stack of the free ones, and slots that name those in use.
///
/// Word 0: the number of free cells. Word 1: the cell that is being freed plus one. Then the stack,
/// the slots (commit: a cell plus one), the cells.
pub(crate) struct Cells;

impl Cells {
    const COUNT: usize = 64;
    const FREEING: usize = 1;
    const STACK: usize = LINE;
    const SLOTS: usize = Self::STACK + Self::COUNT;
    const CELLS: usize = Self::SLOTS + Self::COUNT;

    /// Returns the slots in use, with the first words of their cells.
    fn used<M: Medium>(node: Node<'_, M>) -> Result<Vec<(usize, usize)>, Corrupt> {
        let mut used = Vec::new();
        for slot in Self::SLOTS..Self::SLOTS + Self::COUNT {
            if let Some(cell) = node.load_below(slot, Self::COUNT + 1)?.checked_sub(1) {
                used.push((slot, Self::CELLS + 2 * cell));
            }
        }
        Ok(used)
    }

    fn find<M: Medium>(node: Node<'_, M>, key: u64) -> Result<Option<(usize, usize)>, Corrupt> {
        Ok(Self::used(node)?.into_iter().find(|&(_, cell)| node.load(cell) == key))
    }

    fn push<M: Medium>(node: Node<'_, M>, cell: usize) -> Result<(), Corrupt> {
        let free = node.load_below(0, Self::COUNT)?;
        node.store(Self::STACK + free, cell as u64);
        node.flush(Self::STACK + free, 1);
        node.set(0, free as u64 + 1);
        Ok(())
    }
}

impl ToyLayout for Cells {
    const NAME: &'static str = "toy-cells";

    fn init() -> Vec<u64> {
        let mut words = vec![0; Self::SLOTS];
        words[0] = Self::COUNT as u64;
        (0..).zip(&mut words[Self::STACK..]).for_each(|(cell, word)| *word = cell);
        words
    }

    fn pairs<M: Medium>(node: Node<'_, M>) -> Result<Vec<Pair>, Corrupt> {
        let used = Self::used(node)?;
        Ok(used.into_iter().map(|(_, cell)| (node.load(cell), node.load(cell + 1))).collect())
    }

    /// ```text
    /// W number of free cells, cell    crash before C: recovery finds the cell free
    /// F them |
    /// C slot                          8 B
    /// F slot |                        -> durable
    /// ```
    fn put<M: Medium>(node: Node<'_, M>, pair: Pair) -> Result<bool, Corrupt> {
        if let Some((_, cell)) = Self::find(node, pair.0)? {
            node.set(cell + 1, pair.1);
            return Ok(true);
        }
        let Some(free) = node.load_below(0, Self::COUNT + 1)?.checked_sub(1) else {
            return Ok(false);
        };
        let cell = node.load_below(Self::STACK + free, Self::COUNT)?;
        let slots = Self::SLOTS..Self::SLOTS + Self::COUNT;
        let Some(slot) = slots.into_iter().find(|&slot| node.load(slot) == 0) else {
            return Ok(false);
        };
        node.store(0, free as u64);
        node.flush(0, 1);
        node.store(Self::CELLS + 2 * cell, pair.0);
        node.store(Self::CELLS + 2 * cell + 1, pair.1);
        node.persist(Self::CELLS + 2 * cell, 2);
        node.set(slot, cell as u64 + 1);
        Ok(true)
    }

    /// ```text
    /// W what is being freed, F |
    /// C slot = 0, F |
    /// W stack, number of free cells, F |    crash: recovery makes them again
    /// W nothing is being freed, F |         -> durable
    /// ```
    fn remove<M: Medium>(node: Node<'_, M>, key: u64) -> Result<bool, Corrupt> {
        let Some((slot, at)) = Self::find(node, key)? else { return Ok(true) };
        let cell = (at - Self::CELLS) / 2;
        node.set(Self::FREEING, cell as u64 + 1);
        node.set(slot, 0);
        Self::push(node, cell)?;
        node.set(Self::FREEING, 0);
        Ok(true)
    }

    /// ```text
    /// W stack, number of free cells    what no slot names is free; a crash: the same again
    /// F them |
    /// ```
    fn recover<M: Medium>(node: Node<'_, M>) -> Result<(), Corrupt> {
        if injects(node, Defect::FreedTwice) {
            let freeing = node.load_below(Self::FREEING, Self::COUNT + 1)?;
            if let Some(cell) = freeing.checked_sub(1) {
                for (slot, _) in Self::used(node)? {
                    if node.load(slot) == freeing as u64 {
                        node.set(slot, 0);
                    }
                }
                Self::push(node, cell)?;
                node.set(Self::FREEING, 0);
            }
            return Ok(());
        }
        let used = Self::used(node)?;
        let is_free = |cell: &usize| used.iter().all(|&(_, at)| at != Self::CELLS + 2 * cell);
        let free: Vec<_> = (0..Self::COUNT).filter(is_free).collect();
        for (word, &cell) in (Self::STACK..).zip(&free) {
            node.store(word, cell as u64);
        }
        node.store(0, free.len() as u64);
        node.persist(0, Self::SLOTS);
        node.set(Self::FREEING, 0);
        Ok(())
    }
}
