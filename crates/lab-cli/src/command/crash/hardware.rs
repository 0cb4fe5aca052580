//! `crash --witness`: compares the accesses that a processor executes with those that the explorer
//! records.

use super::progress::SharedProgress;
use crate::table::{self, table};
use anyhow::anyhow;
use bristlecone_console::exit::{Answer, UsageError};
use bristlecone_console::leftovers::Folder;
use bristlecone_console::output::{Output, grouped};
use bristlecone_crash::hardware_trace::{
    Finish, HardwareTraceRequest, HardwareTraceResult, Injection, ScriptHost, run_hardware_trace,
    run_traced,
};
use bristlecone_pmem::medium::{Delay, FileOptions, MediumError};
use bristlecone_pmem::{Domain, Mapped};
use bristlecone_registry::{DesignEntry, Forms, Memory};
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The result of a design as a JSON object.
#[derive(Serialize)]
struct Row<'a> {
    design: &'a str,
    operations: u64,
    splits: u64,
    merges: u64,
    stores: u64,
    transient: u64,
    filled: u64,
    flushes: u64,
    fences: u64,
    stops: u64,
    events: u64,
    finish: &'static str,
    reason: Option<String>,
}

/// Parses the name of an injected access.
pub(super) fn injection(text: &str) -> Result<Injection, String> {
    let names = Injection::ALL.map(Injection::name).join(", ");
    Injection::from_name(text).ok_or_else(|| format!("expected one of {names}"))
}

/// The pool of a traced process: a file, with the instructions of real persistent memory.
struct File<'a> {
    path: &'a Path,
    injection: Option<Injection>,
}

impl ScriptHost for File<'_> {
    /// The medium that `bench` times, so that the traced code is the timed code.
    type Medium = Memory;

    fn forms(row: &'static DesignEntry) -> &'static Forms<Memory> {
        &row.memory
    }

    fn open(&mut self) -> Result<Self::Medium, MediumError> {
        let medium = Mapped::open(self.path, &FileOptions::default())?.reproducible();
        let medium = medium.emulate(Domain::Adr)?;
        Ok(Delay::none(medium.into()))
    }

    fn injection(&self) -> Option<Injection> {
        self.injection
    }

    fn write(&mut self, offset: u64, byte: u8) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.path)?.write_all_at(&[byte], offset)
    }
}

/// Runs as the traced process: executes the script of `design` on `pool`.
pub(super) fn act(
    design: &str,
    pool: &Path,
    injection: Option<Injection>,
) -> anyhow::Result<Answer> {
    run_traced(design, &mut File { path: pool, injection }).map_err(|error| anyhow!(error))?;
    Ok(Answer::Yes)
}

/// Traces a process for each of `designs`, or for all designs if there are none.
pub(super) fn run(
    designs: Vec<String>,
    injection: Option<Injection>,
    output: &mut Output,
) -> anyhow::Result<Answer> {
    let folder = Folder::create("witness", Some(&memory()))?;
    let process = |design: &str, pool: &Path| {
        let mut command = std::process::Command::new(std::env::current_exe()?);
        command.args(["crash", "--design", design, "--watched"]).arg(pool);
        if let Some(injection) = injection {
            command.args(["--inject", injection.name()]);
        }
        Ok(command)
    };
    let folder = folder.path().to_owned();
    let progress = SharedProgress::default();
    let request = HardwareTraceRequest {
        designs,
        folder,
        process: &process,
        threads: 0,
        progress: progress.function(),
    };
    let mut all: Vec<HardwareTraceResult> = Vec::new();
    let mut written: io::Result<()> = Ok(());
    run_hardware_trace(&request, &mut |witnessed| {
        progress.say(witnessed.design.clone());
        let now =
            if output.json { output.object(&row(witnessed)) } else { print(witnessed, output) };
        if written.is_ok() {
            written = now;
        }
        all.push(witnessed.clone());
    })?;
    drop(progress);
    written?;
    if all.is_empty() {
        return Err(UsageError(
            "these designs are volatile and have no flush and no fence to compare".into(),
        )
        .into());
    }
    if !output.json {
        summarise(&all, output)?;
    }
    let is_right =
        |all: &HardwareTraceResult| matches!(all.finish, Finish::Agrees | Finish::Skipped(_));
    Ok(Answer::from_bool(all.iter().all(is_right)))
}

/// Returns a folder in memory, or the temporary folder where there is none.
fn memory() -> PathBuf {
    let shared = Path::new("/dev/shm");
    if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() }
}

/// Returns one word for the result, and the reason unless both agree.
fn words(witnessed: &HardwareTraceResult) -> (&'static str, Option<String>) {
    match &witnessed.finish {
        Finish::Agrees => ("agrees", None),
        Finish::Skipped(reason) => ("skipped", Some(reason.clone())),
        Finish::Failed(reason) => ("failed", Some(reason.clone())),
        Finish::Differs(difference) => {
            let operation = witnessed.operation.as_deref().unwrap_or("the end");
            let number = difference.operation;
            ("differs", Some(format!("at operation {number}, {operation}\n{difference}")))
        }
    }
}

fn row(witnessed: &HardwareTraceResult) -> Row<'_> {
    let HardwareTraceResult { design, totals, stops, events, .. } = witnessed;
    let (finish, reason) = words(witnessed);
    Row {
        design,
        operations: totals.operations,
        splits: totals.splits,
        merges: totals.merges,
        stores: totals.stores,
        transient: totals.transient,
        filled: totals.filled,
        flushes: totals.flushes,
        fences: totals.fences,
        stops: *stops,
        events: *events,
        finish,
        reason,
    }
}

/// Prints the reason, unless both agree.
fn print(witnessed: &HardwareTraceResult, output: &mut Output) -> io::Result<()> {
    if let (finish, Some(reason)) = words(witnessed) {
        writeln!(output, "{} {finish}: {reason}", witnessed.design)?;
    }
    output.flush()
}

fn summarise(all: &[HardwareTraceResult], output: &mut Output) -> io::Result<()> {
    let titles = [
        "design",
        "operations",
        "splits",
        "merges",
        "stores",
        "latches",
        "filled",
        "flushes",
        "fences",
        "stops",
        "",
    ];
    let mut shown = table(&titles, 1..10);
    for witnessed in all {
        let totals = &witnessed.totals;
        let numbers = [
            totals.operations,
            totals.splits,
            totals.merges,
            totals.stores,
            totals.transient,
            totals.filled,
            totals.flushes,
            totals.fences,
            witnessed.stops,
        ];
        let mut row = vec![witnessed.design.clone()];
        row.extend(numbers.map(grouped));
        row.push(words(witnessed).0.to_owned());
        shown.add_row(row);
    }
    table::print(&shown, output)
}
