//! A pool file as one medium: mapped, or with a journal.
//!
//! 1. Base and length lie in the medium itself, so an access to a word does not
//!    ask which of the two it is. A flush and a fence ask once, with one branch.
//! 2. The length is that of the inner medium at its last growth: it is never more.
//! 3. What only a journal does is out of line. It would make the code of a mapping larger, and that
//!    slower.

use crate::journal::{Journaled, Reads, has_note};
use crate::medium::{Domain, Fenced, Mapped, Medium, MediumError, prefetch};
use crate::numa::Placement;
use crate::sys::WriteBack;
use crate::word::PmWord;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// A pool file as a medium: a mapping, or working memory with a journal. The form is chosen
/// when the file is opened.
///
/// Made from a [`Mapped`] or a [`Journaled`]. Memory without a file is a mapping too.
#[derive(Debug)]
pub struct FileMedium {
    base: NonNull<u8>,
    len: AtomicU64,
    /// Reads wait by this, if they do. It is here too, so that a lookup finds it at once.
    reads: Option<Arc<Reads>>,
    form: Form,
}

/// The two forms of a [`FileMedium`].
#[derive(Debug)]
enum Form {
    Mapped(Mapped),
    Journaled(Box<Journaled>),
}

/// Calls a method of the form that a medium has.
macro_rules! either {
    ($medium:expr, $form:ident => $call:expr) => {
        match &$medium.form {
            Form::Mapped($form) => $call,
            Form::Journaled($form) => $call,
        }
    };
}

impl From<Mapped> for FileMedium {
    fn from(mapped: Mapped) -> Self {
        let (base, len) = (mapped.base(), mapped.len().into());
        Self { base, len, reads: None, form: Form::Mapped(mapped) }
    }
}

impl From<Journaled> for FileMedium {
    fn from(journaled: Journaled) -> Self {
        let (base, len) = (journaled.base(), journaled.len().into());
        let reads = journaled.reads();
        Self { base, len, reads, form: Form::Journaled(Box::new(journaled)) }
    }
}

impl FileMedium {
    /// Returns the mapping, if the file has no journal.
    pub fn mapped(&self) -> Option<&Mapped> {
        match &self.form {
            Form::Mapped(mapped) => Some(mapped),
            Form::Journaled(_) => None,
        }
    }

    /// Returns the medium with the journal, if the file has one.
    pub fn journaled(&self) -> Option<&Journaled> {
        match &self.form {
            Form::Mapped(_) => None,
            Form::Journaled(journaled) => Some(journaled),
        }
    }

    /// Returns the instruction that writes a line back; [`WriteBack::None`] if the domain needs
    /// none.
    pub fn write_back(&self) -> WriteBack {
        self.mapped().map_or(WriteBack::None, Mapped::write_back)
    }

    /// Keeps a file that this process has created.
    pub fn keep_file(&self) {
        either!(self, form => form.keep_file());
    }

    #[inline(never)]
    fn wait_for_reads(&self) {
        either!(self, form => form.settle_reads());
    }

    #[cold]
    fn wait_for_noted(&self) {
        either!(self, form => form.settle_noted());
    }

    /// Takes over the length of the inner medium. (I2)
    fn note_length(&self) -> u64 {
        let len = either!(self, form => form.len());
        self.len.fetch_max(len, Ordering::AcqRel);
        len
    }
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: every access goes to the inner medium, which keeps the contract, or does what both of
// them do. Base and length are those of the inner medium (I2), which owns the memory.
unsafe impl Medium for FileMedium {
    #[inline(always)]
    fn base(&self) -> NonNull<u8> {
        self.base
    }
    #[inline(always)]
    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }
    #[cold]
    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        either!(self, form => form.grow(bytes))?;
        self.note_length();
        Ok(())
    }
    #[cold]
    fn grow_between(&self, least: u64, ample: u64) -> Result<u64, MediumError> {
        let grown = either!(self, form => form.grow_between(least, ample))?;
        self.note_length();
        Ok(grown)
    }
    const PREPARES_GROWTH: bool = Mapped::PREPARES_GROWTH;
    #[cold]
    fn prepare_growth(&self, bytes: u64) {
        either!(self, form => form.prepare_growth(bytes));
    }
    #[cold]
    fn sync_length(&self) -> Result<(), MediumError> {
        either!(self, form => form.sync_length())
    }
    #[cold]
    fn fit_to(&mut self, bytes: u64) -> Result<(), MediumError> {
        match &mut self.form {
            Form::Mapped(mapped) => mapped.fit_to(bytes),
            Form::Journaled(journaled) => journaled.fit_to(bytes),
        }?;
        *self.len.get_mut() = either!(self, form => form.len());
        Ok(())
    }
    #[inline(always)]
    fn is_inherited(&self) -> bool {
        either!(self, form => form.is_inherited())
    }
    #[cold]
    fn check_path(&self) -> Result<(), MediumError> {
        either!(self, form => form.check_path())
    }
    #[cold]
    fn domain(&self) -> Domain {
        either!(self, form => form.domain())
    }
    #[cold]
    fn sync(&self) -> Result<(), MediumError> {
        either!(self, form => form.sync())
    }
    #[cold]
    fn write_back_all(&self) -> Result<(), MediumError> {
        either!(self, form => form.write_back_all())
    }
    #[cold]
    fn sync_front(&self, bytes: u64) -> Result<(), MediumError> {
        either!(self, form => form.sync_front(bytes))
    }
    #[cold]
    fn finish(&self) -> Result<(), MediumError> {
        either!(self, form => form.finish())
    }
    #[inline(always)]
    fn settle_writes(&self) -> Result<(), MediumError> {
        either!(self, form => form.settle_writes())
    }
    #[inline(always)]
    fn settle_reads(&self) {
        if self.reads.is_some() {
            self.wait_for_reads();
        }
    }
    #[inline(always)]
    fn note_read(&self, words: &[PmWord]) {
        if let Some(reads) = &self.reads {
            reads.note(self.base, words);
        }
    }
    #[inline(always)]
    fn flush_for_readers(&self, words: &[PmWord]) {
        if self.reads.is_some() {
            self.flush(words);
        }
    }
    #[inline(always)]
    fn settle_noted(&self) {
        if self.reads.is_some() && has_note() {
            self.wait_for_noted();
        }
    }
    fn boot_id(&self) -> [u64; 2] {
        either!(self, form => form.boot_id())
    }
    fn file_id(&self) -> [u64; 2] {
        either!(self, form => form.file_id())
    }
    fn draw(&self) -> u64 {
        either!(self, form => form.draw())
    }
    fn placement(&self) -> Option<Placement> {
        either!(self, form => form.placement())
    }
    #[inline(always)]
    fn load(&self, word: &PmWord) -> u64 {
        word.cell().load(Ordering::Acquire)
    }
    #[inline(always)]
    fn store(&self, word: &PmWord, value: u64) {
        word.cell().store(value, Ordering::Release);
    }
    #[inline(always)]
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        word.cell().compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }
    #[inline]
    fn fill(&self, target: &[PmWord], source: &[u8]) {
        either!(self, form => form.fill(target, source));
    }
    #[inline(always)]
    fn flush(&self, words: &[PmWord]) {
        either!(self, form => form.flush(words));
    }
    #[inline(always)]
    fn fence(&self) -> Fenced {
        either!(self, form => form.fence())
    }
    #[inline(always)]
    fn prefetch(&self, words: &[PmWord]) {
        prefetch(words);
    }
}

