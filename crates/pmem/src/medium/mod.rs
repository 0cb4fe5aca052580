//! Media: the only way to persistent memory.
//!
//! 1. Every load, store, flush and fence of persistent memory goes through a [`Medium`]. So one
//!    source runs on hardware, on the counter and under the crash explorer.
//! 2. Stores of one thread to one line persist in program order, and each persists whole: x86 and
//!    aarch64 both write a line back as one snapshot. Lines persist independently of each other,
//!    and at any time, even without a flush.
//! 3. Only the next fence of the same thread guarantees a flush.
//! 4. On hardware a medium is a few instructions, all inlined, so the layer costs nothing.

mod ahead;
mod anon;
mod backing;
#[cfg(test)]
pub(crate) mod cached;
mod count;
mod delay;
mod fault;
mod file;
mod fork;
mod holes;
mod identity;
mod lock;
mod machine;
mod mapped;
mod names;
mod numa;
mod page;
pub mod schedule;
mod simulated;
mod space;
mod storage;
#[cfg(test)]
pub(crate) mod torn;
mod words;

pub(crate) use ahead::{Extensible, FileLength, GrowingFile};
pub use count::{Count, Counts};
pub use delay::Delay;
pub use fault::{FAULT_EXIT_CODE, install_fault_message};
pub use file::FileOptions;
pub use holes::end_of_hole;
pub use lock::LockedFile;
pub(crate) use lock::is_same;
pub(crate) use machine::{draw, known_boot_id, memory_bytes};
pub use mapped::Mapped;
pub(crate) use mapped::Range;
pub use names::sync_name;
pub(crate) use names::{sync_folder, without_links};
pub use schedule::CallSite;
pub use simulated::{Awaited, Simulated, Simulation, StoreRole};
pub(crate) use space::{allocate, check_length, fill_holes};
pub use storage::Storage;
pub(crate) use storage::mount_of;
pub(crate) use words::{for_each_line, offset_of, prefetch, words_at};

use crate::defect::Defect;
use crate::numa::Placement;
use crate::word::PmWord;
use core::fmt;
use core::marker::PhantomData;
use core::panic::Location;
use core::ptr::NonNull;
use std::fs::File;
use std::os::fd::AsRawFd;
use thiserror::Error;

/// The persistence domain of a mapping: the crashes that its contents survive, and so the
/// instructions that a flush and a fence need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// The queues of the memory controller are inside the domain, the caches are not: needs flush
    /// and fence. Survives a power cut.
    Adr,
    /// The caches are inside the domain too: needs only the fence. Survives a power cut.
    Eadr,
    /// A plain file with a journal: what is fenced survives the death of the process at once, and a
    /// power cut as the [`Durability`](crate::journal::Durability) says. A flush notes the line, a
    /// fence copies it.
    Disk,
    /// A plain file: its page cache survives the death of the process, but not a power cut. Needs
    /// no flush and no fence instruction; the order of stores is kept.
    ProcessCrash,
    /// Anonymous memory: survives no crash.
    Volatile,
}

