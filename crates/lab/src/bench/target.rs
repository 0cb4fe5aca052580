//! From the name of a design to a run of it: the one place where a name becomes a type.

use super::bytes;
use super::count::{self, PerOp};
use super::reopen::{self, Named};
use super::row::Bytes;
use super::run::{self, Measured};
use super::subject::{self, Subject, Tree};
use crate::error::{LabError, Result};
use crate::peers::{self, Peer, Site};
use crate::workload::{Plan, Recipe, Render, whole};
use bristlecone::Store;
use bristlecone_pmem::line::LINE_BYTES;
use bristlecone_pmem::medium::{Count, Delay, FileOptions};
use bristlecone_pmem::{Domain, Mapped, Medium, Placement, Simulated};
pub use bristlecone_registry::Memory;
use bristlecone_registry::{FormKey, Forms};
use bristlecone_trees::spec::Spec;
use bristlecone_trees::{ErasedDesign, names};
use core::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What can be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// What others have made.
    Peer(Peer),
    /// The store.
    Store,
    /// A design of the registry, at this node size.
    Design {
        /// Its name.
        name: String,
        /// Bytes of a node.
        node_bytes: usize,
        /// Whether anything of it survives its process.
        persistent: bool,
    },
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peer(peer) => peer.fmt(f),
            Self::Store => f.write_str("bristlecone"),
            Self::Design { name, .. } => f.write_str(name),
        }
    }
}

impl Target {
    /// The size of a node, where one is chosen.
    pub fn node_bytes(&self) -> Option<usize> {
        match self {
            Self::Peer(_) | Self::Store => None,
            Self::Design { node_bytes, .. } => Some(*node_bytes),
        }
    }

    /// Whether there is anything that is opened again here: a peer's files are its own affair.
    pub fn is_persistent(&self) -> bool {
        match self {
            Self::Peer(_) => false,
            Self::Store => true,
            Self::Design { persistent, .. } => *persistent,
        }
    }

    /// Whether what an operation does to memory is known.
    pub fn is_counted(&self) -> bool {
        match self {
            Self::Peer(peer) => peer.is_counted(),
            Self::Store | Self::Design { .. } => true,
        }
    }
}

/// The targets that `names` name. `all` are std's map, the designs that have nodes of `node_bytes`,
/// and the store; `peers` are the peers that are built in and not named before.
///
/// # Errors
/// There is no such design, or not at that node size; or no such peer.
pub fn parse(names: &[String], node_bytes: Option<usize>) -> Result<Vec<Target>> {
    let specs = names::specs();
    let mut targets = Vec::new();
    for name in names {
        match name.as_str() {
            "all" => {
                targets.push(Target::Peer(Peer::BTREEMAP));
                for sizes in &specs {
                    let fits = |bytes| sizes.iter().any(|spec| spec.node_bytes == bytes);
                    if node_bytes.is_none_or(fits) {
                        targets.push(design(sizes[0].name, node_bytes)?);
                    }
                }
                targets.push(Target::Store);
            }
            "bristlecone" => targets.push(Target::Store),
            "btreemap" => targets.push(Target::Peer(Peer::BTREEMAP)),
            "peers" => {
                for peer in Peer::built_in().into_iter().map(Target::Peer) {
                    if !targets.contains(&peer) {
                        targets.push(peer);
                    }
                }
            }
            name => targets.push(match Peer::named(name)? {
                Some(peer) => Target::Peer(peer),
                None => design(name, node_bytes)?,
            }),
        }
    }
    Ok(targets)
}

/// The design called `name`, at nodes of `node_bytes` or its default size.
///
/// # Errors
/// There is no such design, or not at that node size.
pub fn design(name: &str, node_bytes: Option<usize>) -> Result<Target> {
    let entry = match node_bytes {
        Some(node_bytes) => bristlecone_registry::with_size(name, node_bytes)?,
        None => bristlecone_registry::default_size(name)?,
    };
    let Spec { node_bytes, persistent, .. } = entry.spec;
    Ok(Target::Design { name: name.to_owned(), node_bytes, persistent })
}

/// A medium that counts.
pub(super) fn counted() -> Result<Simulated> {
    Ok(Simulated::over(Count::new(Mapped::anonymous(ROOM_BYTES)?)))
}

/// The form of a design for keys of kind `K`.
///
/// # Errors
/// The registry has none at that node size.
pub(crate) fn form<M: Medium, K: FormKey>(
    forms: &Forms<M>,
    spec: &Spec,
) -> Result<ErasedDesign<M, K>> {
    let Spec { name, node_bytes, .. } = spec;
    let none = || {
        LabError::Asked(format!(
            "{name} takes such keys in nodes of another size than {node_bytes} B"
        ))
    };
    K::form(forms).ok_or_else(none)
}

