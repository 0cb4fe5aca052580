//! What the store asks of a hybrid index whose leaves hold pairs: entries of any shape.
//!
//! A value side that names a record is given over before the record is fenced: the leaf fences before
//! it commits, and so once for both.

use super::{Hybrid, HybridSpec};
use crate::index::{Order, TreeError, WriteMode};
use crate::key::{Entry, Record, Value};
use crate::leaf::pairs::PairLeaf;
use bristlecone_pmem::Medium;
use core::ops::{Bound, ControlFlow};

impl<S: HybridSpec<Leaf = PairLeaf>, M: Medium> Hybrid<S, M, Record> {
    /// What is held for `key`. Whoever wants to read the record that it names must be pinned before.
    ///
    /// # Errors
    /// The pool is damaged on the way to the key.
    #[inline]
    pub fn get_pair(&self, key: &[u8]) -> Result<Option<Value>, TreeError> {
        self.read(key)
    }

    /// What is held for each of `keys`: tells `found` of each by its index, in order. Several lookups
    /// are in flight at once; each is atomic by itself.
    ///
    /// # Errors
    /// The pool is damaged on the way to a key.
    pub fn multi_get_pairs(
        &self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, Option<Value>),
    ) -> Result<(), TreeError> {
        self.read_many(keys, found)
    }

    /// Holds `value` for `key`, whatever was held, and gives what was. Durable at return, the record
    /// that `value` names included.
    ///
    /// # Errors
    /// The pool is full, or damaged on the way to the key.
    #[inline]
    pub fn upsert_pair(&self, key: &[u8], value: Value) -> Result<Option<Value>, TreeError> {
        self.write(key, value, WriteMode::Upsert)
    }

    /// Holds `value` for `key` if nothing is held; gives what is. Durable at return, the record that
    /// `value` names included.
    ///
    /// # Errors
    /// As [`upsert_pair`](Self::upsert_pair).
    #[inline]
    pub fn insert_pair(&self, key: &[u8], value: Value) -> Result<Option<Value>, TreeError> {
        self.write(key, value, WriteMode::Insert)
    }

    /// Holds `value` for `key` if something is held, and gives what was. Durable at return, the record
    /// that `value` names included.
    ///
    /// # Errors
    /// As [`upsert_pair`](Self::upsert_pair).
    #[inline]
    pub fn update_pair(&self, key: &[u8], value: Value) -> Result<Option<Value>, TreeError> {
        self.write(key, value, WriteMode::Update)
    }

    /// Takes `key` out and gives what was held for it. Durable at return.
    ///
    /// # Errors
    /// The pool is damaged on the way to the key.
    #[inline]
    pub fn remove_pair(&self, key: &[u8]) -> Result<Option<Value>, TreeError> {
        Ok(self.remove_entry(key)?.map(Entry::held_value))
    }

    /// Shows what is held for each key within `bounds`, in order, until `visit` breaks.
    ///
    /// # Errors
    /// The pool is damaged on the way.
    pub fn scan_pairs(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        order: Order,
        visit: &mut dyn FnMut(&[u8], Value) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        self.walk_pairs(bounds, order, visit)
    }
}
