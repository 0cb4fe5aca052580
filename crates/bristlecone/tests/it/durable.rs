//! Stores with a journal: what a drop, a close, a sync and a failure leave.

use crate::image::names_a_boot;
use crate::{in_own_process, journaled, mapped, pairs, path_of_own_process, place, small};
use bristlecone::{Domain, Durability, Error, ErrorKind, Store};
use bristlecone_pmem::journal::JournalError;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

/// The offset of the table of roots in a pool, and the size of a page.
const ROOTS: usize = 0x2000;
const PAGE: usize = 0x1000;
/// The offsets of the id of the boot and of the slots in a ring.
const BOOT_IN_RING: usize = 16;
const SLOTS_IN_RING: usize = 4096;

const KINDS: [Durability; 2] = [Durability::Commit, Durability::Interval(Duration::from_millis(5))];

fn journal_of(path: &Path) -> std::path::PathBuf {
    path.with_extension("pool.journal")
}

fn unsynced(store: &Store) -> u64 {
    store.stats().journal.expect("the store has a journal").unsynced_bytes()
}

fn count(store: &Store) -> u64 {
    store.len().unwrap()
}

#[test]
fn a_dropped_store_has_every_write_and_a_closed_one_no_journal() {
    for durability in KINDS {
        let place = place();
        let store = journaled(durability).create(&place.path).unwrap();
        assert_eq!(store.durability(), durability);
        for key in 0..3000_u64 {
            store.put(key.to_be_bytes(), key.to_le_bytes()).unwrap();
        }
        store.put("long", vec![7; 100_000]).unwrap();
        for key in 0..1000_u64 {
            assert!(store.delete(key.to_be_bytes()).unwrap());
        }
        drop(store); // As a kill: the file alone is not whole.
        assert!(journal_of(&place.path).is_dir());

        let store = journaled(durability).open(&place.path).unwrap();
        assert!(store.was_recovered());
        assert_eq!(count(&store), 2001);
        assert_eq!(store.get("long").unwrap(), Some(vec![7; 100_000]));
        store.close().unwrap();
        assert!(!journal_of(&place.path).exists());

        let store = journaled(durability).open_or_create(&place.path).unwrap();
        assert!(!store.was_recovered());
        assert_eq!(count(&store), 2001);
        store.put("more", "than that").unwrap();
        drop(store);
        // An open without a journal makes the file whole.
        let store = mapped().open(&place.path).unwrap();
        assert_eq!(store.durability(), Durability::Process);
        assert_eq!(pairs(&store).len(), 2002);
        store.close().unwrap();
        assert!(!journal_of(&place.path).exists());
    }
}

#[test]
fn a_commit_leaves_nothing_to_sync_and_an_interval_a_window() {
    let place = place();
    let store = journaled(Durability::Commit).create(&place.path).unwrap();
    store.put("a", "b").unwrap();
    assert_eq!(unsynced(&store), 0);
    store.close().unwrap();
    let store =
        journaled(Durability::Interval(Duration::from_secs(3600))).open(&place.path).unwrap();
    store.put("c", "d").unwrap();
    assert!(unsynced(&store) > 0);
    store.sync().unwrap();
    assert_eq!(unsynced(&store), 0);
}

/// No thread syncs later what a store that was dropped has left in its ring. So a power cut at any
/// time after that once lost it.
#[test]
fn a_dropped_store_has_every_write_after_a_power_cut_too() {
    let place = place();
    let options = journaled(Durability::Interval(Duration::from_secs(3600)));
    let store = options.create(&place.path).unwrap();
    store.put("a", "b").unwrap();
    drop(store);
    let ring = journal_of(&place.path).join("ring");
    let mut bytes = std::fs::read(&ring).unwrap();
    bytes[BOOT_IN_RING] ^= 0x5A;
    bytes[SLOTS_IN_RING..].fill(0);
    std::fs::write(&ring, bytes).unwrap();
    assert_eq!(options.open(&place.path).unwrap().get("a").unwrap(), Some(b"b".to_vec()));
}