impl Domain {
    /// Returns the name that commands and files use: `adr`, `eadr`, `disk`, `process`,
    /// `volatile`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Adr => "adr",
            Self::Eadr => "eadr",
            Self::Disk => "disk",
            Self::ProcessCrash => "process",
            Self::Volatile => "volatile",
        }
    }

    /// Returns the domain with that [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Adr, Self::Eadr, Self::Disk, Self::ProcessCrash, Self::Volatile]
            .into_iter()
            .find(|domain| domain.name() == name)
    }

    /// Returns `true` if a mapping in this domain survives every crash that `other` survives.
    pub const fn covers(self, other: Self) -> bool {
        self.rank() >= other.rank()
    }

    const fn rank(self) -> u8 {
        match self {
            Self::Adr | Self::Eadr => 3,
            Self::Disk => 2,
            Self::ProcessCrash => 1,
            Self::Volatile => 0,
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A token that shows that this thread has fenced. A commit store consumes it.
///
/// It proves that a fence ran on this path, not that the right lines were flushed before. The crash
/// explorer checks the latter.
#[derive(Debug)]
#[must_use = "if no commit follows the fence, bind the token to `_`"]
pub struct Fenced(PhantomData<*const ()>);

impl Fenced {
    /// Returns the token after a fence. Only an implementation of [`Medium::fence`] may call this.
    #[inline(always)]
    pub fn after_fence() -> Self {
        Self(PhantomData)
    }

    /// Returns the token for a change that publishes nothing: its words hold all that it says.
    #[inline(always)]
    pub fn nothing() -> Self {
        Self(PhantomData)
    }
}

/// The reason why a medium could not be opened or grown.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MediumError {
    /// The system refused a call: no permission, no space, no address space, no such file.
    #[error("cannot {action}: {source}")]
    System {
        /// The action that failed.
        action: &'static str,
        /// The error that the system returned.
        source: std::io::Error,
    },
    /// Another process, or another part of this one, has the file open.
    #[error("the pool is open elsewhere; close it there first")]
    Locked,
    /// This process is a child of the process that opened the file.
    #[error(
        "a child of fork cannot use a pool that its parent opened; open the pool in the child after \
         the parent has closed it, or fork first and open then"
    )]
    Inherited,
    /// The file has holes, for example because a copy left out its zeros, and the device has no
    /// space for them.
    #[error(
        "the file lacks {missing} bytes of its space, which the device does not have: {source}; free \
         space, or copy the file without holes"
    )]
    Holes {
        /// The number of bytes that the file has no space for.
        missing: u64,
        /// The error that the system returned.
        source: std::io::Error,
    },
    /// The file was removed while it was open.
    #[error(
        "the file was removed while it was open; its contents are lost when no process has it open \
         any more: copy /proc/{}/fd/{} first",
        std::process::id(),
        file.as_raw_fd()
    )]
    Removed {
        /// The file, kept open so that it can be copied.
        file: File,
    },
    /// The path leads to another file, or to none, but the file exists.
    #[error("the file was moved or replaced while it was open; it is intact under another path")]
    Moved,
    /// The caller required a stronger domain than the mapping has.
    #[error(
        "the mapping gives domain {given}, but {required} was required; \
         use a file on a DAX mount (MAP_SYNC), or require a weaker domain"
    )]
    Domain {
        /// The domain that the caller required.
        required: Domain,
        /// The domain of the mapping.
        given: Domain,
    },
    /// The requested size exceeds the address space that was reserved at the open.
    #[error("cannot grow to {wanted} bytes: the medium was opened with room for {limit}")]
    Limit {
        /// The requested size, in bytes.
        wanted: u64,
        /// The largest size of the medium, in bytes.
        limit: u64,
    },
    /// The medium keeps all of its file in memory, and would take more than it may.
    #[error(
        "the store would take {wanted} bytes of memory, and memory_bytes allows {limit}: raise it, \
         or open the store with Durability::Process, once it was closed"
    )]
    Memory {
        /// The size that the medium would have, in bytes.
        wanted: u64,
        /// The largest size that the options allow, in bytes.
        limit: u64,
    },
    /// A write of the journal has failed, or another program has removed the journal, so no later
    /// write is durable. Reads go on.
    #[error(
        "a write of the journal has failed before, or the journal was removed: writes are refused \
         until the store is opened again"
    )]
    Poisoned,
    /// The system does not place pages on a node of the placement.
    #[error("cannot put memory on NUMA node {node}: {source}")]
    Node {
        /// The number of the node.
        node: u16,
        /// The error that the system returned.
        source: std::io::Error,
    },
}

impl MediumError {
    pub(crate) fn system(action: &'static str, source: impl Into<std::io::Error>) -> Self {
        Self::System { action, source: source.into() }
    }

    /// Returns `true` if the system refused space on the device.
    pub fn is_full(&self) -> bool {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let Self::System { source, .. } = self else { return false };
        matches!(source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
    }
}

/// Persistent memory, or memory that behaves like it.
///
/// Loads acquire and stores release, so a reader of a word sees everything that was stored before
/// it.
///
/// # Safety
///
/// 1. [`base`](Self::base) is aligned to 4096 and never changes. [`len`](Self::len) bytes from it
///    stay readable and writable until the medium is dropped, and `len` never shrinks, except in
///    [`fit_to`](Self::fit_to).
/// 2. The mapping starts out initialised, and no other process writes it.
/// 3. `load` returns the newest store of the word that this thread may see. Stores of one thread
///    take effect in program order.
#[expect(unsafe_code, reason = "a medium promises that its mapping stays")]
pub unsafe trait Medium: Send + Sync + 'static {
    /// `true` if the medium can inject published defects: only the explorer's media. On all others
    /// the code of the defects is not compiled.
    const INJECTS_DEFECTS: bool = false;
    /// `true` if code for this medium should be small rather than fast: a tree calls its descent
    /// where it is inlined on other media, and loads no word that it does not need, which it does
    /// elsewhere to spare a branch. For simulations, whose accesses cost more than a call, and of
    /// which the explorer runs once more for each value of a loaded word.
    const COMPACT: bool = false;

