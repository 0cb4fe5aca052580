//! The comparison for subjects by name.

use super::compare::compare;
use super::finish::Finish;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use super::process::{end, offer, trace};
use super::recorded::{ScriptTotals, record};
use super::script::{ScriptHost, describe, run_script};
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
use super::unsupported::{end, offer, trace};
use crate::campaign::ProgressFn;
use crate::campaign::executor::in_order;
use crate::config::{POOL, POOL_BYTES, STORE};
use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::pool::POOL_BYTES_MIN;
use bristlecone_pmem::{Mapped, Pool, PoolError};
use bristlecone_registry::{is_built, smallest_size};
use bristlecone_trees::names::{UnknownDesign, specs};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The subjects to trace, and the processes that run their scripts.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct HardwareTraceRequest<'a> {
    /// The names of designs, `pool` and `store`; empty for all persistent ones.
    pub designs: Vec<String>,
    /// The folder for the pools, which have less than 1 MiB each. A folder in memory is faster.
    pub folder: PathBuf,
    /// Returns a command that calls [`run_traced`] for a design on the pool at a path.
    pub process: &'a (dyn Fn(&str, &Path) -> io::Result<Command> + Sync),
    /// The number of threads of the comparison; 0 for as many as the machine runs at once.
    pub threads: usize,
    /// The function that is told how many of the subjects are compared.
    pub progress: ProgressFn,
}

/// The result for one subject.
#[derive(Clone, Debug)]
pub struct HardwareTraceResult {
    /// The name of the subject.
    pub design: String,
    /// The counts of the recorded trace.
    pub totals: ScriptTotals,
    /// The number of stops of the traced process.
    pub stops: u64,
    /// The number of its events.
    pub events: u64,
    /// The result of the comparison.
    pub finish: Finish,
    /// The operation at which the traces differ, if they do.
    pub operation: Option<String>,
}

/// Runs the script of `name` on `host` in the traced process.
///
/// # Errors
/// No subject has this name, or an operation fails.
pub fn run_traced<S: ScriptHost>(
    name: &str,
    host: &mut S,
) -> Result<(), Box<dyn core::error::Error + Send + Sync>> {
    offer()?;
    run_script(name, host)??;
    Ok(end()?)
}

/// Traces each subject, and calls `show` with the results in their order.
///
/// # Errors
/// A design does not exist.
pub fn run_hardware_trace(
    request: &HardwareTraceRequest<'_>,
    show: &mut dyn FnMut(&HardwareTraceResult),
) -> Result<(), UnknownDesign> {
    let mut names = request.designs.clone();
    let known: Vec<_> = specs().iter().map(|sizes| sizes[0]).collect();
    if names.is_empty() {
        names.push(POOL.into());
        let persistent = known.iter().filter(|spec| spec.persistent && is_built(spec.name));
        names.extend(persistent.map(|spec| spec.name.to_owned()));
        names.push(STORE.into());
    }
    let is_volatile =
        |name: &String| known.iter().any(|spec| spec.name == name && !spec.persistent);
    names.retain(|name| !is_volatile(name));
    for name in names.iter().filter(|name| ![POOL, STORE].contains(&name.as_str())) {
        smallest_size(name)?;
    }
    let each = |name: &String| vec![trace_one(request, name)];
    in_order(request.threads, &request.progress, &names, &each, show);
    Ok(())
}

fn trace_one(request: &HardwareTraceRequest<'_>, name: &str) -> HardwareTraceResult {
    let mut result = HardwareTraceResult {
        design: name.into(),
        totals: ScriptTotals::default(),
        stops: 0,
        events: 0,
        finish: Finish::Agrees,
        operation: None,
    };
    if let Err(finish) = trace_subject(request, name, &mut result) {
        if let Finish::Differs(difference) = &finish {
            result.operation = describe(name).into_iter().nth(difference.operation as usize);
        }
        result.finish = finish;
    }
    result
}

fn trace_subject(
    request: &HardwareTraceRequest<'_>,
    name: &str,
    result: &mut HardwareTraceResult,
) -> Result<(), Finish> {
    let failed = |error: &dyn core::fmt::Display| Finish::Failed(error.to_string());
    let path = request.folder.join(format!("{name}.pool"));
    let image = prepare_pool(name, &path).map_err(|error| failed(&error))?;
    let (recorded, totals) = record(name, &image).map_err(|finding| {
        Finish::Failed(format!(
            "{}: expected {}, found {}",
            finding.what, finding.expected, finding.found
        ))
    })?;
    result.totals = totals;
    if name != POOL && (totals.splits == 0 || totals.merges == 0) {
        return Err(Finish::Failed("the script splits nothing, or merges nothing".into()));
    }
    let mut command = (request.process)(name, &path).map_err(|error| failed(&error))?;
    let watched = trace(&mut command, &path)?;
    result.stops = watched.stops;
    result.events = watched.happened.len() as u64;
    let is_drawn =
        |word: u32| name == POOL && DRAWN.contains(&(word % PAGE_WORDS)) && word < 2 * PAGE_WORDS;
    let differs = compare(&recorded, &watched.happened, is_drawn);
    differs.map_or(Ok(()), |difference| Err(Finish::Differs(Box::new(difference))))
}

/// The words of a superblock that depend on its random number: the number, and the checksum. The
/// two copies of the superblock are a page apart.
const DRAWN: [u32; 3] = [2, 3, 15];
const PAGE_WORDS: u32 = 512;

/// Makes the file with which both runs begin, and returns its words. The file of the pool is empty,
/// because its creation draws a random number. That of a design has a pool, so that both runs have
/// the same number.
fn prepare_pool(name: &str, path: &Path) -> Result<Vec<u64>, PoolError> {
    let bytes = if name == POOL { POOL_BYTES_MIN } else { POOL_BYTES };
    let medium = Mapped::create(path, bytes, &FileOptions::default())?;
    if name != POOL {
        Pool::create(medium)?.close()?;
    }
    let system =
        |source| bristlecone_pmem::medium::MediumError::System { action: "read the pool", source };
    let contents = std::fs::read(path).map_err(system)?;
    Ok(crate::medium::arena::words_of(&contents).collect())
}
