//! A creation under a system that refuses one of its calls.
//!
//! A filter of the kernel (`seccomp`) refuses the call to one thread, which the test starts for it.
#![expect(unsafe_code, reason = "a filter of calls has no safe form")]

use crate::{journaled, mapped, place};
use bristlecone::{Durability, Error, ErrorKind, Store};
use std::path::Path;
use std::time::Duration;

/// The calls of a creation that a system can refuse. Each of them has its own step.
const CALLS: [(&str, libc::c_long); 7] = [
    ("flock", libc::SYS_flock),
    ("fstatfs", libc::SYS_fstatfs),
    ("fallocate", libc::SYS_fallocate),
    ("madvise", libc::SYS_madvise),
    ("mremap", libc::SYS_mremap),
    ("fsync", libc::SYS_fsync),
    ("lseek", libc::SYS_lseek),
];

/// Lets the system refuse `call` to this thread from now on, with the error `EIO`. Returns `false`
/// if the system has no filters.
fn refuse(call: libc::c_long) -> bool {
    const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, k| libc::sock_filter { code, jt, jf: 0, k };
    let number = u32::try_from(call).expect("a call has a small number");
    let mut steps = [
        step(LOAD_WORD, 0, 0), // the number of the call
        step(JUMP_IF_EQUAL, 1, number),
        step(RETURN, 0, libc::SECCOMP_RET_ALLOW),
        step(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::EIO as u32),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the call changes only what this thread may do later.
    let bound = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program is valid, and the system copies it.
    let set =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    bound == 0 && set == 0
}

/// Calls `work` on a thread to which the system refuses `call`. Returns `None` if the system has no
/// filters.
fn refused<T: Send>(call: libc::c_long, work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| scope.spawn(|| refuse(call).then(work)).join().unwrap())
}

fn names_in(folder: &Path) -> Vec<std::ffi::OsString> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn a_creation_that_fails_leaves_no_file_whatever_call_the_system_refuses() {
    let mut failures = Vec::new();
    for (name, call) in CALLS {
        let place = place();
        let folder = place.path.parent().unwrap();
        let Some(created) = refused(call, || mapped().create(&place.path).map(drop)) else {
            return eprintln!("skipped: the system has no filters of calls");
        };
        let Err(error) = created else { continue };
        failures.push(name);
        assert_eq!(error.kind(), ErrorKind::System, "{name}: {error}");
        assert_eq!(names_in(folder), Vec::<std::ffi::OsString>::new(), "{name}: {error}");
        mapped().create(&place.path).unwrap().close().unwrap();
    }
    assert_eq!(failures, ["flock", "fstatfs", "fallocate", "madvise", "mremap", "fsync"]);
}

#[test]
fn a_created_store_that_cannot_be_closed_leaves_no_file() {
    for call in [libc::SYS_fsync, libc::SYS_msync] {
        let place = place();
        let Some(created) = refused(call, || mapped().create_closed(&place.path)) else {
            return eprintln!("skipped: the system has no filters of calls");
        };
        assert!(matches!(created, Err(Error::System { .. })), "{created:?}");
        assert!(!place.path.exists());
        assert!(mapped().create_closed(&place.path).unwrap().pool_bytes >= 1 << 20);
        assert!(!Store::open(&place.path).unwrap().was_recovered());
    }
}

#[test]
fn a_creation_that_fails_removes_no_file_that_it_did_not_make() {
    let place = place();
    // An empty file of another process becomes a store in place.
    std::fs::write(&place.path, b"").unwrap();
    let Some(created) = refused(libc::SYS_fsync, || mapped().open_or_create(&place.path).map(drop))
    else {
        return eprintln!("skipped: the system has no filters of calls");
    };
    assert!(matches!(created, Err(Error::System { .. })), "{created:?}");
    assert!(place.path.exists());
    let store = mapped().open_or_create(&place.path).unwrap();
    store.put("sequoia", "3266 years").unwrap();
    drop(store);
    let created = refused(libc::SYS_fsync, || mapped().create(&place.path).map(drop)).unwrap();
    assert!(matches!(created, Err(Error::AlreadyExists { .. })), "{created:?}");
    assert!(Store::open(&place.path).unwrap().contains("sequoia").unwrap());
}

#[test]
fn a_creation_with_a_journal_that_fails_leaves_no_file_of_its_own() {
    let place = place();
    let options = journaled(Durability::Commit);
    let Some(created) = refused(libc::SYS_fsync, || options.create(&place.path).map(drop)) else {
        return eprintln!("skipped: the system has no filters of calls");
    };
    assert!(created.is_err());
    assert_eq!(names_in(place.path.parent().unwrap()), Vec::<std::ffi::OsString>::new());
}

