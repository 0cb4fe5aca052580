//! A disk whose power is cut: `cargo xtask cut-disk` runs a guest on an image that it serves over
//! NBD, and ends it at a random moment.
//!
//! 1. A flush makes every write durable that was answered before it.
//! 2. The cut comes after a number of writes and flushes. Nothing is answered after it.
//! 3. In the image that is left, each sector of 512 B that was written since the last flush is as
//!    that flush left it, or as one of its writes, at random.

mod nbd;
mod sectors;

use sectors::Sectors;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) const USAGE: &str = "usage: cargo xtask cut-disk IMAGE SOCKET SEED COUNT TEXT PROGRAM...

Runs PROGRAM, whose console is its standard output, and serves IMAGE over NBD at SOCKET. Cuts the
power COUNT writes and flushes after the console has shown a line with TEXT. With `lies` in front of
IMAGE, flushes do nothing from that line on.";

/// The time after which the cut comes in any case.
const LATEST: Duration = Duration::from_secs(120);

/// The arguments.
struct Args<'a> {
    lies: bool,
    image: PathBuf,
    socket: PathBuf,
    seed: u64,
    count: u64,
    text: &'a str,
    program: &'a [&'a str],
}

impl<'a> Args<'a> {
    fn read(words: &'a [&'a str]) -> Option<Self> {
        let lies = words.first() == Some(&"lies");
        let [image, socket, seed, count, text, program @ ..] = &words[usize::from(lies)..] else {
            return None;
        };
        let (seed, count) = (seed.parse().ok()?, count.parse().ok()?);
        let is_complete = !program.is_empty();
        is_complete.then(|| Self {
            lies,
            image: image.into(),
            socket: socket.into(),
            seed,
            count,
            text,
            program,
        })
    }
}

/// The disk, and the way to its cut.
#[derive(Debug)]
pub(crate) struct Power {
    sectors: Sectors,
    /// `true` if flushes do nothing once the console has shown the text.
    lies: bool,
    /// `true` once the console has shown the text.
    is_armed: bool,
    /// The number of requests up to the cut.
    left: u64,
    /// The channel on which the cut is told, or `None` after it.
    cut: Option<Sender<()>>,
}

impl Power {
    /// Counts a request. Returns `None` if the power is cut before it.
    fn request(&mut self) -> Option<&mut Sectors> {
        if self.is_armed {
            match self.left.checked_sub(1) {
                Some(left) => self.left = left,
                None => self.cut(),
            }
        }
        self.cut.is_some().then_some(&mut self.sectors)
    }

    /// Counts a flush and does it. Returns `None` if the power is cut before it.
    fn flush(&mut self) -> Option<()> {
        let is_lie = self.lies && self.is_armed;
        let sectors = self.request()?;
        if !is_lie {
            sectors.flush();
        }
        Some(())
    }

    fn is_cut(&self) -> bool {
        self.cut.is_none()
    }

    /// Starts to count.
    fn arm(&mut self) {
        self.is_armed = true;
        if self.left == 0 {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if let Some(cut) = self.cut.take() {
            let _ = cut.send(()); // The receiver may have ended by the time limit.
        }
    }
}

/// Returns the guard. A thread that panicked has left whole requests.
pub(crate) fn lock(power: &Mutex<Power>) -> MutexGuard<'_, Power> {
    power.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the guest up to its cut. Returns `None` if the arguments are wrong, and `false` if the
/// guest ended before.
pub(crate) fn run(words: &[&str]) -> Option<bool> {
    let args = Args::read(words)?;
    let done = cut(&args);
    if let Err(error) = &done {
        eprintln!("cut-disk: {error}");
    }
    Some(done.is_ok())
}

fn cut(args: &Args<'_>) -> io::Result<()> {
    let (sender, receiver) = channel();
    let sectors = Sectors::new(fs::read(&args.image)?);
    let power = Power {
        sectors,
        lies: args.lies,
        is_armed: args.text.is_empty(),
        left: args.count,
        cut: Some(sender),
    };
    let power = Arc::new(Mutex::new(power));
    let _ = fs::remove_file(&args.socket);
    let listener = UnixListener::bind(&args.socket)?;
    let served = power.clone();
    std::thread::spawn(move || nbd::serve(&listener, &served));

    let [program, arguments @ ..] = args.program else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let mut guest = Command::new(program).args(arguments).stdout(Stdio::piped()).spawn()?;
    let console = guest.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (text, armed) = (args.text.to_owned(), power.clone());
    let copy = std::thread::spawn(move || copy_console(BufReader::new(console), &text, &armed));
    let ended = wait(&mut guest, &receiver);
    lock(&power).cut();
    let _ = guest.kill(); // An error means that it has ended.
    guest.wait()?;
    copy.join().map_err(|_| io::Error::other("the console's thread panicked"))??;
    if let Some(status) = ended? {
        return Err(io::Error::other(format!("the guest ended before the cut: {status}")));
    }
    let image = lock(&power).sectors.after_cut(args.seed);
    fs::write(&args.image, image)
}

/// Waits for the cut, up to the latest moment. Returns the status of a guest that ends before it.
fn wait(guest: &mut Child, cut: &Receiver<()>) -> io::Result<Option<ExitStatus>> {
    const POLL: Duration = Duration::from_millis(200);
    for _ in 0..LATEST.as_millis() / POLL.as_millis() {
        match cut.recv_timeout(POLL) {
            Err(RecvTimeoutError::Timeout) => {
                if let Some(status) = guest.try_wait()? {
                    return Ok(Some(status));
                }
            }
            Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(None)
}

/// Copies the console to standard output and looks for the text.
fn copy_console(mut console: impl BufRead, text: &str, power: &Mutex<Power>) -> io::Result<()> {
    let mut line = Vec::new();
    while console.read_until(b'\n', &mut line)? > 0 {
        if !text.is_empty() && String::from_utf8_lossy(&line).contains(text) {
            lock(power).arm();
        }
        io::stdout().write_all(&line)?;
        line.clear();
    }
    io::stdout().flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cut_comes_after_the_text_and_the_requests_and_a_lie_not_before_it() {
        for lies in [false, true] {
            let (cut, receiver) = channel();
            let sectors = Sectors::new(vec![0; 512]);
            let mut power = Power { sectors, lies, is_armed: false, left: 2, cut: Some(cut) };
            power.request().unwrap().write(0, &[1; 512]).unwrap();
            power.flush().unwrap();
            power.arm();
            power.request().unwrap().write(0, &[2; 512]).unwrap();
            power.flush().unwrap();
            assert!(receiver.try_recv().is_err() && !power.is_cut());
            assert!(power.request().is_none() && receiver.try_recv().is_ok());
            let states = (0..50).map(|seed| power.sectors.after_cut(seed)[0]);
            let states: std::collections::BTreeSet<_> = states.collect();
            assert_eq!(states, if lies { [1, 2].into() } else { [2].into() });
        }
    }
}
