//! Runs of a built command, for the tests of both commands.

use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The result of a run: exit code, standard output, standard error.
#[derive(Debug)]
pub struct Done {
    /// The exit code, or `None` if a signal ended the process.
    pub code: Option<i32>,
    /// All bytes of standard output.
    pub output: Vec<u8>,
    /// Standard error as text.
    pub complaint: String,
}

impl Done {
    /// Returns standard output. Fails the test unless the exit code is `code`.
    #[track_caller]
    pub fn expect(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}", self.complaint);
        String::from_utf8(self.output).unwrap()
    }

    /// Returns standard error. Fails the test unless the exit code is `code`, standard output is
    /// empty, standard error is not, and no thread has panicked.
    #[track_caller]
    pub fn refused(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}", self.complaint);
        assert!(self.output.is_empty(), "a refusal with an answer");
        assert!(!self.complaint.contains("panicked"), "{}", self.complaint);
        assert!(!self.complaint.is_empty(), "a refusal without a reason");
        self.complaint
    }
}

/// Runs `program` to its end with `input` as its standard input.
///
/// # Panics
/// The program cannot be started.
pub fn run<A: AsRef<OsStr>>(program: &str, arguments: &[A], input: &[u8]) -> Done {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let done = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A command that reads no input may have ended already.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().unwrap()
    });
    let complaint = String::from_utf8_lossy(&done.stderr).into_owned();
    Done { code: done.status.code(), output: done.stdout, complaint }
}

/// Parses an answer in JSON, one object a line.
///
/// # Panics
/// A line is not JSON.
pub fn objects(answer: &str) -> Vec<Value> {
    answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns a line for each number, made by `line`, each with a newline.
pub fn lines(
    numbers: impl IntoIterator<Item = u64>,
    mut line: impl FnMut(u64) -> String,
) -> String {
    let mut text = String::new();
    for number in numbers {
        text.push_str(&line(number));
        text.push('\n');
    }
    text
}

/// Returns the arguments of the commands in the project's documents that begin with `start`, each
/// with the name of its document. Commands with a placeholder in capitals are left out.
///
/// # Panics
/// A document cannot be read.
pub fn documented(start: &str) -> Vec<(String, Vec<String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    let mut places = vec![root.join("README.md"), root.join("CONTRIBUTING.md"), root.join("docs")];
    while let Some(place) = places.pop() {
        if place.is_dir() {
            places.extend(std::fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path()));
        } else if place.extension().is_some_and(|kind| kind == "md") {
            let text = std::fs::read_to_string(&place).unwrap();
            let commands = commands(&text).into_iter();
            let arguments = commands.filter_map(|command| arguments(&command, start));
            found.extend(arguments.map(|arguments| (place.display().to_string(), arguments)));
        }
    }
    found
}

/// Returns the lines of all code blocks and what stands between single backticks.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, block) in text.split("```").enumerate() {
        if number % 2 == 1 {
            found.extend(block.replace("\\\n", " ").lines().map(str::to_owned));
        } else {
            found.extend(block.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

/// Returns the arguments of `command` if it begins with `start` and has no placeholder.
fn arguments(command: &str, start: &str) -> Option<Vec<String>> {
    let command = command.split(" #").next()?;
    let arguments: Vec<_> =
        command.trim().strip_prefix(start)?.split_whitespace().map(str::to_owned).collect();
    let is_placeholder = |word: &String| {
        word.contains("..") || word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    let is_whole = !arguments.is_empty() && !arguments.iter().any(is_placeholder);
    is_whole.then_some(arguments)
}
