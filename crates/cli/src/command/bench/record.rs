//! `bristlecone`: the store's own index, measured like the designs. Its keys are byte strings in
//! the [`Record`] layer, here the 8 B of the number, most significant first; a value of 8 B is in
//! the record behind its key.
//!
//! ```text
//! put, new key or new value             crash before C: the old state; the record is free again
//! N record            1 line or more
//! |                                     the record is durable before anything points to it
//! C its block, in the index             as the design's insert or update
//! F |                                   -> durable
//! ```

use super::subject::{Actor, Counted, ROOT, Subject};
use bristlecone_pmem::medium::{Count, Counts};
use bristlecone_pmem::sync::{Guard, pin};
use bristlecone_pmem::{Medium, Pool};
use bristlecone_trees::index::Census;
use bristlecone_trees::{Order, PmIndex, Record, TreeError};
use core::hint::black_box;
use core::marker::PhantomData;
use core::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// An index of records.
pub(super) struct Records<M, I> {
    index: I,
    medium: PhantomData<fn() -> M>,
}

impl<M: Medium, I: PmIndex<M, Record>> Records<M, I> {
    /// An empty index in a new pool on `medium`.
    pub(super) fn create(medium: M) -> Result<Self, TreeError> {
        let index = I::create(Arc::new(Pool::create(medium)?), ROOT)?;
        Ok(Self { index, medium: PhantomData })
    }

    /// Adds `key` with `value`, or changes its value; says whether it was new. Durable at return.
    pub(super) fn put(&self, key: &[u8], value: &[u8]) -> Result<bool, TreeError> {
        let guard = pin();
        let word = self.write(key, value)?;
        let former = self.index.upsert(key, word).inspect_err(|_| self.forget(word))?;
        self.retire(former, &guard)
    }

    /// A durable record that nothing points to yet.
    fn write(&self, key: &[u8], value: &[u8]) -> Result<u64, TreeError> {
        let pool = self.index.pool();
        let word = Record::write(pool, key, value)?;
        let _ = pool.medium().fence();
        Ok(word)
    }

    /// Frees a record that nothing came to point to.
    fn forget(&self, word: u64) {
        let pool = self.index.pool();
        if let Ok((block, bytes)) = Record::extent(pool, word) {
            pool.release(block, bytes);
        }
    }

    /// Retires the record that was replaced, if there was one; says whether there was none.
    fn retire(&self, former: Option<u64>, guard: &Guard) -> Result<bool, TreeError> {
        if let Some(word) = former {
            let pool = self.index.pool();
            let (block, bytes) = Record::extent(pool, word)?;
            pool.retire(block, bytes, guard);
        }
        Ok(former.is_none())
    }

    /// The value of 8 B in the record that `word` names. The caller is pinned.
    #[inline]
    fn value(&self, word: u64) -> Result<u64, TreeError> {
        let pool = self.index.pool();
        let (words, _) = Record::value(pool, word)?;
        Ok(words.first().map_or(0, |word| pool.medium().load(word)))
    }
}

impl<M: Medium, I: PmIndex<M, Record>> Subject for Records<M, I> {
    type Actor<'a> = &'a Self;

    fn actors(&mut self, threads: u64) -> Vec<&Self> {
        (0..threads).map(|_| &*self).collect()
    }
    fn census(&self) -> Result<Option<Census>, TreeError> {
        let pool = self.index.pool();
        // The census of the index knows nothing of the records; the pool does.
        let pm_bytes = pool.usage().used_bytes - bristlecone_pmem::pool::HEADER_BYTES;
        Ok(Some(Census { pm_bytes, ..self.index.check()? }))
    }
}

impl<M: Medium, I: PmIndex<Count<M>, Record>> Counted for Records<Count<M>, I> {
    fn take(&self) -> Counts {
        self.index.pool().medium().take()
    }
}

impl<M: Medium, I: PmIndex<M, Record>> Actor for &Records<M, I> {
    #[inline]
    fn get(&mut self, key: u64) -> Result<Option<u64>, TreeError> {
        let _pinned = pin();
        let word = self.index.get(&key.to_be_bytes())?;
        word.map(|word| self.value(word)).transpose()
    }
    fn multi_get(&mut self, keys: &[u64], values: &mut [Option<u64>]) -> Result<(), TreeError> {
        const TOGETHER: usize = super::workload::BATCH;
        let _pinned = pin();
        for (keys, values) in keys.chunks(TOGETHER).zip(values.chunks_mut(TOGETHER)) {
            let mut bytes = [[0; 8]; TOGETHER];
            for (bytes, key) in bytes.iter_mut().zip(keys) {
                *bytes = key.to_be_bytes();
            }
            let borrowed: [&[u8]; TOGETHER] = core::array::from_fn(|i| &bytes[i][..]);
            self.index.multi_get(&borrowed[..keys.len()], values)?;
            let pool = self.index.pool();
            for word in values.iter().flatten() {
                let at = bristlecone_pmem::PmPtr::new(*word);
                pool.medium().prefetch(pool.words(at, 1)?);
            }
            for value in values {
                *value = value.map(|word| self.value(word)).transpose()?;
            }
        }
        Ok(())
    }
    #[inline]
    fn insert(&mut self, key: u64, value: u64) -> Result<bool, TreeError> {
        self.put(&key.to_be_bytes(), &value.to_le_bytes())
    }
    #[inline]
    fn update(&mut self, key: u64, value: u64) -> Result<bool, TreeError> {
        Ok(!self.put(&key.to_be_bytes(), &value.to_le_bytes())?)
    }
    #[inline]
    fn remove(&mut self, key: u64) -> Result<bool, TreeError> {
        let guard = pin();
        let former = self.index.remove(&key.to_be_bytes())?;
        Ok(!self.retire(former, &guard)?)
    }
    fn scan(&mut self, key: u64, length: usize) -> Result<usize, TreeError> {
        let _pinned = pin();
        let (mut left, mut sum, mut failed) = (length, 0_u64, None);
        let from = key.to_be_bytes();
        let bounds = (Bound::Included(&from[..]), Bound::Unbounded);
        self.index.scan(bounds, Order::Ascending, &mut |key, word| {
            match self.value(word) {
                Ok(value) => sum = sum.wrapping_add(value ^ u64::from(key[0])),
                Err(error) => failed = Some(error),
            }
            left -= 1;
            let done = left == 0 || failed.is_some();
            if done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        black_box(sum);
        failed.map_or(Ok(length - left), Err)
    }
}