    /// Returns the address of the first byte.
    fn base(&self) -> NonNull<u8>;
    /// Returns the size of the mapping, in bytes.
    fn len(&self) -> u64;
    /// Returns `true` if the mapping has at least `end` bytes, as [`len`](Self::len) tells.
    #[inline(always)]
    fn holds(&self, end: u64) -> bool {
        end <= self.len()
    }
    /// Grows the medium to at least `bytes`, zero-filled, with space reserved on the device.
    ///
    /// # Errors
    /// The device is full, or `bytes` is more than the medium can address. Nothing has changed
    /// then.
    fn grow(&self, bytes: u64) -> Result<(), MediumError>;
    /// Grows the medium to at least `least` bytes, and to `ample` if that costs no long wait.
    /// Returns the new length.
    ///
    /// # Errors
    /// The medium cannot grow to `least`. Nothing has changed then.
    fn grow_between(&self, least: u64, ample: u64) -> Result<u64, MediumError> {
        match self.grow(ample) {
            Ok(()) => Ok(ample),
            Err(_) => self.grow(least).map(|()| least),
        }
    }
    /// `true` if [`prepare_growth`](Self::prepare_growth) does anything.
    const PREPARES_GROWTH: bool = false;
    /// Starts to prepare growth to `bytes` bytes on a thread of the medium, so that
    /// [`grow_between`](Self::grow_between) finds the space ready. Default: nothing, because a
    /// simulated medium has no thread of its own.
    fn prepare_growth(&self, _bytes: u64) {}
    /// Makes the length durable. A pool calls it after growth, before a superblock names the new
    /// length: otherwise a power cut could leave a file that is shorter than its superblock says.
    /// Default: nothing, for a medium whose length is durable at once.
    ///
    /// # Errors
    /// The system could not write the length to the device.
    fn sync_length(&self) -> Result<(), MediumError> {
        Ok(())
    }
    /// Limits the medium to the pool's `bytes`, before the pool is used, and makes sure that they
    /// have space on the device. What the file holds past them is used when the pool grows.
    /// Default: nothing.
    ///
    /// # Errors
    /// The file has holes, and the device has no space for them.
    fn fit_to(&mut self, _bytes: u64) -> Result<(), MediumError> {
        Ok(())
    }
    /// Returns `true` if a child of `fork` has inherited the medium. It must not use it: its parent
    /// does. On a file this costs one load, and on all other media nothing.
    #[inline(always)]
    fn is_inherited(&self) -> bool {
        false
    }
    /// Checks that the file of the medium can still be found at its path. Default: `Ok`, for a
    /// medium without a file.
    ///
    /// # Errors
    /// [`MediumError::Removed`], [`MediumError::Moved`].
    fn check_path(&self) -> Result<(), MediumError> {
        Ok(())
    }
    /// Allocation-failure injection: returns `false` if the reservation of a block of `bytes` must
    /// fail, as on a full device. Every real medium returns `true`.
    #[inline(always)]
    fn admits_allocation(&self, _bytes: u64) -> bool {
        true
    }
    /// Returns the persistence domain, never a stronger one than the mapping has.
    fn domain(&self) -> Domain;
    /// Makes everything that was stored so far, and the length of the file, survive a power cut, as
    /// far as the device keeps what it acknowledges. The fences of this medium do that for its
    /// words in a domain that covers [`Domain::Adr`]; this call adds the metadata of the file.
    /// Slow: a pool calls it at creation, open, growth and close. Default: nothing, for a medium
    /// without a file.
    ///
    /// # Errors
    /// The system could not write the file. The medium may hold less than was stored, after a power
    /// cut.
    fn sync(&self) -> Result<(), MediumError> {
        Ok(())
    }
    /// Makes what a process that was killed has stored, and not written back, survive a power cut.
    /// An open of a pool that was not closed calls this before it relies on what it reads: until
    /// then such stores are in the caches alone. Default: nothing, for a domain that has no flush,
    /// and a medium that starts from what a power cut has left.
    ///
    /// # Errors
    /// As [`sync`](Self::sync).
    fn write_back_all(&self) -> Result<(), MediumError> {
        Ok(())
    }
    /// Makes the first `bytes` survive a power cut, as [`sync`](Self::sync) does. In a domain that
    /// covers [`Domain::Adr`] the fences have done so. Default: all bytes.
    ///
    /// # Errors
    /// The system could not write the file.
    fn sync_front(&self, _bytes: u64) -> Result<(), MediumError> {
        self.sync()
    }
    /// Waits until the writes that this thread has fenced are as durable as the medium promises.
    /// Called at the end of each operation that may have written. Default: nothing, because a fence
    /// has done that.
    ///
    /// # Errors
    /// The system could not write to the device, now or before. No later write is durable.
    #[inline(always)]
    fn settle_writes(&self) -> Result<(), MediumError> {
        Ok(())
    }
    /// Waits until what this thread has read is as durable as the medium promises. Default:
    /// nothing.
    #[inline(always)]
    fn settle_reads(&self) {}
    /// Notes that this thread relies on what it has read in `words`, whose writer has fenced it.
    /// Default: nothing.
    #[inline(always)]
    fn note_read(&self, _words: &[PmWord]) {}
    /// Flushes `words`, which hold nothing new, if those who [read](Self::note_read) them must wait
    /// for the next fence, which publishes them. Default: nothing.
    #[inline(always)]
    #[track_caller]
    fn flush_for_readers(&self, _words: &[PmWord]) {}
    /// Waits until what this thread has [noted](Self::note_read) is as durable as the medium
    /// promises, and forgets it. Default: nothing.
    #[inline(always)]
    fn settle_noted(&self) {}
    /// Ends the use of the medium: its file holds everything that was fenced, and needs nothing
    /// else. No thread uses the medium any more. Default: nothing.
    ///
    /// # Errors
    /// The system could not write to the device.
    fn finish(&self) -> Result<(), MediumError> {
        Ok(())
    }
    /// Returns the id of this boot of the machine, which a restart changes. Default: zeros, for a
    /// medium that does not outlive the boot or does not know it.
    fn boot_id(&self) -> [u64; 2] {
        [0; 2]
    }
    /// Returns the inode number of the file and the time of its birth, in nanoseconds since 1970. A
    /// copy has others, also under the same name. Default: zeros, for a medium without a file. A
    /// birth of 0 is not known. Where numbers do not last, returns 0 and the type of the file
    /// system.
    fn file_id(&self) -> [u64; 2] {
        [0; 2]
    }
    /// Returns a random number, from the randomness of the system. Default: 0, for media whose runs
    /// must be reproducible; so a caller mixes it with a number that differs at each use.
    fn draw(&self) -> u64 {
        0
    }
    /// Returns the map from stripes to NUMA nodes, or `None`. Without one, a pool never asks on
    /// which node a thread runs.
    fn placement(&self) -> Option<Placement> {
        None
    }

