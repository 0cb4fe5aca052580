//! From the name of a design to a run of it: the one place where a name becomes a type.

use super::count::{self, PerOp};
use super::options::Delays;
use super::reopen::{self, Named};
use super::report::Bytes;
use super::run::{self, Measured};
use super::subject::{Alone, Locked, Memory, Subject, Tree};
use super::workload::{Plan, Recipe};
use anyhow::Context;
use bristlecone::Store;
use bristlecone_pmem::medium::{Count, Delay, FileOptions};
use bristlecone_pmem::{Domain, Mapped};
use bristlecone_trees::Design;
use bristlecone_trees::registry::{self, Visitor};
use bristlecone_trees::spec::Spec;
use core::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What can be measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// std's map.
    BTreeMap,
    /// The store.
    Store,
    /// A design of the registry, at this node size.
    Design { name: String, node_bytes: usize, persistent: bool },
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BTreeMap => "btreemap",
            Self::Store => "bristlecone",
            Self::Design { name, .. } => name,
        })
    }
}

impl Target {
    /// The size of a node, where one is chosen.
    pub(super) fn node_bytes(&self) -> Option<usize> {
        match self {
            Self::BTreeMap | Self::Store => None,
            Self::Design { node_bytes, .. } => Some(*node_bytes),
        }
    }

    /// Whether there is anything to open again.
    pub(super) fn is_persistent(&self) -> bool {
        match self {
            Self::BTreeMap => false,
            Self::Store => true,
            Self::Design { persistent, .. } => *persistent,
        }
    }
}

/// The targets that `names` name. `all` are those that have nodes of `node_bytes`.
///
/// # Errors
/// There is no such design, or not at that node size.
pub(super) fn parse(names: &[String], node_bytes: Option<usize>) -> anyhow::Result<Vec<Target>> {
    let specs = registry::specs();
    let mut targets = Vec::new();
    for name in names {
        match name.as_str() {
            "all" => {
                targets.push(Target::BTreeMap);
                for sizes in &specs {
                    let fits = |bytes| sizes.iter().any(|spec| spec.node_bytes == bytes);
                    if node_bytes.is_none_or(fits) {
                        targets.push(design(sizes[0].name, node_bytes)?);
                    }
                }
                targets.push(Target::Store);
            }
            "bristlecone" => targets.push(Target::Store),
            "btreemap" => targets.push(Target::BTreeMap),
            name => targets.push(design(name, node_bytes)?),
        }
    }
    Ok(targets)
}

fn design(name: &str, node_bytes: Option<usize>) -> anyhow::Result<Target> {
    struct Described;
    impl Visitor for Described {
        type Output = Spec;
        fn visit<D: Design>(self) -> Spec {
            D::SPEC
        }
    }
    let Spec { node_bytes, persistent, .. } = registry::with_design(name, node_bytes, Described)?;
    Ok(Target::Design { name: name.to_owned(), node_bytes, persistent })
}

/// What is measured: memory of this machine, with latency added or none, counted or not. One type for
/// all, so that there is one copy of each tree; where nothing is added, that is a branch never taken.
pub(crate) type Measurable = Count<Delay<Mapped>>;

/// A medium that counts.
fn counted() -> anyhow::Result<Measurable> {
    let medium = Mapped::anonymous(ROOM_BYTES)?;
    Ok(Count::new(Delay::new(medium, Duration::ZERO, Duration::ZERO)))
}

/// How things are measured, whatever is measured.
#[derive(Debug)]
pub(super) struct Bench {
    pub(super) pool: Option<PathBuf>,
    pub(super) domain: Domain,
    pub(super) delays: Delays,
}

/// One repetition.
#[derive(Debug)]
pub(super) struct Once {
    pub(super) measured: Measured,
    pub(super) memory: Option<Bytes>,
}

impl Once {
    /// One of which only the time is known.
    fn of(measured: Measured) -> Self {
        Self { measured, memory: None }
    }
}

/// Room in a new pool for each key, so that the pool need not grow while the clock runs.
const ROOM_FOR_KEY_BYTES: u64 = 64;
/// The same for each pair of the store, whose record has a block of its own.
const ROOM_FOR_PAIR_BYTES: u64 = 128;
/// Room in a new pool whatever its keys.
const ROOM_BYTES: u64 = 8 << 20;

impl Bench {
    /// One timed repetition on `target`; with `weigh` it also finds the memory that a key takes.
    pub(super) fn time(
        &self,
        target: &Target,
        recipe: &Recipe,
        plans: &[Plan],
        weigh: bool,
    ) -> anyhow::Result<Once> {
        match target {
            Target::BTreeMap if recipe.threads == 1 => once(Alone::default(), recipe, plans, weigh),
            Target::BTreeMap => once(Locked::default(), recipe, plans, weigh),
            Target::Store => {
                let (medium, file) = self.medium(target, recipe)?;
                if let Some(clean) = recipe.workload.reopens() {
                    let store = Store::create_on(self.delays.on(medium))?;
                    return reopen::time(store, &file, self, recipe, clean).map(Once::of);
                }
                drop(file);
                once(Store::create_on(self.delays.on(medium))?, recipe, plans, weigh)
            }
            Target::Design { name, node_bytes, .. } => {
                let timed = Timed { bench: self, target, recipe, plans, weigh };
                registry::with_design(name, Some(*node_bytes), timed)?
            }
        }
    }

