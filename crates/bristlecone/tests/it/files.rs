//! The store and the file that it is in: growth, removal, holes, the lock.

use crate::{journaled, mapped, place, small};
use bristlecone::{Durability, Error, ErrorKind, Store};
use bristlecone_pmem::journal::JournalError;
use std::fs::File;
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn close_reports_a_file_that_was_removed_and_keeps_it_for_a_copy() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    store.put("sequoia", "3266 years").unwrap();
    std::fs::remove_file(&place.path).unwrap();
    store.put("larch", "1000 years").unwrap();
    let error = store.close().unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::System, Some(&*place.path)));
    assert!(error.to_string().contains("was removed while the store was open"), "{error}");
    let Error::Removed { mut file, .. } = error else { panic!("{error}") };
    let mut copy = File::create(&place.path).unwrap();
    std::io::copy(&mut file, &mut copy).unwrap();
    let store = Store::open(&place.path).unwrap();
    assert!(!store.was_recovered(), "the store was closed");
    assert_eq!(store.get("sequoia").unwrap().as_deref(), Some(&b"3266 years"[..]));
    assert_eq!(store.len().unwrap(), 2);
}

#[test]
fn close_reports_a_file_that_was_moved() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    store.put("sequoia", "3266 years").unwrap();
    let elsewhere = place.path.with_extension("moved");
    std::fs::rename(&place.path, &elsewhere).unwrap();
    assert!(matches!(store.close(), Err(Error::Moved { .. })));
    let store = Store::open(&elsewhere).unwrap();
    assert!(!store.was_recovered() && store.contains("sequoia").unwrap());
}

#[test]
fn an_open_waits_for_another_to_close() {
    let place = place();
    let held = small().create(&place.path).unwrap();
    let options = small().wait(Duration::from_millis(5));
    assert!(matches!(options.open(&place.path), Err(Error::InUse { .. })));
    let (begin, begun) = mpsc::channel();
    std::thread::scope(|scope| {
        let opened = scope.spawn(|| {
            let options = small().wait(Duration::from_secs(600));
            begin.send(()).unwrap();
            options.open_or_create(&place.path).unwrap().contains("sequoia")
        });
        begun.recv().unwrap();
        held.put("sequoia", "3266 years").unwrap();
        held.close().unwrap();
        assert!(opened.join().unwrap().unwrap());
    });
}

/// Recovery goes by the size of the pool: maps for a file of 8 TiB would not fit in memory.
#[test]
fn a_store_in_a_file_of_terabytes_opens_at_its_own_size() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    for number in 0..1000 {
        store.put(format!("key {number}"), "value").unwrap();
    }
    drop(store);
    let file = File::options().write(true).open(&place.path).unwrap();
    if let Err(error) = file.set_len(8 << 40) {
        return eprintln!("skipped: the file system has no such file: {error}");
    }
    let mut store = small().open(&place.path).unwrap();
    assert!(store.was_recovered());
    assert_eq!(store.check().unwrap().keys, 1000);
    assert!(store.stats().pool_bytes < 16 << 20);
    store.put("one more", "value").unwrap();
    store.close().unwrap();
}

#[test]
fn a_file_grows_by_no_more_than_a_step() {
    let place = place();
    let store = small().initial_bytes(8 << 20).growth_bytes(1 << 20).create(&place.path).unwrap();
    let mut bytes = store.stats().pool_bytes;
    for number in 0..4000 {
        store.put(format!("key {number}"), [7; 4000]).unwrap();
        let grown = store.stats().pool_bytes;
        assert!(grown <= bytes + (1 << 20), "from {bytes} to {grown}");
        bytes = grown;
    }
    assert!(bytes > 12 << 20);
    store.close().unwrap();
    let length = std::fs::metadata(&place.path).unwrap().len();
    let store = Store::open(&place.path).unwrap();
    assert_eq!(store.stats().pool_bytes, length, "nothing is left prepared");
}

/// A name of over 247 bytes has no room for `.journal`, which a creation found out once the file
/// was there; one of over 239 bytes none for a journal that is set aside, which blocked an open.
#[test]
fn a_name_that_is_too_long_for_a_journal_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let journaled = journaled(Durability::Commit);
    for bytes in [1, 239, 240, 247, 248, 255] {
        let path = folder.path().join("n".repeat(bytes));
        let is_short = bytes < 240;
        for is_empty in [false, true] {
            if is_empty {
                File::create(&path).unwrap();
            }
            let created =
                if is_empty { journaled.open_or_create(&path) } else { journaled.create(&path) };
            match created {
                Ok(store) => {
                    assert!(is_short);
                    store.close().unwrap();
                }
                Err(error) => {
                    let said = error.to_string();
                    assert!(!is_short && said.contains("up to 239"), "{bytes}: {said}");
                    assert_eq!(error.kind(), ErrorKind::Usage);
                    let left = path.metadata().ok().map(|found| found.len());
                    assert_eq!(left, is_empty.then_some(0), "as it was");
                }
            }
            std::fs::remove_file(&path).ok();
        }
        // A store that is there already needs no more room than its journal.
        mapped().create(&path).unwrap().close().unwrap();
        match journaled.open(&path) {
            Ok(store) => {
                assert!(bytes < 248);
                store.close().unwrap();
            }
            Err(error) => {
                let said = error.to_string();
                assert!(bytes >= 248 && said.contains("up to 247"), "{bytes}: {said}");
            }
        }
        mapped().open(&path).unwrap().close().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{bytes}");
    }
}

/// What is there was removed if it was a link.
#[test]
fn a_link_in_the_place_of_a_journal_leaves_a_creation_undone() {
    let place = place();
    let link = place.path.with_extension("pool.journal");
    std::os::unix::fs::symlink("elsewhere", &link).unwrap();
    let options = journaled(Durability::Commit);
    for is_empty in [false, true] {
        if is_empty {
            File::create(&place.path).unwrap();
        }
        let created = if is_empty {
            options.open_or_create(&place.path)
        } else {
            options.create(&place.path)
        };
        let error = created.unwrap_err();
        let Error::Journal { source: JournalError::NotAFolder { .. }, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(error.kind(), ErrorKind::System);
        assert_eq!(place.path.metadata().ok().map(|found| found.len()), is_empty.then_some(0));
        assert!(link.is_symlink());
    }
}