/// Latencies that are added to those of the memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delays {
    /// To each line flushed.
    pub flush: Duration,
    /// To each fence.
    pub fence: Duration,
}

impl Delays {
    /// `medium`, slower by these.
    pub fn on(self, medium: Mapped) -> Memory {
        Delay::new(medium, self.flush, self.fence)
    }
}

/// How things are measured, whatever is measured.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The file for the pool, which is removed; in shared memory if none is named.
    pub pool: Option<PathBuf>,
    /// Whose flushes and fences are executed.
    pub domain: Domain,
    /// Latencies that are added.
    pub delays: Delays,
    /// Which node each stripe of the pool belongs to.
    pub placement: Option<Placement>,
}

/// One repetition.
#[derive(Debug)]
#[non_exhaustive]
pub struct Once {
    /// What the threads did.
    pub measured: Measured,
    /// What a key takes, if it was weighed.
    pub memory: Option<Bytes>,
}

impl Once {
    /// One of which only the time is known.
    fn of(measured: Measured) -> Self {
        Self { measured, memory: None }
    }
}

/// Room in a new pool for each key, so that the pool need not grow while the clock runs.
const ROOM_FOR_KEY_BYTES: u64 = 64;
/// The same for each pair of the store, whose record has a block of its own, and of a peer that
/// makes a pool.
const ROOM_FOR_PAIR_BYTES: u64 = 128;
/// Room in a new pool whatever its keys.
const ROOM_BYTES: u64 = 8 << 20;

impl Bench {
    /// One timed repetition on `target`; with `weigh` it also finds the memory that a key takes.
    ///
    /// # Errors
    /// The target refused, or gave a wrong answer.
    pub fn time(
        &self,
        target: &Target,
        recipe: &Recipe,
        plans: &[Plan],
        weigh: bool,
    ) -> Result<Once> {
        if recipe.keys().are_bytes() {
            return bytes::time(self, target, recipe, plans, weigh);
        }
        match target {
            Target::Peer(peer) => {
                let site = Site {
                    asked: self.pool.as_deref(),
                    pool: self.pool.clone().unwrap_or_else(default_path),
                    pool_bytes: room_bytes(target, recipe),
                    threads: recipe.threads,
                };
                peer.with(&site, Given { recipe, plans, weigh })
            }
            Target::Store => {
                let (medium, file) = self.medium(target, recipe)?;
                if let Some(clean) = recipe.workload.reopens() {
                    let store = Store::create_on(self.delays.on(medium))?;
                    let open = |medium| Ok(Store::open_on(medium)?);
                    return reopen::time(store, open, &file, self, recipe, clean).map(Once::of);
                }
                drop(file);
                once::<u64, _>(Store::create_on(self.delays.on(medium))?, recipe, plans, weigh)
            }
            Target::Design { name, node_bytes, .. } => {
                let entry = bristlecone_registry::with_size(name, *node_bytes)?;
                let design = form::<_, u64>(&entry.memory, &entry.spec)?;
                let (medium, file) = self.medium(target, recipe)?;
                let tree = Tree::create(&design, self.delays.on(medium))?;
                if let Some(clean) = recipe.workload.reopens() {
                    let open = |medium| Tree::open(&design, medium);
                    return reopen::time(tree, open, &file, self, recipe, clean).map(Once::of);
                }
                drop(file);
                once(tree, recipe, plans, weigh)
            }
        }
    }

    /// A new file with room for the keys of `recipe`, all of its pages present. It stays usable
    /// without its name, and a run that opens it once gives the name up at once: so nothing is left
    /// behind however the run ends.
    pub(super) fn medium(&self, target: &Target, recipe: &Recipe) -> Result<(Mapped, Named)> {
        let path = self.pool.clone().unwrap_or_else(default_path);
        let bytes = room_bytes(target, recipe);
        let options =
            FileOptions { prefault: true, placement: self.placement, ..FileOptions::default() };
        let medium = Mapped::create(&path, bytes, &options)
            .map_err(|source| LabError::PoolFile { path: path.clone(), source })?;
        let file = Named(path);
        Ok((medium.emulate(self.domain)?, file))
    }
}

