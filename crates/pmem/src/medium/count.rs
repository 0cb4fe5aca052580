//! A medium that counts stores, flushes and fences.
//!
//! The counts are exact and the same on every machine. Designs are compared and budgets asserted by
//! them. Lines and `XPLine`s are distinct within the interval between two calls of [`Count::take`],
//! so a caller that counts per operation takes after each.

use super::{CallSite, Domain, Fenced, Medium, MediumError};
use crate::line::{LINE_BYTES, XPLINE_BYTES, lines};
use crate::numa::Placement;
use crate::word::PmWord;
use core::ops::AddAssign;
use core::panic::Location;
use core::ptr::NonNull;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet};

/// The counts of one or more operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of flushed lines. A line counts each time that it is flushed.
    pub lines: u64,
    /// The number of fences.
    pub fences: u64,
    /// The number of stored words, without transient ones.
    pub words: u64,
    /// The number of distinct lines of 64 B among the flushed ones.
    pub distinct_lines: u64,
    /// The number of distinct `XPLine`s of 256 B among the flushed lines.
    pub units: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.lines += other.lines;
        self.fences += other.fences;
        self.words += other.words;
        self.distinct_lines += other.distinct_lines;
        self.units += other.units;
    }
}

/// A medium that counts all accesses and passes them on to `M`.
#[derive(Debug)]
pub struct Count<M> {
    inner: M,
    tally: Mutex<Tally>,
}

#[derive(Debug, Default)]
struct Tally {
    counts: Counts,
    flushed: HashSet<usize>,
    /// The source file of the next access, if it is known.
    file: Option<&'static str>,
    /// The counts of the accesses of each source file.
    by_file: BTreeMap<&'static str, Counts>,
}

impl<M: Medium> Count<M> {
    /// Returns a medium on `inner` that counts from now on.
    pub fn new(inner: M) -> Self {
        Self { inner, tally: Mutex::default() }
    }

    /// Returns the counts since the last call, or since the medium was made, and resets them.
    pub fn take(&self) -> Counts {
        let Tally { mut counts, flushed, .. } = core::mem::take(&mut *self.tally.lock());
        counts.distinct_lines = flushed.len() as u64;
        counts.units =
            flushed.iter().map(|line| line / XPLINE_BYTES).collect::<HashSet<_>>().len() as u64;
        counts
    }

    /// Returns words, lines and fences since the last call, by the source files that made them, and
    /// resets all counts. A medium below a [`Simulated`](super::Simulated) knows the files.
    pub fn take_by_file(&self) -> BTreeMap<&'static str, Counts> {
        core::mem::take(&mut *self.tally.lock()).by_file
    }

    fn add(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.tally.lock());
    }
}

impl Tally {
    /// Adds `counts` to the total and to those of the file.
    fn count(&mut self, counts: Counts) {
        self.counts += counts;
        if let Some(file) = self.file {
            *self.by_file.entry(file).or_default() += counts;
        }
    }

    fn flushed(&mut self, words: &[PmWord]) {
        for line in lines(words.as_ptr() as usize, core::mem::size_of_val(words)) {
            self.count(Counts { lines: 1, ..Counts::default() });
            debug_assert_eq!(line % LINE_BYTES, 0);
            self.flushed.insert(line);
        }
    }
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: every access goes to `inner`, which keeps the contract.
unsafe impl<M: Medium> Medium for Count<M> {
    const CONTROLS_SCHEDULE: bool = M::CONTROLS_SCHEDULE;

    fn base(&self) -> NonNull<u8> {
        self.inner.base()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        self.inner.grow(bytes)
    }
    fn grow_between(&self, least: u64, ample: u64) -> Result<u64, MediumError> {
        self.inner.grow_between(least, ample)
    }
    const PREPARES_GROWTH: bool = M::PREPARES_GROWTH;
    fn prepare_growth(&self, bytes: u64) {
        self.inner.prepare_growth(bytes);
    }
    fn sync_length(&self) -> Result<(), MediumError> {
        self.inner.sync_length()
    }
    fn fit_to(&mut self, bytes: u64) -> Result<(), MediumError> {
        self.inner.fit_to(bytes)
    }
    #[inline(always)]
    fn is_inherited(&self) -> bool {
        self.inner.is_inherited()
    }
    fn check_path(&self) -> Result<(), MediumError> {
        self.inner.check_path()
    }
    fn domain(&self) -> Domain {
        self.inner.domain()
    }
    fn sync(&self) -> Result<(), MediumError> {
        self.inner.sync()
    }
    fn write_back_all(&self) -> Result<(), MediumError> {
        self.inner.write_back_all()
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
    fn draw(&self) -> u64 {
        self.inner.draw()
    }
    fn placement(&self) -> Option<Placement> {
        self.inner.placement()
    }
    fn note_site(&self, at: CallSite) {
        self.add(|tally| tally.file = Some(at.file()));
    }
    #[inline(always)]
    fn load(&self, word: &PmWord) -> u64 {
        self.inner.load(word)
    }
    #[inline(always)]
    fn store(&self, word: &PmWord, value: u64) {
        self.add(|tally| tally.count(Counts { words: 1, ..Counts::default() }));
        self.inner.store(word, value);
    }
    #[inline(always)]
    fn store_transient(&self, word: &PmWord, value: u64) {
        self.inner.store_transient(word, value);
    }
    #[inline(always)]
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        self.inner.cas_transient(word, old, new)
    }
    fn fill(&self, target: &[PmWord], source: &[u8]) {
        let words = source.len().div_ceil(8);
        self.add(|tally| {
            tally.count(Counts { words: words as u64, ..Counts::default() });
            tally.flushed(&target[..words]);
        });
        self.inner.fill(target, source);
    }
    #[inline]
    fn flush(&self, words: &[PmWord]) {
        self.add(|tally| tally.flushed(words));
        self.inner.flush(words);
    }
    #[inline]
    fn fence(&self) -> Fenced {
        self.add(|tally| tally.count(Counts { fences: 1, ..Counts::default() }));
        self.inner.fence()
    }
    #[inline(always)]
    fn prefetch(&self, words: &[PmWord]) {
        self.inner.prefetch(words);
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