#[test]
fn threads_of_a_store_with_a_journal_share_its_syncs_and_its_checkpoints() {
    let place = place();
    for durability in KINDS {
        let store = journaled(durability).open_or_create(&place.path).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let store = &store;
                scope.spawn(move || {
                    for round in 0..400 {
                        let key = ((thread << 32) | (round % 97)).to_be_bytes();
                        store.put(key, [round as u8; 300]).unwrap();
                        assert_eq!(store.get(key).unwrap(), Some(vec![round as u8; 300]));
                    }
                });
            }
        });
        drop(store);
        let store = journaled(durability).open(&place.path).unwrap();
        assert_eq!(count(&store), 4 * 97);
        for (key, value) in store.iter().map(Result::unwrap) {
            let round = u64::from_be_bytes(key.try_into().unwrap()) & 0xffff_ffff;
            let last = (0..400).rev().find(|other| other % 97 == round).unwrap();
            assert_eq!(value, vec![last as u8; 300]);
        }
        store.close().unwrap();
    }
}

#[test]
fn a_store_without_its_journal_is_refused() {
    let place = place();
    let store = journaled(Durability::Commit).create(&place.path).unwrap();
    store.put("a", "b").unwrap();
    drop(store);
    let journal = journal_of(&place.path);
    let elsewhere = place.path.with_extension("elsewhere");
    std::fs::rename(&journal, &elsewhere).unwrap();
    for error in [
        journaled(Durability::Commit).open(&place.path).unwrap_err(),
        mapped().open(&place.path).unwrap_err(),
        Store::open(&place.path).unwrap_err(),
        Store::open_or_create(&place.path).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Journal { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Damaged);
    }
    std::fs::rename(&elsewhere, &journal).unwrap();
    assert_eq!(Store::open(&place.path).unwrap().get("a").unwrap(), Some(b"b".to_vec()));
}

#[test]
fn a_store_beside_the_journal_of_another_is_damaged_and_no_refusal_of_the_system() {
    let options = journaled(Durability::Commit);
    let places = [place(), place()];
    for place in &places {
        options.create(&place.path).unwrap().put("a", "b").unwrap(); // and a drop
    }
    let [own, other] = places.each_ref().map(|place| journal_of(&place.path));
    std::fs::remove_dir_all(&own).unwrap();
    std::fs::rename(&other, &own).unwrap();
    let error = options.open(&places[0].path).unwrap_err();
    assert!(matches!(error, Error::Journal { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Damaged);
}

/// A cleaner removed the folder of a store that was open. Writes were acknowledged as before, and a
/// kill lost all that the file lacked.
#[test]
fn a_journal_that_is_removed_ends_writing_and_nothing_is_lost() {
    for (durability, writes_max) in KINDS.into_iter().zip([20_000, 20_000_000]) {
        let place = place();
        let options = journaled(durability);
        let store = options.create(&place.path).unwrap();
        store.put("first", "1").unwrap();
        std::fs::remove_dir_all(journal_of(&place.path)).unwrap();
        let written = write_until_refused(&store, writes_max);
        assert!(store.contains("first").unwrap());
        drop(store);
        let store = options.open(&place.path).unwrap();
        assert!(store.contains("first").unwrap());
        assert_written(&store, written);
    }
}

/// Writes until one is refused. Returns the number of those that were not: the last hundred are of
/// different keys.
fn write_until_refused(store: &Store, most: u32) -> u32 {
    let write = |number: &u32| store.put((number % 100).to_be_bytes(), number.to_be_bytes());
    let written = (0..most).take_while(|number| write(number).is_ok()).count() as u32;
    assert!(written < most, "no write is refused");
    let error = store.put("last", "").unwrap_err();
    assert!(matches!(error, Error::WritesEnded { .. }), "{error}");
    written
}

/// Asserts that a store has what [`write_until_refused`] has written, and perhaps the write that
/// was refused.
fn assert_written(store: &Store, written: u32) {
    for number in written.saturating_sub(100)..written {
        let found = store.get((number % 100).to_be_bytes()).unwrap().unwrap();
        let is_next = number + 100 == written && found == written.to_be_bytes();
        assert!(found == number.to_be_bytes() || is_next, "{number} of {written}");
    }
}

/// A journal was moved away while the store was open, and a copy of it came in its place. Writes
/// were acknowledged as before, and a kill lost all that the copy lacked.
#[test]
fn a_journal_that_a_copy_replaces_ends_writing_and_nothing_is_lost() {
    for (durability, writes_max) in KINDS.into_iter().zip([20_000, 20_000_000]) {
        let place = place();
        let options = journaled(durability);
        let store = options.create(&place.path).unwrap();
        store.put("first", "1").unwrap();
        let [journal, moved] = [journal_of(&place.path), place.path.with_extension("moved")];
        std::fs::rename(&journal, &moved).unwrap();
        std::fs::create_dir(&journal).unwrap();
        for entry in std::fs::read_dir(&moved).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), journal.join(entry.file_name())).unwrap();
        }
        let written = write_until_refused(&store, writes_max);
        drop(store); // As a kill.
        let store = options.open(&place.path).unwrap();
        assert!(store.contains("first").unwrap());
        assert_written(&store, written);
    }
}

