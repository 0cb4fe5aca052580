//! Copies of the file of a store: one of a closed store is a store, one of an open store is told.

use crate::{Place, journaled, mapped, pairs, place};
use bristlecone::{Durability, Error, ErrorKind, Options, Store, salvage};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Returns a place in shared memory, whose inode numbers last. Without that, returns one wherever
/// the tests are.
fn place_with_lasting_numbers() -> Place {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return place() };
    let path = folder.path().join("test.pool");
    Place { _folder: folder, path }
}

/// Returns the options of each form of a store.
fn forms() -> [Options; 3] {
    let interval = Durability::Interval(Duration::from_secs(1));
    [mapped(), journaled(interval), journaled(Durability::Commit)]
}

fn journal_of(pool: &Path) -> PathBuf {
    pool.with_extension("pool.journal")
}

/// Copies a store to `name` beside it, with its journal if it has one.
fn copy(pool: &Path, name: &str) -> PathBuf {
    let copy = pool.with_file_name(name);
    fs::copy(pool, &copy).unwrap();
    if let Ok(files) = fs::read_dir(journal_of(pool)) {
        fs::create_dir(journal_of(&copy)).unwrap();
        for file in files.map(Result::unwrap) {
            fs::copy(file.path(), journal_of(&copy).join(file.file_name())).unwrap();
        }
    }
    copy
}

fn fill(store: &Store) {
    (0..300_u32).for_each(|key| store.put(key.to_be_bytes(), [7; 50]).unwrap());
}

/// Before the superblock named its file, the copy opened without a word.
#[test]
fn a_copy_of_an_open_store_is_refused_until_the_caller_takes_it_as_it_is() {
    for options in forms() {
        let place = place_with_lasting_numbers();
        let store = options.create(&place.path).unwrap();
        fill(&store);
        let copied = copy(&place.path, "copied.pool");
        let durability = store.durability();
        for error in
            [options.open(&copied), options.open_or_create(&copied)].map(Result::unwrap_err)
        {
            let said = error.to_string();
            assert!(matches!(error, Error::UnclosedCopy { .. }), "{durability:?}: {said}");
            assert_eq!((error.kind(), error.path()), (ErrorKind::Damaged, Some(&*copied)));
            assert!(said.contains("bristlecone salvage") && said.contains("--open-torn"), "{said}");
        }
        // No thread wrote meanwhile, so this copy is whole.
        let taken = options.clone().open_torn(true).open(&copied).unwrap();
        assert!(taken.was_recovered() && pairs(&taken) == pairs(&store));
        drop(taken);
        let again = options.open(&copied).unwrap();
        assert_eq!(again.len().unwrap(), 300, "taken once, the copy is a store of its own");
        store.put("larch", "the original is not disturbed").unwrap();
        store.close().unwrap();
    }
}

#[test]
fn a_refused_copy_of_a_mapped_store_does_not_change() {
    let place = place_with_lasting_numbers();
    let store = mapped().create(&place.path).unwrap();
    fill(&store);
    let copied = copy(&place.path, "copied.pool");
    let before = fs::read(&copied).unwrap();
    assert!(matches!(mapped().open(&copied), Err(Error::UnclosedCopy { .. })));
    assert!(fs::read(&copied).unwrap() == before);
    let salvaged: Vec<_> = salvage(&copied).unwrap().collect::<Result<_, _>>().unwrap();
    assert!(salvaged == pairs(&store), "no thread wrote meanwhile");
}

/// A store was killed and moved, and a copy of its file took its path. The refused open once used
/// up the journal: back at its path, the original had lost what the journal alone had.
#[test]
fn a_refused_copy_leaves_the_journal_to_the_original() {
    let [_, journaled @ ..] = forms();
    for options in journaled {
        let place = place_with_lasting_numbers();
        let store = options.create(&place.path).unwrap();
        fill(&store);
        drop(store);
        let original = place.path.with_file_name("original.pool");
        fs::rename(&place.path, &original).unwrap();
        fs::copy(&original, &place.path).unwrap();
        let before = fs::read(&place.path).unwrap();
        for options in [&options, &mapped()] {
            assert!(matches!(options.open(&place.path), Err(Error::UnclosedCopy { .. })));
        }
        assert!(fs::read(&place.path).unwrap() == before);
        fs::rename(&original, &place.path).unwrap();
        assert_eq!(options.open(&place.path).unwrap().len().unwrap(), 300);
    }
}

#[test]
fn a_copy_of_a_closed_store_opens_whatever_happened_before_the_close() {
    for options in forms() {
        for is_killed in [false, true] {
            let place = place_with_lasting_numbers();
            let store = options.create(&place.path).unwrap();
            fill(&store);
            if is_killed {
                drop(store);
                options.open(&place.path).unwrap().close().unwrap();
            } else {
                store.close().unwrap();
            }
            let backup = copy(&place.path, "backup.pool");
            fs::remove_file(&place.path).unwrap();
            let restored = copy(&backup, "test.pool");
            for path in [backup, restored] {
                let store = options.open(&path).unwrap();
                assert!(!store.was_recovered() && store.len().unwrap() == 300);
            }
        }
    }
}

/// A store that is full is closed without a free map: its copy opens all the same.
#[test]
fn a_copy_of_a_store_that_was_closed_when_it_was_full_opens() {
    let place = place_with_lasting_numbers();
    let options = mapped().initial_bytes(160 << 10).max_bytes(160 << 10);
    let store = options.create(&place.path).unwrap();
    let mut count = 0_u64;
    while store.put(count.to_be_bytes(), [7; 100]).is_ok() {
        count += 1;
    }
    store.close().unwrap();
    let store = options.open(copy(&place.path, "copied.pool")).unwrap();
    assert_eq!(store.len().unwrap(), count);
}

#[test]
fn a_store_that_was_killed_opens_under_another_name_and_through_a_hard_link() {
    for options in forms() {
        let place = place_with_lasting_numbers();
        let store = options.create(&place.path).unwrap();
        fill(&store);
        drop(store);
        let moved = place.path.with_file_name("moved.pool");
        fs::rename(&place.path, &moved).unwrap();
        if journal_of(&place.path).exists() {
            fs::rename(journal_of(&place.path), journal_of(&moved)).unwrap();
        }
        let store = options.open(&moved).unwrap();
        assert!(store.was_recovered() && store.len().unwrap() == 300);
        drop(store);
        if !journal_of(&moved).exists() {
            let linked = place.path.with_file_name("linked.pool");
            fs::hard_link(&moved, &linked).unwrap();
            assert_eq!(options.open(&linked).unwrap().len().unwrap(), 300);
        }
    }
}
