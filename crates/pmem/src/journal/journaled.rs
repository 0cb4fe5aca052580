//! A file with a journal, as a medium.

use super::error::JournalError;
use super::folder::Folder;
use super::lines::Journal;
use super::mark::Mark;
use super::noted;
use super::options::{Durability, JournalOptions};
use super::pages::PAGE_BYTES;
use super::reads::Reads;
use super::recovery::{Opening, end_journal};
use super::stats::JournalStats;
use super::trace::DiskTrace;
use crate::medium::{
    Domain, Extensible, Fenced, FileLength, GrowingFile, LockedFile, Mapped, Medium, MediumError,
    check_length, draw, fill_holes, known_boot_id,
};
use crate::numa::Placement;
use crate::word::PmWord;
use core::fmt;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use parking_lot::{Mutex, MutexGuard};
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::ErrorKind;
use std::mem::ManuallyDrop;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// The pause of the thread under [`Durability::Commit`], where it drains and checkpoints alone.
const PAUSE: Duration = Duration::from_millis(10);
/// The shortest interval. In a shorter one the thread would do nothing but sync.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
/// The number of intervals after which a write waits.
const LATE_INTERVALS: u32 = 4;

/// A plain file with a journal beside it: what is fenced there survives the death of the process at
/// once, and a power cut as [`Durability`] says.
///
/// The whole file is in private memory while it is open.
pub struct Journaled {
    shared: Arc<SharedJournal>,
    thread: Option<JoinHandle<()>>,
    pub(super) growing: GrowingFile<Arc<SharedJournal>>,
    /// The size of the medium, in bytes. Working memory is as long as the file, which may be ahead.
    len: AtomicU64,
    locked: LockedFile,
    /// The largest sizes of the file, by its address space and by its memory, in bytes.
    pub(super) limits: [u64; 2],
}

// Not derived: the rings are thousands of words.
impl fmt::Debug for Journaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journaled")
            .field("locked", &self.locked)
            .field("len", &self.len)
            .field("durability", &self.shared.durability)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(super) struct SharedJournal {
    pub(super) journal: Journal<Folder>,
    durability: Durability,
    /// The age of the last sync from which a write waits under an interval, in milliseconds.
    late: u64,
    /// The lengths of the pool file. Working memory has the same.
    pub(super) length: Mutex<FileLength>,
    is_ending: AtomicBool,
    /// The moment before which everything acknowledged survives a power cut; in milliseconds.
    safe_until: AtomicU64,
}

impl Journaled {
    /// The offset in a pool file of what says that the file needs its journal.
    pub const MARK: u64 = Mark::SECTORS[0];

    /// Opens the pool file at `path` with a journal, and recovers it if it needs one. Else the file
    /// must be as a clean close leaves it.
    ///
    /// # Errors
    /// The file system is refused, the journal is missing or damaged, or the system refuses a call.
    pub fn open(path: &Path, options: &JournalOptions) -> Result<Self, JournalError> {
        Self::open_traced(path, options, None)
    }

    /// Opens like [`open`](Self::open), and lets a test see what is written.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[doc(hidden)]
    pub fn open_traced(
        path: &Path,
        options: &JournalOptions,
        trace: Option<Arc<dyn DiskTrace>>,
    ) -> Result<Self, JournalError> {
        Self::on_traced(LockedFile::open_within(path, options.wait)?, options, trace)
    }

