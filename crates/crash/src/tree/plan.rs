//! The list of cases, found by trying them.

use super::life::{Life, Op};
use super::{NUMBER_MAX, SampleKey, TreeScenario};
use crate::explore::RESERVE_BYTES;
use crate::kind::Kind;
use crate::recorder::Recorder;
use crate::run::POOL_BYTES;
use bristlecone_pmem::PoolError;
use bristlecone_trees::{TreeError, TreeStats};

/// Keys after which a case that has not come up is taken not to exist in the design.
pub(super) const KEYS_MAX: u64 = 700;
/// Distance of the sample keys, so that others fit between them.
pub(super) const STRIDE: u64 = 10;
/// Keys in a tree of one leaf in which nothing splits or merges.
const FEW: u64 = 4;

/// All cases of a design with one kind of key.
///
/// # Errors
/// The design fails without any crash.
pub(crate) fn plans<K: SampleKey>(kind: Kind<K>) -> Result<Vec<TreeScenario<K>>, TreeError> {
    let mut cases = Cases { kind, list: Vec::new() };
    cases.lives();
    cases.single();
    cases.splits()?;
    cases.merges()?;
    cases.refills()?;
    cases.reuse()?;
    cases.shapes()?;
    cases.tended()?;
    Ok(cases.list)
}

pub(super) struct Cases<K: SampleKey> {
    pub(super) kind: Kind<K>,
    pub(super) list: Vec<TreeScenario<K>>,
}

/// An index on which operations are tried, with all that were done.
pub(super) struct Trial<K: SampleKey> {
    kind: Kind<K>,
    pub(super) life: Life<K>,
    pub(super) medium: Recorder,
    pub(super) done: Vec<Op<K>>,
}

pub(super) fn insert<K: SampleKey>(number: u64) -> Op<K> {
    Op::Insert(K::sample(number), number.wrapping_mul(3))
}

pub(super) fn remove<K: SampleKey>(number: u64) -> Op<K> {
    Op::Remove(K::sample(number))
}

/// An empty index.
pub(super) fn fresh<K: SampleKey>() -> Vec<Op<K>> {
    vec![Op::Found, Op::Create]
}

/// An index of a few keys.
pub(super) fn few<K: SampleKey>() -> Vec<Op<K>> {
    let mut ops = fresh();
    ops.extend((1..=FEW).map(|number| insert(number * STRIDE)));
    ops
}

impl<K: SampleKey> Trial<K> {
    pub(super) fn new(kind: Kind<K>, setup: &[Op<K>]) -> Result<Self, TreeError> {
        Self::in_bytes(kind, POOL_BYTES, setup)
    }

    /// A trial in a pool of so many bytes.
    pub(super) fn in_bytes(kind: Kind<K>, bytes: u64, setup: &[Op<K>]) -> Result<Self, TreeError> {
        Self::on(Recorder::blank(bytes, RESERVE_BYTES), kind, setup)
    }

    /// A trial with a tape.
    pub(super) fn taped(kind: Kind<K>, setup: &[Op<K>]) -> Result<Self, TreeError> {
        Self::on(Recorder::new(POOL_BYTES, RESERVE_BYTES, None), kind, setup)
    }

    fn on(medium: Recorder, kind: Kind<K>, setup: &[Op<K>]) -> Result<Self, TreeError> {
        let mut trial = Self { kind, life: Life::Closed, medium, done: Vec::new() };
        for op in setup {
            trial.apply(op)?;
        }
        Ok(trial)
    }

    pub(super) fn apply(&mut self, op: &Op<K>) -> Result<(), TreeError> {
        self.life.apply(self.kind, &(&self.medium).into(), op)?;
        self.done.push(op.clone());
        Ok(())
    }

    fn census(&self) -> Result<TreeStats, TreeError> {
        match &self.life {
            Life::Index(index) => index.check(),
            Life::Closed | Life::Pool(_) => Ok(TreeStats::default()),
        }
    }

