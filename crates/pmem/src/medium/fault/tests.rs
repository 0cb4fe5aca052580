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

/// The system can make a page of shared memory unreadable, as a failed medium is.
#[cfg(target_os = "linux")]
#[test]
fn a_page_that_the_medium_cannot_give_ends_the_process_with_a_message() {
    const REFUSED: i32 = 77;
    let test = format!("{NAME}a_page_that_the_medium_cannot_give_ends_the_process_with_a_message");
    if let Some(dir) = child::is_child() {
        let pool = Mapped::create(&dir.join("p.pool"), 1 << 20, &FileOptions::default()).unwrap();
        let pool = Pool::create(pool).unwrap();
        install_fault_message().unwrap();
        let words = pool.words(PmPtr::new(0x9000), 512).unwrap();
        let _failed = match poison::page(words.as_ptr() as usize) {
            Ok(failed) => failed,
            Err(error) => {
                eprintln!("{error}");
                std::process::exit(REFUSED)
            }
        };
        pool.medium().load(&words[1]);
        unreachable!("the load went through");
    }
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        return eprintln!("skipped: no shared memory at /dev/shm");
    };
    let output = child::run(&test, dir.path());
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(REFUSED) {
        return eprintln!("skipped: the system makes no page unreadable: {said}");
    }
    assert_eq!(output.status.code(), Some(FAULT_EXIT_CODE), "{said}");
    assert!(said.contains("/p.pool: cannot reach offset 0x9"), "{said}");
}

/// Pages that fail, by userfaultfd.
#[cfg(target_os = "linux")]
mod poison {
    use std::io::{Error, Result};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    const PAGE: u64 = 4096;
    /// The version of the interface, and the features: pages of shared memory, and poison.
    const API: [u64; 3] = [0xaa, 1 << 5 | 1 << 14, 0];
    /// Faults on pages that are missing.
    const MISSING: u64 = 1;
    const ASK_API: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
    const REGISTER: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
    const POISON: libc::Ioctl = 0xc020_aa08_u32 as libc::Ioctl;

    /// Makes the page at `address` fail for as long as what is returned lives.
    pub(super) fn page(address: usize) -> Result<OwnedFd> {
        // SAFETY: the call takes flags and gives a descriptor.
        let found = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
        let found = i32::try_from(found).ok().filter(|&found| found >= 0);
        let found = found.ok_or_else(Error::last_os_error)?;
        // SAFETY: the descriptor is new, and nobody else's.
        let found = unsafe { OwnedFd::from_raw_fd(found) };
        ask(&found, ASK_API, API)?;
        ask(&found, REGISTER, [address as u64, PAGE, MISSING, 0])?;
        // SAFETY: the page is of a shared file, which keeps its content.
        if unsafe { libc::madvise(address as *mut _, PAGE as usize, libc::MADV_DONTNEED) } != 0 {
            return Err(Error::last_os_error());
        }
        ask(&found, POISON, [address as u64, PAGE, 0, 0])?;
        Ok(found)
    }

    fn ask<const WORDS: usize>(
        of: &OwnedFd,
        request: libc::Ioctl,
        mut words: [u64; WORDS],
    ) -> Result<()> {
        // SAFETY: each request reads and writes a structure of as many words as it is given here.
        match unsafe { libc::ioctl(of.as_raw_fd(), request, words.as_mut_ptr()) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }
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
