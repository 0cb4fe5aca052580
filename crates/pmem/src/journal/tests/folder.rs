//! The folder of a journal: files of others in it, what a kill leaves of it, and links to it.

use super::file::{answer, create, open, options, put};
use crate::journal::{Durability, JournalError, JournalOptions, Journaled};
use crate::medium::{FileOptions, LockedFile, Mapped};
use crate::pool::Pool;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

const COMMIT: Durability = Durability::Commit;

fn make_whole(path: &Path) -> Result<(), JournalError> {
    let locked = LockedFile::open_within(path, Duration::ZERO).unwrap();
    Journaled::make_whole(&locked, &JournalOptions::default())
}

/// A pool whose process was killed before the first record of its journal, and which was then moved
/// without the folder, was refused.
#[test]
fn a_pool_whose_journal_has_acknowledged_nothing_is_opened_without_it() {
    for (is_closed, gets_journal) in [(true, true), (true, false), (false, true), (false, false)] {
        let folder = tempfile::tempdir().unwrap();
        let [path, journal, moved] =
            ["a.pool", "a.pool.journal", "b.pool"].map(|name| folder.path().join(name));
        create(&path);
        let (pool, _) = open(&path, COMMIT);
        put(&pool, 7);
        if is_closed {
            pool.close().unwrap();
        } else {
            drop(pool);
        }
        let medium = Journaled::open(&path, &options(COMMIT)).unwrap();
        let killed = fs::read(&path).unwrap();
        drop(medium);
        fs::write(&path, killed).unwrap();
        assert!(!journal.exists());
        fs::rename(&path, &moved).unwrap();
        if gets_journal {
            assert_eq!(answer(&open(&moved, COMMIT).0), 7);
            continue;
        }
        make_whole(&moved).unwrap();
        let (pool, _) = Pool::open(Mapped::open(&moved, &FileOptions::default()).unwrap()).unwrap();
        assert_eq!(answer(&pool), 7);
    }
}

/// The other side of the one above: once the pool is open, writes may have been acknowledged.
#[test]
fn a_pool_that_was_open_is_not_opened_without_its_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pool");
    create(&path);
    let (pool, _) = open(&path, COMMIT);
    let killed = fs::read(&path).unwrap();
    put(&pool, 7);
    drop(pool);
    fs::write(&path, killed).unwrap();
    fs::remove_dir_all(folder.path().join("a.pool.journal")).unwrap();
    for error in [
        Journaled::open(&path, &options(COMMIT)).map(drop).unwrap_err(),
        make_whole(&path).unwrap_err(),
    ] {
        assert!(matches!(error, JournalError::Missing { .. }), "{error}");
    }
}

/// A file of zeros with a number for its name was removed: segments had such names, and those of an
/// interrupted creation hold zeros.
#[test]
fn a_file_of_zeros_of_others_stays() {
    for (name, bytes) in [("0007", 0), ("0007", 1 << 16), ("2026", 0), ("2026", 512)] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pool");
        create(&path);
        let other = folder.path().join("a.pool.journal").join(name);
        fs::create_dir(other.parent().unwrap()).unwrap();
        fs::write(&other, vec![0; bytes]).unwrap();
        open(&path, COMMIT).0.close().unwrap();
        assert_eq!(fs::read(&other).unwrap(), vec![0; bytes]);
        assert_eq!(fs::read_dir(other.parent().unwrap()).unwrap().count(), 1);
    }
}

/// A link was removed, or, if a pool needed its journal, followed. A copy of pool and link then
/// used up the journal of the original.
#[test]
fn a_link_or_a_file_in_the_place_of_a_journal_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let [path, journal] = [at("a.pool"), at("a.pool.journal")];
    create(&path);
    let is_refused = |what: &str| {
        let opened = Journaled::open(&path, &options(COMMIT)).map(drop);
        let is_refused = matches!(opened, Err(JournalError::NotAFolder { .. }));
        assert!(is_refused, "{what}: {opened:?}");
    };
    fs::create_dir(at("folder")).unwrap();
    fs::write(at("file"), "dear reader").unwrap();
    for target in ["folder", "file", "nothing"] {
        symlink(at(target), &journal).unwrap();
        is_refused(target);
        assert_eq!(fs::read_link(&journal).unwrap(), at(target));
        fs::remove_file(&journal).unwrap();
    }
    fs::copy(at("file"), &journal).unwrap();
    is_refused("a file");
    fs::remove_file(&journal).unwrap();
    // The same where the pool needs it.
    put(&open(&path, COMMIT).0, 7);
    fs::rename(&journal, at("elsewhere")).unwrap();
    symlink(at("elsewhere"), &journal).unwrap();
    is_refused("a journal elsewhere");
    let made = make_whole(&path);
    assert!(matches!(made, Err(JournalError::NotAFolder { .. })), "{made:?}");
    fs::remove_file(&journal).unwrap();
    fs::rename(at("elsewhere"), &journal).unwrap();
    assert_eq!(answer(&open(&path, COMMIT).0), 7);
}
