//! The tracer of a process: its stores, flushes and fences, seen from outside (`ptrace`).
//!
//! 1. No code in the process knows of the tracer, and it is the code that applications use. It runs
//!    at full speed except for the following stops.
//! 2. The pool is protected against writing. So the processor reports every store to it, from any
//!    code: the tracer opens the page, steps that one instruction, and protects the page again.
//!    After each system call it reads the addresses of the pool from the system (`/proc/PID/maps`).
//! 3. A breakpoint replaces every instruction of the program that writes back or fences. When it is
//!    hit, the instruction is stepped at its place.
//! 4. At each fence, and at the end, the pool must hold the values of the reported stores. A word
//!    that differs is an event of its own.

use super::compare::{ExecutedEffect, ExecutedEvent};
use super::decode::{Decoded, INSTRUCTION_BYTES, Stores, Target, decode, flushed, sites};
use super::finish::{Finish, Watched, failed};
use nix::libc::{self, user_regs_struct as Registers};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Waits for the process to stop for the first time. Returns `None` if it has ended instead.
pub(super) fn attach(pid: Pid, pool: PathBuf) -> Result<Option<Tracer>, Finish> {
    match waitpid(pid, Some(WaitPidFlag::__WALL)).map_err(failed)? {
        WaitStatus::Stopped(_, Signal::SIGSTOP) => {}
        _ => return Ok(None),
    }
    let options = Options::PTRACE_O_EXITKILL | Options::PTRACE_O_TRACESYSGOOD;
    ptrace::setoptions(pid, options).map_err(failed)?;
    let memory = OpenOptions::new().read(true).write(true).open(format!("/proc/{pid}/mem"));
    let file = File::open(&pool).map_err(failed)?;
    let mut tracer = Tracer {
        pid,
        memory: memory.map_err(failed)?,
        file,
        pool,
        sites: BTreeMap::new(),
        gate: 0,
        ranges: Vec::new(),
        program: 0,
        image: Vec::new(),
        happened: Vec::new(),
        stops: 0,
    };
    tracer.image = tracer.contents().map_err(failed)?;
    tracer.arm().map_err(failed)?;
    Ok(Some(tracer))
}

/// The instruction of a breakpoint.
const INT3: u8 = 0xcc;
/// The instruction that enters the system.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// The system calls that change mappings.
const MAPS: [i64; 4] = [libc::SYS_mmap, libc::SYS_mprotect, libc::SYS_mremap, libc::SYS_munmap];

/// A replaced instruction, and its first byte.
struct Site {
    decoded: Decoded,
    byte: u8,
}

/// The addresses at which a part of a file is mapped.
struct Range {
    start: u64,
    end: u64,
    /// The offset of the first byte in the file.
    offset: u64,
    rights: String,
    file: PathBuf,
}

pub(super) struct Tracer {
    pid: Pid,
    memory: File,
    file: File,
    pool: PathBuf,
    sites: BTreeMap<u64, Site>,
    /// The address of a system call instruction in the process; 0 until one is known.
    gate: u64,
    /// The mappings of the pool.
    ranges: Vec<Range>,
    /// The address of the beginning of the program's file.
    program: u64,
    /// The words that the pool should hold.
    image: Vec<u64>,
    happened: Vec<ExecutedEvent>,
    stops: u64,
}

impl Tracer {
    /// Traces the process to its second stop.
    pub(super) fn run(mut self) -> Result<Watched, Finish> {
        let mut signal = None;
        let mut in_system = false;
        loop {
            ptrace::syscall(self.pid, signal.take()).map_err(failed)?;
            match self.wait().map_err(failed)? {
                WaitStatus::PtraceSyscall(_) => {
                    in_system = !in_system;
                    if !in_system {
                        self.left_system().map_err(failed)?;
                    }
                }
                WaitStatus::Stopped(_, Signal::SIGTRAP) => self.hit().map_err(failed)?,
                WaitStatus::Stopped(_, Signal::SIGSEGV) => self.refused().map_err(failed)?,
                WaitStatus::Stopped(_, Signal::SIGSTOP) => break,
                WaitStatus::Stopped(_, other) => signal = Some(other),
                status => {
                    return Err(Finish::Failed(format!("it ended in the middle, with {status:?}")));
                }
            }
        }
        self.compare_all(0).map_err(failed)?;
        for (&at, site) in &self.sites {
            self.memory.write_all_at(&[site.byte], at).map_err(failed)?;
        }
        Ok(Watched { happened: self.happened, stops: self.stops })
    }

