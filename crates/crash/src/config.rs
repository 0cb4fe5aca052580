//! Constants of the explorer, persistence models, and the bounds of an exploration.

use bristlecone_pmem::line::LINE_WORDS;

/// The bytes of an explored pool: small, but large enough that no operation under test grows it by
/// chance.
pub(crate) const POOL_BYTES: u64 = 12 * bristlecone_pmem::pool::HEADER_BYTES;

/// The bytes to which a simulated medium can grow.
pub(crate) const RESERVE_BYTES: u64 = 1 << 20;

/// The number of different violations that an outcome keeps.
pub(crate) const VIOLATIONS_SHOWN: usize = 5;

/// The number of recoveries after which every exploration is sampled. A scenario that needs more
/// lacks a fence or has too many operations.
pub(crate) const RECOVERIES_MAX: u64 = 20_000_000;

/// The number of violating recoveries after which a scenario is left: it has failed, and a short
/// trace has been found.
const VIOLATIONS_MAX: u64 = 400;

/// The name of the subject that is a pool without an index.
pub const POOL: &str = "pool";

/// The name of the subject that is the key-value store.
pub const STORE: &str = "store";

/// The unit that persists as a prefix of its stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PersistenceModel {
    /// A line of 64 B persists a prefix of its stores, as on x86 processors (Px86; Raad et al.,
    /// POPL 2020).
    Px86,
    /// Each word of 8 B persists by itself. Stricter, for designs that do not rely on the order of
    /// stores within a line.
    Word,
    /// A disk with a journal: a fence copies the lines that its thread has flushed, and a crash
    /// leaves the copies before some point, in their order.
    Disk,
}

impl PersistenceModel {
    /// Returns the name that commands use: `px86`, `word` or `disk`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Px86 => "px86",
            Self::Word => "word",
            Self::Disk => "disk",
        }
    }

    pub(crate) const fn unit_words(self) -> usize {
        match self {
            Self::Px86 | Self::Disk => LINE_WORDS,
            Self::Word => 1,
        }
    }
}

/// The persistence models to explore a subject in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Modes {
    /// Every model of persistent memory that applies to the design; sequences and random scenarios
    /// in the strictest of them.
    #[default]
    Auto,
    /// One model, for every scenario.
    Only(PersistenceModel),
}

impl Modes {
    /// Returns the modes called `name`: `auto`, `px86`, `word` or `disk`.
    pub fn from_name(name: &str) -> Option<Self> {
        use PersistenceModel::{Disk, Px86, Word};
        let modes = [Self::Auto, Self::Only(Px86), Self::Only(Word), Self::Only(Disk)];
        modes.into_iter().find(|modes| modes.name() == name)
    }

    /// Returns the name of these modes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Only(mode) => mode.name(),
        }
    }

    pub(crate) fn list(self, relies_on_line_order: bool) -> &'static [PersistenceModel] {
        match self {
            Self::Auto if relies_on_line_order => &[PersistenceModel::Px86],
            Self::Auto => &[PersistenceModel::Px86, PersistenceModel::Word],
            Self::Only(PersistenceModel::Px86) => &[PersistenceModel::Px86],
            Self::Only(PersistenceModel::Word) => &[PersistenceModel::Word],
            Self::Only(PersistenceModel::Disk) => &[PersistenceModel::Disk],
        }
    }

    /// Returns the strictest of these models: its images include those of the others.
    pub(crate) fn strictest(self, relies_on_line_order: bool) -> &'static [PersistenceModel] {
        let list = self.list(relies_on_line_order);
        &list[list.len() - 1..]
    }
}

/// The bounds of the exploration by a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The number of images to cover; the rest is sampled.
    pub(crate) images: u128,
    /// The number of crashes in a row: 1 crashes the operations, 2 also the recovery from that.
    pub(crate) depth: u32,
    /// The number of recoveries from crashes of the operations, and of each recovery, after which
    /// the rest is sampled.
    pub(crate) recoveries: u64,
    /// The number of recoveries from second crashes of a scenario, after which no more recoveries
    /// are crashed.
    pub(crate) nested: u64,
    /// The number of violating recoveries after which a scenario is left.
    pub(crate) violating: u64,
    /// The number of random schedules of a scenario with several threads.
    pub(crate) schedules: u64,
    /// The number of recoveries of such a scenario after which a sample of its crashes is tried,
    /// each with one recovery.
    pub(crate) schedule_recoveries: u64,
}

impl Limits {
    pub(crate) const fn new(images: u128, depth: u32) -> Self {
        let (recoveries, violating) = (RECOVERIES_MAX, VIOLATIONS_MAX);
        let (nested, schedule_recoveries) = (u64::MAX, u64::MAX);
        Self { images, depth, recoveries, nested, violating, schedules: 0, schedule_recoveries }
    }
}
