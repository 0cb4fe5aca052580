//! The modelled medium: every access is an event of the model, then an access to the medium below.
//!
//! One lock serves all threads. With one thread, the figures are the same on every run and every
//! machine. With several threads, the data are right, and the times are those of one core that does
//! the accesses of all threads in their order.

use super::machine::{Access, BYTES_LIMIT, Machine};
use super::profile::{PS_PER_NS, Profile, ProfileError};
use super::summary::DeviceReport;
use bristlecone_pmem::line::LINE_BYTES;
use bristlecone_pmem::medium::{CallSite, MediumError};
use bristlecone_pmem::{Domain, Fenced, Medium, PmWord};
use core::fmt;
use core::panic::Location;
use core::ptr::NonNull;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// A model of a device over `M`, which holds the data.
pub struct Device<M> {
    inner: M,
    profile: Profile,
    machine: Mutex<Machine>,
}

impl<M: fmt::Debug> fmt::Debug for Device<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inner, profile, .. } = self;
        let mut device = f.debug_struct("Device");
        device.field("inner", inner).field("profile", &profile.name).finish_non_exhaustive()
    }
}

impl<M: Medium> Device<M> {
    /// Creates a device of `profile` with a cold cache. Its media have the contents of `inner`.
    ///
    /// # Errors
    /// The profile is invalid, or `inner` is larger than the model can be.
    pub fn new(inner: M, profile: Profile) -> Result<Self, ProfileError> {
        profile.check()?;
        let (bytes, limit) = (inner.len(), BYTES_LIMIT);
        if bytes >= limit {
            return Err(ProfileError::Bytes { bytes, limit });
        }
        let mut machine = Machine::new(&profile);
        machine.grow(inner.len());
        machine.place(words(&inner));
        Ok(Self { inner, profile, machine: Mutex::new(machine) })
    }

    /// Returns the profile of the modelled device.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Writes the contents of the DIMMs' buffers to the media, as idle time would. The contents of
    /// the cache stay there.
    pub fn settle(&self) {
        self.machine.lock().settle();
    }

    /// Settles and resets all counts. Contents of the cache and the clock stay.
    pub fn reset_counts(&self) {
        let mut machine = self.machine.lock();
        machine.settle();
        machine.reset_counts();
    }

    /// Records the end of an operation that changed `user_bytes` for its caller. Returns
    /// [`now_ns`](Self::now_ns).
    pub fn end_op(&self, user_bytes: u64) -> u64 {
        let mut machine = self.machine.lock();
        machine.end_op(user_bytes);
        machine.clock / PS_PER_NS
    }

    /// Returns the virtual nanoseconds since the creation of the device.
    pub fn now_ns(&self) -> u64 {
        self.machine.lock().clock / PS_PER_NS
    }

    /// Returns the report since the creation, or since [`reset_counts`](Self::reset_counts).
    pub fn report(&self) -> DeviceReport {
        DeviceReport::of(&self.machine.lock(), &self.profile)
    }

    /// Returns the mean number of writes of a unit since the creation or
    /// [`reset_counts`](Self::reset_counts), in each of `cells` equal parts of the device in their
    /// order. The part behind the last written unit is left out.
    pub fn wear_map(&self, cells: usize) -> Vec<f64> {
        self.machine.lock().dimms.media.wear_map(cells)
    }

    /// Returns the number of units written to the media since the creation or
    /// [`reset_counts`](Self::reset_counts), by the source file that flushed the first line of the
    /// unit. Units whose first line the cache evicted are left out. A device below a
    /// [`Simulated`](bristlecone_pmem::Simulated) knows the files.
    pub fn media_writes_by_file(&self) -> BTreeMap<&'static str, u64> {
        self.machine.lock().dimms.writes_by_file.clone()
    }

    /// Returns the number of the line of `word`, or a number that no line has if `word` is in DRAM.
    #[inline(always)]
    fn line_of(&self, word: *const PmWord) -> usize {
        (word as usize).wrapping_sub(self.inner.base().as_ptr() as usize) / LINE_BYTES
    }

    /// Does an access. It is not inlined: a tree has hundreds of loads and is compiled for this
    /// medium in many sizes, and the call is cheap beside the model.
    #[inline(never)]
    fn access(&self, word: &PmWord, access: Access) {
        self.machine.lock().access(self.line_of(word), access, words(&self.inner));
    }

    /// Returns the numbers of the lines of `words`.
    fn lines(&self, words: &[PmWord]) -> core::ops::Range<usize> {
        let Some(last) = words.last() else { return 0..0 };
        self.line_of(words.as_ptr())..self.line_of(last).saturating_add(1)
    }
}

