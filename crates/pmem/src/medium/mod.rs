//! The one door to persistent memory.
//!
//! 1. Every load, store, flush and fence of persistent memory goes through a [`Medium`]. The same
//!    compiled tree so runs on hardware, on the counter and under the crash explorer.
//! 2. Stores of one thread to one line persist in program order, each wholly (x86 and aarch64 both
//!    write a line back as one snapshot). Lines persist independently, at any moment, unasked.
//! 3. A flush is guaranteed by the next fence of the same thread, and by no other.
//! 4. On hardware a medium is a few instructions, all inlined: the layer costs nothing.

mod anon;
mod count;
mod delay;
mod fault;
mod file;
mod mapped;
mod numa;
mod page;
pub mod schedule;
mod simulated;
#[cfg(test)]
pub(crate) mod torn;
mod words;

pub use count::{Count, Counts};
pub use delay::Delay;
pub use fault::{FAULT_EXIT_CODE, install_fault_message};
pub use file::FileOptions;
pub use mapped::Mapped;
pub(crate) use mapped::Range;
pub use simulated::{CallSite, Simulated, Simulation, StoreRole};
pub(crate) use words::{offset_of, words_at};

use crate::defect::Defect;
use crate::numa::Placement;
use crate::word::PmWord;
use core::fmt;
use core::marker::PhantomData;
use core::panic::Location;
use core::ptr::NonNull;
use thiserror::Error;

/// What a mapping survives, and so what a flush and a fence have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// Memory-controller queues are safe, caches are not: flush and fence. Survives a power cut.
    Adr,
    /// Caches are safe too: fence alone. Survives a power cut.
    Eadr,
    /// A plain file: the page cache survives the death of the process, not a power cut. No flush,
    /// no fence instruction; store order is kept.
    ProcessCrash,
    /// Nothing survives.
    Volatile,
}

impl Domain {
    /// The name that commands and files use: `adr`, `eadr`, `process`, `volatile`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Adr => "adr",
            Self::Eadr => "eadr",
            Self::ProcessCrash => "process",
            Self::Volatile => "volatile",
        }
    }

    /// The domain of that [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Adr, Self::Eadr, Self::ProcessCrash, Self::Volatile]
            .into_iter()
            .find(|domain| domain.name() == name)
    }

    /// Whether a mapping in this domain keeps every promise of `other`.
    pub const fn covers(self, other: Self) -> bool {
        self.rank() >= other.rank()
    }

    const fn rank(self) -> u8 {
        match self {
            Self::Adr | Self::Eadr => 2,
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

/// Witness that this thread has fenced; taken by the stores that commit.
///
/// It proves that a fence happened on this path, not that the right lines were flushed before it:
/// that is what the crash explorer proves.
#[derive(Debug)]
#[must_use = "a fence that nothing is committed after may still be needed: bind it to `_`"]
pub struct Fenced(PhantomData<*const ()>);

impl Fenced {
    /// For implementations of [`Medium::fence`] alone.
    #[inline(always)]
    pub fn after_fence() -> Self {
        Self(PhantomData)
    }

    /// For a change that publishes nothing: all that its words say is in them.
    #[inline(always)]
    pub fn nothing() -> Self {
        Self(PhantomData)
    }
}

/// Why a medium could not be had or could not grow.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MediumError {
    /// The system refused: permission, space, address space, no such file.
    #[error("cannot {action}: {source}")]
    System {
        /// What was being done.
        action: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process, or another part of this one, has the file open.
    #[error("the pool is open elsewhere; close it there first")]
    Locked,
    /// A domain was required that the mapping cannot give.
    #[error(
        "the mapping gives domain {given}, but {required} was required; use a file on a DAX mount (MAP_SYNC), or ask for less"
    )]
    Domain {
        /// What was asked for.
        required: Domain,
        /// What the mapping can give.
        given: Domain,
    },
    /// Growth beyond the address space that was reserved at open.
    #[error("cannot grow to {wanted} bytes: the medium was opened with room for {limit}")]
    Limit {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes that the medium can reach.
        limit: u64,
    },
    /// The system does not put pages on a node that a placement names.
    #[error("cannot put memory on NUMA node {node}: {source}")]
    Node {
        /// The node.
        node: u16,
        /// What the system said.
        source: std::io::Error,
    },
}

impl MediumError {
    pub(crate) fn system(action: &'static str, source: impl Into<std::io::Error>) -> Self {
        Self::System { action, source: source.into() }
    }
}

