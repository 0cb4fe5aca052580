//! When a write to a plain file survives a power cut: options, syncs.

use crate::error::Error;
use crate::options::Options;
use crate::store::Store;
use bristlecone_pmem::{Domain, Durability, Medium};

impl Options {
    /// Sets when a write to a plain file survives a power cut. Default: soon after it has returned,
    /// [`Durability::DEFAULT`].
    ///
    /// On persistent memory, mounted with DAX, each write survives one when it returns, and this
    /// has no effect. A file in memory (tmpfs) keeps nothing over a power cut: there the default is
    /// [`Durability::Process`], and anything else is an error.
    ///
    /// Unless it is `Process`, a store on a plain file keeps a journal in a folder beside the file,
    /// `NAME.journal`, and all of the file in memory ([`memory_bytes`](Self::memory_bytes)). The
    /// store's [`close`](Store::close) removes the folder.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("trees.pool");
    /// use bristlecone::{Durability, Store};
    /// let options = Store::options().durability(Durability::Commit);
    /// # let options = options.trust_file_system(true);
    /// let store = options.open_or_create(&path)?;
    /// store.put("sequoia", "3266 years")?; // a power cut from here on does not lose it
    /// store.close()?;
    /// # Ok::<(), bristlecone::Error>(())
    /// ```
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Sets the size of the journal, in bytes; 1 MiB at least, 16 GiB at most. A journal that is in
    /// use keeps its size. Default: 64 MiB.
    ///
    /// The store holds each file of the journal open, which takes 67 file descriptors, or 19 if it
    /// has 1 MiB.
    pub fn journal_bytes(mut self, bytes: u64) -> Self {
        self.journal.journal_bytes = bytes;
        self
    }

    /// Limits the memory that a file with a journal may take, in bytes: all of the file is in
    /// private memory while it is open. Default: 70 % of the memory that the machine has, or that
    /// its control group allows this process.
    ///
    /// A write that needs a larger file returns [`Error::Full`], and so does an open of one. Data
    /// that outgrow memory need [`Durability::Process`], or persistent memory.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.journal.memory_bytes = Some(bytes);
        self
    }

    /// Sets whether to keep a journal on a file system that may keep nothing over a power cut: in
    /// memory, on a network, in user space, overlayfs mounted `volatile`; or beside a file that is
    /// mounted without its folder, as in a container. Default: `false`.
    pub fn trust_file_system(mut self, trust: bool) -> Self {
        self.journal.trust_file_system = trust;
        self
    }
}

impl Store {
    /// Makes every write that has returned survive a power cut. Under [`Durability::Commit`], and
    /// on persistent memory, all of them do.
    ///
    /// Under [`Durability::Process`] this writes the file to the device, but later writes may tear
    /// it: only a [`close`](Self::close) keeps it over a power cut. After an error pairs may be
    /// lost: later syncs and the close fail too, and the next open returns [`Error::MayBeTorn`].
    ///
    /// # Errors
    /// [`Error::WritesEnded`], [`Error::System`]: the device refused a write, now or before.
    pub fn sync(&self) -> Result<(), Error> {
        self.check_process()?;
        self.pool().sync().map_err(|e| Error::from_pool(self.path(), e).while_open())
    }

    /// Returns when a write survives a power cut.
    pub fn durability(&self) -> Durability {
        match self.medium().journaled() {
            Some(journaled) => journaled.durability(),
            None if self.medium().domain().covers(Domain::Adr) => Durability::Commit,
            None => Durability::Process,
        }
    }
}