    /// Opens the pool in a file that this process has locked, like [`open`](Self::open).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn on(locked: LockedFile, options: &JournalOptions) -> Result<Self, JournalError> {
        Self::on_traced(locked, options, None)
    }

    /// Opens like [`on`](Self::on), and lets a test see what is written.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    #[doc(hidden)]
    pub fn on_traced(
        locked: LockedFile,
        options: &JournalOptions,
        trace: Option<Arc<dyn DiskTrace>>,
    ) -> Result<Self, JournalError> {
        if !options.trust_file_system {
            Folder::check(locked.path(), locked.file())?;
        }
        let pool =
            || locked.file().try_clone().map_err(|e| JournalError::system("open the file", e));
        let bytes = length(&locked)?;
        check_memory(&locked, options)?;
        let reserve_bytes = options.reserve_bytes.max(bytes);
        let memory = Mapped::anonymous_in(bytes, reserve_bytes, options.placement)?;
        let limits = [memory.reserved_bytes(), options.memory_limit()];
        let (mut folder, ring) = match usable_mark(&locked)? {
            Some(mark) if mark.needs => Folder::open(locked.path(), pool()?, &mark)?,
            former => Folder::create(locked.path(), pool()?, former.as_ref(), options)?,
        };
        if let Some(trace) = trace {
            folder.set_trace(trace)?;
        }
        let (nonce, boot) = (memory.draw(), known_boot_id());
        let readers_wait = options.durability == Durability::Commit;
        let opening = Opening { nonce, boot, geometry: options.geometry(), readers_wait };
        let journal = Journal::open(folder, memory, ring, opening)?;
        let shared = Arc::new(SharedJournal {
            journal,
            durability: options.durability,
            late: late_after(options.durability),
            // The sync of the mark has made the length durable.
            length: Mutex::new(FileLength { ready: bytes, durable: bytes }),
            is_ending: AtomicBool::new(false),
            safe_until: AtomicU64::new(now()),
        });
        let growing = GrowingFile::new(Arc::clone(&shared));
        let mut opened = Self { shared, thread: None, growing, len: bytes.into(), locked, limits };
        let name = "bristlecone-journal".to_owned();
        let run = Arc::clone(&opened.shared);
        let thread = Builder::new().name(name).spawn(move || run.run());
        // Without it, the drop removes the journal.
        opened.thread = Some(thread.map_err(|e| JournalError::system("start a thread", e))?);
        Ok(opened)
    }

    /// Returns `true` if `file` is a pool that needs its journal.
    ///
    /// # Errors
    /// The file cannot be read, or the mark of the journal is damaged.
    pub fn is_needed_by(file: &File) -> Result<bool, JournalError> {
        Ok(read_mark(file)?.is_some_and(|mark| mark.needs))
    }

    /// Checks that a journal can be made beside a new pool in `locked`.
    ///
    /// # Errors
    /// The name of the file leaves no room for that of the journal, or that is one of a link or a
    /// file.
    pub fn check_place(locked: &LockedFile) -> Result<(), JournalError> {
        Folder::check_place(locked.path(), locked.file())
    }

    /// If the pool in a file that this process has locked needs its journal, makes it whole
    /// without, and removes the journal. Durable on return, also if a close did so that was killed.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn make_whole(locked: &LockedFile, options: &JournalOptions) -> Result<(), JournalError> {
        let Some(mark) = usable_mark(locked)? else { return Ok(()) };
        if !mark.needs {
            return mark.settle(locked.file());
        }
        check_memory(locked, options)?;
        let pool =
            locked.file().try_clone().map_err(|e| JournalError::system("open the file", e))?;
        let (folder, ring) = Folder::open(locked.path(), pool, &mark)?;
        let bytes = length(locked)?;
        let memory = Mapped::anonymous_in(bytes, bytes, None)?;
        end_journal(&folder, &memory, Some(&ring), known_boot_id())?;
        folder.remove();
        Ok(())
    }

    /// Keeps the file that this process has created: else a drop of the medium removes it, with its
    /// journal.
    pub fn keep_file(&self) {
        self.locked.finish();
    }

    /// Makes everything that was fenced so far survive a power cut.
    ///
    /// # Errors
    /// A write to the device has failed, now or before.
    pub fn sync_all(&self) -> Result<(), MediumError> {
        let journal = &self.shared.journal;
        journal.check()?;
        journal.sync_to(journal.ring.head())
    }

    /// Returns when a write survives a power cut.
    pub fn durability(&self) -> Durability {
        self.shared.durability
    }

    /// Returns the state of the journal, in numbers.
    pub fn stats(&self) -> JournalStats {
        self.shared.journal.stats(self.shared.durability)
    }

    /// Returns the number of lines that were fenced and would not survive a power cut now.
    pub fn unsynced_lines(&self) -> u64 {
        let journal = &self.shared.journal;
        journal.ring.head().saturating_sub(journal.reads.synced.load(Ordering::Acquire))
    }

    /// Returns what readers wait for, if they do: under [`Durability::Commit`].
    pub(crate) fn reads(&self) -> Option<Arc<Reads>> {
        let readers_wait = self.shared.durability == Durability::Commit;
        readers_wait.then(|| Arc::clone(&self.shared.journal.reads))
    }

    fn memory(&self) -> &Mapped {
        &self.shared.journal.memory
    }

    /// Notes that the medium has `bytes` bytes now.
    pub(super) fn note_length(&self, bytes: u64) {
        self.len.fetch_max(bytes, Ordering::AcqRel);
    }

    /// Asks the thread to drain, if the ring fills up.
    #[inline]
    fn wake(&self) {
        if self.shared.journal.wants_drain()
            && let Some(thread) = &self.thread
        {
            thread.thread().unpark();
        }
    }
}

