//! Pools to test on, seeds, and the bookkeeping that every suite needs.

use super::bounded::Bounded;
use bristlecone_pmem::medium::{Delay, FileOptions};
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Mapped, Medium, Pool, PoolError, Simulated};
use bristlecone_registry::Memory;
use bristlecone_trees::erased::BoxedIndex;
use bristlecone_trees::{Key, PmIndex, TreeError, TreeStats};
use rand::SeedableRng;
use rand::rngs::StdRng;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// The name of the root that the suite uses.
pub(crate) const ROOT: &str = "suite";

/// Returns the seed of this run, `BRISTLECONE_SEED` or a fixed one. Prints it, so that a failure
/// can be repeated.
pub(crate) fn seed() -> u64 {
    const USUAL: u64 = 20_261_121;
    let seed = std::env::var("BRISTLECONE_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or(USUAL);
    eprintln!(
        "seed {seed}; again: BRISTLECONE_SEED={seed} cargo test -p bristlecone-registry --test it {}",
        std::thread::current().name().unwrap_or_default()
    );
    seed
}

/// Returns a generator of its own for each `purpose`.
pub(crate) fn rng(purpose: u64) -> StdRng {
    StdRng::seed_from_u64(seed() ^ purpose << 48)
}

/// Creates a pool in DRAM that can grow. Almost every suite uses the one medium that the hostile
/// suite and the budget need: another medium would compile every design once more.
pub(crate) fn dram() -> Arc<Pool<Simulated>> {
    on(Bounded::unbounded(Mapped::anonymous(1 << 20).expect("a mebibyte of DRAM")))
}

/// Creates a pool in DRAM on the medium that users have, for the suites with several threads: a
/// counter would synchronise the threads.
pub(crate) fn plain() -> Arc<Pool<Memory>> {
    on(Delay::none(Mapped::anonymous(1 << 20).expect("a mebibyte of DRAM").into()))
}

/// Creates a pool on `medium`.
pub(crate) fn on<M: Medium>(medium: M) -> Arc<Pool<M>> {
    Arc::new(Pool::create(medium).expect("the medium is large enough"))
}

/// A file for a pool, removed at the end.
#[derive(Debug)]
pub(crate) struct Scratch {
    dir: TempDir,
}

/// The result of an open.
pub(crate) type Reopened = Result<(Arc<Pool<Simulated>>, Opened), PoolError>;

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().expect("a folder for the pool") }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("scratch.pool")
    }

    fn options() -> FileOptions {
        FileOptions { reserve_bytes: 1 << 30, ..FileOptions::default() }
    }

    /// Creates a pool in the file.
    pub(crate) fn create(&self, bytes: u64) -> Arc<Pool<Simulated>> {
        let mapping = Mapped::create(&self.path(), bytes, &Self::options()).expect("a new file");
        on(Bounded::unbounded(mapping))
    }

    /// Opens the pool in the file.
    pub(crate) fn open(&self) -> Reopened {
        self.open_within(i64::MAX)
    }

    /// Opens the pool in the file on a medium that allows so many loads.
    pub(crate) fn open_within(&self, steps: i64) -> Reopened {
        let medium = Bounded::over(Mapped::open(&self.path(), &Self::options())?, steps);
        Pool::open(medium).map(|(pool, opened)| (Arc::new(pool), opened))
    }
}

/// Closes index and pool, so that the next open needs no recovery.
pub(crate) fn close<M: Medium, K: Key>(index: BoxedIndex<M, K>) -> Result<(), TreeError> {
    let pool = Arc::into_inner(index.close()?).expect("a closed index keeps no handle of its pool");
    Ok(pool.close()?)
}

/// Checks the index, and that it reaches every block in use but the pool's header: nothing leaks.
/// No thread of the test may use the index meanwhile. All retired blocks are free when this
/// returns: see [`wait_for_frees`].
pub(crate) fn check_settled<M: Medium, K: Key>(index: &dyn PmIndex<M, K>) -> TreeStats {
    let census = index.check().expect("the structure is sound");
    let usage = index.pool().usage();
    let (found, wanted) = (usage.blocks - usage.waiting_blocks, census.blocks + 1);
    assert_eq!(found, wanted, "blocks leak, or are reached and not in use: {census:?}");
    index.pool().reclaim();
    census
}

/// Waits until the retired blocks are free, as they are once no test of this process reads anything
/// that it read then.
pub(crate) fn wait_for_frees<M: Medium, K: Key>(index: &dyn PmIndex<M, K>) {
    const TURNS: u32 = 200_000;
    let is_free = |_| {
        index.pool().collect();
        std::thread::yield_now();
        index.pool().usage().waiting_blocks == 0
    };
    assert!((0..TURNS).any(is_free), "never freed: {:?}", index.pool().usage());
}

/// Checks the index right after an open, when no block is retired: the blocks in use are exactly
/// those that the index reaches.
pub(crate) fn check_exact<M: Medium, K: Key>(index: &dyn PmIndex<M, K>) -> TreeStats {
    let census = index.check().expect("the structure is sound");
    let found = index.pool().usage().blocks;
    assert_eq!(found, census.blocks + 1, "blocks in use are not the blocks reached");
    census
}
