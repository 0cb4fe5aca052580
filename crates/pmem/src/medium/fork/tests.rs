use crate::child;
use crate::medium::{FileOptions, Mapped, Medium, MediumError};
use crate::{PmPtr, Pool, PoolError};
use std::path::Path;

const NAME: &str = "medium::fork::tests::";
const VALUE: u64 = 42;

/// Forks. Returns `None` in the child, and the child's wait status in the parent once it has ended.
fn fork() -> Option<libc::c_int> {
    // SAFETY: the caller is a process of its own with one test, and its child ends with `leave`.
    match unsafe { libc::fork() } {
        0 => None,
        child => {
            let mut status = 0;
            // SAFETY: the pointer is valid.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            Some(status)
        }
    }
}

/// Ends the child of a fork; `is_right` is its verdict.
fn leave(is_right: bool) -> ! {
    // SAFETY: the call ends the process and runs no other code of it.
    unsafe { libc::_exit(i32::from(!is_right)) }
}

/// Returns a pool with a thread that grows it ahead, so that the child inherits a thread's handle.
fn pool(path: &Path) -> Pool<Mapped> {
    let medium = Mapped::create(path, 1 << 20, &FileOptions::default()).unwrap();
    let pool = Pool::create(medium).unwrap();
    pool.medium().store(&pool.words(PmPtr::new(0x9000), 1).unwrap()[0], VALUE);
    pool.medium().prepare_growth(2 << 20);
    pool
}

/// Runs the test `name` in a process of its own.
fn run(name: &str) {
    let dir = tempfile::tempdir().unwrap();
    let output = child::run(&format!("{NAME}{name}"), dir.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_drop_in_a_child_leaves_the_file_locked_and_the_parent_whole() {
    let Some(dir) = child::is_child() else {
        return run("a_drop_in_a_child_leaves_the_file_locked_and_the_parent_whole");
    };
    let path = dir.join("p.pool");
    let pool = pool(&path);
    let Some(status) = fork() else {
        drop(pool);
        leave(true)
    };
    assert_eq!(status, 0);
    let second = Mapped::open(&path, &FileOptions::default());
    assert!(matches!(second, Err(MediumError::Locked)), "the parent still has the lock");
    let word = &pool.words(PmPtr::new(0x9000), 1).unwrap()[0];
    assert_eq!(pool.medium().load(word), VALUE);
    pool.grow(4 << 20).unwrap();
    drop(pool);
    assert!(Mapped::open(&path, &FileOptions::default()).is_ok());
}

#[test]
fn a_child_gets_errors_and_changes_nothing() {
    let Some(dir) = child::is_child() else {
        return run("a_child_gets_errors_and_changes_nothing");
    };
    let path = dir.join("p.pool");
    let pool = pool(&path);
    let length = || std::fs::metadata(&path).unwrap().len();
    pool.medium().file.as_ref().unwrap().wait_until_ready();
    let before = length();
    assert!(!pool.medium().is_inherited());
    let Some(status) = fork() else {
        let is_refused = |e: PoolError| matches!(e, PoolError::Medium(MediumError::Inherited));
        let grown = pool.grow(8 << 20).is_err_and(is_refused);
        let inherited = pool.medium().is_inherited();
        let closed = pool.close().is_err_and(is_refused);
        // A file of its own is the child's to use.
        let own = Mapped::create(&dir.join("own.pool"), 1 << 20, &FileOptions::default());
        let own = Pool::create(own.unwrap()).unwrap();
        leave(grown && inherited && closed && own.grow(2 << 20).is_ok() && own.close().is_ok())
    };
    assert_eq!(status, 0);
    assert_eq!(length(), before);
    pool.close().unwrap();
}

#[test]
fn a_child_has_no_mapping_of_the_file() {
    let Some(dir) = child::is_child() else {
        return run("a_child_has_no_mapping_of_the_file");
    };
    let pool = pool(&dir.join("p.pool"));
    pool.grow(3 << 20).unwrap();
    for at in [0x9000, (3 << 20) - 8] {
        let word = &pool.words(PmPtr::new(at), 1).unwrap()[0];
        let Some(status) = fork() else {
            pool.medium().store(word, 7);
            leave(true)
        };
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV);
        assert_ne!(pool.medium().load(word), 7);
    }
}

/// A thread of the parent may hold the lock of the heap at the fork.
#[test]
fn a_child_that_was_forked_while_a_thread_reserved_does_not_wait_for_it() {
    let Some(dir) = child::is_child() else {
        return run("a_child_that_was_forked_while_a_thread_reserved_does_not_wait_for_it");
    };
    let pool = pool(&dir.join("p.pool"));
    let blocks = pool.usage().blocks;
    let held = pool.hold_heap();
    let Some(status) = fork() else {
        // SAFETY: the call has no preconditions; it ends a child that waits.
        unsafe { libc::alarm(30) };
        leave(pool.usage().blocks == 0 && pool.usage_of_classes().is_empty())
    };
    drop(held);
    assert_eq!((status, pool.usage().blocks), (0, blocks));
}
