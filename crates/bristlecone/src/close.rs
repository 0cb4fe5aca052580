//! The end of a session: what makes the next open fast.

use crate::error::Error;
use crate::store::Store;
use bristlecone_pmem::{Medium, Pool};
use bristlecone_trees::PmIndex;
use std::sync::Arc;

impl<M: Medium, const LEAF_BYTES: usize> Store<M, LEAF_BYTES> {
    /// Saves the inner nodes and the free map, and marks the store as closed. Durable on return.
    ///
    /// The next open then loads them in place of a recovery in O(n). Closing is optional: a store
    /// that is dropped keeps all its pairs, and the next open recovers it. On a disk the journal
    /// stays beside the file until then; this brings the file up to date and removes it. Under
    /// [`Durability::Process`](crate::Durability::Process) a store that is not closed is [perhaps
    /// torn](Error::MayBeTorn) if the machine restarts first; this syncs the file before and after
    /// the mark. So a closed store survives a power cut on any disk. It waits for the device, but
    /// for no other thread, since it owns the store.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = bristlecone::Store::open_or_create(dir.path().join("trees.pool"))?;
    /// store.put("sequoia", "3266 years")?;
    /// store.close()?;
    /// let store = bristlecone::Store::open(dir.path().join("trees.pool"))?;
    /// assert!(!store.was_recovered());
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// A full store can be closed too. If there is no space for the inner nodes, the next open
    /// reads the leaves, in O(n). A file of over 1 MiB keeps space for the free map. A smaller one
    /// may be closed without it, and the next open recovers it. No pair is lost.
    ///
    /// # Errors
    /// The store is dropped: no pair is lost, and the next open recovers it.
    /// - [`Error::Damaged`]: the file is damaged.
    /// - [`Error::ForkedChild`]: a parent of this process opened the store.
    ///
    /// After these two pairs may be lost, and without a journal the next open returns
    /// [`Error::MayBeTorn`]:
    /// - [`Error::System`]: the device did not take the file.
    /// - [`Error::WritesEnded`]: the device did not take the journal.
    ///
    /// After these two the store is closed:
    /// - [`Error::Removed`]: no path leads to the file any more. The error keeps it open, so that
    ///   it can be copied.
    /// - [`Error::Moved`]: the path of the store leads to another file, or to none.
    pub fn close(self) -> Result<(), Error> {
        self.check_process()?;
        let path = self.path.clone();
        let pool = self.close_in()?;
        // The index is gone, and no scan outlives its store, so this is the only owner.
        let pool = Arc::into_inner(pool).ok_or_else(|| Error::InUse { path: path.clone() })?;
        let found = pool.medium().check_path();
        pool.close().map_err(|e| Error::from_pool(&path, e).while_open())?;
        found.map_err(|e| Error::from_medium(&path, e))
    }

    /// Saves what makes the next open fast, and returns the pool, which stays open.
    ///
    /// # Errors
    /// The errors of [`close`](Self::close).
    #[doc(hidden)]
    pub fn close_in(self) -> Result<Arc<Pool<M>>, Error> {
        let Self { index, path, .. } = self;
        Box::new(index).close().map_err(|e| Error::from_tree(&path, e).while_open())
    }
}