/// Room for the keys of `recipe` in a new pool.
pub(crate) fn room_bytes(target: &Target, recipe: &Recipe) -> u64 {
    let each = match target {
        Target::Store | Target::Peer(_) => ROOM_FOR_PAIR_BYTES,
        Target::Design { .. } => ROOM_FOR_KEY_BYTES,
    };
    let each = each + if recipe.keys().are_bytes() { room_for_record(recipe) } else { 0 };
    let inserts = recipe.workload.inserts_max(recipe.planned() / recipe.threads + 1);
    ROOM_BYTES + (recipe.records + recipe.threads * inserts) * each
}

/// Room for the record of a key that is a byte string, in blocks of whole lines, and as much again
/// for the separators.
fn room_for_record(recipe: &Recipe) -> u64 {
    const HEADER_BYTES: u64 = 8;
    let bytes = HEADER_BYTES + whole(recipe.keys().mean_bytes().ceil());
    2 * bytes.next_multiple_of(LINE_BYTES as u64)
}

/// What an operation on `target` does to its medium, of at most 200 000 operations on at most 1 000 000
/// records; nothing, for one that has none.
///
/// # Errors
/// The target refused, or gave a wrong answer.
pub fn count(target: &Target, recipe: &Recipe) -> Result<PerOp> {
    count_all(target, &count::part_of(recipe))
}

/// As [`count`], of as many records and operations as `recipe` says, by one thread.
///
/// # Errors
/// The target refused, or gave a wrong answer.
pub fn count_all(target: &Target, recipe: &Recipe) -> Result<PerOp> {
    let part = &Recipe { threads: 1, collectors: 0, rate: None, warm_up: 0, ..recipe.clone() };
    if part.keys().are_bytes() {
        return bytes::count(target, part);
    }
    match target {
        Target::Peer(peer) if peer.is_counted() => Ok(PerOp::default()),
        Target::Peer(peer) => Err(LabError::Asked(format!("nothing counts what {peer} does"))),
        Target::Store => count::count::<u64, _>(Store::create_on(counted()?)?, part),
        Target::Design { name, node_bytes, .. } => {
            let entry = bristlecone_registry::with_size(name, *node_bytes)?;
            let design = form::<_, u64>(&entry.simulated, &entry.spec)?;
            count::count(Tree::create(&design, counted()?)?, part)
        }
    }
}

/// A file in shared memory if there is any, else among the temporary files.
fn default_path() -> PathBuf {
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    folder.join(format!("bristlecone-bench-{}.pool", std::process::id()))
}

/// Visits a peer with the clock.
struct Given<'a> {
    recipe: &'a Recipe,
    plans: &'a [Plan],
    weigh: bool,
}

impl peers::Visitor for Given<'_> {
    type Output = Once;

    fn visit<S: Subject>(self, subject: S) -> Result<Once> {
        once(subject, self.recipe, self.plans, self.weigh)
    }
}

/// Loads, weighs and measures `subject`.
pub(super) fn once<K: Render, S: Subject<K>>(
    mut subject: S,
    recipe: &Recipe,
    plans: &[Plan],
    weigh: bool,
) -> Result<Once> {
    let before = used_bytes();
    run::load(&mut subject, recipe)?;
    // Without records to load, what is weighed is what the run inserts.
    let early = weigh && recipe.records > 0;
    let mut memory = early.then(|| weight(&mut subject, recipe.records, before)).transpose()?;
    let measured = run::measure(&mut subject, recipe, plans)?;
    if weigh && !early {
        memory = Some(weight(&mut subject, recipe.keys_left(), before)?);
    }
    Ok(Once { measured, memory })
}

/// What each of `keys` keys takes, by the subject's own census; for one that has none, by
/// the growth of what the process uses since `before`.
fn weight<K: Render, S: Subject<K>>(subject: &mut S, keys: u64, before: u64) -> Result<Bytes> {
    let each = |bytes: u64| bytes as f64 / keys.max(1) as f64;
    Ok(match subject.memory()? {
        Some(subject::MemoryUse { pm_bytes, dram_bytes }) => {
            Bytes { pm: each(pm_bytes), dram: each(dram_bytes) }
        }
        None => Bytes { pm: 0.0, dram: each(used_bytes().saturating_sub(before)) },
    })
}

/// Bytes of memory in use: what the allocator has given out, or if it does not tell, what is resident
/// and of no file.
pub(crate) fn used_bytes() -> u64 {
    peers::given_out_bytes().unwrap_or_else(resident_bytes)
}

/// Bytes of memory that the process has in use and that are of no file; 0 where the system does not
/// tell.
fn resident_bytes() -> u64 {
    const PAGE_BYTES: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut fields = statm.split_ascii_whitespace().skip(1).map_while(|field| field.parse().ok());
    let (resident, shared): (u64, u64) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
    resident.saturating_sub(shared) * PAGE_BYTES
}