/// A journal that is moved while its store is open goes on: the store grows, and a close leaves the
/// file whole. After a kill the next open says what is missing.
#[test]
fn a_journal_that_is_moved_while_it_is_open_loses_nothing_in_silence() {
    for durability in KINDS {
        let place = place();
        let options = journaled(durability).growth_bytes(1 << 20);
        let [journal, moved] = [journal_of(&place.path), place.path.with_extension("moved")];
        let mut keys = 0;
        for is_closed in [true, false] {
            let store = options.open_or_create(&place.path).unwrap();
            std::fs::rename(&journal, &moved).unwrap();
            // As much as fills the file, and the journal, twice.
            for _ in 0..4000 {
                store.put(u32::to_be_bytes(keys), [7; 600]).unwrap();
                keys += 1;
            }
            store.sync().unwrap();
            let bytes = store.stats().pool_bytes;
            assert!(bytes > 2 << 20, "{bytes}");
            if is_closed {
                store.close().unwrap();
                std::fs::remove_dir_all(&moved).unwrap();
                assert_eq!(count(&options.open(&place.path).unwrap()), u64::from(keys));
                continue;
            }
            drop(store);
            let error = options.open(&place.path).unwrap_err();
            let is_missing =
                matches!(error, Error::Journal { source: JournalError::Missing { .. }, .. });
            assert!(is_missing, "{error}");
            std::fs::rename(&moved, &journal).unwrap();
            assert_eq!(count(&options.open(&place.path).unwrap()), u64::from(keys));
        }
    }
}

/// A program may number its stores, in a folder that is named like a journal. To open the store
/// beside it once removed all of them: a pool begins as the files of a journal do.
#[test]
fn a_store_in_the_folder_of_a_journal_is_no_part_of_it() {
    for name in ["0001.bristlecone", "9999.bristlecone", "ring"] {
        let place = place();
        let options = journaled(Durability::Commit);
        let other = journal_of(&place.path).join(name);
        std::fs::create_dir(journal_of(&place.path)).unwrap();
        let store = options.create(&other).unwrap();
        store.put("a", "b").unwrap();
        store.close().unwrap();
        // If its file has the name of one of the journal, that is an error.
        let opened = options.create(&place.path);
        assert_eq!(opened.is_ok(), name.starts_with("9999"), "{name}: {opened:?}");
        opened.map(|store| store.close().unwrap()).ok();
        assert!(options.open(&other).unwrap().contains("a").unwrap(), "{name}");
    }
}

/// A program that still has a removed store open ends after another has made one at the same path.
#[test]
fn a_close_keeps_the_journal_of_a_store_that_has_taken_its_path() {
    let place = place();
    let options = journaled(Durability::Commit);
    let removed = options.create(&place.path).unwrap();
    removed.put("a", "b").unwrap();
    std::fs::remove_file(&place.path).unwrap();
    std::fs::remove_dir_all(journal_of(&place.path)).unwrap();
    let store = options.create(&place.path).unwrap();
    store.put("c", "d").unwrap();
    assert!(matches!(removed.close(), Err(Error::Removed { .. })));
    store.put("e", "f").unwrap();
    drop(store); // As a kill: the file needs its journal.
    let store = options.open(&place.path).unwrap();
    assert!(store.contains("c").unwrap() && store.contains("e").unwrap());
}