    fn wait(&mut self) -> io::Result<WaitStatus> {
        self.stops += 1;
        Ok(waitpid(self.pid, Some(WaitPidFlag::__WALL))?)
    }

    /// Sets a breakpoint at each instruction of the program that writes back or fences.
    fn arm(&mut self) -> io::Result<()> {
        let program = std::fs::read_link(format!("/proc/{}/exe", self.pid))?;
        for range in self.mapped()?.iter().filter(|range| range.file == program) {
            if self.program == 0 {
                self.program = range.start - range.offset;
            }
            if !range.rights.contains('x') {
                continue;
            }
            let mut text = vec![0; (range.end - range.start) as usize];
            self.memory.read_exact_at(&mut text, range.start)?;
            for (at, decoded) in sites(&text, range.start) {
                let byte = text[(at - range.start) as usize];
                self.memory.write_all_at(&[INT3], at)?;
                self.sites.insert(at, Site { decoded, byte });
            }
        }
        Ok(())
    }

    /// Handles the return of a system call, which may have mapped the pool, or extended it.
    fn left_system(&mut self) -> io::Result<()> {
        let registers = ptrace::getregs(self.pid)?;
        if self.gate == 0 {
            let at = registers.rip - SYSCALL.len() as u64;
            let mut found = [0; SYSCALL.len()];
            self.memory.read_exact_at(&mut found, at)?;
            if found != SYSCALL {
                return Err(io::Error::other("it enters the system in an unknown way"));
            }
            self.gate = at;
        }
        if MAPS.contains(&registers.orig_rax.cast_signed()) {
            self.ranges = self.mapped()?;
            let pool = &self.pool;
            self.ranges.retain(|range| range.file == *pool);
            if self.ranges.iter().any(|range| range.rights.contains('w')) {
                self.protect(&registers, libc::PROT_READ)?;
            }
        }
        Ok(())
    }

    /// Gives all of the pool these access rights, through a system call of the process, and
    /// restores `registers`.
    fn protect(&mut self, registers: &Registers, rights: i32) -> io::Result<()> {
        for index in 0..self.ranges.len() {
            let Range { start, end, .. } = self.ranges[index];
            let call = Registers {
                rip: self.gate,
                rax: libc::SYS_mprotect.cast_unsigned(),
                rdi: start,
                rsi: end - start,
                rdx: u64::from(rights.cast_unsigned()),
                // No interrupted system call is restarted.
                orig_rax: u64::MAX,
                ..*registers
            };
            ptrace::setregs(self.pid, call)?;
            self.step()?;
            if ptrace::getregs(self.pid)?.rax != 0 {
                return Err(io::Error::other("the system does not change the rights of a page"));
            }
        }
        Ok(ptrace::setregs(self.pid, *registers)?)
    }

    /// Executes one instruction of the process.
    fn step(&mut self) -> io::Result<()> {
        ptrace::step(self.pid, None)?;
        match self.wait()? {
            WaitStatus::Stopped(_, Signal::SIGTRAP) => Ok(()),
            status => Err(io::Error::other(format!("a step ends with {status:?}"))),
        }
    }

    /// Handles a breakpoint, and fails at any other trap.
    fn hit(&mut self) -> io::Result<()> {
        let registers = ptrace::getregs(self.pid)?;
        let at = registers.rip - 1;
        let Some(Site { decoded, byte }) = self.sites.get(&at) else {
            return Err(io::Error::other(format!("a trap at {at:#x}")));
        };
        let (decoded, byte) = (decoded.clone(), *byte);
        match decoded {
            Decoded::Flush(instruction) => {
                let address = flushed(&instruction, &registers);
                if let Some(offset) = address.and_then(|address| self.offset_of(address)) {
                    self.note(ExecutedEffect::Flush { line: (offset / 64) as u32 }, at);
                }
            }
            Decoded::Fence => {
                self.compare_all(at)?;
                self.note(ExecutedEffect::Fence, at);
            }
            Decoded::Other | Decoded::Stores(_) => {}
        }
        self.memory.write_all_at(&[byte], at)?;
        ptrace::setregs(self.pid, Registers { rip: at, ..registers })?;
        self.step()?;
        self.memory.write_all_at(&[INT3], at)
    }