    /// Notes the place in the source that makes the next store, flush or fence; a medium below a
    /// [`Simulated`] is told. Default: nothing.
    #[inline(always)]
    fn note_site(&self, _at: CallSite) {}

    /// Loads a word with acquire ordering.
    fn load(&self, word: &PmWord) -> u64;
    /// Loads a latch word, for [`Latch`](crate::sync::Latch) alone: it relies on no value of an
    /// earlier use of the pool. A [simulation](Simulation) may therefore take any such value.
    #[inline(always)]
    fn load_transient(&self, word: &PmWord) -> u64 {
        self.load(word)
    }
    /// Loads a word with a latch beside the bits `kept`, which recovery relies on. A
    /// [simulation](Simulation) may take any value of an earlier use of the pool for the latch.
    #[inline(always)]
    fn load_beside(&self, word: &PmWord, _kept: u64) -> u64 {
        self.load(word)
    }
    /// Stores a word with release ordering. The store is failure-atomic.
    fn store(&self, word: &PmWord, value: u64);
    /// Stores a word that recovery never relies on, such as a latch or a version; or a
    /// [note](crate::sync::note_held) beside a latch, which recovery reads with
    /// [`load`](Self::load). The store does not count as a write of the operation.
    fn store_transient(&self, word: &PmWord, value: u64) {
        self.store(word, value);
    }
    /// Replaces a transient word by `new` if it is `old`.
    ///
    /// # Errors
    /// The word is not `old`; the error is its value.
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64>;
    /// Replaces a word with a latch beside the bits `kept` by `new` if it is `old`.
    ///
    /// # Errors
    /// The word is not `old`; the error is its value.
    #[inline(always)]
    #[track_caller]
    fn cas_beside(&self, word: &PmWord, old: u64, new: u64, _kept: u64) -> Result<(), u64> {
        self.cas_transient(word, old, new)
    }
    /// Fills fresh words, which no pointer reaches yet, from `source`; pads the last word with
    /// zeros. The words are stored in no particular order and are durable after the next fence,
    /// without a flush.
    fn fill(&self, target: &[PmWord], source: &[u8]);
    /// Copies the bytes of consecutive words to `target`.
    fn copy_out(&self, source: &[PmWord], target: &mut [u8]) {
        copy_words(source, target, |word| self.load(word));
    }
    /// Starts to write back every line that holds one of `words`.
    fn flush(&self, words: &[PmWord]);
    /// Waits for the flushes and fills of this thread.
    fn fence(&self) -> Fenced;

