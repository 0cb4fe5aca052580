//! Trials: operations on an index without crashes, until its statistics change as a case needs it.

use crate::config::{POOL_BYTES, RESERVE_BYTES};
use crate::medium::recorder::Recorder;
use crate::scenario::index::scenario::IndexScenario;
use crate::scenario::index::session::{IndexSession, Op};
use crate::subject::design::SubjectDesign;
use crate::subject::keys::SampleKey;
use bristlecone_pmem::PoolError;
use bristlecone_trees::{TreeError, TreeStats};

/// The number of keys after which a case counts as one that the design does not have.
pub(super) const KEYS_MAX: u64 = 700;
/// The distance of the sample keys, so that others fit between them.
pub(super) const STRIDE: u64 = 10;
/// The number of keys in one leaf that neither splits nor merges.
pub(super) const FEW: u64 = 4;

pub(super) struct CaseList<K: SampleKey> {
    pub(super) design: SubjectDesign<K>,
    pub(super) list: Vec<IndexScenario<K>>,
}

/// An index on which operations are tried, with all operations so far.
pub(super) struct Trial<K: SampleKey> {
    design: SubjectDesign<K>,
    pub(super) session: IndexSession<K>,
    pub(super) medium: Recorder,
    pub(super) done: Vec<Op<K>>,
}

pub(super) fn insert<K: SampleKey>(number: u64) -> Op<K> {
    Op::Insert(K::sample(number), number.wrapping_mul(3))
}

pub(super) fn remove<K: SampleKey>(number: u64) -> Op<K> {
    Op::Remove(K::sample(number))
}

/// Returns the setup of an empty index.
pub(super) fn fresh<K: SampleKey>() -> Vec<Op<K>> {
    vec![Op::CreatePool, Op::Create]
}

/// Returns the setup of an index of a few keys.
pub(super) fn few<K: SampleKey>() -> Vec<Op<K>> {
    let mut ops = fresh();
    ops.extend((1..=FEW).map(|number| insert(number * STRIDE)));
    ops
}

impl<K: SampleKey> Trial<K> {
    pub(super) fn new(design: SubjectDesign<K>, setup: &[Op<K>]) -> Result<Self, TreeError> {
        Self::in_bytes(design, POOL_BYTES, setup)
    }

    /// Returns a trial in a pool of `bytes` bytes.
    pub(super) fn in_bytes(
        design: SubjectDesign<K>,
        bytes: u64,
        setup: &[Op<K>],
    ) -> Result<Self, TreeError> {
        Self::on(Recorder::blank(bytes, RESERVE_BYTES), design, setup)
    }

    /// Returns a trial that records a trace.
    pub(super) fn traced(design: SubjectDesign<K>, setup: &[Op<K>]) -> Result<Self, TreeError> {
        Self::on(Recorder::new(POOL_BYTES, RESERVE_BYTES, None), design, setup)
    }

    fn on(medium: Recorder, design: SubjectDesign<K>, setup: &[Op<K>]) -> Result<Self, TreeError> {
        let mut trial = Self { design, session: IndexSession::Closed, medium, done: Vec::new() };
        for op in setup {
            trial.apply(op)?;
        }
        Ok(trial)
    }

    pub(super) fn apply(&mut self, op: &Op<K>) -> Result<(), TreeError> {
        self.session.apply(self.design, &(&self.medium).into(), op)?;
        self.done.push(op.clone());
        Ok(())
    }

    pub(super) fn stats(&self) -> Result<TreeStats, TreeError> {
        match &self.session {
            IndexSession::Index(index) => index.check(),
            IndexSession::Closed | IndexSession::Pool(_) => Ok(TreeStats::default()),
        }
    }

    /// Applies the operation that `make` returns for each number, until one changes the statistics
    /// as `wanted`.
    pub(super) fn until(
        &mut self,
        numbers: impl IntoIterator<Item = u64>,
        make: fn(u64) -> Op<K>,
        wanted: impl Fn(&TreeStats, &TreeStats) -> bool,
    ) -> Result<Option<IndexCase<K>>, TreeError> {
        self.search(&mut numbers.into_iter(), make, &wanted)
    }

    /// Searches as [`until`](Self::until) does; it is compiled once for all cases.
    fn search(
        &mut self,
        numbers: &mut dyn Iterator<Item = u64>,
        make: fn(u64) -> Op<K>,
        wanted: &dyn Fn(&TreeStats, &TreeStats) -> bool,
    ) -> Result<Option<IndexCase<K>>, TreeError> {
        let mut before = self.stats()?;
        for number in numbers.take(KEYS_MAX as usize) {
            let setup = self.done.len();
            match self.apply(&make(number)) {
                Err(TreeError::Pool(PoolError::Full { .. })) => return Ok(None),
                done => done?,
            }
            let after = self.stats()?;
            if wanted(&before, &after) {
                let setup = self.done[..setup].to_vec();
                return Ok(Some(IndexCase { setup, op: make(number), number }));
            }
            before = after;
        }
        Ok(None)
    }
}

/// The operation that a trial was looking for, the operations before it, and the number of its key.
pub(super) struct IndexCase<K: SampleKey> {
    pub(super) setup: Vec<Op<K>>,
    pub(super) op: Op<K>,
    pub(super) number: u64,
}

impl<K: SampleKey> CaseList<K> {
    /// Adds a case. The recovered index is used around the keys of `near`.
    pub(super) fn add(&mut self, name: &str, setup: Vec<Op<K>>, tested: Vec<Op<K>>, near: &[u64]) {
        let near: Vec<_> = near.iter().map(|&number| K::sample(number)).collect();
        self.list.push(IndexScenario::new(
            self.design,
            format!("{}/{name}", K::NAME),
            setup,
            tested,
            &near,
        ));
    }

    /// Adds the case that a trial found, if any.
    pub(super) fn found(&mut self, name: &str, case: Option<IndexCase<K>>) {
        if let Some(IndexCase { setup, op, number }) = case {
            let near =
                [number, number - 1, number + 1, number + STRIDE, number.saturating_sub(STRIDE)];
            self.add(name, setup, vec![op], &near);
        }
    }
}

/// Operations, and the number of keys that they insert.
pub(super) type Grown<K> = (Vec<Op<K>>, u64);

/// Returns operations that grow a tree to `height` levels and at least `leaves` leaves, or `None`
/// if the design grows no such tree.
pub(super) fn grown<K: SampleKey>(
    design: SubjectDesign<K>,
    height: u32,
    leaves: u64,
) -> Result<Option<Grown<K>>, TreeError> {
    let mut trial = Trial::new(design, &fresh())?;
    let ascending = (1..).map(|count| count * STRIDE);
    let enough =
        |_: &TreeStats, after: &TreeStats| after.height >= height && after.leaves >= leaves;
    let case = trial.until(ascending, insert, enough)?;
    Ok(case.map(|_| {
        let keys = trial.done.len() - fresh::<K>().len();
        (trial.done, keys as u64)
    }))
}
