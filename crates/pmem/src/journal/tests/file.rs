//! The medium on real files: kills, closes, growth, refusals.

use super::{SLOTS_AT, words_of};
use crate::journal::folder::Folder;
use crate::journal::ring::Ring;
use crate::journal::{Durability, JournalError, JournalOptions, Journaled};
use crate::medium::{FileOptions, LockedFile, Mapped, Medium, MediumError, words_at};
use crate::pool::{Opened, POOL_BYTES_MIN, Pool, PoolError};
use crate::word::PmPtr;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

pub(super) fn options(durability: Durability) -> JournalOptions {
    // The folder of a test may be in memory.
    JournalOptions {
        durability,
        journal_bytes: 1 << 20,
        trust_file_system: true,
        ..Default::default()
    }
}

pub(super) fn create(path: &Path) {
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

pub(super) fn put(pool: &Pool<Journaled>, value: u64) {
    let words = pool.words(block_of(pool), 8).unwrap();
    pool.medium().store(&words[0], value);
    let _ = pool.medium().persist(&words[..1]);
    pool.medium().settle_writes().unwrap();
}

pub(super) fn answer<M: Medium>(pool: &Pool<M>) -> u64 {
    pool.medium().load(&pool.words(block_of(pool), 8).unwrap()[0])
}

pub(super) fn open(path: &Path, durability: Durability) -> (Pool<Journaled>, Opened) {
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
    Journaled::make_whole(&locked().unwrap(), &JournalOptions::default()).unwrap();
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
    std::fs::remove_file(journal.join("0003.bristlecone")).unwrap();
    let opened = Journaled::open(&path, &options(Durability::Commit));
    assert!(
        matches!(opened, Err(JournalError::Missing { missing }) if missing.ends_with("0003.bristlecone"))
    );

    if Path::new("/dev/shm").is_dir() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = folder.path().join("a.pool");
        create(&path);
        let opened = Journaled::open(&path, &JournalOptions::default());
        assert!(matches!(opened, Err(JournalError::NotOnDisk { kind: "tmpfs" })));
    }
}

/// A container may have the file of a disk in a folder that is in memory. The journal once lay
/// there, and a commit did not survive a power cut.
#[test]
fn a_journal_beside_a_file_that_is_mounted_by_itself_is_refused_in_memory() {
    let file = tempfile::tempfile().unwrap();
    let folder = tempfile::tempdir().unwrap();
    if Folder::check(&folder.path().join("a.pool"), &file).is_err() {
        return eprintln!("skipped: temporary files are not on a disk");
    }
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    let checked = Folder::check(&folder.path().join("a.pool"), &file);
    assert!(matches!(checked, Err(JournalError::NotOnDisk { kind: "tmpfs" })), "{checked:?}");
}

/// A folder of an earlier copy has nothing of what the pool needs, and looks whole.
#[test]
fn a_journal_of_another_time_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pool");
    create(&path);
    let journal = folder.path().join("a.pool.journal");
    let other = folder.path().join("other");
    for needs_recovery in [false, true] {
        let (pool, _) = open(&path, Durability::Commit);
        if needs_recovery {
            pool.mark(block_of(&pool), 64).unwrap();
            pool.finish_recovery();
        }
        put(&pool, 7);
        drop(pool);
        if !needs_recovery {
            std::fs::create_dir(&other).unwrap();
            for entry in std::fs::read_dir(&journal).unwrap() {
                let entry = entry.unwrap();
                std::fs::copy(entry.path(), other.join(entry.file_name())).unwrap();
            }
        }
    }
    let swap = |from: &Path, to: &Path| {
        std::fs::rename(&journal, to).unwrap();
        std::fs::rename(from, &journal).unwrap();
    };
    let own = folder.path().join("own");
    swap(&other, &own);
    for durability in [Durability::Commit, Durability::Process] {
        let opened = Journaled::open(&path, &options(durability));
        assert!(matches!(opened, Err(JournalError::Foreign { .. })), "{opened:?}");
    }
    let made = Journaled::make_whole(
        &LockedFile::open_within(&path, Duration::ZERO).unwrap(),
        &JournalOptions::default(),
    );
    assert!(matches!(made, Err(JournalError::Foreign { .. })), "{made:?}");
    swap(&own, &other);
    assert_eq!(answer(&open(&path, Durability::Commit).0), 7);
}