    /// A new file with room for the keys of `recipe`, all of its pages present. It stays usable
    /// without its name, and a run that opens it once gives the name up at once: so nothing is left
    /// behind however the run ends.
    fn medium(&self, target: &Target, recipe: &Recipe) -> anyhow::Result<(Mapped, Named)> {
        let path = self.pool.clone().unwrap_or_else(default_path);
        let bytes = room_bytes(target, recipe);
        let options = FileOptions { prefault: true, ..FileOptions::default() };
        let medium = Mapped::create(&path, bytes, &options)
            .with_context(|| format!("{}", path.display()))?;
        let file = Named(path);
        Ok((medium.emulate(self.domain)?, file))
    }
}

/// Room for the keys of `recipe` in a new pool.
pub(super) fn room_bytes(target: &Target, recipe: &Recipe) -> u64 {
    let each = match target {
        Target::Store => ROOM_FOR_PAIR_BYTES,
        Target::BTreeMap | Target::Design { .. } => ROOM_FOR_KEY_BYTES,
    };
    let inserts = recipe.workload.inserts_max(recipe.ops / recipe.threads + 1);
    ROOM_BYTES + (recipe.records + recipe.threads * inserts) * each
}

/// What an operation on `target` does to its medium; nothing, for one that has none.
pub(super) fn count(target: &Target, recipe: &Recipe) -> anyhow::Result<PerOp> {
    let part = count::part_of(recipe);
    match target {
        Target::BTreeMap => Ok(PerOp::default()),
        Target::Store => count::count(Store::create_on(counted()?)?, &part),
        Target::Design { name, node_bytes, .. } => {
            registry::with_design(name, Some(*node_bytes), CountedPass { part: &part })?
        }
    }
}

/// A file in shared memory if there is any, else among the temporary files.
fn default_path() -> PathBuf {
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    folder.join(format!("bristlecone-bench-{}.pool", std::process::id()))
}

/// Visits a design with the clock.
struct Timed<'a> {
    bench: &'a Bench,
    target: &'a Target,
    recipe: &'a Recipe,
    plans: &'a [Plan],
    weigh: bool,
}

impl Visitor for Timed<'_> {
    type Output = anyhow::Result<Once>;

    fn visit<D: Design>(self) -> Self::Output {
        let Self { bench, target, recipe, plans, weigh } = self;
        let (medium, file) = bench.medium(target, recipe)?;
        let tree = Tree::<Measurable, D::Index<_, u64>>::create(bench.delays.on(medium))?;
        if let Some(clean) = recipe.workload.reopens() {
            return reopen::time(tree, &file, bench, recipe, clean).map(Once::of);
        }
        drop(file);
        once(tree, recipe, plans, weigh)
    }
}

/// Visits a design with the counter.
struct CountedPass<'a> {
    part: &'a Recipe,
}

impl Visitor for CountedPass<'_> {
    type Output = anyhow::Result<PerOp>;

    fn visit<D: Design>(self) -> Self::Output {
        count::count(Tree::<_, D::Index<_, u64>>::create(counted()?)?, self.part)
    }
}

/// Loads, weighs and measures `subject`.
fn once<S: Subject>(
    mut subject: S,
    recipe: &Recipe,
    plans: &[Plan],
    weigh: bool,
) -> anyhow::Result<Once> {
    let before = resident_bytes();
    run::load(&mut subject, recipe)?;
    // Without records to load, what is weighed is what the run inserts.
    let early = weigh && recipe.records > 0;
    let mut memory = early.then(|| weight(&mut subject, recipe.records, before)).transpose()?;
    let measured = run::measure(&mut subject, plans)?;
    if weigh && !early {
        memory = Some(weight(&mut subject, measured.ops, before)?);
    }
    Ok(Once { measured, memory })
}

/// What each of `keys` keys takes, by the subject's own census; for std's map, which has none, by
/// the growth of the process since `before`.
fn weight<S: Subject>(subject: &mut S, keys: u64, before: u64) -> anyhow::Result<Bytes> {
    let each = |bytes: u64| bytes as f64 / keys.max(1) as f64;
    Ok(match subject.memory()? {
        Some(Memory { pm_bytes, dram_bytes }) => {
            Bytes { pm: each(pm_bytes), dram: each(dram_bytes) }
        }
        None => Bytes { pm: 0.0, dram: each(resident_bytes().saturating_sub(before)) },
    })
}

/// Bytes of memory that the process has in use; 0 where the system does not tell.
fn resident_bytes() -> u64 {
    const PAGE_BYTES: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * PAGE_BYTES
}
