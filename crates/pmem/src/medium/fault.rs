//! The message for a process whose mapped file is gone.
//!
//! If a load or store goes beyond the end of a file that was truncated, or to a page that the
//! medium cannot read, the system sends SIGBUS, which a program cannot handle as an error. With
//! [`install_fault_message`] the process ends with a message instead of without one.
//!
//! 1. The table of mapped files has a fixed size and consists of atomics. So the handler only
//!    loads, writes to stderr and exits, all of which are safe in a signal handler.
//! 2. A fault outside every mapped pool goes to the previous handler of SIGBUS.
//! 3. The pool is left as by a crash of the process: on pages that can be read, no acknowledged
//!    write is lost.
#![expect(unsafe_code, reason = "signal handling has no safe form")]

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use parking_lot::Mutex;
use std::io::Error;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

/// The exit code of a process that [`install_fault_message`] ends: that of a refusal by the system.
pub const FAULT_EXIT_CODE: i32 = 4;

/// The number of mapped files that the handler can name. It cannot name further ones.
const FILES_MAX: usize = 32;
/// The number of bytes of a path that the table keeps.
const PATH_BYTES_MAX: usize = 512;
/// The value of `start` while an entry is being filled in. No mapping begins at this address.
const CLAIMED: usize = 1;

struct Entry {
    /// The first address of the mapping; 0 if the entry is free. Stored last, with release
    /// ordering.
    start: AtomicUsize,
    end: AtomicUsize,
    path_bytes: AtomicUsize,
    path: [AtomicU8; PATH_BYTES_MAX],
}

static FILES: [Entry; FILES_MAX] = [const {
    Entry {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        path_bytes: AtomicUsize::new(0),
        path: [const { AtomicU8::new(0) }; PATH_BYTES_MAX],
    }
}; FILES_MAX];

/// The handler of SIGBUS that was there before.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();
/// Held while the handler is installed.
static INSTALLING: Mutex<()> = Mutex::new(());

/// An entry of the table, freed on drop; `None` if the table was full.
#[derive(Debug)]
pub(super) struct Watched(Option<usize>);

impl Watched {
    /// Enters the file at `path`, which is mapped at `start..start + bytes`.
    pub(super) fn new(path: &Path, start: usize, bytes: usize) -> Self {
        let free = FILES.iter().position(|entry| {
            let claim = (Ordering::Acquire, Ordering::Relaxed);
            entry.start.compare_exchange(0, CLAIMED, claim.0, claim.1).is_ok()
        });
        if let Some(index) = free {
            let entry = &FILES[index];
            let path = path.as_os_str().as_bytes();
            let kept = &path[path.len().saturating_sub(PATH_BYTES_MAX)..];
            for (target, &byte) in entry.path.iter().zip(kept) {
                target.store(byte, Ordering::Relaxed);
            }
            entry.path_bytes.store(kept.len(), Ordering::Relaxed);
            entry.end.store(start + bytes, Ordering::Relaxed);
            entry.start.store(start, Ordering::Release);
        }
        Self(free)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(index) = self.0 {
            FILES[index].start.store(0, Ordering::Release);
        }
    }
}

/// Installs a handler of SIGBUS: a fault on a mapped pool ends the process with [`FAULT_EXIT_CODE`]
/// and a message on stderr that names the file, the offset and the remedy. A second call does
/// nothing.
///
/// Only programs should call this, not libraries, because a process has one handler of SIGBUS.
///
/// # Errors
/// The system refuses the handler.
pub fn install_fault_message() -> std::io::Result<()> {
    // Without the lock, of two threads the second would find this handler as the previous one, to
    // which a fault outside every pool would then be passed forever.
    let _installing = INSTALLING.lock();
    if PREVIOUS.get().is_some() {
        return Ok(());
    }
    // SAFETY: a sigaction is plain integers and pointers, for which zero is a value.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = on_fault;
    action.sa_sigaction = handler as libc::sighandler_t;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: as for `action`.
    let mut before: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: both structures are valid. The handler has the signature for SA_SIGINFO and calls
    // only functions that are safe in a signal handler (I1).
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, &raw mut before) } != 0 {
        return Err(Error::last_os_error());
    }
    let _ = PREVIOUS.set(before);
    Ok(())
}

extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the system passes a valid structure to a handler with SA_SIGINFO.
    let info = unsafe { &*info };
    let code = info.si_code;
    // SAFETY: SIGBUS has an address if the code is positive, which is checked before the address is
    // used.
    let address = unsafe { info.si_addr() } as usize;
    if code > 0 {
        for entry in &FILES {
            let start = entry.start.load(Ordering::Acquire);
            if start > CLAIMED && (start..entry.end.load(Ordering::Relaxed)).contains(&address) {
                report(entry, address - start);
            }
        }
    }
    // The fault is outside every pool: restore the previous handler and let the fault happen again.
    let before = PREVIOUS.get().map_or(core::ptr::null(), core::ptr::from_ref);
    if before.is_null() {
        // SAFETY: SIG_DFL is a valid disposition.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    } else {
        // SAFETY: the structure came from the system, and a null pointer requests no old action.
        unsafe { libc::sigaction(signal, before, core::ptr::null_mut()) };
    }
    if code <= 0 {
        // SAFETY: raise is safe in a handler. The signal is blocked until this handler returns.
        unsafe { libc::raise(signal) };
    }
}

/// Writes the message and ends the process.
fn report(entry: &Entry, offset: usize) -> ! {
    let mut message = Message { bytes: [0; PATH_BYTES_MAX + 320], length: 0 };
    message.push(b"bristlecone: ");
    let path_bytes = entry.path_bytes.load(Ordering::Relaxed).min(PATH_BYTES_MAX);
    for byte in &entry.path[..path_bytes] {
        message.push(&[byte.load(Ordering::Relaxed)]);
    }
    message.push(b": cannot reach offset 0x");
    let digits = (usize::BITS - offset.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        message.push(&[b"0123456789abcdef"[offset >> (4 * digit) & 15]]);
    }
    message.push(b": the file was cut short while it was open, its device is full, ");
    message.push(b"or its medium failed; free space on the device, or check the medium and ");
    message.push(b"restore the file from a backup\n");
    let text = &message.bytes[..message.length];
    // SAFETY: the text is valid for its length. A failed write has no other outlet.
    let _ = unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
    // SAFETY: the call ends the process and runs no other code of it.
    unsafe { libc::_exit(FAULT_EXIT_CODE) }
}

/// A text on the stack. Bytes that do not fit are dropped.
struct Message {
    bytes: [u8; PATH_BYTES_MAX + 320],
    length: usize,
}

impl Message {
    fn push(&mut self, text: &[u8]) {
        for &byte in text {
            if let Some(target) = self.bytes.get_mut(self.length) {
                *target = byte;
                self.length += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