/// Returns all words of a medium.
#[inline(always)]
#[expect(unsafe_code, reason = "a cache evicts lines without a reference to them")]
fn words<M: Medium>(medium: &M) -> &[PmWord] {
    let (base, bytes) = (medium.base(), medium.len() as usize);
    // SAFETY: `len` bytes from the base stay mapped and initialised while the medium lives, and the
    // base is aligned to a page. Words are atomics, so other threads may write them meanwhile.
    unsafe {
        NonNull::slice_from_raw_parts(base.cast::<PmWord>(), bytes / size_of::<PmWord>()).as_ref()
    }
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: every call goes to `inner`, which keeps the contract.
unsafe impl<M: Medium> Medium for Device<M> {
    const CONTROLS_SCHEDULE: bool = M::CONTROLS_SCHEDULE;

    fn base(&self) -> NonNull<u8> {
        self.inner.base()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        if bytes >= BYTES_LIMIT {
            return Err(MediumError::Limit { wanted: bytes, limit: BYTES_LIMIT });
        }
        self.inner.grow(bytes)?;
        self.machine.lock().grow(self.inner.len());
        Ok(())
    }
    fn admits_allocation(&self, bytes: u64) -> bool {
        self.inner.admits_allocation(bytes)
    }
    fn domain(&self) -> Domain {
        self.inner.domain()
    }
    fn sync(&self) -> Result<(), MediumError> {
        self.inner.sync()
    }
    fn sync_front(&self, bytes: u64) -> Result<(), MediumError> {
        self.inner.sync_front(bytes)
    }
    fn boot_id(&self) -> [u64; 2] {
        self.inner.boot_id()
    }
    fn file_id(&self) -> [u64; 2] {
        self.inner.file_id()
    }
    /// Returns 0, so that latch words, and with them the flips of bits, are the same on every run.
    fn draw(&self) -> u64 {
        0
    }
    fn note_site(&self, at: CallSite) {
        self.machine.lock().origin = Some(at.file());
    }
    #[inline]
    fn load(&self, word: &PmWord) -> u64 {
        self.access(word, Access::Load);
        self.inner.load(word)
    }
    #[inline]
    fn store(&self, word: &PmWord, value: u64) {
        self.access(word, Access::Store);
        self.inner.store(word, value);
    }
    #[inline]
    fn store_transient(&self, word: &PmWord, value: u64) {
        self.access(word, Access::Store);
        self.inner.store_transient(word, value);
    }
    #[inline]
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        self.access(word, Access::Swap);
        self.inner.cas_transient(word, old, new)
    }
    fn fill(&self, target: &[PmWord], source: &[u8]) {
        self.inner.fill(target, source);
        let mut machine = self.machine.lock();
        for line in self.lines(&target[..source.len().div_ceil(8)]) {
            machine.stream(line, words(&self.inner));
        }
    }
    fn flush(&self, target: &[PmWord]) {
        self.inner.flush(target);
        let mut machine = self.machine.lock();
        for line in self.lines(target) {
            machine.flush(line, words(&self.inner));
        }
    }
    fn fence(&self) -> Fenced {
        self.machine.lock().fence();
        self.inner.fence()
    }
    fn prefetch(&self, target: &[PmWord]) {
        self.inner.prefetch(target);
        self.machine.lock().prefetch(self.lines(target), words(&self.inner));
    }
    #[inline(always)]
    fn yield_point() {
        M::yield_point();
    }
    #[inline(always)]
    fn spin_hint() -> bool {
        M::spin_hint()
    }
    #[inline(always)]
    fn skip_validation(at: &'static Location<'static>) -> bool {
        M::skip_validation(at)
    }
}
