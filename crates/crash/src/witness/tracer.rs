//! A process that is stepped, instruction by instruction, from outside (`ptrace`).
//!
//! 1. The process asks to be traced and stops, does what it was started for, and stops again. All in
//!    between is stepped; nothing in it knows of the tracer, and its code is what is used elsewhere.
//! 2. Which addresses are the pool is what the system says (`/proc/PID/maps`), asked again after each
//!    system call.
//! 3. Before an instruction that may store, flush or fence, its operands are read; after it, what memory
//!    holds. At each fence, and at the end, all of the pool must hold what was seen to be stored: what
//!    differs came about in some other way, and is an event of its own.

use super::compare::{Happened, Seen};
use super::decode::{Decoded, INSTRUCTION_BYTES, Stores, Target, decode, flushed};
use super::run::{Finish, Stepped};
use core::mem::offset_of;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a process prints that may not be traced, before the reason.
const REFUSED: &str = "refused: ";

/// In the process: asks the parent to trace it, and stops until it does. If the system does not allow
/// it, says so to the parent.
///
/// # Errors
/// The system does not allow it.
#[expect(clippy::print_stdout, reason = "standard output is a pipe to the parent")]
pub(crate) fn offer() -> io::Result<()> {
    if let Err(refusal) = ptrace::traceme() {
        println!("{REFUSED}{}", refusal.desc());
        return Err(refusal.into());
    }
    end()
}

/// In the process: stops, for what the parent wants to see is over.
///
/// # Errors
/// The system does not stop it.
pub(crate) fn end() -> io::Result<()> {
    Ok(raise(Signal::SIGSTOP)?)
}

/// Runs `command`, which [`offer`]s itself, and gives all that it does to the file at `pool`.
pub(crate) fn trace(command: &mut Command, pool: &Path) -> Result<Stepped, Finish> {
    stay_on_one_processor();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let pool = pool.canonicalize().map_err(failed)?;
    let mut child = command.spawn().map_err(failed)?;
    let pid = Pid::from_raw(child.id().cast_signed());
    let stepped = attach(pid, pool).and_then(|tracer| match tracer {
        Some(tracer) => tracer.run().and_then(|stepped| finish(pid).map(|()| stepped)),
        None => Err(Finish::Failed("it ended before it began".into())),
    });
    stepped.map_err(|error| told(&mut child, error))
}

fn failed(error: impl core::fmt::Display) -> Finish {
    Finish::Failed(error.to_string())
}

/// Why a process has ended early, in its own words if it has any.
fn told(child: &mut Child, otherwise: Finish) -> Finish {
    let _ = child.kill(); // Most often it is gone already.
    let read = |pipe: &mut dyn Read| {
        let mut text = String::new();
        let _ = pipe.read_to_string(&mut text); // What cannot be read tells nothing.
        text
    };
    let output = child.stdout.take().map(|mut pipe| read(&mut pipe)).unwrap_or_default();
    if let Some(reason) = output.trim().strip_prefix(REFUSED) {
        return Finish::Skipped(format!("the system does not allow tracing (ptrace): {reason}"));
    }
    let complaint = child.stderr.take().map(|mut pipe| read(&mut pipe)).unwrap_or_default();
    match otherwise {
        Finish::Failed(reason) => Finish::Failed(format!("{reason} {}", complaint.trim())),
        other => other,
    }
}

/// Keeps this thread, and what it starts, on one processor, another for each thread: a step is then a
/// change of context and no message between processors, which takes several times as long.
fn stay_on_one_processor() {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static DONE: OnceCell<()> = const { OnceCell::new() };
    }
    let this = Pid::from_raw(0);
    DONE.with(|done| {
        done.get_or_init(|| {
            let Ok(allowed) = sched_getaffinity(this) else { return };
            let all = (0..CpuSet::count()).filter(|&number| allowed.is_set(number) == Ok(true));
            let all: Vec<usize> = all.collect();
            let number = NEXT.fetch_add(1, Ordering::Relaxed) % all.len().max(1);
            let mut one = CpuSet::new();
            if let Some(&number) = all.get(number)
                && one.set(number).is_ok()
            {
                let _ = sched_setaffinity(this, &one); // It is only slower without.
            }
        });
    });
}

