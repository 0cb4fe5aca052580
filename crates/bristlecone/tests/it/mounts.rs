//! Files that are reached through mounts: alone, and from outside of their root folder.
//!
//! Each test changes the mounts of a thread, for which it needs the rights of root. Without them it
//! is skipped.
#![expect(unsafe_code, reason = "system calls that the standard library has no functions for")]

use crate::{Place, journaled, place, small};
use bristlecone::{Durability, Error, Options, Store};
use bristlecone_pmem::journal::JournalError;
use std::ffi::CString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;

fn done(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

/// Gives this thread mounts of its own.
fn unshare() -> io::Result<()> {
    // SAFETY: the call changes only what this thread finds at its paths.
    done(unsafe { libc::unshare(libc::CLONE_NEWNS) }.into())?;
    mount(None, Path::new("/"), libc::MS_REC | libc::MS_PRIVATE)
}

/// Mounts `source` at `target`, or changes how `target` is mounted.
fn mount(source: Option<&Path>, target: &Path, flags: libc::c_ulong) -> io::Result<()> {
    let (source, target) = (source.map(text), text(target));
    let source = source.as_ref().map_or(core::ptr::null(), |source| source.as_ptr());
    let none = core::ptr::null();
    // SAFETY: the texts end with zeros, and the system copies them.
    done(unsafe { libc::mount(source, target.as_ptr(), none, flags, none.cast()) }.into())
}

/// Mounts an overlay of the folders `lower` and `upper` of `folder` at its folder `merged`.
fn mount_overlay(folder: &Path) -> io::Result<()> {
    for name in ["lower", "upper", "work", "merged"] {
        fs::create_dir_all(folder.join(name))?;
    }
    let part = |name: &str| format!("{name}dir={}", folder.join(name).display());
    let data = ["lower", "upper", "work"].map(part).join(",");
    let [kind, data, target] =
        ["overlay".as_ref(), data.as_ref(), &*folder.join("merged")].map(text);
    let (kind, target) = (kind.as_ptr(), target.as_ptr());
    // SAFETY: the texts end with zeros, and the system copies them.
    done(unsafe { libc::mount(kind, target, kind, 0, data.as_ptr().cast()) }.into())
}

/// Calls `work` on a thread with mounts of its own, or returns `None` if this user may have none.
fn with_mounts<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    let run = || unshare().is_ok().then(work);
    let found = std::thread::scope(|scope| scope.spawn(run).join().unwrap());
    if found.is_none() {
        eprintln!("skipped: this user may not mount anything");
    }
    found
}

fn journal_of(pool: &Path) -> PathBuf {
    pool.with_extension("pool.journal")
}

/// Makes a closed store with a pair.
fn make(options: &Options, path: &Path) {
    let store = options.create(path).unwrap();
    store.put("kept", "1").unwrap();
    store.close().unwrap();
}

/// A container that mounts the file of a store, and not its folder, kept the journal in a layer of
/// its own. When the container was removed, so were the newest writes.
#[test]
fn a_journal_beside_a_file_that_is_mounted_by_itself_is_refused() {
    let [Place { path: real, .. }, Place { path: alone, _folder: inner }] = &[place(), place()];
    let trusting = journaled(Durability::Commit);
    make(&trusting, real);
    fs::write(alone, "").unwrap();
    with_mounts(|| {
        mount(Some(real), alone, libc::MS_BIND).unwrap();
        let options = small().durability(Durability::Commit);
        let error = options.open(alone).unwrap_err();
        if let Error::Journal { source: JournalError::NotOnDisk { .. }, .. } = error {
            return eprintln!("skipped: temporary files are not on a disk");
        }
        let said = error.to_string();
        let is_told =
            matches!(error, Error::Journal { source: JournalError::MountedAlone { .. }, .. });
        assert!(is_told && said.contains("mount the folder"), "{said}");
        assert!(!journal_of(alone).exists());
        // A folder of the journal that is no mount goes as well.
        fs::create_dir(journal_of(alone)).unwrap();
        assert!(options.open(alone).is_err());
        // One that is a mount too stays, and so does whatever the caller trusts.
        let kept = tempfile::tempdir_in(inner.path()).unwrap();
        mount(Some(kept.path()), &journal_of(alone), libc::MS_BIND).unwrap();
        let process = small().durability(Durability::Process);
        for options in [&options, &trusting, &process] {
            let store = options.open(alone).unwrap();
            assert!(store.contains("kept").unwrap());
            store.close().unwrap();
        }
        fs::write(alone.with_file_name("other"), "").unwrap();
        options.open(real).unwrap().close().unwrap();
    });
}

/// An overlayfs renames no folder of a lower layer, so a journal there, which a moved store may
/// need, stands in the way. The error did not say what to do.
#[test]
fn a_journal_that_cannot_be_set_aside_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let [lower, merged] = ["lower", "merged"].map(|name| folder.path().join(name).join("a.pool"));
    fs::create_dir(lower.parent().unwrap()).unwrap();
    let options = journaled(Durability::Commit);
    options.create(&lower).unwrap().put("a", "b").unwrap(); // and a drop
    fs::rename(&lower, lower.with_file_name("moved.pool")).unwrap();
    with_mounts(|| {
        if mount_overlay(folder.path()).is_err() {
            return eprintln!("skipped: the system has no overlayfs");
        }
        let Err(error) = options.create(&merged) else {
            return eprintln!("skipped: this overlayfs renames folders");
        };
        let said = error.to_string();
        assert!(said.contains("a.pool.journal: ") && said.contains("move it"), "{said}");
        assert!(!merged.exists() && journal_of(&merged).is_dir());
    });
}