    /// Handles a store that the protection of the pool refused: lets it execute alone.
    fn refused(&mut self) -> io::Result<()> {
        let registers = ptrace::getregs(self.pid)?;
        let at = registers.rip;
        let mut bytes = [0; INSTRUCTION_BYTES];
        let count = self.memory.read_at(&mut bytes, at)?;
        let Decoded::Stores(stores) = decode(&bytes[..count], at) else {
            return Err(io::Error::other(format!("a fault at {at:#x}, which is no store")));
        };
        let mut targets = stores.targets(&registers);
        targets.retain(|target| self.offset_of(target.address).is_some());
        if targets.is_empty() {
            return Err(io::Error::other(format!("a fault at {at:#x}, outside the pool")));
        }
        self.protect(&registers, libc::PROT_READ | libc::PROT_WRITE)?;
        self.step()?;
        let registers = ptrace::getregs(self.pid)?;
        self.protect(&registers, libc::PROT_READ)?;
        if stores.has_refrained(registers.eflags) {
            return Ok(());
        }
        targets.iter().try_for_each(|&target| self.stored(&stores, target, at))
    }

    /// Notes a store, as an event for each word.
    fn stored(&mut self, stores: &Stores, target: Target, at: u64) -> io::Result<()> {
        let Some(offset) = self.offset_of(target.address) else { return Ok(()) };
        let bytes = target.bytes as u32;
        for word in offset / 8..=(offset + target.bytes - 1) / 8 {
            let mut value = [0; 8];
            self.file.read_exact_at(&mut value, word * 8)?;
            let new = u64::from_le_bytes(value);
            if let Some(known) = self.image.get_mut(word as usize) {
                *known = new;
            }
            let streamed = stores.is_streamed();
            self.note(ExecutedEffect::Store { at: offset.max(word * 8), bytes, new, streamed }, at);
        }
        Ok(())
    }

    fn note(&mut self, seen: ExecutedEffect, at: u64) {
        self.happened.push(ExecutedEvent { seen, place: at.wrapping_sub(self.program) });
    }

    /// Compares all of the pool with the reported stores.
    fn compare_all(&mut self, at: u64) -> io::Result<()> {
        let contents = self.contents()?;
        self.image.resize(contents.len(), 0);
        let pairs = self.image.iter().zip(&contents).enumerate();
        let differ = pairs.filter(|(_, (known, found))| known != found);
        let unseen: Vec<_> = differ.map(|(word, (_, &new))| (word as u64 * 8, new)).collect();
        self.image = contents;
        for (offset, new) in unseen {
            self.note(ExecutedEffect::Unseen { at: offset, new }, at);
        }
        Ok(())
    }

    /// Returns the present words of the pool.
    fn contents(&self) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; self.file.metadata()?.len() as usize];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(crate::medium::arena::words_of(&bytes).collect())
    }

    /// Returns the offset in the pool of an address.
    fn offset_of(&self, address: u64) -> Option<u64> {
        let range = self.ranges.iter().find(|range| (range.start..range.end).contains(&address))?;
        Some(address - range.start + range.offset)
    }

    /// Returns every part of a file that the process has mapped.
    fn mapped(&self) -> io::Result<Vec<Range>> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid))?;
        let ranges = maps.lines().filter_map(|line| {
            let mut parts = line.split_ascii_whitespace();
            let (start, end) = parts.next()?.split_once('-')?;
            let rights = parts.next()?.to_owned();
            let number = |text| u64::from_str_radix(text, 16).ok();
            let (start, end, offset) = (number(start)?, number(end)?, number(parts.next()?)?);
            Some(Range { start, end, offset, rights, file: parts.nth(2)?.into() })
        });
        Ok(ranges.collect())
    }
}