#[test]
fn a_store_in_memory_is_refused_unless_it_is_trusted() {
    if !Path::new("/dev/shm").is_dir() {
        return;
    }
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("a.pool");
    let error = small().durability(Durability::Commit).create(&path).unwrap_err();
    assert!(matches!(error, Error::Journal { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::System);
}

/// All of the file is in memory while it is open: holes of terabytes would not fit.
#[test]
fn a_store_in_a_file_of_terabytes_opens_with_a_journal() {
    let place = place();
    let options = journaled(Durability::Commit);
    for is_closed in [true, false] {
        let store = options.open_or_create(&place.path).unwrap();
        store.put([u8::from(is_closed)], "value").unwrap();
        if is_closed {
            store.close().unwrap();
        } else {
            drop(store);
        }
        let file = std::fs::File::options().write(true).open(&place.path).unwrap();
        if let Err(error) = file.set_len(8 << 40) {
            return eprintln!("skipped: the file system has no such file: {error}");
        }
        let store = options.open(&place.path).unwrap();
        assert!(store.contains([u8::from(is_closed)]).unwrap());
        store.put("one more", "value").unwrap();
        store.close().unwrap();
    }
    assert_eq!(Store::open(&place.path).unwrap().len().unwrap(), 3);
}

#[test]
fn a_creation_where_no_journal_may_be_leaves_no_file() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    let path = folder.path().join("test.pool");
    let options = small().durability(Durability::Commit);
    for created in [options.create(&path), options.open_or_create(&path)] {
        let Err(error) = created else {
            return eprintln!("skipped: /dev/shm is on a disk");
        };
        assert!(matches!(error, Error::Journal { .. }), "{error}");
        assert!(!path.exists());
    }
}

/// The folder of a test may be in memory, where the default is another.
#[test]
fn a_store_on_a_disk_has_a_journal_unless_it_is_told_otherwise() {
    let place = place();
    let store = Store::open_or_create(&place.path).unwrap();
    if store.stats().domain != Domain::Disk {
        return eprintln!("skipped: temporary files are not on a disk");
    }
    assert_eq!(store.durability(), Durability::DEFAULT);
    store.put("sequoia", "3266 years").unwrap();
    store.sync().unwrap();
    assert_eq!(unsynced(&store), 0);
    drop(store);
    assert!(journal_of(&place.path).is_dir());
    let store = small().require(Domain::Disk).open(&place.path).unwrap();
    assert!(store.was_recovered());
    assert!(store.contains("sequoia").unwrap());
    store.close().unwrap();
    let refused = [
        small().require(Domain::Adr).open(&place.path),
        mapped().require(Domain::Disk).open(&place.path),
    ];
    for refused in refused {
        assert!(matches!(refused, Err(Error::Domain { .. })), "{refused:?}");
    }
}

/// A store of before, or one that was opened without a journal.
#[test]
fn a_store_without_a_journal_is_taken_over_whatever_its_end() {
    for is_closed in [true, false] {
        let place = place();
        let store = mapped().create(&place.path).unwrap();
        (0..500_u32).for_each(|key| store.put(key.to_be_bytes(), "value").unwrap());
        if is_closed {
            store.close().unwrap();
        } else {
            drop(store);
        }
        assert!(!journal_of(&place.path).exists());
        let mut store = journaled(Durability::Commit).open(&place.path).unwrap();
        assert_eq!(store.was_recovered(), !is_closed);
        assert_eq!(store.check().unwrap().keys, 500);
        store.put("one more", "value").unwrap();
        drop(store);
        assert_eq!(mapped().open(&place.path).unwrap().len().unwrap(), 501);
    }
}

#[test]
fn a_store_that_outgrows_its_memory_is_full_and_keeps_what_it_has() {
    let place = place();
    let options = journaled(Durability::DEFAULT).memory_bytes(2 << 20).growth_bytes(1 << 20);
    let store = options.create(&place.path).unwrap();
    let mut count = 0_u32;
    let error = loop {
        match store.put(count.to_be_bytes(), [7; 1000]) {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert!(error.to_string().contains("memory_bytes allows 2097152"), "{error}");
    assert_eq!(store.len().unwrap(), u64::from(count));
    assert!(store.delete(0_u32.to_be_bytes()).unwrap());
    store.close().unwrap();
    let error = options.clone().memory_bytes(1 << 20).open(&place.path).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert_eq!(mapped().open(&place.path).unwrap().len().unwrap(), u64::from(count) - 1);
}

/// It was once refused as one that takes too much memory.
#[test]
fn a_store_that_is_longer_than_the_reserved_addresses_opens_and_does_not_grow() {
    for durability in [Durability::Commit, Durability::Process] {
        let place = place();
        let options = small().durability(durability).trust_file_system(true);
        options.clone().initial_bytes(2 << 20).create(&place.path).unwrap().close().unwrap();
        let store = options.reserve_bytes(1 << 20).open(&place.path).unwrap();
        store.put("a", "b").unwrap();
        let error = (0..4000_u32).find_map(|key| store.put(key.to_be_bytes(), [7; 1000]).err());
        assert!(matches!(error, Some(Error::Full { .. })), "{durability:?}: {error:?}");
        store.close().unwrap();
    }
}

#[test]
fn a_path_may_be_a_link_and_need_not_be_utf_8() {
    let place = place();
    let folder = place.path.parent().unwrap();
    let name = OsStr::from_bytes(b"\xff\xfe.pool");
    let target = folder.join(name);
    let link = folder.join("link.pool");
    symlink(&target, &link).unwrap();
    let options = journaled(Durability::Commit);
    let error = options.create(&link).unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "a link that leads nowhere: {error}");
    let store = options.create(&target).unwrap();
    store.put("a", "b").unwrap();
    drop(store);
    let mut journal = target.clone().into_os_string();
    journal.push(".journal");
    assert!(Path::new(&journal).is_dir(), "the journal is beside the file");
    let store = options.open(&link).unwrap();
    assert!(store.was_recovered() && store.contains("a").unwrap());
    assert!(matches!(options.open(&target), Err(Error::InUse { .. })));
    store.close().unwrap();
    assert!(!Path::new(&journal).exists());
    assert!(mapped().open(&link).unwrap().contains("a").unwrap());
}

/// A power cut before the journal begins leaves what the page cache had written. If that is a store
/// that may be torn, no later creation can finish it.
#[test]
fn no_moment_of_a_creation_with_a_journal_has_a_store_that_may_be_torn() {
    let place = place();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut image = vec![0; ROOTS + PAGE];
            while !is_done.load(Ordering::Acquire) {
                let Ok(file) = File::open(&place.path) else { continue };
                let (superblocks, roots) = image.split_at_mut(ROOTS);
                // The superblocks last: they are at least as new as the roots.
                let read = file.read_exact_at(roots, ROOTS as u64);
                if read.and_then(|()| file.read_exact_at(superblocks, 0)).is_ok() {
                    let has_root = roots.iter().any(|&byte| byte != 0);
                    assert!(!has_root || !names_a_boot(superblocks), "a store without a journal");
                }
            }
        });
        let store = journaled(Durability::Commit).create(&place.path).unwrap();
        store.close().unwrap();
        is_done.store(true, Ordering::Release);
        watcher.join().unwrap();
    });
    assert!(journaled(Durability::Commit).open(&place.path).unwrap().is_empty().unwrap());
}

