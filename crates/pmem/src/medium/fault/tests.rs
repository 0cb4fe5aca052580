use super::*;
use crate::child;
use crate::medium::{FileOptions, Mapped};
use crate::{Medium, PmPtr, Pool};
use std::os::unix::process::ExitStatusExt;

const NAME: &str = "medium::fault::tests::";

#[test]
fn a_file_cut_under_the_process_ends_it_with_a_message() {
    let test = format!("{NAME}a_file_cut_under_the_process_ends_it_with_a_message");
    if let Some(dir) = child::is_child() {
        let path = dir.join("cut.pool");
        let other = Mapped::create(&dir.join("other.pool"), 1 << 20, &FileOptions::default());
        let pool = Mapped::create(&path, 1 << 20, &FileOptions::default()).unwrap();
        let pool = Pool::create(pool).unwrap();
        install_fault_message().unwrap();
        install_fault_message().unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
        pool.medium().load(&pool.words(PmPtr::new(0x9008), 1).unwrap()[0]);
        drop(other);
        unreachable!("the load went through");
    }
    let dir = tempfile::tempdir().unwrap();
    let output = child::run(&test, dir.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(FAULT_EXIT_CODE), "{said}");
    assert!(said.contains("/cut.pool: cannot reach offset 0x9008: "), "{said}");
    assert!(said.contains("restore the file from a backup"), "{said}");
}

#[test]
fn a_fault_elsewhere_is_as_before() {
    let test = format!("{NAME}a_fault_elsewhere_is_as_before");
    if let Some(dir) = child::is_child() {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let pool = Mapped::create(&dir.join("p.pool"), 1 << 20, &FileOptions::default());
        install_fault_message().unwrap();
        std::fs::write(dir.join("other"), [1; 4096]).unwrap();
        let other = std::fs::File::options().read(true).write(true).open(dir.join("other"));
        let other = other.unwrap();
        // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
        let at = unsafe {
            mmap(core::ptr::null_mut(), 4096, ProtFlags::READ, MapFlags::SHARED, &other, 0)
        };
        other.set_len(0).unwrap();
        // SAFETY: the mapping is there; that its page is not is what is tested.
        let byte = unsafe { at.unwrap().cast::<u8>().read_volatile() };
        drop(pool);
        unreachable!("the load gave {byte}");
    }
    let dir = tempfile::tempdir().unwrap();
    let output = child::run(&test, dir.path());
    assert_eq!(output.status.signal(), Some(libc::SIGBUS));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("bristlecone: "));
}

#[test]
fn entries_come_back_and_a_full_table_is_no_failure() {
    let path = Path::new("/none");
    let taken: Vec<_> = (0..FILES_MAX + 3).map(|_| Watched::new(path, 1 << 12, 8)).collect();
    assert!(taken.iter().any(|watched| watched.0.is_none()));
    drop(taken);
    assert!(Watched::new(path, 1 << 12, 8).0.is_some());
}
