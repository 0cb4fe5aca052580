use super::*;
use crate::child;
use crate::medium::Medium;
use crate::medium::page::page_bytes;
use crate::pool::{Opened, POOL_BYTES_MIN};
use crate::{PmPtr, Pool, PoolError};
use rustix::fs::{FallocateFlags, fallocate, fstatfs};
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;

const NAME: &str = "medium::file::tests::";
/// The largest size of a file on the full disk.
const ROOM: u64 = 1 << 20;
/// A file length that is no multiple of a page.
const ODD: u64 = POOL_BYTES_MIN + 4096 + 13;

#[test]
fn a_plain_file_never_has_a_power_fail_domain() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let plain = Mapped::create(&path, 1 << 20, &FileOptions::default()).unwrap();
    assert_eq!(plain.domain(), Domain::ProcessCrash);
    let emulated = plain.emulate(Domain::Adr).unwrap();
    assert_eq!(emulated.domain(), Domain::ProcessCrash, "emulation does not change the domain");
    drop(emulated);
    let before = std::fs::read(&path).unwrap();
    for required in [Domain::Adr, Domain::Eadr] {
        let options = FileOptions { require: Some(required), ..FileOptions::default() };
        let given = Domain::ProcessCrash;
        for error in [
            Mapped::open(&path, &options).unwrap_err(),
            Mapped::create(&dir.path().join("new"), 1 << 20, &options).unwrap_err(),
        ] {
            let expected = MediumError::Domain { required, given };
            assert_eq!(error.to_string(), expected.to_string());
        }
        assert!(!dir.path().join("new").exists(), "a refused file is not left behind");
    }
    assert!(before == std::fs::read(&path).unwrap());
    for enough in [Domain::ProcessCrash, Domain::Volatile] {
        let options = FileOptions { require: Some(enough), ..FileOptions::default() };
        assert!(Mapped::open(&path, &options).is_ok());
    }
}

#[test]
fn an_empty_file_has_no_power_fail_domain_and_no_pool() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("empty");
    std::fs::write(&path, b"").unwrap();
    let empty = Mapped::open(&path, &FileOptions::default()).unwrap();
    assert_eq!(empty.domain(), Domain::ProcessCrash);
    assert!(matches!(Pool::open(empty), Err(PoolError::TooSmall { bytes: 0, .. })));
}