/// The system tells one caller alone that it could not write pages. A sync of the mark once took
/// that from the open that marks a store as torn: the next one opened it.
#[test]
fn a_store_that_was_left_open_without_a_journal_is_synced_by_its_pool_alone() {
    let place = place();
    journaled(Durability::Commit).create(&place.path).unwrap().close().unwrap(); // makes a mark
    for is_closed in [true, false] {
        let store = mapped().open(&place.path).unwrap();
        if is_closed {
            store.close().unwrap();
        } else {
            drop(store);
        }
        let file = File::options().write(true).open(&place.path).unwrap();
        file.set_modified(UNIX_EPOCH).unwrap();
        // The open may write its mark, then finds no addresses for its pool.
        let error = mapped().reserve_bytes(1 << 60).open(&place.path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::System, "{error}");
        let is_written = file.metadata().unwrap().modified().unwrap() != UNIX_EPOCH;
        assert_eq!(is_written, is_closed);
    }
}

/// It was once taken for a store without a journal: what the journal alone had was set aside.
#[test]
fn a_store_whose_mark_is_no_mark_is_damaged_and_keeps_its_journal() {
    let place = place();
    let options = journaled(Durability::Interval(Duration::from_secs(3600)));
    options.create(&place.path).unwrap().put("a", "b").unwrap(); // and a drop
    let file = File::options().read(true).write(true).open(&place.path).unwrap();
    let magic = [0x800, 0xa00].map(|at| {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, at).unwrap();
        file.write_all_at(b"no mark!", at).unwrap();
        (at, word)
    });
    for options in [&options, &mapped()] {
        let error = options.open(&place.path).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
    }
    for (at, word) in magic {
        file.write_all_at(&word, at).unwrap();
    }
    assert!(options.open(&place.path).unwrap().contains("a").unwrap());
}