/// A pool file of an earlier copy has the nonce of the open before: its own folder, and what only
/// that had, is gone.
#[test]
fn a_pool_of_one_open_earlier_than_its_journal_is_refused() {
    // As many puts as fill the journal twice: then no segment has its first frame any more.
    for puts in [1, 40_000] {
        let folder = tempfile::tempdir().unwrap();
        let [path, copy] = ["a.pool", "copy"].map(|name| folder.path().join(name));
        create(&path);
        let (pool, _) = open(&path, Durability::Commit);
        put(&pool, 7);
        drop(pool);
        std::fs::copy(&path, &copy).unwrap();
        let (pool, _) = open(&path, Durability::Interval(Duration::from_secs(3600)));
        let words = pool.words(block_of(&pool), 8).unwrap();
        for value in 0..puts {
            pool.medium().store(&words[0], value);
            let _ = pool.medium().persist(&words[..1]);
        }
        pool.medium().sync().unwrap();
        drop(pool);
        std::fs::copy(&copy, &path).unwrap();
        let opened = Journaled::open(&path, &options(Durability::Commit));
        assert!(matches!(opened, Err(JournalError::Foreign { .. })), "after {puts} puts");
    }
}

#[test]
fn a_kill_while_a_ring_is_stamped_leaves_one_that_lies_beside_its_pool() {
    let folder = tempfile::tempdir().unwrap();
    let ring = Ring::create(&folder.path().join("ring"), 64).unwrap();
    let boot = Some([1, 2]);
    ring.stamp(11, boot, 0).unwrap();
    assert!(ring.is_beside(11) && ring.is_of(11));
    ring.stamp(12, boot, 11).unwrap();
    assert!(ring.is_beside(11) && ring.is_beside(12));
    assert!(!ring.is_of(11) && !ring.is_beside(13));
}

/// A process that cannot read the id of the boot drew one of its own. So a kill lost what only the
/// ring had.
#[test]
fn a_ring_counts_where_the_system_does_not_tell_the_boot() {
    let folder = tempfile::tempdir().unwrap();
    let ring = Ring::create(&folder.path().join("ring"), 64).unwrap();
    for stamped in [None, Some([1, 2])] {
        ring.stamp(11, stamped, 0).unwrap();
        assert!(ring.is_of_boot(None) && ring.is_of_boot(Some([1, 2])));
        assert_eq!(ring.is_of_boot(Some([1, 3])), stamped.is_none());
    }
    // After a power cut the head may be ahead of the slots, and a lost one is zeros.
    assert_eq!(ring.checked(0), None);
    ring.put(0, 3, &[7; 8]);
    assert_eq!((ring.checked(0), ring.checked(64)), (Some((3, [7; 8])), None));
}

/// Files of others with the names of segments were once removed, and a folder blocked the open.
#[test]
fn a_folder_keeps_the_files_that_are_of_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pool");
    create(&path);
    let journal = folder.path().join("a.pool.journal");
    std::fs::create_dir(&journal).unwrap();
    std::fs::write(journal.join("letter.txt"), "dear reader").unwrap();
    std::fs::write(journal.join("2026.bristlecone"), "dear diary").unwrap();
    std::fs::create_dir(journal.join("2025.bristlecone")).unwrap();
    // of an interrupted close
    std::fs::write(journal.join("0007.bristlecone"), [0; 512]).unwrap();
    let (pool, _) = open(&path, Durability::Commit);
    put(&pool, 7);
    pool.close().unwrap();
    let left: Vec<_> = std::fs::read_dir(&journal).unwrap().collect();
    assert_eq!(left.len(), 3, "{left:?}");
    assert_eq!(std::fs::read_to_string(journal.join("letter.txt")).unwrap(), "dear reader");
    assert_eq!(std::fs::read_to_string(journal.join("2026.bristlecone")).unwrap(), "dear diary");
}

/// A pool is moved away while it is open, and another takes its place.
#[test]
fn a_journal_that_is_open_elsewhere_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pool");
    create(&path);
    let (pool, _) = open(&path, Durability::Commit);
    let moved = folder.path().join("b.pool");
    std::fs::rename(&path, &moved).unwrap();
    create(&path);
    let opened = Journaled::open(&path, &options(Durability::Commit));
    assert!(matches!(opened, Err(JournalError::Medium(MediumError::Locked))), "{opened:?}");
    put(&pool, 7);
    drop(pool);
    let journal = folder.path().join("a.pool.journal");
    std::fs::rename(&journal, folder.path().join("b.pool.journal")).unwrap();
    assert_eq!(answer(&open(&moved, Durability::Commit).0), 7);
}