/// Persistent memory, or something that behaves like it.
///
/// Loads acquire and stores release, so a reader that sees a word sees what was stored before it.
///
/// # Safety
///
/// 1. [`base`](Self::base) is aligned to 4096, never changes, and [`len`](Self::len) bytes from it
///    stay readable and writable until the medium is dropped; `len` never shrinks.
/// 2. The mapping starts out initialised, and no other process writes it.
/// 3. `load` returns the newest store of the word that this thread may see; stores of one thread
///    take effect in program order.
#[expect(unsafe_code, reason = "a medium promises that its mapping stays")]
pub unsafe trait Medium: Send + Sync + 'static {
    /// Whether published defects can be put into what runs on it: on the explorer's media alone.
    /// On all others the code of the defects is not even compiled.
    const INJECTS_DEFECTS: bool = false;

    /// First byte.
    fn base(&self) -> NonNull<u8>;
    /// Bytes that are mapped.
    fn len(&self) -> u64;
    /// Makes [`len`](Self::len) at least `bytes`, zero-filled, with space reserved on the device.
    ///
    /// # Errors
    /// The device is full, or `bytes` is beyond what the medium can address. Nothing has changed then.
    fn grow(&self, bytes: u64) -> Result<(), MediumError>;
    /// Whether a block of `bytes` may be reserved now: a medium that plays a full device says no, and
    /// the pool is full to whoever asked. Every real medium says yes.
    #[inline(always)]
    fn admits_allocation(&self, _bytes: u64) -> bool {
        true
    }
    /// What the mapping survives. Never more than it can keep.
    fn domain(&self) -> Domain;
    /// Which node each stripe belongs to. Without it, which is how media are unless they were given
    /// one, a pool never asks where a thread runs.
    fn placement(&self) -> Option<Placement> {
        None
    }

    /// Reads a word.
    fn load(&self, word: &PmWord) -> u64;
    /// Writes a word, failure-atomically.
    fn store(&self, word: &PmWord, value: u64);
    /// Writes a word that recovery never relies on (a latch, a version): a store like any other,
    /// but not part of what an operation is said to write.
    fn store_transient(&self, word: &PmWord, value: u64) {
        self.store(word, value);
    }
    /// Replaces a transient word if it is `old`; else gives what it is.
    ///
    /// # Errors
    /// The word was not `old`; its value is the error.
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64>;
    /// Fills fresh words, which nothing reaches yet, from `source`, the last word padded with
    /// zeros. The words are stored in no particular order, and are durable after the next fence:
    /// no flush is needed.
    fn fill(&self, target: &[PmWord], source: &[u8]);
    /// Copies bytes out of consecutive words.
    fn copy_out(&self, source: &[PmWord], target: &mut [u8]) {
        debug_assert!(target.len() <= source.len() * 8);
        for (word, bytes) in source.iter().zip(target.chunks_mut(8)) {
            bytes.copy_from_slice(&self.load(word).to_le_bytes()[..bytes.len()]);
        }
    }
    /// Begins to write back every line that holds one of `words`.
    fn flush(&self, words: &[PmWord]);
    /// Waits for the flushes and fills of this thread.
    fn fence(&self) -> Fenced;

    /// Flushes `words` and fences.
    #[inline(always)]
    fn persist(&self, words: &[PmWord]) -> Fenced {
        self.flush(words);
        self.fence()
    }
    /// The store that decides: everything it publishes was fenced before.
    #[inline(always)]
    fn commit(&self, word: &PmWord, value: u64, _published: Fenced) {
        self.store(word, value);
    }
    /// Whether `defect` is put into what runs on it; asked only where [`INJECTS_DEFECTS`](Self::INJECTS_DEFECTS).
    #[inline(always)]
    fn injects(&self, _defect: Defect) -> bool {
        false
    }
    /// Asks for the lines of `words` to be brought near.
    #[inline(always)]
    fn prefetch(&self, _words: &[PmWord]) {}

    /// Whether the medium decides which thread goes on, at each access to a word that threads share.
    const CONTROLS_SCHEDULE: bool = false;

    /// Called before each access to words that threads share in DRAM beside the medium. A medium
    /// that [schedules](Self::CONTROLS_SCHEDULE) does so here and at its own accesses; on others it is
    /// nothing.
    #[inline(always)]
    fn yield_point()
    where
        Self: Sized,
    {
    }
    /// Called while this thread waits for another one. Whether another one went on meanwhile; if
    /// not, the thread spins.
    #[inline(always)]
    fn spin_hint() -> bool
    where
        Self: Sized,
    {
        false
    }
    /// Whether a check of a version, asked for at that place in the code, is to pass whatever it
    /// finds: a medium that [schedules](Self::CONTROLS_SCHEDULE) tries what comes of it. On all others the
    /// question is not even compiled.
    #[inline(always)]
    fn skip_validation(_at: &'static Location<'static>) -> bool
    where
        Self: Sized,
    {
        false
    }
}
