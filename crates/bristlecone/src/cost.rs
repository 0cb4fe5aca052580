//! The cost of an insert: its lines flushed and its fences.

use crate::{Flagship, KEY_BYTES_MAX, Store, VALUE_BYTES_MAX};
use bristlecone_pmem::line::LINE_BYTES;
use bristlecone_trees::key::INLINE_BYTES_MAX;
use bristlecone_trees::key::format::pair_record_bytes;
use bristlecone_trees::{Cost, Design};

impl Store {
    /// Returns the lines flushed and the fences of an insert of a new key of `key_bytes` bytes with
    /// a value of `value_bytes` bytes; a length over its limit counts as the limit: a line of the
    /// index, the lines of the record if the pair needs one, and a fence. A split of a leaf costs
    /// more. So does an update with a record whose cell of the index is full: two fences.
    ///
    /// A file of domain [`Adr`](crate::Domain::Adr) takes both, a file of
    /// [`Eadr`](crate::Domain::Eadr) takes the fences, and a file of
    /// [`ProcessCrash`](crate::Domain::ProcessCrash) takes neither. The numbers are a budget, not a
    /// measurement: the store's tests count the lines and fences of each insert and demand
    /// equality.
    ///
    /// ```
    /// let short = bristlecone::Store::insert_cost(8, 8);
    /// assert_eq!((short.lines, short.fences), (1, 1));
    /// let long = bristlecone::Store::insert_cost(20, 100); // A record of 136 B: three lines.
    /// assert_eq!((long.lines, long.fences), (4, 2));
    /// ```
    pub const fn insert_cost(key_bytes: usize, value_bytes: usize) -> Cost {
        let index = Flagship::SPEC.budget.insert;
        let record = record_lines(key_bytes, value_bytes);
        // One fence is for the record, before its entry.
        Cost::new(index.lines + record, index.fences + if record > 0 { 1 } else { 0 })
    }
}

/// Returns the number of lines of a pair's record; 0 for a pair that the leaf holds itself.
const fn record_lines(key_bytes: usize, value_bytes: usize) -> u32 {
    if key_bytes <= INLINE_BYTES_MAX && value_bytes <= INLINE_BYTES_MAX {
        return 0;
    }
    let (key_bytes, value_bytes) =
        (least(key_bytes, KEY_BYTES_MAX), least(value_bytes, VALUE_BYTES_MAX));
    pair_record_bytes(key_bytes, value_bytes).div_ceil(LINE_BYTES) as u32
}

/// `Ord::min` for constants.
const fn least(a: usize, b: usize) -> usize {
    if a < b { a } else { b }
}
