//! The medium on real files: kills, closes, growth, refusals.

use crate::journal::{Durability, JournalError, JournalOptions, Journaled};
use crate::medium::{FileOptions, LockedFile, Mapped, Medium};
use crate::pool::{Opened, POOL_BYTES_MIN, Pool, PoolError};
use crate::word::PmPtr;
use std::path::Path;
use std::time::Duration;

fn options(durability: Durability) -> JournalOptions {
    // The folder of a test may be in memory.
    JournalOptions {
        durability,
        journal_bytes: 1 << 20,
        trust_file_system: true,
        ..Default::default()
    }
}

fn create(path: &Path) {
    let medium = Mapped::create(path, POOL_BYTES_MIN, &FileOptions::default()).unwrap();
    let pool = Pool::create(medium).unwrap();
    let block = pool.reserve(64).unwrap();
    pool.medium().fill(pool.words(block, 8).unwrap(), &[0; 64]);
    pool.create_root("answer", 1, block).unwrap();
    pool.close().unwrap();
}

fn block_of<M: Medium>(pool: &Pool<M>) -> PmPtr {
    pool.roots().unwrap()[0].block
}

fn put(pool: &Pool<Journaled>, value: u64) {
    let words = pool.words(block_of(pool), 8).unwrap();
    pool.medium().store(&words[0], value);
    let _ = pool.medium().persist(&words[..1]);
    pool.medium().settle_writes().unwrap();
}

fn answer<M: Medium>(pool: &Pool<M>) -> u64 {
    pool.medium().load(&pool.words(block_of(pool), 8).unwrap()[0])
}

fn open(path: &Path, durability: Durability) -> (Pool<Journaled>, Opened) {
    Pool::open(Journaled::open(path, &options(durability)).unwrap()).unwrap()
}

#[test]
fn a_pool_with_a_journal_survives_drops_and_a_close_makes_it_plain() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pool");
    let journal = folder.path().join("a.pool.journal");
    create(&path);
    let interval = Durability::Interval(Duration::from_millis(5));
    for durability in [Durability::Commit, interval, Durability::Process] {
        for value in 1..5 {
            let (pool, opened) = open(&path, durability);
            assert_eq!(opened == Opened::Clean, value == 1);
            if value > 1 {
                assert_eq!(answer(&pool), value - 1);
                pool.mark(block_of(&pool), 64).unwrap();
                pool.finish_recovery();
            }
            put(&pool, value);
            drop(pool); // As a kill: no close.
            assert!(journal.exists());
            let plain = Mapped::open(&path, &FileOptions::default()).unwrap();
            assert!(matches!(Pool::open(plain), Err(PoolError::NeedsJournal)));
        }
        let (pool, _) = open(&path, durability);
        pool.mark(block_of(&pool), 64).unwrap();
        pool.finish_recovery();
        pool.close().unwrap();
        assert!(!journal.exists());
        let plain = Mapped::open(&path, &FileOptions::default()).unwrap();
        let (pool, opened) = Pool::open(plain).unwrap();
        assert_eq!((opened, answer(&pool)), (Opened::Clean, 4));
        pool.close().unwrap();
    }
}

#[test]
fn a_pool_that_needs_its_journal_is_made_whole_without_an_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pool");
    create(&path);
    let (pool, _) = open(&path, Durability::Commit);
    put(&pool, 7);
    pool.grow(1 << 20).unwrap();
    drop(pool);
    let locked = || LockedFile::open_within(&path, Duration::ZERO);
    Journaled::make_whole(&locked().unwrap()).unwrap();
    assert!(!folder.path().join("a.pool.journal").exists());
    let plain = Mapped::open(&path, &FileOptions::default()).unwrap();
    let (pool, opened) = Pool::open(plain).unwrap();
    assert_eq!((opened, answer(&pool), pool.medium().len()), (Opened::Crashed, 7, 1 << 20));
    locked().unwrap_err();
}

#[test]
fn a_journal_that_is_missing_or_in_memory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pool");
    create(&path);
    let (pool, _) = open(&path, Durability::Commit);
    put(&pool, 7);
    drop(pool);
    let journal = folder.path().join("a.pool.journal");
    std::fs::remove_file(journal.join("0003")).unwrap();
    let opened = Journaled::open(&path, &options(Durability::Commit));
    assert!(matches!(opened, Err(JournalError::Missing { missing }) if missing.ends_with("0003")));

    if Path::new("/dev/shm").is_dir() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = folder.path().join("a.pool");
        create(&path);
        let opened = Journaled::open(&path, &JournalOptions::default());
        assert!(matches!(opened, Err(JournalError::NotOnDisk { kind: "tmpfs" })));
    }
}