    /// Flushes `words` and fences.
    #[inline(always)]
    fn persist(&self, words: &[PmWord]) -> Fenced {
        self.flush(words);
        self.fence()
    }
    /// Stores the commit word. `_published` shows that everything that it publishes is durable.
    #[inline(always)]
    fn commit(&self, word: &PmWord, value: u64, _published: Fenced) {
        self.store(word, value);
    }
    /// Returns `true` if `defect` is injected. Called only if
    /// [`INJECTS_DEFECTS`](Self::INJECTS_DEFECTS).
    #[inline(always)]
    fn injects(&self, _defect: Defect) -> bool {
        false
    }
    /// Prefetches the lines of `words`.
    #[inline(always)]
    fn prefetch(&self, _words: &[PmWord]) {}

    /// `true` if the medium decides which thread runs next, at each access to a shared word.
    const CONTROLS_SCHEDULE: bool = false;

    /// Yield point, called before each access to a shared word in DRAM. A medium that [controls the
    /// schedule](Self::CONTROLS_SCHEDULE) may switch threads here and at its own accesses. On all
    /// others this compiles to nothing.
    #[inline(always)]
    fn yield_point()
    where
        Self: Sized,
    {
    }
    /// Spin hint, called in each round of a wait loop. Returns `true` if the medium ran another
    /// thread; on `false` the caller spins.
    #[inline(always)]
    fn spin_hint() -> bool
    where
        Self: Sized,
    {
        false
    }
    /// Returns the number of the thread under test that runs, on a medium that [controls the
    /// schedule](Self::CONTROLS_SCHEDULE).
    #[inline(always)]
    fn scheduled_thread() -> usize
    where
        Self: Sized,
    {
        0
    }
    /// Returns `true` if code that begins beyond a number of leaves or bytes must begin at a few
    /// leaves, so that simulated pools execute it. `false`, and no code, on every real medium.
    #[inline(always)]
    fn has_small_scale() -> bool
    where
        Self: Sized,
    {
        false
    }
    /// Returns `true` if the numbers of a new pool (transactions, stamps, sequences, versions) must
    /// begin near their bounds. `false`, and no code, on every real medium.
    #[inline(always)]
    fn is_aged() -> bool
    where
        Self: Sized,
    {
        false
    }
    /// For mutation tests: returns `true` if the version check at call site `_at` must succeed.
    /// Compiles to nothing unless the medium [controls the schedule](Self::CONTROLS_SCHEDULE).
    #[inline(always)]
    fn skip_validation(_at: &'static Location<'static>) -> bool
    where
        Self: Sized,
    {
        false
    }
}

/// Copies the bytes of consecutive words, which `load` loads in their order.
#[inline(always)]
fn copy_words(source: &[PmWord], target: &mut [u8], load: impl Fn(&PmWord) -> u64) {
    debug_assert!(target.len() <= source.len() * 8);
    let (whole, rest) = target.as_chunks_mut();
    let mut words = source.iter();
    for (bytes, word) in whole.iter_mut().zip(words.by_ref()) {
        *bytes = load(word).to_le_bytes();
    }
    if let Some(word) = words.next().filter(|_| !rest.is_empty()) {
        rest.copy_from_slice(&load(word).to_le_bytes()[..rest.len()]);
    }
}