    /// Does the operation that `make` makes of each number until one changes the census as wanted.
    pub(super) fn until(
        &mut self,
        numbers: impl IntoIterator<Item = u64>,
        make: fn(u64) -> Op<K>,
        wanted: impl Fn(&TreeStats, &TreeStats) -> bool,
    ) -> Result<Option<Case<K>>, TreeError> {
        let mut before = self.census()?;
        for number in numbers.into_iter().take(KEYS_MAX as usize) {
            let setup = self.done.len();
            match self.apply(&make(number)) {
                Err(TreeError::Pool(PoolError::Full { .. })) => return Ok(None),
                done => done?,
            }
            let after = self.census()?;
            if wanted(&before, &after) {
                let setup = self.done[..setup].to_vec();
                return Ok(Some(Case { setup, op: make(number), number }));
            }
            before = after;
        }
        Ok(None)
    }
}

/// An operation that a trial was looking for: what was done before it, and the number of its key.
pub(super) struct Case<K: SampleKey> {
    pub(super) setup: Vec<Op<K>>,
    pub(super) op: Op<K>,
    pub(super) number: u64,
}

impl<K: SampleKey> Cases<K> {
    /// Adds a case; its recovered index is used around the keys of `near`.
    pub(super) fn add(&mut self, name: &str, setup: Vec<Op<K>>, tested: Vec<Op<K>>, near: &[u64]) {
        let near: Vec<_> = near.iter().map(|&number| K::sample(number)).collect();
        self.list.push(TreeScenario::new(
            self.kind,
            format!("{}/{name}", K::NAME),
            setup,
            tested,
            &near,
        ));
    }

    /// Adds a case that a trial found, if it did.
    pub(super) fn found(&mut self, name: &str, case: Option<Case<K>>) {
        if let Some(Case { setup, op, number }) = case {
            let near =
                [number, number - 1, number + 1, number + STRIDE, number.saturating_sub(STRIDE)];
            self.add(name, setup, vec![op], &near);
        }
    }

    /// Creation, opening and closing.
    fn lives(&mut self) {
        let near = [0, 2 * STRIDE, 25];
        self.add("create-pool", vec![], vec![Op::Found], &near);
        self.add("create", vec![Op::Found], vec![Op::Create], &near);
        self.add("close", few(), vec![Op::Close], &near);
        let closed = |mut ops: Vec<Op<K>>, last| {
            ops.push(last);
            ops
        };
        self.add("open-closed", closed(few(), Op::Close), vec![Op::Open], &near);
        self.add("open-killed", closed(few(), Op::Die), vec![Op::Open], &near);
        let used = vec![Op::Open, insert(25), insert(35), Op::Update(K::sample(20), 1)];
        self.add("open-killed-use", closed(few(), Op::Die), used, &near);
        let again = vec![Op::Close, Op::Open, insert(25)];
        self.add("close-open-insert", few(), again, &near);
    }

    /// Operations that change no structure.
    fn single(&mut self) {
        let near = [19, 20, 21, 30];
        let value = u64::MAX;
        self.add("insert-empty", fresh(), vec![insert(20)], &[20, 19, 21]);
        self.add("insert-middle", few(), vec![insert(25)], &[25, 20, 26]);
        self.add("insert-front", few(), vec![insert(0)], &[0, 1, STRIDE]);
        self.add("insert-back", few(), vec![insert(NUMBER_MAX)], &[NUMBER_MAX, 40, 41]);
        self.add("insert-present", few(), vec![insert(20)], &near);
        self.add("update", few(), vec![Op::Update(K::sample(20), value)], &near);
        self.add("update-absent", few(), vec![Op::Update(K::sample(25), value)], &near);
        self.add("upsert-present", few(), vec![Op::Upsert(K::sample(20), value)], &near);
        self.add("upsert-absent", few(), vec![Op::Upsert(K::sample(25), value)], &near);
        self.add("remove-middle", few(), vec![remove(20)], &near);
        self.add("remove-front", few(), vec![remove(STRIDE)], &[STRIDE, 1, 20]);
        self.add("remove-back", few(), vec![remove(FEW * STRIDE)], &[40, 41, 39]);
        self.add("remove-absent", few(), vec![remove(25)], &near);
        let mut one = fresh();
        one.push(insert(20));
        self.add("remove-last", one, vec![remove(20)], &[20, 19, 21]);
        let same = |number| Op::Insert(K::sample(number), 7);
        let mut alike = fresh();
        alike.extend([10, 20, 30].map(same));
        self.add("insert-same-value", alike, vec![same(25)], &near);
        let two = vec![insert(25), remove(20)];
        self.add("insert-then-remove", few(), two, &near);
        let two = vec![Op::Update(K::sample(30), 1), Op::Update(K::sample(30), 2)];
        self.add("update-twice", few(), two, &[30, 31]);
    }

