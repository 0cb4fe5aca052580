//! The bytes that the allocator has handed out: the weight of maps that keep no account of it.
//!
//! The growth of the process is too small a measure. Freed memory stays with the allocator, and the
//! next map uses it without growth. GNU's C library reports the memory in use since version 2.33.
//! With another C library nothing is known.

#![expect(unsafe_code, reason = "asks the allocator of the C library")]

/// Returns the bytes that the allocator has handed out, including its headers.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn allocated_bytes() -> Option<u64> {
    type Info = unsafe extern "C" fn() -> libc::mallinfo2;
    let process = libloading::os::unix::Library::this();
    // SAFETY: the C library declares a function of this name with this type.
    let info = unsafe { process.get::<Info>(b"mallinfo2") }.ok()?;
    // SAFETY: the function has no parameters, and any thread may call it at any time.
    let found = unsafe { info() };
    Some((found.uordblks + found.hblkhd) as u64)
}

/// Returns `None`: other C libraries do not report the memory in use.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn allocated_bytes() -> Option<u64> {
    None
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    /// Memory that was freed before is used again, and must be counted nevertheless. Other tests
    /// allocate at the same time, much less than this one.
    #[test]
    fn blocks_weigh_the_same_whatever_was_freed_before() {
        const BLOCK_BYTES: usize = 1 << 10;
        const BLOCKS: usize = 1 << 18;
        for _ in 0..2 {
            let before = allocated_bytes().expect("the C library is new enough");
            let blocks: Vec<_> = (0..BLOCKS).map(|_| Box::new([1_u8; BLOCK_BYTES])).collect();
            let grown = allocated_bytes().unwrap().saturating_sub(before);
            let expected = (blocks.len() * BLOCK_BYTES) as u64;
            assert!((expected / 2..expected * 2).contains(&grown), "{grown} for {expected} B");
        }
    }
}
