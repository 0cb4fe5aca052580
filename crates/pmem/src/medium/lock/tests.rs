use super::*;
use crate::medium::{FileOptions, Mapped, Medium};
use std::sync::mpsc;

const LONG: Duration = Duration::from_secs(600);

#[test]
fn a_failed_creation_is_removed_before_it_is_unlocked() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p");
    for _ in 0..100 {
        let failing = LockedFile::create(&path).unwrap();
        let other = File::open(&path).unwrap();
        std::thread::scope(|scope| {
            let links = scope.spawn(|| {
                flock(&other, FlockOperation::LockExclusive).unwrap();
                other.metadata().unwrap().nlink()
            });
            drop(failing);
            assert_eq!(links.join().unwrap(), 0, "the next to lock the file sees that it is gone");
        });
    }
}

/// A file was renamed, and another took its path, after an open had found it and before it had the
/// lock. The open then used the file, with a journal beside the other one.
#[test]
fn a_file_that_was_renamed_before_the_lock_is_not_used() {
    let dir = tempfile::tempdir().unwrap();
    let [path, moved] = ["p", "moved"].map(|name| dir.path().join(name));
    for has_successor in [true, false] {
        std::fs::write(&path, "a store").unwrap();
        let found = || OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let file = found();
        std::fs::rename(&path, &moved).unwrap();
        if has_successor {
            std::fs::write(&path, "another").unwrap();
        }
        let claimed = LockedFile::claim(file, &path);
        assert!(matches!(claimed, Err(MediumError::Locked)), "{claimed:?}");
        std::fs::rename(&moved, &path).unwrap();
        LockedFile::claim(found(), &path).unwrap();
    }
}

#[test]
fn a_failed_creation_removes_no_other_file() {
    let dir = tempfile::tempdir().unwrap();
    let [path, other] = ["p", "other"].map(|name| dir.path().join(name));
    let failing = LockedFile::create(&path).unwrap();
    std::fs::write(&other, "a store").unwrap();
    std::fs::rename(&other, &path).unwrap();
    drop(failing);
    assert_eq!(std::fs::read(&path).unwrap(), b"a store");
}

#[test]
fn an_open_waits_for_the_lock_and_reads_the_length_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p");
    let held = Mapped::create(&path, 1 << 20, &FileOptions::default()).unwrap();
    let (begin, begun) = mpsc::channel();
    std::thread::scope(|scope| {
        let opened = scope.spawn(|| {
            let mut attempts = 0;
            let opened = wait_for(LONG, || {
                attempts += 1;
                if attempts == 2 {
                    begin.send(()).unwrap();
                }
                Mapped::open(&path, &FileOptions::default())
            });
            opened.unwrap().len()
        });
        begun.recv().unwrap();
        held.grow(3 << 20).unwrap();
        drop(held);
        assert_eq!(opened.join().unwrap(), 3 << 20);
    });
}

#[test]
fn a_wait_for_the_lock_ends() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p");
    let _held = Mapped::create(&path, 1 << 20, &FileOptions::default()).unwrap();
    let options = FileOptions { wait: Duration::from_millis(5), ..FileOptions::default() };
    assert!(matches!(Mapped::open(&path, &options), Err(MediumError::Locked)));
    let mut attempts = 0;
    let refused = wait_for(Duration::ZERO, || {
        attempts += 1;
        Err::<(), _>(MediumError::Locked)
    });
    assert!(matches!(refused, Err(MediumError::Locked)) && attempts == 1);
}

#[test]
fn a_removed_or_replaced_file_is_noticed_and_can_still_be_copied() {
    let dir = tempfile::tempdir().unwrap();
    let [path, moved] = ["p", "moved"].map(|name| dir.path().join(name));
    let medium = Mapped::create(&path, 1 << 20, &FileOptions::default()).unwrap();
    medium.check_path().unwrap();
    std::fs::rename(&path, &moved).unwrap();
    assert!(matches!(medium.check_path(), Err(MediumError::Moved)));
    std::fs::write(&path, "another").unwrap();
    assert!(matches!(medium.check_path(), Err(MediumError::Moved)));
    std::fs::remove_file(&path).unwrap();
    std::fs::hard_link(&moved, &path).unwrap();
    medium.check_path().unwrap();
    std::fs::remove_file(&moved).unwrap();
    std::fs::remove_file(&path).unwrap();
    let removed = medium.check_path().unwrap_err();
    drop(medium);
    let MediumError::Removed { file } = removed else { panic!("{removed}") };
    assert_eq!(file.metadata().unwrap().len(), 1 << 20);
}
