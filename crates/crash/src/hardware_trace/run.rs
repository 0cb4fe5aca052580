//! The witness as one call: which subjects, and what came of each.

use super::compare::compare;
use super::finish::Finish;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use super::process::{end, offer, trace};
use super::recorded::{ScriptTotals, record};
use super::script::{ScriptHost, describe, run_script};
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
use super::unsupported::{end, offer, trace};
use crate::campaign::executor::in_order;
use crate::config::{POOL, POOL_BYTES, STORE};
use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::pool::POOL_BYTES_MIN;
use bristlecone_pmem::{Mapped, Pool, PoolError};
use bristlecone_registry::smallest_size;
use bristlecone_trees::names::{UnknownDesign, specs};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is to be witnessed, and how.
#[expect(missing_debug_implementations, reason = "it holds a function")]
pub struct HardwareTraceRequest<'a> {
    /// Names of designs, `pool` and `store` among them; none for all that are persistent.
    pub designs: Vec<String>,
    /// A folder for pools; they are small, and in memory if the folder is.
    pub folder: PathBuf,
    /// A process that will [`act`](Stage) the script of a design on the pool at a path.
    pub process: &'a (dyn Fn(&str, &Path) -> io::Result<Command> + Sync),
    /// Threads to work with; 0 for as many as the machine runs at once.
    pub threads: usize,
}

/// What came of a design.
#[derive(Clone, Debug)]
pub struct HardwareTraceResult {
    /// The design.
    pub design: String,
    /// What was recorded.
    pub totals: ScriptTotals,
    /// How often its process was stopped.
    pub stops: u64,
    /// Events that they were.
    pub events: u64,
    /// How it went.
    pub finish: Finish,
    /// The operation in which the two part, if they do.
    pub operation: Option<String>,
}

/// In the process that is watched: plays the script of `name` on `stage`, under the eyes of its parent.
///
/// # Errors
/// There is no such design, or something fails.
pub fn run_traced<S: ScriptHost>(
    name: &str,
    host: &mut S,
) -> Result<(), Box<dyn core::error::Error + Send + Sync>> {
    offer()?;
    run_script(name, host)??;
    Ok(end()?)
}

/// Witnesses each subject, and shows what came of it in their order.
///
/// # Errors
/// A design that is asked for does not exist.
pub fn run_hardware_trace(
    request: &HardwareTraceRequest<'_>,
    show: &mut dyn FnMut(&HardwareTraceResult),
) -> Result<(), UnknownDesign> {
    let mut names = request.designs.clone();
    let known: Vec<_> = specs().iter().map(|sizes| sizes[0]).collect();
    if names.is_empty() {
        names.push(POOL.into());
        let persistent = known.iter().filter(|spec| spec.persistent);
        names.extend(persistent.map(|spec| spec.name.to_owned()));
        names.push(STORE.into());
    }
    let is_volatile =
        |name: &String| known.iter().any(|spec| spec.name == name && !spec.persistent);
    names.retain(|name| !is_volatile(name));
    for name in names.iter().filter(|name| ![POOL, STORE].contains(&name.as_str())) {
        smallest_size(name)?;
    }
    in_order(request.threads, &names, &|name| vec![trace_one(request, name)], show);
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

/// Words of a superblock that come of its random number: the number itself, and the checksum. The two
/// copies of the superblock are a page apart.
const DRAWN: [u32; 3] = [2, 3, 15];
const PAGE_WORDS: u32 = 512;

/// Makes the file that both runs begin with: blank for the pool itself, which draws a number when it is
/// created; for a design a pool, so that both have the same number. Gives its words.
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
