//! The built command, run as users and programs run it.

mod bad_input;
mod claims;
mod demo;
mod kill;
mod lab;
mod load;
mod store;
mod torture;
mod witness;
mod workloads;

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A folder of its own for each test, and a pool in it.
struct Place {
    folder: TempDir,
    pool: PathBuf,
}

impl Place {
    /// Nothing there yet.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pool = folder.path().join("test.pool");
        Self { folder, pool }
    }

    /// A store with these pairs.
    fn with(pairs: &[(&str, &str)]) -> Self {
        let place = Self::new();
        let text = lines(0..pairs.len() as u64, |i| {
            let (key, value) = pairs[i as usize];
            format!("{key}\t{value}")
        });
        place.run_with(&["load"], text.as_bytes()).expect(0);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `command` on the pool: its path goes behind the first word.
    fn run(&self, command: &[&str]) -> Done {
        self.run_with(command, b"")
    }

    fn run_with(&self, command: &[&str], input: &[u8]) -> Done {
        let pool = self.pool.as_os_str();
        let mut arguments = vec![OsStr::new(command[0]), pool];
        arguments.extend(command[1..].iter().map(OsStr::new));
        run(&arguments, input)
    }
}

/// Lines, each made from its number.
fn lines(numbers: impl IntoIterator<Item = u64>, mut line: impl FnMut(u64) -> String) -> String {
    let mut text = String::new();
    for number in numbers {
        text.push_str(&line(number));
        text.push('\n');
    }
    text
}

/// What a run of the command came to.
struct Done {
    code: Option<i32>,
    output: Vec<u8>,
    complaint: String,
}

impl Done {
    /// The output, if the exit code is `code`.
    #[track_caller]
    fn expect(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}", self.complaint);
        String::from_utf8(self.output).unwrap()
    }

    /// The complaint on standard error, if the exit code is `code`. Standard output is empty then,
    /// and nothing has panicked.
    #[track_caller]
    fn refused(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}", self.complaint);
        assert!(self.output.is_empty(), "an answer where there is none");
        assert!(!self.complaint.contains("panicked"), "{}", self.complaint);
        assert!(!self.complaint.is_empty(), "a refusal without a reason");
        self.complaint
    }
}

/// The command, to be run.
fn bristlecone() -> Command {
    Command::new(env!("CARGO_BIN_EXE_bristlecone"))
}

/// Runs the command to its end.
fn run<A: AsRef<OsStr>>(arguments: &[A], input: &[u8]) -> Done {
    let mut child = bristlecone()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let done = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A command that takes no input, or refuses it, may have gone already.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().unwrap()
    });
    let complaint = String::from_utf8_lossy(&done.stderr).into_owned();
    Done { code: done.status.code(), output: done.stdout, complaint }
}

/// The JSON objects of an answer, a line each.
fn objects(answer: &str) -> Vec<serde_json::Value> {
    answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