/// The ring was once made last. So a pool that took the path meanwhile removed the new segments, or
/// the failure of one open the journal of the other.
#[test]
fn a_journal_that_is_being_made_is_not_removed() {
    let folder = tempfile::tempdir().unwrap();
    let [path, moved, next] = ["a.pool", "b.pool", "c.pool"].map(|name| folder.path().join(name));
    for path in [&path, &next] {
        create(path);
    }
    let journal = folder.path().join("a.pool.journal");
    let long = JournalOptions { journal_bytes: 64 << 20, ..options(Durability::Commit) };
    let opened = std::thread::scope(|scope| {
        let opened = scope.spawn(|| Journaled::open(&path, &long));
        while !journal.join("0000.bristlecone").exists() && !opened.is_finished() {
            std::thread::yield_now();
        }
        std::fs::rename(&path, &moved).unwrap();
        std::fs::rename(&next, &path).unwrap();
        let other = Journaled::open(&path, &options(Durability::Commit));
        let is_locked = matches!(other, Err(JournalError::Medium(MediumError::Locked)));
        assert!(is_locked, "{other:?}");
        opened.join().unwrap()
    });
    let (pool, _) = Pool::open(opened.unwrap()).unwrap();
    put(&pool, 7);
    drop(pool);
    std::fs::rename(&journal, folder.path().join("b.pool.journal")).unwrap();
    assert_eq!(answer(&open(&moved, Durability::Commit).0), 7);
}

/// A pool that was killed is moved away without its folder, and another takes its place.
#[test]
fn a_journal_that_a_moved_pool_needs_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let [path, moved, left, other] = ["a.pool", "b.pool", "a.pool.journal.left", "b.pool.journal"]
        .map(|name| folder.path().join(name));
    for (value, durability) in [(7, Durability::Process), (8, Durability::Commit)] {
        create(&path);
        let (pool, _) = open(&path, durability);
        put(&pool, value);
        drop(pool);
        std::fs::rename(&path, &moved).unwrap();
        create(&path);
        open(&path, durability).0.close().unwrap();
        std::fs::remove_file(&path).unwrap();
        let opened = Journaled::open(&moved, &options(durability));
        assert!(matches!(opened, Err(JournalError::Missing { .. })), "{opened:?}");
        std::fs::rename(&left, &other).unwrap();
        assert_eq!(answer(&open(&moved, durability).0), value);
        std::fs::remove_dir_all(&other).unwrap();
    }
    // One that no record was written to is removed.
    assert!(!left.exists());
}

/// Each pool was killed, moved away without its folder, and replaced by the next. The folder that
/// was set aside first was once removed when the next one was: acknowledged writes were lost.
#[test]
fn each_journal_that_a_moved_pool_needs_stays() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let path = at("a.pool");
    let lefts = ["a.pool.journal.left", "a.pool.journal.left.1", "a.pool.journal.left.2"];
    for value in [7, 8, 9] {
        create(&path);
        let (pool, _) = open(&path, Durability::Commit);
        put(&pool, value);
        drop(pool);
        std::fs::rename(&path, at(&format!("{value}.pool"))).unwrap();
    }
    create(&path);
    open(&path, Durability::Commit).0.close().unwrap();
    for (value, left) in (7..).zip(lefts) {
        let moved = at(&format!("{value}.pool"));
        std::fs::rename(at(left), at(&format!("{value}.pool.journal"))).unwrap();
        assert_eq!(answer(&open(&moved, Durability::Commit).0), value);
    }
}