/// The calls with which an open with a journal reads, writes and removes.
const JOURNAL_CALLS: [(&str, libc::c_long); 9] = [
    ("fsync", libc::SYS_fsync),
    ("fdatasync", libc::SYS_fdatasync),
    ("pread64", libc::SYS_pread64),
    ("pwrite64", libc::SYS_pwrite64),
    ("fallocate", libc::SYS_fallocate),
    ("mkdir", libc::SYS_mkdir),
    ("getdents64", libc::SYS_getdents64),
    ("unlink", libc::SYS_unlink),
    ("rmdir", libc::SYS_rmdir),
];

/// Makes a store of 200 pairs that is closed or not, with a journal or without one.
fn make(path: &Path, with_journal: bool, is_closed: bool) {
    let options = if with_journal { journaled(Durability::Commit) } else { mapped() };
    let store = options.create(path).unwrap();
    (0..200_u32).for_each(|key| store.put(key.to_be_bytes(), [7; 50]).unwrap());
    if is_closed { store.close().unwrap() } else { drop(store) }
}

#[test]
fn an_open_with_a_journal_that_fails_loses_nothing_whatever_call_the_system_refuses() {
    let mut failures = std::collections::BTreeSet::new();
    for (name, call) in JOURNAL_CALLS {
        for [with_journal, is_closed] in [[true, false], [true, true], [false, false]] {
            let place = place();
            make(&place.path, with_journal, is_closed);
            let work = || journaled(Durability::Commit).open(&place.path)?.close();
            let Some(opened) = refused(call, work) else {
                return eprintln!("skipped: the system has no filters of calls");
            };
            if let Err(error) = opened {
                failures.insert(name);
                assert_eq!(error.kind(), ErrorKind::System, "{name}: {error}");
            }
            // A mapped file whose sync has failed may be torn.
            let options = journaled(Durability::Commit).open_torn(!with_journal);
            let mut store = options.open(&place.path).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(store.check().unwrap().keys, 200, "{name}");
            store.close().unwrap();
        }
    }
    let all: Vec<_> = failures.into_iter().collect();
    assert_eq!(all, ["fallocate", "fdatasync", "fsync", "mkdir", "pread64", "pwrite64"]);
}

/// A program may bind itself with a filter once its files are open. A write then panicked.
#[test]
fn writes_go_on_where_the_system_refuses_a_barrier_since_the_open() {
    let place = place();
    let store = mapped().create(&place.path).unwrap();
    (0..200_u8).for_each(|round| store.put("key", [round; 300]).unwrap());
    let writes = || (0..200_u8).try_for_each(|round| store.put("key", [round; 300]));
    let Some(written) = refused(libc::SYS_membarrier, writes) else {
        return eprintln!("skipped: the system has no filters of calls");
    };
    written.unwrap();
    assert_eq!(store.get("key").unwrap().unwrap(), [199; 300]);
    let held = store.pool().waiting_blocks();
    assert!(held >= 200, "{held} blocks wait");
    store.pool().collect();
    assert_eq!(store.pool().waiting_blocks(), 0);
}

/// A file system that had become read-only, or a device that failed, was told as a full one: a
/// program that then deletes its oldest pairs loses them for nothing.
#[test]
fn a_growth_that_fails_for_another_reason_than_space_is_no_full_store() {
    for options in [mapped(), journaled(Durability::Interval(Duration::from_millis(5)))] {
        let place = place();
        let store = options.create(&place.path).unwrap();
        let fill = || (0..20_000_u32).try_for_each(|key| store.put(key.to_be_bytes(), [7; 300]));
        let Some(filled) = refused(libc::SYS_fallocate, fill) else {
            return eprintln!("skipped: the system has no filters of calls");
        };
        let is_told = matches!(filled, Err(Error::System { .. }));
        assert!(is_told, "{:?}: {filled:?}", store.durability());
        assert!(store.delete(0_u32.to_be_bytes()).unwrap());
        fill().unwrap();
        store.close().unwrap();
    }
}

/// A folder that stays, as a mount does, or one of another user in a shared folder, once blocked
/// each open.
#[test]
fn a_folder_that_cannot_be_removed_is_used_for_the_journal() {
    let place = place();
    make(&place.path, true, true);
    std::fs::create_dir(place.path.with_extension("pool.journal")).unwrap();
    let options = journaled(Durability::Commit);
    let Some(opened) = refused(libc::SYS_rmdir, || options.open(&place.path)) else {
        return eprintln!("skipped: the system has no filters of calls");
    };
    opened.unwrap().close().unwrap();
}