#[test]
fn a_second_process_gets_an_error_while_the_file_is_open() {
    let test = format!("{NAME}a_second_process_gets_an_error_while_the_file_is_open");
    let open = |dir: &Path| Mapped::open(&dir.join("p.pool"), &FileOptions::default());
    if let Some(dir) = child::is_child() {
        eprintln!("{}", open(&dir).unwrap_err());
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let held = Mapped::create(&dir.path().join("p.pool"), 1 << 20, &FileOptions::default());
    let output = child::run(&test, dir.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the pool is open elsewhere; close it there first"), "{said}");
    assert!(output.status.success());
    drop(held);
    assert!(open(dir.path()).is_ok());
}

/// Limits the size of every file that this process writes. A write past it ends the process. Only
/// for a child process.
fn bound_files(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the structure is valid.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let test = format!("{NAME}a_full_disk_is_an_error_and_loses_nothing");
    if let Some(dir) = child::is_child() {
        bound_files(ROOM);
        let options = FileOptions::default();
        let path = dir.join("big");
        let error = Mapped::create(&path, 2 * ROOM, &options).unwrap_err();
        assert!(matches!(error, MediumError::System { .. }), "{error}");
        assert!(!path.exists(), "no file is left behind");

        let pool = Pool::create(Mapped::create(&dir.join("p.pool"), ROOM / 2, &options).unwrap());
        let pool = pool.unwrap();
        let block = pool.reserve(64).unwrap();
        pool.medium().store(&pool.words(block, 1).unwrap()[0], 42);
        pool.create_root("r", 1, block).unwrap();
        let full = loop {
            match pool.reserve(16 << 10) {
                Ok(block) => pool.medium().store(&pool.words(block, 2048).unwrap()[2047], 7),
                Err(error) => break error,
            }
        };
        assert!(matches!(full, PoolError::Full { .. }), "{full}");
        assert_eq!(pool.usage().pool_bytes, ROOM, "the pool uses all the space of the device");
        pool.reserve(64).expect("the chunk of small blocks has space");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let output = child::run(&test, dir.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let medium = Mapped::open(&dir.path().join("p.pool"), &FileOptions::default()).unwrap();
    let (pool, opened) = Pool::open(medium).unwrap();
    assert_eq!(opened, Opened::Crashed);
    let root = pool.root("r").unwrap().unwrap();
    assert_eq!(pool.medium().load(&pool.words(root.block, 1).unwrap()[0]), 42);
}

#[test]
fn a_growth_past_the_limit_of_file_sizes_is_an_error_and_no_signal() {
    let test = format!("{NAME}a_growth_past_the_limit_of_file_sizes_is_an_error_and_no_signal");
    if let Some(dir) = child::is_child() {
        bound_files(ROOM);
        let options = FileOptions { allocate_bytes: 2 * ROOM, ..FileOptions::default() };
        let path = dir.join("p.pool");
        let refused = [
            Mapped::create(&path, ROOM / 2, &options).unwrap_err(),
            Mapped::create(&path, 2 * ROOM, &FileOptions::default()).unwrap_err(),
        ];
        let medium = Mapped::create(&path, ROOM / 2, &FileOptions::default()).unwrap();
        medium.prepare_growth(2 * ROOM); // The thread meets the limit, too.
        for error in refused.into_iter().chain([medium.grow(2 * ROOM).unwrap_err()]) {
            let MediumError::System { source, .. } = error else { panic!("{error}") };
            assert_eq!(source.kind(), std::io::ErrorKind::FileTooLarge);
        }
        medium.grow(ROOM).unwrap();
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let output = child::run(&test, dir.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_read_only_file_is_an_error_with_the_reason() {
    let test = format!("{NAME}a_read_only_file_is_an_error_with_the_reason");
    if let Some(dir) = child::is_child() {
        // Root can write every file, so the child becomes another user.
        // SAFETY: changing the user has no precondition; it fails for every user but root.
        let _ = unsafe { libc::setuid(65534) };
        let error = Mapped::open(&dir.join("p.pool"), &FileOptions::default()).unwrap_err();
        eprintln!("{error}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    drop(Mapped::create(&path, 1 << 20, &FileOptions::default()).unwrap());
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    set(&path, 0o444);
    set(dir.path(), 0o755);
    let output = child::run(&test, dir.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("cannot open the file for reading and writing: "), "{said}");
    assert!(said.contains("ermission denied"), "{said}");
}

#[test]
fn impossible_sizes_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p");
    for bytes in [u64::MAX, u64::MAX - 4095, 1 << 62] {
        assert!(Mapped::anonymous(bytes).is_err());
        let options = FileOptions { reserve_bytes: bytes, ..FileOptions::default() };
        assert!(Mapped::create(&path, 1 << 20, &options).is_err());
        assert!(Mapped::create(&path, bytes, &FileOptions::default()).is_err());
        assert!(!path.exists());
    }
}

#[test]
fn a_file_of_odd_length_is_mapped_to_its_last_byte_and_grows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p");
    let mut bytes = vec![0; ODD as usize];
    bytes[ODD as usize - 13] = 9;
    std::fs::write(&path, &bytes).unwrap();
    // The option reserves less than the file has; the file's size counts.
    let options = FileOptions { reserve_bytes: 0, ..FileOptions::default() };
    let pool = Pool::create(Mapped::open(&path, &options).unwrap()).unwrap();
    assert_eq!(pool.usage().pool_bytes, POOL_BYTES_MIN);
    assert!(pool.words(PmPtr::new(ODD - 13), 1).is_ok());
    assert!(pool.words(PmPtr::new(ODD - 5), 1).is_err());
    pool.grow(POOL_BYTES_MIN + (64 << 10)).unwrap();
    let last = &pool.words(PmPtr::new(POOL_BYTES_MIN + (64 << 10) - 8), 1).unwrap()[0];
    pool.medium().store(last, 5);
    assert_eq!(pool.medium().load(&pool.words(PmPtr::new(ODD - 13), 1).unwrap()[0]), 9);
    drop(pool);
    let (pool, _) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    assert_eq!(pool.medium().len(), POOL_BYTES_MIN + (64 << 10));
    let beyond = pool.medium().grow(1 << 40).unwrap_err();
    assert!(matches!(beyond, MediumError::Limit { .. }), "{beyond}");
}

/// The attempt to map with `MAP_SYNC` once was a fixed mapping. If the system refused it, it left a
/// hole, another thread's mapping fell into the hole, and the next fixed mapping replaced that
/// thread's pages. This is a race: the test gives it many chances, not a certain one.
#[test]
fn files_opened_at_once_never_share_addresses() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let path = folder.path().join(thread.to_string());
            scope.spawn(move || {
                for round in 0..300u64 {
                    let medium = Mapped::create(&path, 1 << 20, &FileOptions::default()).unwrap();
                    let pool = Pool::create(medium).unwrap();
                    let words = pool.words(PmPtr::new(0x9000), 512).unwrap();
                    let value = thread << 32 | round;
                    for word in words {
                        pool.medium().store(word, value);
                    }
                    std::thread::yield_now();
                    let same = |word| pool.medium().load(word) == value;
                    assert!(words.iter().all(same));
                    drop(pool);
                    std::fs::remove_file(&path).unwrap();
                }
            });
        }
    });
}

/// Writes a copy of `from` that leaves out its pages of zeros, as many programs that copy files do.
fn copy_with_holes(from: &Path, to: &Path) {
    use std::os::unix::fs::FileExt;
    let bytes = std::fs::read(from).unwrap();
    let copy = File::create(to).unwrap();
    copy.set_len(bytes.len() as u64).unwrap();
    for (page, at) in bytes.chunks(page_bytes()).zip((0..).step_by(page_bytes())) {
        if page.iter().any(|&byte| byte != 0) {
            copy.write_all_at(page, at).unwrap();
        }
    }
}

fn allocated(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().blocks() * 512
}

#[test]
fn the_holes_of_a_copy_get_space_at_the_open() {
    let dir = tempfile::tempdir().unwrap();
    let [path, copy] = ["p.pool", "copy.pool"].map(|name| dir.path().join(name));
    let medium = Mapped::create(&path, 4 << 20, &FileOptions::default()).unwrap();
    Pool::create(medium).unwrap().close().unwrap();
    copy_with_holes(&path, &copy);
    assert!(allocated(&copy) < 4 << 20, "the copy has holes");
    let before = std::fs::read(&copy).unwrap();
    let medium = Mapped::open(&copy, &FileOptions::default()).unwrap();
    assert!(before == std::fs::read(&copy).unwrap());
    let (pool, opened) = Pool::open(medium).unwrap();
    assert_eq!(opened, Opened::Clean);
    assert!(allocated(&copy) >= 4 << 20, "no later store needs space");
    assert_eq!(pool.medium().len(), 4 << 20);
}

/// A file can have more blocks than its pool has bytes, and holes in the pool all the same.
#[test]
fn a_hole_gets_space_though_the_file_has_blocks_past_the_pool() {
    const POOL: u64 = 1 << 20;
    const HOLE: u64 = 64 << 10;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let medium = Mapped::create(&path, POOL, &FileOptions::default()).unwrap();
    Pool::create(medium).unwrap().close().unwrap();
    let file = File::options().write(true).open(&path).unwrap();
    let empty = FallocateFlags::empty();
    fallocate(&file, empty, POOL, POOL).unwrap();
    let before = allocated(&path);
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    for at in [POOL / 2, POOL - HOLE] {
        if let Err(error) = fallocate(&file, punch, at, HOLE) {
            return eprintln!("skipped: the file system makes no holes: {error}");
        }
    }
    // The file system may need a block to say where they are.
    assert!(allocated(&path) <= before - HOLE, "there are holes");
    let (pool, opened) = Pool::open(Mapped::open(&path, &FileOptions::default()).unwrap()).unwrap();
    assert_eq!((opened, pool.medium().len()), (Opened::Clean, POOL));
    assert!(allocated(&path) >= before, "no later store needs space");
}

#[test]
fn holes_that_no_device_has_space_for_are_an_error_and_take_none() {
    const CLAIMED: u64 = 8 << 40;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let file = File::create(&path).unwrap();
    let system = fstatfs(&file).unwrap();
    if system.f_blocks == 0 || system.f_bavail * system.f_bsize.unsigned_abs() > CLAIMED {
        return eprintln!("skipped: the device has space for {CLAIMED} bytes");
    }
    file.set_len(CLAIMED).unwrap();
    let before = allocated(&path);
    let mut medium = Mapped::open(&path, &FileOptions::default()).unwrap();
    let error = medium.fit_to(CLAIMED).unwrap_err();
    assert!(
        matches!(error, MediumError::Holes { missing, .. } if missing > CLAIMED / 2),
        "{error}"
    );
    assert_eq!(allocated(&path), before);
    assert_eq!(medium.len(), CLAIMED, "nothing has changed");
}

#[test]
fn a_pool_in_a_longer_file_has_its_own_length_and_grows_into_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let options = FileOptions::default();
    drop(Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap());
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(1 << 40).unwrap();
    let (pool, _) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    assert_eq!(pool.medium().len(), 1 << 20);
    assert!(pool.words(PmPtr::new((1 << 20) - 8), 1).is_ok());
    assert!(pool.words(PmPtr::new(1 << 20), 1).is_err(), "no pointer leads past the pool");
    let before = allocated(&path);
    pool.grow(3 << 20).unwrap();
    assert!(pool.words(PmPtr::new((3 << 20) - 8), 1).is_ok());
    assert!(allocated(&path) >= before + (2 << 20), "the rest was a hole, and has space now");
    drop(pool);
    let (pool, _) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    assert_eq!(pool.medium().len(), 3 << 20);
}

/// The system refuses address space once the file has got its space on the device.
#[test]
fn a_growth_that_fails_gives_its_space_back() {
    const GROWN: u64 = 1 << 30;
    let test = format!("{NAME}a_growth_that_fails_gives_its_space_back");
    let Some(dir) = child::is_child() else {
        let dir = tempfile::tempdir().unwrap();
        let output = child::run(&test, dir.path());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    };
    let path = dir.join("p.pool");
    let medium = Mapped::create(&path, 1 << 20, &FileOptions::default()).unwrap();
    let before = allocated(&path);
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split(' ').next().unwrap().parse().unwrap();
    let limit = pages * page_bytes() as u64 + GROWN / 2;
    let limit = libc::rlimit { rlim_cur: limit, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the structure is valid.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    let error = medium.grow(GROWN).unwrap_err();
    assert!(matches!(error, MediumError::System { action: "map the file", .. }), "{error}");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1 << 20);
    // A file system may keep a block that says where the others were.
    assert!(allocated(&path) < before + (64 << 10), "{} {before}", allocated(&path));
    medium.grow(2 << 20).unwrap();
}

/// Returns the flags that the system has for the mapping of the file at `path`.
fn flags_of(path: &Path) -> String {
    let map = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let from = map.find(path.to_str().unwrap()).expect("the file is mapped");
    let flags = map[from..].lines().find_map(|line| line.strip_prefix("VmFlags:"));
    format!("{} ", flags.unwrap())
}

/// With huge pages in a page cache, a store of a few bytes would write 2 MiB to the device.
#[test]
fn only_pages_that_no_device_is_behind_become_huge() {
    for folder in [std::env::temp_dir(), "/dev/shm".into()] {
        let Ok(dir) = tempfile::tempdir_in(&folder) else { continue };
        let path = dir.path().join("huge.pool");
        let medium = Mapped::create(&path, 8 << 20, &FileOptions::default()).unwrap();
        medium.grow(16 << 20).unwrap();
        let is_cache = medium.file.as_ref().unwrap().backing().kind == FileKind::PageCache;
        assert_eq!(flags_of(&path).contains(" hg "), !is_cache, "{}", folder.display());
        assert!(flags_of(&path).contains(" dc "), "a child does not inherit the mapping");
    }
}