/// Holes that a copy has get space at the open, and memory once they are used. Such a store once
/// opened, and then outgrew its memory and opened no more.
#[test]
fn a_store_with_holes_takes_the_memory_of_its_length() {
    let place = place();
    let options = journaled(Durability::Commit).memory_bytes(4 << 20);
    let larger = options.clone().memory_bytes(16 << 20).initial_bytes(8 << 20);
    larger.create(&place.path).unwrap().close().unwrap();
    let bytes = std::fs::read(&place.path).unwrap();
    std::fs::remove_file(&place.path).unwrap();
    let copy = File::create(&place.path).unwrap();
    copy.set_len(bytes.len() as u64).unwrap();
    for (at, page) in (0..).step_by(PAGE).zip(bytes.chunks(PAGE)) {
        if page.iter().any(|&byte| byte != 0) {
            copy.write_all_at(page, at).unwrap();
        }
    }
    let error = options.open(&place.path).unwrap_err();
    assert!(matches!(error, Error::Full { wanted, .. } if wanted == 8 << 20), "{error}");
    larger.open(&place.path).unwrap().close().unwrap();
}

/// Lets this process write no file past 512 KiB.
fn limit_files() {
    let limit = libc::rlimit { rlim_cur: 512 << 10, rlim_max: libc::RLIM_INFINITY };
    #[expect(unsafe_code, reason = "the standard library sets no limits")]
    // SAFETY: the structure lives as long as the call.
    let limited = unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
    assert_eq!(limited, 0);
}

/// A page past the limit of the process for files can be mapped and not written. The system once
/// ended the process with a signal, at each checkpoint that came upon one.
#[test]
fn a_file_that_is_longer_than_the_process_may_write_is_refused() {
    const NAME: &str = "durable::a_file_that_is_longer_than_the_process_may_write_is_refused";
    let Some(path) = path_of_own_process() else { return in_own_process(NAME) };
    let options = journaled(Durability::Commit);
    options.create(&path).unwrap().close().unwrap();
    limit_files();
    let used = options.open(&path).and_then(|store| {
        (0..2000_u64).try_for_each(|key| store.put(key.to_be_bytes(), [7; 300]))?;
        store.close()
    });
    assert!(matches!(used, Err(Error::NoJournalSpace { .. })), "{used:?}");
    assert!(mapped().open(&path).unwrap().is_empty().unwrap(), "a mapping needs no write");
}

