use super::*;
use crate::child;
use crate::medium::{FileOptions, Mapped};
use crate::{Medium, PmPtr, Pool};
use std::os::unix::process::ExitStatusExt;

const NAME: &str = "medium::fault::tests::";

#[test]
fn a_truncated_file_ends_the_process_with_a_message() {
    let test = format!("{NAME}a_truncated_file_ends_the_process_with_a_message");
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
        unreachable!("the load succeeded");
    }
    let dir = tempfile::tempdir().unwrap();
    let output = child::run(&test, dir.path());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(FAULT_EXIT_CODE), "{said}");
    assert!(said.contains("/cut.pool: cannot reach offset 0x9008: "), "{said}");
    assert!(said.contains("restore the file from a backup"), "{said}");
}

/// Makes a page of shared memory unreadable through the system, which is how a failed medium
/// behaves.
#[cfg(target_os = "linux")]
#[test]
fn an_unreadable_page_ends_the_process_with_a_message() {
    const REFUSED: i32 = 77;
    let test = format!("{NAME}an_unreadable_page_ends_the_process_with_a_message");
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
        unreachable!("the load succeeded");
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

/// Pages that fail, made with userfaultfd.
#[cfg(target_os = "linux")]
mod poison {
    use std::io::{Error, Result};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    const PAGE: u64 = 4096;
    /// The version of the interface, and the features: shared memory, and poison.
    const API: [u64; 3] = [0xaa, 1 << 5 | 1 << 14, 0];
    /// The mode that registers for faults on missing pages.
    const MISSING: u64 = 1;
    const HANDSHAKE: libc::Ioctl = 0xc018_aa3f_u32 as libc::Ioctl;
    const REGISTER: libc::Ioctl = 0xc020_aa00_u32 as libc::Ioctl;
    const POISON: libc::Ioctl = 0xc020_aa08_u32 as libc::Ioctl;

    /// Makes the page at `address` fail until the result is dropped.
    pub(super) fn page(address: usize) -> Result<OwnedFd> {
        // SAFETY: the call takes flags and returns a descriptor.
        let descriptor = unsafe { libc::syscall(libc::SYS_userfaultfd, libc::O_CLOEXEC) };
        let descriptor = i32::try_from(descriptor).ok().filter(|&descriptor| descriptor >= 0);
        let descriptor = descriptor.ok_or_else(Error::last_os_error)?;
        // SAFETY: the descriptor is new, so this is its only owner.
        let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
        request(&descriptor, HANDSHAKE, API)?;
        request(&descriptor, REGISTER, [address as u64, PAGE, MISSING, 0])?;
        // SAFETY: the page belongs to a shared file, which keeps its contents.
        if unsafe { libc::madvise(address as *mut _, PAGE as usize, libc::MADV_DONTNEED) } != 0 {
            return Err(Error::last_os_error());
        }
        request(&descriptor, POISON, [address as u64, PAGE, 0, 0])?;
        Ok(descriptor)
    }

    fn request<const WORDS: usize>(
        descriptor: &OwnedFd,
        code: libc::Ioctl,
        mut words: [u64; WORDS],
    ) -> Result<()> {
        // SAFETY: each request reads and writes a structure of exactly the size that is passed
        // here.
        match unsafe { libc::ioctl(descriptor.as_raw_fd(), code, words.as_mut_ptr()) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }
}

#[test]
fn a_fault_outside_every_pool_goes_to_the_previous_handler() {
    let test = format!("{NAME}a_fault_outside_every_pool_goes_to_the_previous_handler");
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
        // SAFETY: the mapping exists. The test is that its page does not.
        let byte = unsafe { at.unwrap().cast::<u8>().read_volatile() };
        drop(pool);
        unreachable!("the load returned {byte}");
    }
    let dir = tempfile::tempdir().unwrap();
    let output = child::run(&test, dir.path());
    assert_eq!(output.status.signal(), Some(libc::SIGBUS));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("bristlecone: "));
}

#[test]
fn entries_are_reused_and_a_full_table_is_no_error() {
    let path = Path::new("/none");
    let taken: Vec<_> = (0..FILES_MAX + 3).map(|_| Watched::new(path, 1 << 12, 8)).collect();
    assert!(taken.iter().any(|watched| watched.0.is_none()));
    drop(taken);
    assert!(Watched::new(path, 1 << 12, 8).0.is_some());
}
