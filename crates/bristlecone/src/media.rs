//! Stores on media other than files, and in pools that the caller opened.

use crate::error::Error;
use crate::store::Store;
use crate::{Index, ROOT};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Medium, Pool};
use bristlecone_trees::PmIndex;
use std::path::Path;
use std::sync::Arc;

/// The path in the errors of a store that is in no file.
const NO_FILE: &str = "(no file)";

impl<M: Medium> Store<M> {
    /// Creates an empty store that fills `medium`, which must be zeroed.
    ///
    /// This is for media other than files: one that counts write-backs, or one that records
    /// accesses for the crash explorer. The store is durable as far as the medium is.
    ///
    /// ```
    /// use bristlecone::Store;
    /// use bristlecone_pmem::Mapped;
    /// let medium = Mapped::anonymous(1 << 20).unwrap(); // DRAM: survives no crash
    /// let store = Store::create_on(medium)?;
    /// store.put("sequoia", "3266 years")?;
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::TooSmall`]: the medium is smaller than the smallest pool.
    /// - [`Error::Full`]: the medium has no space for the root of the index.
    pub fn create_on(medium: M) -> Result<Self, Error> {
        let path = Path::new(NO_FILE);
        let pool = Pool::create(medium).map_err(|e| Error::from_pool(path, e))?;
        Self::create_in(Arc::new(pool), path)
    }

    /// Opens the store on `medium`, and recovers it if it was not closed.
    ///
    /// # Errors
    /// - [`Error::Unfinished`], [`Error::NotAPool`], [`Error::Foreign`]: the medium holds no store.
    /// - [`Error::CutShort`], [`Error::OldVersion`], [`Error::NewerVersion`], [`Error::Feature`],
    ///   [`Error::Superblocks`], [`Error::Damaged`], [`Error::MayBeTorn`]: the medium holds one
    ///   that is incomplete, of another version, damaged or perhaps torn.
    pub fn open_on(medium: M) -> Result<Self, Error> {
        let path = Path::new(NO_FILE);
        let (pool, opened) = Pool::open(medium).map_err(|e| Error::from_pool(path, e))?;
        Self::open_in(Arc::new(pool), opened, path)
    }
}

impl<M: Medium, const LEAF_BYTES: usize> Store<M, LEAF_BYTES> {
    /// Returns the medium that the store is on.
    pub fn medium(&self) -> &M {
        self.pool().medium()
    }

    /// Creates an empty store in a pool that has none: for tests that inspect the pool.
    ///
    /// # Errors
    /// The pool has no space for the root of the index.
    #[doc(hidden)]
    pub fn create_in(pool: Arc<Pool<M>>, path: &Path) -> Result<Self, Error> {
        let index = Index::create(pool, ROOT).map_err(|e| Error::from_tree(path, e))?;
        Ok(Self { index, path: path.into(), recovered: false })
    }

    /// Opens the store of a pool.
    ///
    /// # Errors
    /// The pool holds no store, or a damaged one.
    #[doc(hidden)]
    pub fn open_in(pool: Arc<Pool<M>>, opened: Opened, path: &Path) -> Result<Self, Error> {
        let index = Index::open(pool, ROOT, opened).map_err(|e| Error::from_tree(path, e))?;
        Ok(Self { index, path: path.into(), recovered: opened == Opened::Crashed })
    }
}