impl SharedJournal {
    fn run(&self) {
        let interval = interval_of(self.durability).unwrap_or(PAUSE);
        let has_syncs = matches!(self.durability, Durability::Interval(_));
        let mut last = Instant::now();
        let mut drained_at = last;
        while !self.is_ending.load(Ordering::Acquire) {
            let is_due = last.elapsed() >= interval;
            if is_due {
                last = Instant::now();
                self.end_if_removed();
            }
            let drained = self.drain().unwrap_or(0);
            let filling = drained_at.elapsed();
            drained_at += filling;
            if self.work(is_due && has_syncs).unwrap_or(false) {
                continue;
            }
            // A writer that finds a quarter of the ring full wakes this thread, which takes longer
            // than many writes do. So it comes back by itself before that, if lines keep coming.
            let eighth = (self.journal.ring.slots() / 8) as f64;
            let pause =
                Duration::try_from_secs_f64(filling.as_secs_f64() * eighth / drained as f64);
            let rest = interval.saturating_sub(last.elapsed());
            std::thread::park_timeout(pause.map_or(rest, |pause| pause.min(rest)));
        }
    }

    /// If another program has removed or replaced the journal, makes the pool file whole, as a
    /// close does, and ends writing: a kill would lose what only the journal had.
    fn end_if_removed(&self) {
        let journal = &self.journal;
        if journal.check().is_ok() && journal.disk.is_removed() {
            // What has entered is drained and written. A later fence waits until writing has ended.
            // So no page holds a store that its thread made behind such a fence.
            journal.ring.close();
            let _ = journal.finish(); // An error ends writing too (I8).
        }
    }

    /// Drains the ring. Returns the number of lines.
    fn drain(&self) -> Result<u64, MediumError> {
        let mut writer = self.journal.writer.lock();
        let before = writer.end.position;
        self.journal.drain(&mut writer)?;
        Ok(writer.end.position - before)
    }

    /// Syncs if that is due, and takes a step of a checkpoint. Returns `true` if there may be more
    /// to do.
    fn work(&self, is_due: bool) -> Result<bool, MediumError> {
        let journal = &self.journal;
        let mut syncer = journal.syncer.lock();
        if is_due {
            let began = now();
            journal.sync(&mut syncer)?;
            self.safe_until.store(began, Ordering::Release);
        }
        let has_more = journal.wants_checkpoint(&syncer);
        if has_more {
            journal.checkpoint_step(&mut syncer)?;
        }
        // Threads that wait for a sync come first.
        MutexGuard::unlock_fair(syncer);
        Ok(has_more)
    }

    /// Waits until what this thread has fenced is as durable as promised.
    #[inline]
    fn settle(&self) -> Result<(), MediumError> {
        self.journal.check()?;
        match self.durability {
            Durability::Process => Ok(()),
            Durability::Commit => self.journal.sync_to(self.journal.ring.head()),
            Durability::Interval(_) => {
                let began = now();
                let unsafe_for = began.saturating_sub(self.safe_until.load(Ordering::Acquire));
                if unsafe_for <= self.late { Ok(()) } else { self.settle_late(began) }
            }
        }
    }

    #[cold]
    fn settle_late(&self, began: u64) -> Result<(), MediumError> {
        self.journal.sync_to(self.journal.ring.head())?;
        self.safe_until.fetch_max(began, Ordering::AcqRel);
        Ok(())
    }
}

