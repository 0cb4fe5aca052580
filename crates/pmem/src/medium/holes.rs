//! Holes of files: parts that read as zeros and have no space on the device.

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;

/// The size from which on a hole is passed over, in bytes. File systems have called parts holes
/// that had just been written; such a part is as long as a write.
const HOLE_BYTES: u64 = 1 << 30;

/// Returns the end of the hole at `at` if it has 1 GiB or more, else `at`.
///
/// A hostile file can be terabytes of holes: a reader that passes over them reads what exists. The
/// position of the file is undefined afterwards.
///
/// # Errors
/// The system refuses to look.
pub fn end_of_hole(file: &File, at: u64) -> io::Result<u64> {
    let end = match seek(file, SeekFrom::Data(at)) {
        Ok(data) => data,
        Err(Errno::NXIO) => file.metadata()?.len(),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
        Err(error) => return Err(error.into()),
    };
    Ok(if end.saturating_sub(at) >= HOLE_BYTES { end } else { at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_hole_of_a_gibibyte_is_passed_over_in_one_step() {
        let file = tempfile::tempfile().unwrap();
        let (data, length) = (8 << 30, 1 << 40);
        file.set_len(length).unwrap();
        file.write_all_at(b"data", data).unwrap();
        let found = end_of_hole(&file, 0).unwrap();
        if found == 0 {
            return eprintln!("skipped: the file system does not know its holes");
        }
        // A block that has data may begin before it.
        assert!(found <= data && found > data - (2 << 20), "{found}");
        assert_eq!(end_of_hole(&file, data).unwrap(), data);
        assert_eq!(end_of_hole(&file, data - HOLE_BYTES / 2).unwrap(), data - HOLE_BYTES / 2);
        assert_eq!(end_of_hole(&file, data + (2 << 20)).unwrap(), length);
        assert_eq!(end_of_hole(&file, length).unwrap(), length);
    }
}