/// The signal once ended each process that opened a killed store whose file was short enough.
#[test]
fn a_journal_that_is_longer_than_the_process_may_write_is_refused() {
    const NAME: &str = "durable::a_journal_that_is_longer_than_the_process_may_write_is_refused";
    let Some(path) = path_of_own_process() else { return in_own_process(NAME) };
    let options = journaled(Durability::Commit).initial_bytes(256 << 10).journal_bytes(64 << 20);
    options.create(&path).unwrap().put("a", "b").unwrap();
    limit_files();
    let used = options.open(&path).and_then(|store| {
        (0..2000_u64).try_for_each(|key| store.put((key % 100).to_be_bytes(), [7; 300]))
    });
    // The journal is there, so the advice to make a smaller one, or none, would not help.
    assert!(matches!(used, Err(Error::System { .. })), "{used:?}");
}

/// Each segment takes a descriptor: some 14 stores fit the usual limit.
#[test]
fn a_store_for_which_there_are_too_few_descriptors_says_so() {
    const NAME: &str = "durable::a_store_for_which_there_are_too_few_descriptors_says_so";
    let Some(path) = path_of_own_process() else { return in_own_process(NAME) };
    let options = journaled(Durability::Commit).journal_bytes(64 << 20);
    let limit = libc::rlimit { rlim_cur: 40, rlim_max: 40 };
    #[expect(unsafe_code, reason = "the standard library sets no limits")]
    // SAFETY: the structure lives as long as the call.
    let limited = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    assert_eq!(limited, 0);
    let said = options.create(&path).unwrap_err().to_string();
    assert!(said.contains("67 file descriptors") && said.contains("ulimit -n"), "{said}");
    assert!(!Path::new(&path).exists() && !journal_of(Path::new(&path)).exists());
    options.journal_bytes(1 << 20).create(&path).unwrap().close().unwrap();
}

/// A store that was killed on a larger machine is read whole, also to be opened without a journal.
/// The system once ended the process for its memory.
#[test]
fn a_store_that_needs_its_journal_is_not_made_whole_beyond_its_memory() {
    let place = place();
    let options = journaled(Durability::Commit).initial_bytes(8 << 20);
    options.create(&place.path).unwrap().put("a", "b").unwrap();
    let process = mapped().trust_file_system(true);
    let error = process.clone().memory_bytes(4 << 20).open(&place.path).unwrap_err();
    assert!(matches!(error, Error::Full { wanted, .. } if wanted == 8 << 20), "{error}");
    assert!(process.open(&place.path).unwrap().contains("a").unwrap());
}

/// A copy of a folder may end so, where the device is full. What the ring alone had was once
/// missing in silence.
#[test]
fn a_store_whose_ring_ends_early_is_refused() {
    let [place, copy] = [place(), place()];
    let durability = Durability::Interval(Duration::from_secs(3600));
    let store = journaled(durability).create(&place.path).unwrap();
    store.put("a", "b").unwrap();
    let [journal, copied] = [&place, &copy].map(|place| journal_of(&place.path));
    std::fs::copy(&place.path, &copy.path).unwrap();
    std::fs::create_dir(&copied).unwrap();
    for entry in std::fs::read_dir(&journal).unwrap() {
        let name = entry.unwrap().file_name();
        std::fs::copy(journal.join(&name), copied.join(&name)).unwrap();
    }
    let ring = File::options().write(true).open(copied.join("ring")).unwrap();
    let bytes = ring.metadata().unwrap().len();
    ring.set_len(bytes / 2).unwrap();
    let opened = journaled(durability).open_torn(true).open(&copy.path);
    let found = opened.as_ref().map(|store| store.contains("a").unwrap());
    assert!(matches!(found, Err(Error::Journal { .. })), "{found:?}");
}

#[test]
fn a_file_with_a_journal_grows_as_far_as_one_without() {
    let most = [Durability::Commit, Durability::Process].map(|durability| {
        let place = place();
        let options = small().durability(durability).trust_file_system(true).reserve_bytes(0);
        let store = options.open_or_create(&place.path).unwrap();
        let put = |n: &u32| store.put(n.to_string(), vec![7; 100_000]).is_ok();
        let count = (0..1000).take_while(put).count();
        store.close().unwrap();
        count
    });
    assert!(most[0] > 0 && most[0] == most[1], "{most:?}");
}