/// Waits for the process to stop for the first time; nothing if it has ended instead.
fn attach(pid: Pid, pool: PathBuf) -> Result<Option<Tracer>, Finish> {
    match waitpid(pid, Some(WaitPidFlag::__WALL)).map_err(failed)? {
        WaitStatus::Stopped(_, Signal::SIGSTOP) => {}
        _ => return Ok(None),
    }
    ptrace::setoptions(pid, ptrace::Options::PTRACE_O_EXITKILL).map_err(failed)?;
    let memory = File::open(format!("/proc/{pid}/mem")).map_err(failed)?;
    let file = File::open(&pool).map_err(failed)?;
    let mut tracer = Tracer {
        pid,
        memory,
        file,
        pool,
        code: HashMap::new(),
        ranges: Vec::new(),
        program: 0,
        image: Vec::new(),
        happened: Vec::new(),
        steps: 0,
    };
    tracer.image = tracer.contents().map_err(failed)?;
    tracer.look_up().map_err(failed)?;
    Ok(Some(tracer))
}

/// Lets the process go on by itself to its end.
fn finish(pid: Pid) -> Result<(), Finish> {
    let mut signal = None;
    loop {
        ptrace::cont(pid, signal).map_err(failed)?;
        match waitpid(pid, Some(WaitPidFlag::__WALL)).map_err(failed)? {
            WaitStatus::Exited(_, 0) => return Ok(()),
            WaitStatus::Stopped(_, other) => signal = Some(other),
            status => return Err(Finish::Failed(format!("it ended with {status:?}"))),
        }
    }
}

/// Addresses at which a part of the pool is mapped.
struct Range {
    start: u64,
    end: u64,
    /// Offset of the first byte in the pool.
    offset: u64,
}

struct Tracer {
    pid: Pid,
    memory: File,
    file: File,
    pool: PathBuf,
    /// Every instruction that was executed so far.
    code: HashMap<u64, Decoded>,
    ranges: Vec<Range>,
    /// Where the program's own file begins.
    program: u64,
    /// What the pool should hold.
    image: Vec<u64>,
    happened: Vec<Happened>,
    steps: u64,
}

impl Tracer {
    /// Steps to the end.
    fn run(mut self) -> Result<Stepped, Finish> {
        let mut signal = None;
        loop {
            let at = self.program_counter().map_err(failed)?;
            let decoded = self.instruction(at).map_err(failed)?;
            let targets = self.before(&decoded, at).map_err(failed)?;
            ptrace::step(self.pid, signal).map_err(failed)?;
            self.steps += 1;
            let status = waitpid(self.pid, Some(WaitPidFlag::__WALL)).map_err(failed)?;
            let WaitStatus::Stopped(_, stopped) = status else {
                return Err(Finish::Failed(format!("it ended in the middle, with {status:?}")));
            };
            // A signal that stops the process before the instruction: it comes again.
            let is_done =
                self.program_counter().map_err(failed)? != at || stopped == Signal::SIGTRAP;
            if is_done {
                self.after(&decoded, &targets, at).map_err(failed)?;
            }
            signal = match stopped {
                Signal::SIGTRAP => None,
                Signal::SIGSTOP => break,
                other => Some(other),
            };
        }
        self.compare_all(0).map_err(failed)?;
        Ok(Stepped { happened: self.happened, steps: self.steps })
    }

    #[expect(clippy::cast_sign_loss, reason = "a register is passed as a number with a sign")]
    fn program_counter(&self) -> nix::Result<u64> {
        let offset = offset_of!(nix::libc::user, regs.rip);
        ptrace::read_user(self.pid, core::ptr::without_provenance_mut(offset)).map(|at| at as u64)
    }

    fn instruction(&mut self, at: u64) -> io::Result<Decoded> {
        if let Some(known) = self.code.get(&at) {
            return Ok(known.clone());
        }
        let mut bytes = [0; INSTRUCTION_BYTES];
        let count = self.memory.read_at(&mut bytes, at)?;
        let decoded = decode(&bytes[..count], at);
        self.code.insert(at, decoded.clone());
        Ok(decoded)
    }

