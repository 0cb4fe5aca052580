//! The growth of a file with a journal: ahead of the pool, with syncs that fail, into holes.

use super::file::{create, options};
use crate::journal::{DiskFiles, DiskTrace, Durability, Journaled};
use crate::layout::CHUNK_BYTES;
use crate::medium::{LockedFile, Medium, MediumError};
use crate::pool::{Pool, PoolError};
use crate::word::PmPtr;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The call of a growth that fails.
#[derive(Debug, PartialEq)]
enum Failing {
    Allocation,
    Sync,
}

/// A device that refuses a call of each growth.
#[derive(Debug)]
struct Refusing {
    failing: Failing,
    is_growing: AtomicBool,
}

fn refused() -> io::Result<()> {
    Err(io::Error::other("the device refuses"))
}

impl DiskTrace for Refusing {
    fn begin(&self, _: DiskFiles) {}
    fn write(&self, _: Option<u64>, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
    fn written(&self, _: Option<u64>) {}
    fn sync(&self, file: Option<u64>) -> io::Result<()> {
        if file.is_none() && self.is_growing.swap(false, Ordering::Relaxed) {
            return refused();
        }
        Ok(())
    }
    fn synced(&self, _: Option<u64>) {}
    fn grow(&self, _: u64) -> io::Result<()> {
        if self.failing == Failing::Allocation {
            return refused();
        }
        self.is_growing.store(true, Ordering::Relaxed);
        Ok(())
    }
    fn grown(&self, _: u64) {}
}

fn pool(path: &Path) -> Pool<Journaled> {
    let options = options(Durability::Interval(Duration::from_secs(3600)));
    Pool::open(Journaled::open(path, &options).unwrap()).unwrap().0
}

fn refusing(path: &Path, failing: Failing) -> Pool<Journaled> {
    let trace = Arc::new(Refusing { failing, is_growing: AtomicBool::new(false) });
    let locked = LockedFile::open_within(path, Duration::ZERO).unwrap();
    let medium = Journaled::on_traced(locked, &options(Durability::Commit), Some(trace)).unwrap();
    Pool::open(medium).unwrap().0
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pool");
    create(&path);
    (folder, path)
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

/// The system reports lost pages to one sync alone. They may be pages of a checkpoint, which a
/// later sync would then call durable.
#[test]
fn a_growth_whose_sync_fails_ends_all_writing() {
    let (_folder, path) = place();
    let pool = refusing(&path, Failing::Sync);
    pool.medium().settle_writes().unwrap();
    assert!(matches!(pool.grow(1 << 20), Err(PoolError::Medium(MediumError::System { .. }))));
    assert!(matches!(pool.medium().settle_writes(), Err(MediumError::Poisoned)));
    assert!(matches!(pool.medium().sync(), Err(MediumError::Poisoned)));
    let refused = pool.reserve(2 << 20);
    assert!(matches!(refused, Err(PoolError::Medium(MediumError::Poisoned))), "not full");
    assert!(pool.close().is_err());
}

#[test]
fn a_growth_without_space_ends_nothing() {
    let (_folder, path) = place();
    let pool = refusing(&path, Failing::Allocation);
    let before = length(&path);
    assert!(pool.grow(1 << 20).is_err());
    assert_eq!(length(&path), before);
    pool.medium().settle_writes().unwrap();
    pool.close().unwrap();
}

#[test]
fn the_file_is_extended_ahead_of_the_pool_and_cut_at_the_end() {
    let (_folder, path) = place();
    let pool = pool(&path);
    let start = pool.usage().pool_bytes;
    pool.set_growth_step(2 << 20);
    // Each step is at least 1 MiB; the next is prepared when half of the free space is left.
    while pool.usage().pool_bytes == start {
        pool.reserve(CHUNK_BYTES).unwrap();
    }
    while pool.usage().free_bytes > pool.usage().pool_bytes / 4 {
        pool.reserve(CHUNK_BYTES).unwrap();
    }
    pool.reserve(CHUNK_BYTES).unwrap();
    pool.medium().growing.wait_until_ready();
    let bytes = pool.usage().pool_bytes;
    assert!(length(&path) > bytes, "the file is ahead");
    assert_eq!(pool.medium().len(), bytes);
    while pool.usage().pool_bytes == bytes {
        let block = pool.reserve(CHUNK_BYTES).unwrap();
        let words = pool.words(block, CHUNK_BYTES as usize / 8).unwrap();
        assert!(words.iter().all(|word| pool.medium().load(word) == 0), "a new chunk is zero");
    }
    let bytes = pool.usage().pool_bytes;
    pool.medium().growing.wait_until_ready();
    drop(pool);
    assert_eq!(length(&path), bytes, "the drop cuts off what no pool uses");
    let reopened = self::pool(&path);
    assert_eq!(reopened.usage().pool_bytes, bytes);
}

/// The new length would hide that pages are gone.
#[test]
fn a_file_that_another_program_has_cut_is_not_extended() {
    let (_folder, path) = place();
    let pool = pool(&path);
    pool.grow(1 << 20).unwrap();
    File::options().write(true).open(&path).unwrap().set_len(512 << 10).unwrap();
    let refused = pool.grow(2 << 20);
    assert!(matches!(refused, Err(PoolError::Medium(MediumError::System { .. }))), "{refused:?}");
    assert_eq!(length(&path), 512 << 10);
    // Nor does a checkpoint write the last page.
    let last = pool.medium().len() - 64;
    let words = pool.words(PmPtr::new(last), 8).unwrap();
    pool.medium().store(&words[0], 7);
    let _ = pool.medium().persist(words);
    assert!(pool.close().is_err());
    assert_eq!(length(&path), 512 << 10);
}

/// Where a write met a hole on a full device, it would end all writing.
#[test]
fn the_holes_of_a_copy_get_their_space_at_the_open() {
    let (folder, path) = place();
    let pool = pool(&path);
    pool.grow(4 << 20).unwrap();
    pool.close().unwrap();
    let copy = folder.path().join("copy.pool");
    let bytes = std::fs::read(&path).unwrap();
    let file = File::create(&copy).unwrap();
    file.set_len(bytes.len() as u64 + (1 << 30)).unwrap();
    for (chunk, at) in bytes.chunks(4096).zip((0..).step_by(4096)) {
        if chunk.iter().any(|&byte| byte != 0) {
            std::os::unix::fs::FileExt::write_all_at(&file, chunk, at).unwrap();
        }
    }
    let allocated = || file.metadata().unwrap().blocks() * 512;
    if allocated() >= 4 << 20 {
        return eprintln!("skipped: the file system makes no holes");
    }
    let pool = self::pool(&copy);
    assert!(allocated() >= 4 << 20, "no later write needs space");
    let (before, len) = (allocated(), pool.medium().len());
    assert_eq!(len, 4 << 20, "the medium is as long as its pool");
    pool.grow(len + (1 << 20)).unwrap();
    assert!(allocated() >= before + (1 << 20), "the hole behind the pool gets its space too");
    pool.close().unwrap();
}

#[test]
fn any_interval_is_possible() {
    let (_folder, path) = place();
    for interval in [Duration::MAX, Duration::ZERO] {
        let medium = Journaled::open(&path, &options(Durability::Interval(interval))).unwrap();
        let (pool, _) = Pool::open(medium).unwrap();
        pool.medium().settle_writes().unwrap();
        pool.close().unwrap();
    }
}