// SAFETY: the base is that of the inner medium, which may be sent and shared.
#[expect(unsafe_code, reason = "a pointer is not Send by itself")]
unsafe impl Send for FileMedium {}
// SAFETY: as for Send.
#[expect(unsafe_code, reason = "a pointer is not Sync by itself")]
unsafe impl Sync for FileMedium {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Durability, JournalOptions};
    use crate::medium::{FileOptions, LockedFile};
    use crate::pool::{Opened, POOL_BYTES_MIN, Pool, is_closed};
    use std::time::Duration;

    fn options() -> JournalOptions {
        let durability = Durability::Commit;
        // The folder of a test may be in memory.
        JournalOptions {
            durability,
            journal_bytes: 1 << 20,
            trust_file_system: true,
            ..Default::default()
        }
    }

    #[test]
    fn a_pool_grows_and_closes_in_both_forms() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pool");
        let files = FileOptions::default();
        Pool::create(Mapped::create(&path, POOL_BYTES_MIN, &files).unwrap())
            .unwrap()
            .close()
            .unwrap();
        for with_journal in [true, false, true] {
            let open = || {
                let locked = LockedFile::open_within(&path, Duration::ZERO).unwrap();
                assert!(is_closed(locked.file()).unwrap());
                let medium = if with_journal {
                    FileMedium::from(Journaled::on(locked, &options()).unwrap())
                } else {
                    FileMedium::from(Mapped::on(locked, &files).unwrap())
                };
                assert_eq!(medium.journaled().is_some(), with_journal);
                Pool::open(medium).unwrap()
            };
            let (pool, _) = open();
            let old = pool.medium().len();
            pool.grow(old + (1 << 20)).unwrap();
            assert_eq!(pool.medium().len(), old + (1 << 20));
            let block = pool.reserve(64).unwrap();
            pool.medium().fill(pool.words(block, 8).unwrap(), &[7; 64]);
            pool.create_root(if old == POOL_BYTES_MIN { "a" } else { "b" }, 1, block).ok();
            pool.close().unwrap();
            let (pool, state) = open();
            let words = pool.words(block, 8).unwrap();
            assert_eq!(
                (state, pool.medium().load(&words[7])),
                (Opened::Clean, 0x0707_0707_0707_0707)
            );
            pool.close().unwrap();
        }
    }

    #[test]
    fn a_lock_that_is_handed_over_stays_and_so_does_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pool");
        let begin = || Mapped::begin(&path, POOL_BYTES_MIN, &FileOptions::default()).unwrap();
        let refused = || LockedFile::open_within(&path, Duration::ZERO).is_err();
        for is_kept in [false, true] {
            let mapped = begin();
            let locked = mapped.hand_over().unwrap();
            assert!(!is_closed(locked.file()).unwrap());
            Pool::create(FileMedium::from(mapped)).unwrap().close().unwrap();
            assert!(path.exists() && refused());
            assert!(is_closed(locked.file()).unwrap());
            let medium = FileMedium::from(Journaled::on(locked, &options()).unwrap());
            assert!(refused());
            if is_kept {
                medium.keep_file();
            }
            drop(medium);
            assert_eq!(path.exists(), is_kept);
            // Nothing was written that would need it.
            assert!(!path.with_extension("pool.journal").exists());
        }
    }
}