    /// Looks at an instruction before it is executed: what it is about to store to in the pool. What
    /// only orders is noted right here.
    fn before(&mut self, decoded: &Decoded, at: u64) -> io::Result<Vec<Target>> {
        match decoded {
            Decoded::Other | Decoded::System => {}
            Decoded::Stores(stores) => {
                let mut targets = stores.targets(&ptrace::getregs(self.pid)?);
                targets.retain(|target| self.offset_of(target.address).is_some());
                return Ok(targets);
            }
            Decoded::Flush(instruction) => {
                let address = flushed(instruction, &ptrace::getregs(self.pid)?);
                if let Some(offset) = address.and_then(|address| self.offset_of(address)) {
                    self.note(Seen::Flush { line: (offset / 64) as u32 }, at);
                }
            }
            Decoded::Fence => {
                self.compare_all(at)?;
                self.note(Seen::Fence, at);
            }
        }
        Ok(Vec::new())
    }

    /// Looks at what an instruction has done.
    fn after(&mut self, decoded: &Decoded, targets: &[Target], at: u64) -> io::Result<()> {
        match decoded {
            Decoded::System => self.look_up(),
            Decoded::Stores(stores) if !targets.is_empty() => {
                let flags = ptrace::getregs(self.pid)?.eflags;
                if stores.has_refrained(flags) {
                    return Ok(());
                }
                targets.iter().try_for_each(|&target| self.stored(stores, target, at))
            }
            _ => Ok(()),
        }
    }

    /// Notes a store: an event for each word that it touches.
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
            self.note(Seen::Store { at: offset.max(word * 8), bytes, new, streamed }, at);
        }
        Ok(())
    }

    fn note(&mut self, seen: Seen, at: u64) {
        self.happened.push(Happened { seen, place: at.wrapping_sub(self.program) });
    }

    /// Compares all of the pool with what was seen.
    fn compare_all(&mut self, at: u64) -> io::Result<()> {
        let contents = self.contents()?;
        self.image.resize(contents.len(), 0);
        let pairs = self.image.iter().zip(&contents).enumerate();
        let differ = pairs.filter(|(_, (known, found))| known != found);
        let unseen: Vec<_> = differ.map(|(word, (_, &new))| (word as u64 * 8, new)).collect();
        self.image = contents;
        for (offset, new) in unseen {
            self.note(Seen::Unseen { at: offset, new }, at);
        }
        Ok(())
    }

    /// The words of the pool, as they are now.
    fn contents(&self) -> io::Result<Vec<u64>> {
        let mut bytes = vec![0; self.file.metadata()?.len() as usize];
        self.file.read_exact_at(&mut bytes, 0)?;
        Ok(crate::arena::words_of(&bytes).collect())
    }

    /// The offset in the pool of what is at `address`.
    fn offset_of(&self, address: u64) -> Option<u64> {
        let range = self.ranges.iter().find(|range| (range.start..range.end).contains(&address))?;
        Some(address - range.start + range.offset)
    }

    /// Asks the system where the pool is mapped.
    fn look_up(&mut self) -> io::Result<()> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid))?;
        let program = std::fs::read_link(format!("/proc/{}/exe", self.pid))?;
        let mapped = maps.lines().filter_map(|line| {
            let mut parts = line.split_ascii_whitespace();
            let (start, end) = parts.next()?.split_once('-')?;
            let [start, end, offset] =
                [start, end, parts.nth(1)?].map(|text| u64::from_str_radix(text, 16).ok());
            let range = Range { start: start?, end: end?, offset: offset? };
            Some((range, PathBuf::from(parts.nth(2)?)))
        });
        self.ranges.clear();
        self.program = 0;
        for (range, path) in mapped {
            if path == program && self.program == 0 {
                self.program = range.start - range.offset;
            }
            if path == self.pool {
                self.ranges.push(range);
            }
        }
        Ok(())
    }
}
