//! A map in DRAM that threads share by reference.

use crate::error::Result;
use crate::system::{MemoryUse, Session, System};
use bristlecone_trees::Key;

/// A map whose sessions are references to it.
#[derive(Default)]
pub(crate) struct Shared<T>(T);

impl<K: Key, T> System<K> for Shared<T>
where
    for<'a> &'a T: Session<K>,
{
    type Session<'a>
        = &'a T
    where
        T: 'a;

    fn sessions(&mut self, threads: u64) -> Vec<&T> {
        (0..threads).map(|_| &self.0).collect()
    }
    fn memory(&mut self) -> Result<Option<MemoryUse>> {
        Ok(None)
    }
}