/// The path of a file in the root folder of another process reads, once its links are followed,
/// like one in that of this process. The journal was made there, and that of a store that lay there
/// was renamed.
#[test]
fn a_store_in_another_root_folder_has_its_journal_there() {
    let own = place();
    let root = tempfile::tempdir().unwrap();
    let there = root.path().join(own.path.strip_prefix("/").unwrap());
    fs::create_dir_all(there.parent().unwrap()).unwrap();
    fs::create_dir(root.path().join("old")).unwrap();
    let options = journaled(Durability::Commit);
    make(&options, &there);
    let is_entered = in_root_folder(root.path(), |outside| {
        let outside = outside.join(own.path.strip_prefix("/").unwrap());
        // As killed ones, both need their journals.
        let killed: Store = options.create(&own.path).unwrap();
        killed.put("own", "1").unwrap();
        drop(killed);
        let store = options.open(&outside).unwrap();
        store.put("new", "2").unwrap();
        drop(store);
        assert!(journal_of(&there).is_dir());
        assert!(options.open(&own.path).unwrap().contains("own").unwrap());
        let store = options.open(&there).unwrap();
        assert!(store.contains("kept").unwrap() && store.contains("new").unwrap());
    });
    if !is_entered {
        eprintln!("skipped: this user may not mount anything");
    }
}

/// The name of a new file was made durable by the path without its links, which led nowhere, or to
/// another folder: the creation failed.
#[test]
fn a_store_is_created_in_another_root_folder() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("old")).unwrap();
    fs::create_dir(root.path().join("stores")).unwrap();
    let there = root.path().join("stores/a.pool");
    in_root_folder(root.path(), |outside| {
        for options in [journaled(Durability::Commit), small().durability(Durability::Process)] {
            let store = options.create(outside.join("stores/a.pool")).unwrap();
            store.put("new", "1").unwrap();
            drop(store);
            let store = options.open(&there).unwrap();
            assert!(store.contains("new").unwrap());
            store.close().unwrap();
            fs::remove_file(&there).unwrap();
        }
    });
}

/// Calls `work` with a path that leads from outside into `new_root`, the root folder of a thread.
/// Returns `false` if this user may make none. `new_root` has a folder `old`.
fn in_root_folder(new_root: &Path, work: impl FnOnce(&Path)) -> bool {
    let (entered, enters) = channel();
    let (ends, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let enter = || {
                unshare()?;
                mount(Some(new_root), new_root, libc::MS_BIND)?;
                std::env::set_current_dir(new_root)?; // of this thread, since it has its own
                let [new, old] = [".", "old"].map(|path| text(Path::new(path)));
                // SAFETY: the texts end with zeros. The call moves the root folder of this thread.
                done(unsafe { libc::syscall(libc::SYS_pivot_root, new.as_ptr(), old.as_ptr()) })?;
                // SAFETY: the call returns a number.
                Ok::<_, io::Error>(unsafe { libc::gettid() })
            };
            entered.send(enter()).unwrap();
            let _ = ended.recv();
        });
        let thread = enters.recv().unwrap();
        if let Ok(thread) = &thread {
            work(&PathBuf::from(format!("/proc/self/task/{thread}/root")));
        }
        drop(ends);
        thread.is_ok()
    })
}

/// Takes the rights of root from this thread, if it has them.
fn become_user() {
    const NOBODY: libc::c_long = 65534;
    // SAFETY: the call returns a number.
    if unsafe { libc::geteuid() } == 0 {
        // SAFETY: the call changes this thread alone.
        done(unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) }).unwrap();
    }
}

/// A folder that may be entered and not read cannot be opened to sync it. A store without a journal
/// left the name of its file unsynced there, and one with a journal was refused.
#[test]
fn a_folder_that_may_not_be_read_can_have_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let made = std::thread::scope(|scope| {
        let make = || {
            let folder = folder.path().join("entered");
            let path = folder.join("a.pool");
            fs::set_permissions(folder.parent()?, Permissions::from_mode(0o777)).ok()?;
            become_user();
            fs::create_dir(&folder).unwrap();
            fs::set_permissions(&folder, Permissions::from_mode(0o300)).unwrap();
            fs::read_dir(&folder).unwrap_err();
            for durability in [Durability::Commit, Durability::Process] {
                let options = journaled(durability);
                options.create(&path).unwrap().put("a", "b").unwrap(); // and a drop
                let store = options.open(&path).unwrap();
                assert!(store.contains("a").unwrap());
                store.close().unwrap();
                fs::remove_file(&path).unwrap();
            }
            fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
            Some(())
        };
        scope.spawn(make).join().unwrap()
    });
    assert_eq!(made, Some(()));
}

/// The mount of a folder that may not be read was not looked at: the journal lay beside the file,
/// on another mount.
#[test]
fn a_file_that_is_mounted_by_itself_is_refused_where_its_folder_may_not_be_read() {
    let [Place { path: real, .. }, Place { path: alone, .. }] = &[place(), place()];
    make(&journaled(Durability::Commit), real);
    fs::write(alone, "").unwrap();
    with_mounts(|| {
        mount(Some(real), alone, libc::MS_BIND).unwrap();
        fs::set_permissions(alone, Permissions::from_mode(0o666)).unwrap();
        fs::set_permissions(alone.parent().unwrap(), Permissions::from_mode(0o733)).unwrap();
        become_user();
        let error = small().durability(Durability::Commit).open(alone).unwrap_err();
        let Error::Journal { source, .. } = &error else { panic!("{error}") };
        if let JournalError::NotOnDisk { .. } = source {
            return eprintln!("skipped: temporary files are not on a disk");
        }
        assert!(matches!(source, JournalError::MountedAlone { .. }), "{error}");
        assert!(!journal_of(alone).exists());
    });
}