    /// Inserts that split nodes.
    fn splits(&mut self) -> Result<(), TreeError> {
        let ascending = || (1..).map(|count| count * STRIDE);
        let descending = || (1..=KEYS_MAX).rev().map(|count| count * STRIDE);
        let leaf =
            |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves && before.keys > 0;
        let first = Trial::new(self.kind, &fresh())?.until(ascending(), insert, leaf)?;
        if let Some(Case { setup, .. }) = &first {
            let full = setup.len() as u64 - fresh::<K>().len() as u64;
            let middle = full.div_ceil(2) * STRIDE + 5;
            let near = [middle, middle - 5, middle + 5, middle + 1];
            self.add("split-leaf-middle", setup.clone(), vec![insert(middle)], &near);
            self.add("split-leaf-front", setup.clone(), vec![insert(0)], &[0, 1, STRIDE]);
            // A leaf that is full but for one entry, and full: whatever moves, moves farthest.
            let mut nearly = setup.clone();
            nearly.pop();
            self.add("insert-front-filling", nearly, vec![insert(0)], &[0, 1, STRIDE]);
            self.add("remove-front-full", setup.clone(), vec![remove(STRIDE)], &[0, 1, STRIDE]);
        }
        self.found("split-leaf", first);
        let case = Trial::new(self.kind, &fresh())?.until(descending(), insert, leaf)?;
        self.found("split-leaf-descending", case);
        let below = |before: &TreeStats, after: &TreeStats| {
            before.height >= 2 && after.height == before.height && after.leaves > before.leaves
        };
        let case = Trial::new(self.kind, &fresh())?.until(ascending(), insert, below)?;
        self.found("split-leaf-below-root", case);
        let root = |before: &TreeStats, after: &TreeStats| before.height == 2 && after.height == 3;
        let case = Trial::new(self.kind, &fresh())?.until(ascending(), insert, root)?;
        self.found("split-root", case);
        let case = Trial::new(self.kind, &fresh())?.until(descending(), insert, root)?;
        self.found("split-root-descending", case);
        Ok(())
    }

    /// Removes that empty, merge or collapse nodes.
    fn merges(&mut self) -> Result<(), TreeError> {
        let merge = |before: &TreeStats, after: &TreeStats| after.leaves < before.leaves;
        let collapse = |before: &TreeStats, after: &TreeStats| after.height < before.height;
        let Some((low, low_keys)) = grown(self.kind, 2, 4)? else { return Ok(()) };
        let up = |count: u64| (1..=count).map(|count| count * STRIDE);
        let down = |count: u64| (1..=count).rev().map(|count| count * STRIDE);
        let case = Trial::new(self.kind, &low)?.until(up(low_keys), remove, merge)?;
        self.found("merge-leaf-front", case);
        let case = Trial::new(self.kind, &low)?.until(down(low_keys), remove, merge)?;
        self.found("merge-leaf-back", case);
        let third = low_keys / 3;
        let case =
            Trial::new(self.kind, &low)?.until(up(low_keys).skip(third as usize), remove, merge)?;
        self.found("merge-leaf-middle", case);
        let case = Trial::new(self.kind, &low)?.until(up(low_keys), remove, collapse)?;
        self.found("collapse-root", case);
        let case = Trial::new(self.kind, &low)?.until(down(low_keys), remove, collapse)?;
        self.found("collapse-root-back", case);
        let Some((high, high_keys)) = grown(self.kind, 3, 2)? else { return Ok(()) };
        let inner = |before: &TreeStats, after: &TreeStats| after.inner_nodes < before.inner_nodes;
        let case = Trial::new(self.kind, &high)?.until(up(high_keys), remove, inner)?;
        self.found("merge-inner-front", case);
        let case = Trial::new(self.kind, &high)?.until(down(high_keys), remove, inner)?;
        self.found("merge-inner-back", case);
        Ok(())
    }

