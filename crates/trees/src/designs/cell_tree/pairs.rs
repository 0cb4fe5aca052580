//! The store's interface to a cell tree, whose entries use every encoding of [`Record`].
//!
//! A caller passes a value that names a record once it has flushed the record: the index fences it
//! before the cell that names it.

use super::CellTreeIndex;
use crate::index::{Order, TreeError, WriteMode};
use crate::key::{Entry, Record, Value};
use crate::leaf_table::{get_value, multi_get_values};
use bristlecone_pmem::Medium;
use core::ops::{Bound, ControlFlow};

impl<M: Medium, const BYTES: usize> CellTreeIndex<M, Record, BYTES> {
    /// Returns the value part of the entry of `key`, or `None` if the key is absent. A caller that
    /// then reads the record which the value names must pin an epoch before the call.
    ///
    /// # Errors
    /// The pool is damaged on the path to `key`.
    #[inline]
    pub fn get_pair(&self, key: &[u8]) -> Result<Option<Value>, TreeError> {
        get_value(self, key)
    }

    /// Looks up all of `keys` and calls `found` with the index of each key and its value, in order.
    /// Several lookups run interleaved; each is linearizable by itself.
    ///
    /// # Errors
    /// The pool is damaged on the path to a key.
    pub fn multi_get_pairs(
        &self,
        keys: &[&[u8]],
        found: impl FnMut(usize, Option<Value>),
    ) -> Result<(), TreeError> {
        multi_get_values(self, keys, found)
    }

    /// Sets `key` to `value` and returns the old value, if any. Durable on return, with the record
    /// that `value` names.
    ///
    /// # Errors
    /// The pool is full, or damaged on the path to `key`.
    #[inline]
    pub fn upsert_pair(&self, key: &[u8], value: Value) -> Result<Option<Value>, TreeError> {
        self.write(key, value, WriteMode::Upsert)
    }

    /// Adds `key` with `value` if the key is absent; else changes nothing and returns its value.
    /// Durable on return, with the record that `value` names.
    ///
    /// # Errors
    /// As [`upsert_pair`](Self::upsert_pair).
    #[inline]
    pub fn insert_pair(&self, key: &[u8], value: Value) -> Result<Option<Value>, TreeError> {
        self.write(key, value, WriteMode::Insert)
    }

    /// Sets `key` to `value` if the key is present, and returns the old value. Durable on return,
    /// with the record that `value` names.
    ///
    /// # Errors
    /// As [`upsert_pair`](Self::upsert_pair).
    #[inline]
    pub fn update_pair(&self, key: &[u8], value: Value) -> Result<Option<Value>, TreeError> {
        self.write(key, value, WriteMode::Update)
    }

    /// Sets the value of `key` to `new` if it is `old`, and returns `true`. Else changes nothing.
    /// Durable on return, with the record that `new` names.
    ///
    /// # Errors
    /// As [`upsert_pair`](Self::upsert_pair).
    #[inline]
    pub fn replace_pair(&self, key: &[u8], old: Value, new: Value) -> Result<bool, TreeError> {
        Ok(self.write_if(key, new, |found| found == Some(old))? == Some(old))
    }

    /// Removes `key` and returns its value, or `None` if the key was absent. Durable on return.
    ///
    /// # Errors
    /// The pool is damaged on the path to `key`.
    #[inline]
    pub fn remove_pair(&self, key: &[u8]) -> Result<Option<Value>, TreeError> {
        Ok(self.remove_entry_if(key, |_| true)?.map(Entry::held_value))
    }

    /// Removes `key` if its value is `old`, and returns `true`. Else changes nothing. Durable on
    /// return.
    ///
    /// # Errors
    /// The pool is damaged on the path to `key`.
    pub fn remove_pair_if(&self, key: &[u8], old: Value) -> Result<bool, TreeError> {
        Ok(self.remove_entry_if(key, |value| value == old)?.is_some())
    }

    /// Calls `visit` with each key within `bounds` and its value, in `order`, until `visit` breaks.
    ///
    /// # Errors
    /// The pool is damaged on the path of the scan.
    pub fn scan_pairs(
        &self,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        order: Order,
        visit: &mut dyn FnMut(&[u8], Value) -> ControlFlow<()>,
    ) -> Result<(), TreeError> {
        self.walk_pairs(bounds, order, visit)
    }
}
