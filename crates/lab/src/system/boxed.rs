//! Systems behind a trait object, so that code that measures is compiled once for all peers.

use super::{MemoryUse, Session, System};
use crate::error::Result;
use bristlecone_trees::{Key, Maintainer};

/// The part of [`System`] that a trait object can have.
pub(crate) trait DynSystem<K: Key> {
    fn boxed_sessions(&mut self, threads: u64) -> Vec<BoxedSession<'_, K>>;
    fn memory_use(&mut self) -> Result<Option<MemoryUse>>;
}

pub(crate) type BoxedSystem<K> = Box<dyn DynSystem<K>>;
pub(crate) type BoxedSession<'a, K> = Box<dyn Session<K> + 'a>;

impl<K: Key, S: System<K>> DynSystem<K> for S {
    fn boxed_sessions(&mut self, threads: u64) -> Vec<BoxedSession<'_, K>> {
        let sessions = self.sessions(threads).into_iter();
        sessions.map(|session| Box::new(session) as BoxedSession<'_, K>).collect()
    }
    fn memory_use(&mut self) -> Result<Option<MemoryUse>> {
        self.memory()
    }
}

impl<K: Key> System<K> for BoxedSystem<K> {
    type Session<'a> = BoxedSession<'a, K>;

    fn sessions(&mut self, threads: u64) -> Vec<BoxedSession<'_, K>> {
        (**self).boxed_sessions(threads)
    }
    fn memory(&mut self) -> Result<Option<MemoryUse>> {
        (**self).memory_use()
    }
}

/// An operation is one call through the table of the session.
impl<K: Key> Session<K> for BoxedSession<'_, K> {
    #[inline]
    fn get(&mut self, key: K::Ref<'_>) -> Result<Option<u64>> {
        (**self).get(key)
    }
    #[inline]
    fn multi_get(&mut self, keys: &[K::Ref<'_>], values: &mut [Option<u64>]) -> Result<()> {
        (**self).multi_get(keys, values)
    }
    #[inline]
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        (**self).insert(key, value)
    }
    #[inline]
    fn update(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool> {
        (**self).update(key, value)
    }
    #[inline]
    fn upsert(&mut self, key: K::Ref<'_>, value: u64) -> Result<()> {
        (**self).upsert(key, value)
    }
    #[inline]
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool> {
        (**self).remove(key)
    }
    #[inline]
    fn scan(&mut self, key: K::Ref<'_>, length: usize) -> Result<usize> {
        (**self).scan(key, length)
    }
    fn maintainer(&self) -> Option<Maintainer> {
        (**self).maintainer()
    }
    fn run_maintenance_step(&mut self) -> Result<bool> {
        (**self).run_maintenance_step()
    }
}