impl Drop for Journaled {
    /// Ends the thread, after a last sync under an interval: no thread does it later. Else what is
    /// in the ring stays there for the next open, as after a kill. If nothing was fenced, as by an
    /// open that has found damage, no journal is left; nor is one of a file that this process
    /// created and did not keep. In a child of the process that opened the file, leaves everything
    /// as it is.
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.locked.opener().is_parent_by_id() {
            let _ = ManuallyDrop::new(thread);
            self.growing.abandon();
            return;
        }
        self.shared.is_ending.store(true, Ordering::Release);
        if let Some(thread) = thread {
            thread.thread().unpark();
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "the thread does not panic");
        }
        let journal = &self.shared.journal;
        if self.growing.end() {
            journal.disk.cut(*self.len.get_mut());
        }
        if self.locked.remove_unfinished() {
            return journal.disk.remove(); // A kill before this leaves no file that needs it.
        }
        if matches!(self.shared.durability, Durability::Interval(_)) {
            let _ = self.sync_all(); // A drop reports no error.
        }
        if journal.ring.head() == 0 && journal.finish().is_ok() {
            journal.disk.remove();
        }
    }
}

/// Returns the interval of the syncs, if there are any.
fn interval_of(durability: Durability) -> Option<Duration> {
    match durability {
        Durability::Commit | Durability::Process => None,
        Durability::Interval(interval) => Some(interval.max(INTERVAL_MIN)),
    }
}

/// Returns the age of the last sync from which a write waits, in milliseconds.
fn late_after(durability: Durability) -> u64 {
    let late = interval_of(durability).map(|interval| interval.saturating_mul(LATE_INTERVALS));
    late.and_then(|late| u64::try_from(late.as_millis()).ok()).unwrap_or(u64::MAX)
}

