//! The identity of a file: what a copy of it has not.

use rustix::fs::fstatfs;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::UNIX_EPOCH;

/// File systems whose inode numbers last as long as the file, by type: ext2 to ext4, XFS, Btrfs,
/// F2FS, tmpfs. Others number files anew at each mount (FAT), or as their layers lie (overlayfs).
const LASTING: [i64; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];

/// Returns the inode number of `file` and the time of its birth, in nanoseconds since 1970. Returns
/// 0 for the time if the file system does not keep it. Returns 0 and the type of the file system if
/// the number may change while the file stays, and zeros if the system does not tell.
///
/// A rename or a hard link changes neither. The device is no part of it: it changes at a restart.
pub(super) fn of(file: &File) -> [u64; 2] {
    let Ok(system) = fstatfs(file) else { return [0; 2] };
    if !LASTING.contains(&system.f_type) {
        return [0, system.f_type.cast_unsigned()];
    }
    let Ok(metadata) = file.metadata() else { return [0; 2] };
    let birth = metadata.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    [metadata.ino(), birth.map_or(0, |age| age.as_nanos() as u64)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_link_and_a_rename_keep_the_identity_and_a_copy_has_another() {
        for folder in ["/dev/shm".into(), std::env::temp_dir()] {
            let Ok(folder) = tempfile::tempdir_in(folder) else { continue };
            let [path, other, copy, moved] =
                ["a", "b", "c", "d"].map(|name| folder.path().join(name));
            let read = |path| of(&File::open(path).unwrap());
            fs::write(&path, "text").unwrap();
            let id = read(&path);
            fs::write(&path, "another text").unwrap();
            fs::copy(&path, &copy).unwrap();
            fs::hard_link(&path, &other).unwrap();
            assert_eq!((read(&path), read(&other)), (id, id));
            fs::rename(&other, &moved).unwrap();
            assert_eq!(read(&moved), id);
            if id[0] != 0 {
                assert_ne!(read(&copy)[0], id[0]);
            }
        }
    }

    #[test]
    fn files_without_a_lasting_number_have_the_type_of_their_file_system() {
        const PROC: u64 = 0x9FA0;
        for path in ["/proc/self/status", "/proc/self/maps"] {
            assert_eq!(of(&File::open(path).unwrap()), [0, PROC]);
        }
    }
}