/// A copy that was made whole once had the nonce of the original. So an open of the copy, at the
/// path of the original, removed the journal that the original needs.
#[test]
fn a_journal_that_the_original_of_a_whole_copy_needs_is_set_aside() {
    let folder = tempfile::tempdir().unwrap();
    let [path, moved, copy] = ["a", "b", "c"].map(|name| {
        [".pool", ".pool.journal", ".pool.journal.left"]
            .map(|end| folder.path().join(format!("{name}{end}")))
    });
    create(&path[0]);
    let (pool, _) = open(&path[0], Durability::Commit);
    put(&pool, 7);
    std::fs::copy(&path[0], &copy[0]).unwrap();
    std::fs::create_dir(&copy[1]).unwrap();
    for entry in std::fs::read_dir(&path[1]).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy[1].join(entry.file_name())).unwrap();
    }
    put(&pool, 8);
    drop(pool);
    Journaled::make_whole(
        &LockedFile::open_within(&copy[0], Duration::ZERO).unwrap(),
        &JournalOptions::default(),
    )
    .unwrap();
    std::fs::rename(&path[0], &moved[0]).unwrap();
    std::fs::rename(&copy[0], &path[0]).unwrap();
    drop(Journaled::open(&path[0], &options(Durability::Commit)).unwrap());
    std::fs::rename(&path[2], &moved[1]).unwrap();
    assert_eq!(answer(&open(&moved[0], Durability::Commit).0), 8);
}

/// A file, or a folder with files of others, where a journal is to be set aside stays. It once
/// blocked every open.
#[test]
fn a_journal_is_set_aside_beside_files_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let [path, file, letter, left] = [
        "a.pool",
        "a.pool.journal.left",
        "a.pool.journal.left.1/letter.txt",
        "a.pool.journal.left.2",
    ]
    .map(|name| folder.path().join(name));
    std::fs::write(&file, "dear reader").unwrap();
    std::fs::create_dir(letter.parent().unwrap()).unwrap();
    std::fs::write(&letter, "dear reader").unwrap();
    create(&path);
    put(&open(&path, Durability::Commit).0, 7);
    std::fs::remove_file(&path).unwrap();
    create(&path);
    open(&path, Durability::Commit).0.close().unwrap();
    assert!(left.join("ring").exists());
    for kept in [file, letter] {
        assert_eq!(std::fs::read_to_string(kept).unwrap(), "dear reader");
    }
}

/// After a power cut the segments alone have what a pool needs.
#[test]
fn segments_without_their_ring_are_set_aside_unless_their_pool_is_whole() {
    for is_cut in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let [path, journal, left] = ["a.pool", "a.pool.journal", "a.pool.journal.left"]
            .map(|name| folder.path().join(name));
        create(&path);
        let (pool, _) = open(&path, Durability::Commit);
        put(&pool, 7);
        let first = std::fs::read(journal.join("0000.bristlecone")).unwrap();
        let lose_ring = || {
            std::fs::remove_file(journal.join("ring")).ok();
            if is_cut {
                File::create(journal.join("ring")).unwrap();
            }
        };
        pool.close().unwrap();
        // A close that was interrupted: the mark says that the pool is whole.
        std::fs::create_dir(&journal).unwrap();
        std::fs::write(journal.join("0000.bristlecone"), &first).unwrap();
        lose_ring();
        put(&open(&path, Durability::Commit).0, 8);
        assert!(!left.exists());
        lose_ring();
        std::fs::remove_file(&path).unwrap();
        create(&path);
        open(&path, Durability::Commit).0.close().unwrap();
        assert!(left.join("0000.bristlecone").exists(), "ring cut: {is_cut}");
    }
}

/// The journal once had the group and the umask of the process: others could read the pairs, and
/// who shares the pool could not open it after a kill.
#[test]
fn a_journal_is_as_private_as_its_pool() {
    for mode in [0o600, 0o640, 0o666] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pool");
        create(&path);
        let _ = std::os::unix::fs::chown(&path, Some(1234), Some(1234)); // Root alone may.
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let _pool = open(&path, Durability::Commit);
        let journal = folder.path().join("a.pool.journal");
        let of = |path: &Path| {
            let found = std::fs::metadata(path).unwrap();
            (found.uid(), found.gid(), found.mode() & 0o777)
        };
        let (user, group, _) = of(&path);
        assert_eq!(of(&journal), (user, group, mode | 0o100 | (mode & 0o44) >> 2));
        for entry in std::fs::read_dir(&journal).unwrap() {
            assert_eq!(of(&entry.unwrap().path()), (user, group, mode));
        }
    }
}