/// Returns the time of a clock that costs little and counts some milliseconds at once.
#[inline]
fn now() -> u64 {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    let [seconds, nanoseconds] =
        [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1000 + nanoseconds / 1_000_000
}

/// Returns the mark of the pool in `file`, or `None` if it has none.
fn read_mark(file: &File) -> Result<Option<Mark>, JournalError> {
    let mut page = vec![0; PAGE_BYTES as usize];
    match file.read_exact_at(&mut page, 0) {
        Ok(()) => Ok(Mark::read(&page)?),
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(JournalError::system("read the pool", e)),
    }
}

/// Returns the mark of the pool in `locked`. If it needs a journal that is not there, and has the
/// first mark of that, says first that the file is whole. An open of a pool returns after a
/// checkpoint, with a mark of its own: so nothing was acknowledged that only the journal had.
fn usable_mark(locked: &LockedFile) -> Result<Option<Mark>, JournalError> {
    let mark = read_mark(locked.file())?;
    match mark {
        Some(first) if first.is_first() && Folder::is_absent(locked.path(), locked.file()) => {
            let nonce = draw(); // The file may be a copy, whose original needs the journal.
            let whole = Mark { sequence: first.sequence + 1, nonce, needs: false, ..first };
            whole.settle(locked.file())?;
            Ok(Some(whole))
        }
        _ => Ok(mark),
    }
}

/// Checks that private memory may hold the file. Its holes take none until an open fills those of
/// the pool.
fn check_memory(locked: &LockedFile, options: &JournalOptions) -> Result<(), JournalError> {
    let metadata = locked.file().metadata();
    let metadata = metadata.map_err(|e| JournalError::system("read the size of the file", e))?;
    let wanted = metadata.len().min(metadata.blocks().saturating_mul(512));
    let limit = options.memory_limit();
    if wanted > limit { Err(MediumError::Memory { wanted, limit }.into()) } else { Ok(()) }
}

/// Returns the length of the file in whole pages, in bytes. This process may write all of them.
fn length(locked: &LockedFile) -> Result<u64, JournalError> {
    let metadata = locked.file().metadata();
    let metadata = metadata.map_err(|e| JournalError::system("read the size of the file", e))?;
    let action = "write to a file of this length, which `ulimit -f` may limit";
    check_length(metadata.len()).map_err(|e| JournalError::system(action, e.into()))?;
    Ok(metadata.len() / PAGE_BYTES * PAGE_BYTES)
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: loads and stores go to `memory`, which keeps the contract, and so do base and length.
unsafe impl Medium for Journaled {
    #[inline(always)]
    fn base(&self) -> NonNull<u8> {
        self.memory().base()
    }
    #[inline(always)]
    fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }
    #[cold]
    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        self.grow_between(bytes, bytes).map(|_| ())
    }
    #[cold]
    fn grow_between(&self, least: u64, ample: u64) -> Result<u64, MediumError> {
        self.extend_between(least.next_multiple_of(PAGE_BYTES), ample)
    }
    const PREPARES_GROWTH: bool = true;
    #[cold]
    fn prepare_growth(&self, bytes: u64) {
        self.prepare(bytes);
    }
    #[cold]
    fn sync_length(&self) -> Result<(), MediumError> {
        self.shared.sync_length(self.len())
    }
    #[cold]
    fn fit_to(&mut self, bytes: u64) -> Result<(), MediumError> {
        let [_, limit] = self.limits;
        if bytes > limit {
            return Err(MediumError::Memory { wanted: bytes, limit });
        }
        fill_holes(self.locked.file(), bytes)?;
        // What is past the pool may have holes too. Growth allocates it again.
        self.shared.limit_length(bytes);
        let len = self.len.get_mut();
        *len = bytes.min(*len);
        Ok(())
    }
    #[inline(always)]
    fn is_inherited(&self) -> bool {
        self.locked.opener().is_parent()
    }
    #[cold]
    fn check_path(&self) -> Result<(), MediumError> {
        self.locked.check_path()
    }
    fn domain(&self) -> Domain {
        Domain::Disk
    }
    #[cold]
    fn sync(&self) -> Result<(), MediumError> {
        self.sync_all()
    }
    /// Also brings the superblocks into the pool file: a reader without journals then refuses it.
    #[cold]
    fn sync_front(&self, _bytes: u64) -> Result<(), MediumError> {
        let journal = &self.shared.journal;
        journal.checkpoint(&mut journal.syncer.lock())
    }
    #[cold]
    fn finish(&self) -> Result<(), MediumError> {
        self.shared.journal.disk.check_length(self.len())?;
        self.shared.journal.finish()?;
        self.shared.journal.disk.remove();
        self.keep_file();
        Ok(())
    }
    #[inline(never)]
    fn settle_writes(&self) -> Result<(), MediumError> {
        self.shared.settle()
    }
    fn settle_reads(&self) {
        if self.shared.durability == Durability::Commit {
            // Reads go on when writing has ended.
            let _ = self.sync_all();
        }
    }
    #[inline]
    fn note_read(&self, words: &[PmWord]) {
        if self.shared.durability == Durability::Commit {
            self.shared.journal.note_read(words);
        }
    }
    fn flush_for_readers(&self, words: &[PmWord]) {
        if self.shared.durability == Durability::Commit {
            self.flush(words);
        }
    }
    #[inline]
    fn settle_noted(&self) {
        self.shared.journal.settle_noted();
    }
    fn boot_id(&self) -> [u64; 2] {
        self.shared.journal.ring.file().boot_id()
    }
    fn file_id(&self) -> [u64; 2] {
        self.locked.file_id()
    }
    fn draw(&self) -> u64 {
        self.memory().draw()
    }
    fn placement(&self) -> Option<Placement> {
        self.memory().placement()
    }
    #[inline(always)]
    fn load(&self, word: &PmWord) -> u64 {
        self.memory().load(word)
    }
    #[inline(always)]
    fn store(&self, word: &PmWord, value: u64) {
        self.memory().store(word, value);
    }
    #[inline(always)]
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        self.memory().cas_transient(word, old, new)
    }
    #[inline(never)]
    fn fill(&self, target: &[PmWord], source: &[u8]) {
        self.memory().fill(target, source);
        self.flush(&target[..source.len().div_ceil(8)]);
    }
    #[inline(never)]
    fn flush(&self, words: &[PmWord]) {
        noted::note(words.as_ptr() as usize, core::mem::size_of_val(words));
    }
    #[inline(never)]
    fn fence(&self) -> Fenced {
        self.shared.journal.fence();
        self.wake();
        Fenced::after_fence()
    }
    #[inline(always)]
    fn prefetch(&self, words: &[PmWord]) {
        self.memory().prefetch(words);
    }
}
