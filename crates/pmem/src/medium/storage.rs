//! The storage of files: what it keeps over a power cut.
#![expect(unsafe_code, reason = "memory mapping has no safe form")]

use super::page::{page_bytes, unmap};
use super::{Domain, MediumError};
use rustix::fs::{AtFlags, StatxFlags, fstatfs, statx};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::fs::{File, read_to_string};
use std::os::fd::AsRawFd;

/// The storage that a file is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Persistent memory, mounted with DAX.
    Dax,
    /// A file system in memory, of this type: it keeps nothing over a power cut.
    Memory(&'static str),
    /// A file system that keeps what it has synced.
    Disk,
    /// A file system of this type, which may keep nothing over a power cut.
    Unsure(&'static str),
}

/// File systems in memory, by type.
const IN_MEMORY: [(i64, &str); 2] = [(0x0102_1994, "tmpfs"), (0x8584_58F6, "ramfs")];
/// File systems on a network or in user space, by type: a sync is what the other side makes of it.
const UNSURE: [(i64, &str); 7] = [
    (0x6969, "NFS"),
    (0x6573_5546, "FUSE"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB"),
    (0x0102_1997, "9p"),
    (0x00C3_6400, "Ceph"),
    (0x786F_4256, "vboxsf"),
];
/// The type of overlayfs.
const OVERLAY: i64 = 0x794C_7630;

impl Storage {
    /// Returns the storage of `file`.
    pub(crate) fn of(file: &File) -> Result<Self, MediumError> {
        if takes_map_sync(file) { Ok(Self::Dax) } else { Self::of_system(file) }
    }

    /// Returns the storage of a file or folder, as its file system alone tells.
    pub(crate) fn of_system(file: &File) -> Result<Self, MediumError> {
        let system = fstatfs(file)
            .map_err(|e| MediumError::system("read the type of the file system", e))?;
        let find = |table: &[(i64, &'static str)]| {
            table.iter().find(|&&(kind, _)| kind == system.f_type).map(|&(_, name)| name)
        };
        Ok(if let Some(name) = find(&IN_MEMORY) {
            Self::Memory(name)
        } else if let Some(name) = find(&UNSURE) {
            Self::Unsure(name)
        } else if system.f_type == OVERLAY && ignores_syncs(file) {
            Self::Unsure("overlayfs, mounted volatile")
        } else {
            Self::Disk
        })
    }

    /// Returns the domain of a mapping of a file there.
    pub fn domain(self) -> Domain {
        if self == Self::Dax { dax_domain() } else { Domain::ProcessCrash }
    }
}

/// Returns the number of the mount through which `file` was opened, or `None` if the system does
/// not tell, as Linux before 5.8.
pub(crate) fn mount_of(file: &File) -> Option<u64> {
    let found = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
    let is_told = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
    is_told.then_some(found.stx_mnt_id)
}

/// Returns `true` if the file can be mapped with `MAP_SYNC`, which only persistent memory can. The
/// attempt uses an address of the kernel's choice. A refused fixed mapping may leave a hole in the
/// reserved range, and another thread's mapping could fall into it.
fn takes_map_sync(file: &File) -> bool {
    // SAFETY: a new mapping at an address of the kernel's choice touches no existing memory.
    let mapped = unsafe {
        mmap(
            core::ptr::null_mut(),
            page_bytes(),
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED_VALIDATE | MapFlags::SYNC,
            file,
            0,
        )
    };
    match mapped {
        Ok(at) => {
            unmap(at.cast(), page_bytes());
            true
        }
        Err(_) => false,
    }
}

/// Returns the domain of a DAX mapping. It is [`Domain::Eadr`] only if every region of the machine
/// reports that its caches are inside the power-fail domain.
fn dax_domain() -> Domain {
    let Ok(devices) = std::fs::read_dir("/sys/bus/nd/devices") else { return Domain::Adr };
    let mut domains = devices
        .flatten()
        .filter(|device| device.file_name().to_string_lossy().starts_with("region"))
        .filter_map(|region| read_to_string(region.path().join("persistence_domain")).ok())
        .peekable();
    if domains.peek().is_some() && domains.all(|domain| domain.trim() == "cpu_cache") {
        Domain::Eadr
    } else {
        Domain::Adr
    }
}

/// Returns `true` if the overlayfs of `file` is mounted `volatile`, so that a sync does nothing.
fn ignores_syncs(file: &File) -> bool {
    let info = read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()));
    let mounts = read_to_string("/proc/self/mountinfo");
    matches!((info, mounts), (Ok(info), Ok(mounts)) if is_volatile(&info, &mounts))
}

/// Returns `true` if the mount that `info` of a descriptor names has the option `volatile`.
fn is_volatile(info: &str, mounts: &str) -> bool {
    let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:")).map(str::trim);
    // The fields of a mount: its number first, and the options of its file system last.
    let of_mount = |line: &&str| line.split(' ').next() == id && id.is_some();
    let options = mounts.lines().find(of_mount).and_then(|line| line.rsplit(' ').next());
    options.is_some_and(|options| options.split(',').any(|option| option == "volatile"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_mount_of_the_file_counts_as_volatile() {
        let mounts = "\
            21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,volatile_not\n\
            210 21 0:50 / /merged rw shared:7 - overlay overlay rw,lowerdir=/a,volatile,xino=off\n\
            211 21 0:51 / /other rw - overlay overlay rw,lowerdir=/volatile,upperdir=/b\n";
        let info = |id: &str| format!("pos:\t0\nflags:\t02\nmnt_id:\t{id}\nino:\t5\n");
        assert!(is_volatile(&info("210"), mounts));
        assert!(!is_volatile(&info("21"), mounts));
        assert!(!is_volatile(&info("211"), mounts));
        assert!(!is_volatile("pos:\t0\n", mounts));
    }

    #[test]
    fn a_file_of_shared_memory_is_in_memory() {
        let Ok(file) = tempfile::tempfile_in("/dev/shm") else { return };
        assert!(matches!(Storage::of(&file), Ok(Storage::Memory("tmpfs"))));
        assert_eq!(Storage::Memory("tmpfs").domain(), Domain::ProcessCrash);
    }
}