    /// Removes beside an inner node that is full: one that starves has to take a child from it, for
    /// the two do not fit together. The last few before inner nodes merge after all.
    fn refills(&mut self) -> Result<(), TreeError> {
        let ascending: Vec<_> = (1..=KEYS_MAX).map(|count| count * STRIDE).collect();
        let descending: Vec<_> = ascending.iter().rev().copied().collect();
        for (name, numbers) in [("refill-front", ascending), ("refill-back", descending)] {
            let mut trial = Trial::new(self.kind, &fresh())?;
            let mut more = numbers.iter().copied();
            let high = |_: &TreeStats, after: &TreeStats| after.height >= 3;
            let inner =
                |before: &TreeStats, after: &TreeStats| after.inner_nodes > before.inner_nodes;
            trial.until(more.by_ref(), insert, high)?;
            let Some(full) = trial.until(more, insert, inner)? else { continue };
            let mut trial = Trial::new(self.kind, &full.setup)?;
            let mut less = numbers.iter().copied();
            let leaf = |before: &TreeStats, after: &TreeStats| after.leaves < before.leaves;
            let (mut cases, inner_nodes) = (Vec::new(), trial.census()?.inner_nodes);
            while trial.census()?.inner_nodes == inner_nodes
                && let Some(case) = trial.until(less.by_ref(), remove, leaf)?
            {
                cases.push(case);
            }
            for (back, case) in cases.into_iter().rev().take(4).enumerate() {
                self.found(&format!("{name}-{back}"), Some(case));
            }
        }
        Ok(())
    }

    /// A split into blocks that held other nodes before.
    fn reuse(&mut self) -> Result<(), TreeError> {
        let Some((mut setup, keys)) = grown(self.kind, 2, 3)? else { return Ok(()) };
        setup.extend((1..=keys).rev().map(|number| remove(number * STRIDE)));
        setup.extend([Op::Die, Op::Open]);
        let leaf =
            |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves && before.keys > 0;
        let ascending = (1..).map(|count| count * STRIDE + 3);
        let case = Trial::new(self.kind, &setup)?.until(ascending, insert, leaf)?;
        self.found("split-into-used", case);
        Ok(())
    }
}

/// Operations, and how many keys they insert.
pub(super) type Grown<K> = (Vec<Op<K>>, u64);

/// Operations that make a tree of that height and at least so many leaves; `None` if the design
/// grows no such tree.
pub(super) fn grown<K: SampleKey>(
    kind: Kind<K>,
    height: u32,
    leaves: u64,
) -> Result<Option<Grown<K>>, TreeError> {
    let mut trial = Trial::new(kind, &fresh())?;
    let ascending = (1..).map(|count| count * STRIDE);
    let enough =
        |_: &TreeStats, after: &TreeStats| after.height >= height && after.leaves >= leaves;
    let case = trial.until(ascending, insert, enough)?;
    Ok(case.map(|_| {
        let keys = trial.done.len() - fresh::<K>().len();
        (trial.done, keys as u64)
    }))
}