/// A folder that an open leaves which failed would be taken for the journal of a moved pool.
#[test]
fn an_open_without_memory_leaves_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pool");
    create(&path);
    let options = JournalOptions { reserve_bytes: 1 << 60, ..options(Durability::Commit) };
    let opened = Journaled::open(&path, &options);
    assert!(matches!(opened, Err(JournalError::Medium(MediumError::System { .. }))), "{opened:?}");
    assert!(!folder.path().join("a.pool.journal").exists());
}

/// A process that is killed between the two would leave a file that needs a journal which is gone:
/// no later creation could finish it.
#[test]
fn a_creation_that_fails_removes_its_file_before_its_journal() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pool");
        let segment = folder.path().join("a.pool.journal").join("0000.bristlecone");
        let mapped = Mapped::begin(&path, POOL_BYTES_MIN, &FileOptions::default()).unwrap();
        let locked = mapped.hand_over().unwrap();
        Pool::create(mapped).unwrap().close().unwrap();
        let medium = Journaled::on(locked, &options(Durability::Commit)).unwrap();
        let (pool, _) = Pool::open(medium).unwrap();
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                while segment.exists() {
                    std::hint::spin_loop();
                }
                path.exists()
            });
            drop(pool);
            assert!(!watcher.join().unwrap(), "a file without its journal");
        });
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// A write that finds the pool full has filled its record and fenced nothing. The medium may be
/// dropped then, and the next one be in the same place, and shorter.
#[test]
fn a_flush_without_a_fence_does_no_harm_to_the_next_medium() {
    let folder = tempfile::tempdir().unwrap();
    let [long, short] = ["long.pool", "short.pool"].map(|name| folder.path().join(name));
    create(&long);
    create(&short);
    let (pool, _) = open(&long, Durability::Commit);
    pool.grow(1 << 20).unwrap();
    let base = pool.medium().base();
    pool.medium().flush(pool.words(PmPtr::new(0), (1 << 20) / 8).unwrap());
    drop(pool);
    let medium = Journaled::open(&short, &options(Durability::Commit)).unwrap();
    if medium.base() != base {
        return eprintln!("skipped: the system has chosen another place");
    }
    let (pool, _) = Pool::open(medium).unwrap();
    put(&pool, 7);
    assert_eq!(answer(&pool), 7);
}

/// A store to a hole of the ring would end the process if the device were full.
#[test]
fn the_holes_of_a_copied_journal_get_space_at_the_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pool");
    create(&path);
    let (pool, _) = open(&path, Durability::Commit);
    put(&pool, 7);
    drop(pool);
    let files =
        ["ring", "0007.bristlecone"].map(|name| folder.path().join("a.pool.journal").join(name));
    let allocated = || files.each_ref().map(|file| std::fs::metadata(file).unwrap().blocks());
    let before = allocated();
    for file in &files {
        let file = File::options().write(true).open(file).unwrap();
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // Nothing is there: a slot that is not used yet, a frame that is not written.
        if let Err(error) = fallocate(&file, punch, 32 << 10, 8 << 10) {
            return eprintln!("skipped: the file system makes no holes: {error}");
        }
    }
    let with_holes = allocated();
    assert!(with_holes[0] < before[0] && with_holes[1] < before[1], "there are holes");
    let (pool, _) = open(&path, Durability::Commit);
    let now = allocated();
    assert!(now[0] >= before[0] && now[1] >= before[1], "no later store needs space");
    assert_eq!(answer(&pool), 7);
}

/// A ring may have its head from the disk, and its slots not: those of the open before are there if
/// the sync of a stamp failed, and the next stamp found nothing to store.
#[test]
fn a_record_of_the_open_before_does_not_count() {
    for boot in [None, Some([1, 2])] {
        let folder = tempfile::tempdir().unwrap();
        let ring = Ring::create(&folder.path().join("ring"), 64).unwrap();
        ring.stamp(11, boot, 0).unwrap();
        for at in 0..8 {
            ring.put(at, 3, &[at; 8]);
        }
        ring.end(8);
        let before = words_of(&ring);
        ring.stamp(12, boot, 11).unwrap();
        let slots = words_at(ring.file(), PmPtr::NULL, before.len()).unwrap().iter().zip(before);
        slots.skip(SLOTS_AT).for_each(|(word, value)| ring.file().store(word, value));
        ring.end(8);
        assert_eq!(ring.checked(5), None, "{boot:?}");
    }
}
