//! The list of cases: single operations, splits and merges.

use super::trial::FEW;
use crate::scenario::index::scenario::IndexScenario;
use crate::scenario::index::session::Op;
use crate::scenario::index::trial::{
    CaseList, IndexCase, KEYS_MAX, STRIDE, Trial, few, fresh, grown, insert, remove,
};
use crate::subject::design::SubjectDesign;
use crate::subject::keys::{NUMBER_MAX, SampleKey};
use bristlecone_pmem::medium::schedule::Conditions;
use bristlecone_trees::spec::SELECTIVE;
use bristlecone_trees::{TreeError, TreeStats};

/// Returns all cases of a design with one kind of key.
///
/// # Errors
/// The design fails without any crash.
pub(crate) fn cases<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Vec<IndexScenario<K>>, TreeError> {
    let mut cases = CaseList { design, list: Vec::new() };
    cases.sessions();
    cases.single();
    cases.splits()?;
    cases.merges()?;
    cases.refills()?;
    cases.reuse()?;
    cases.structures()?;
    cases.dense()?;
    cases.unrepaired("")?;
    cases.maintenance()?;
    cases.batches()?;
    cases.under_conditions();
    Ok(cases.list)
}

/// Returns the cases of a layout whose header takes two lines, with one kind of key: the operations
/// that use its second line.
///
/// # Errors
/// The design fails without any crash.
pub(crate) fn wide_cases<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Vec<IndexScenario<K>>, TreeError> {
    let mut cases = CaseList { design, list: Vec::new() };
    cases.wide()?;
    cases.unrepaired("wide-")?;
    Ok(cases.list)
}

/// Returns updates of the last three keys up to `number`, in ascending and then in descending
/// order. So a design that buffers writes logs an older value of one of them than it stores.
fn updates<K: SampleKey>(number: u64) -> Vec<Op<K>> {
    let ascending = [number - 2 * STRIDE, number - STRIDE, number];
    let numbers = ascending.into_iter().chain(ascending.into_iter().rev());
    (1..).zip(numbers).map(|(value, number)| Op::Update(K::sample(number), value)).collect()
}

/// The cases that also run in an aged pool: those that open it, and those whose nodes or logs take
/// new numbers.
const AGED: [&str; 8] = [
    "open-killed-use",
    "close-open-insert",
    "split-leaf-below-root",
    "merge-leaf-front",
    "update-round",
    "tend-round",
    "reuse-middle",
    "commit-leaves",
];
/// The cases that also run at a small scale: those after which recovery walks, repairs and marks
/// leaves, and those of batches that need new leaves.
const SMALL_SCALE: [&str; 11] = [
    "open-killed",
    "split-leaf",
    "split-leaf-below-root",
    "split-root",
    "merge-leaf-middle",
    "update-full",
    "update-often-beside",
    "reuse-middle",
    "commit-leaves-then-insert",
    "commit-many-empty",
    "commit-many",
];

impl<K: SampleKey> CaseList<K> {
    /// Adds some of the cases once more, in an aged pool and at a small scale.
    fn under_conditions(&mut self) {
        let is_hybrid = self.design.form.spec.features.contains(&SELECTIVE);
        let aged = Conditions { aged: true, ..Conditions::USUAL };
        let small_scale = Conditions { small_scale: true, ..Conditions::USUAL };
        let of = |list: &[IndexScenario<K>], cases: &[&str], conditions, prefix| {
            let cases = cases.iter().filter_map(|case| list.iter().find(|one| one.is_case(case)));
            cases.map(|case| case.under(conditions, prefix)).collect::<Vec<_>>()
        };
        let mut more = of(&self.list, &AGED, aged, "aged");
        if is_hybrid {
            more.extend(of(&self.list, &SMALL_SCALE, small_scale, "small-scale"));
        }
        self.list.extend(more);
    }

    /// Adds the cases of a leaf with as many entries as use the second line of its header.
    fn wide(&mut self) -> Result<(), TreeError> {
        let leaf =
            |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves && before.keys > 0;
        let ascending = (1..).map(|count| count * STRIDE);
        let first = Trial::new(self.design, &fresh())?.until(ascending, insert, leaf)?;
        let Some(IndexCase { setup, number: last, .. }) = first else { return Ok(()) };
        let mut nearly = setup.clone();
        nearly.pop();
        let middle = last / STRIDE / 2 * STRIDE + 5;
        let near = [middle, middle - 5, last - STRIDE, STRIDE];
        let mut add = |name: &str, setup: &[Op<K>], tested: Vec<Op<K>>| {
            self.add(&format!("wide-{name}"), setup.to_vec(), tested, &near);
        };
        add("insert", &nearly, vec![insert(middle)]);
        add("insert-close", &nearly, vec![insert(middle), Op::Close, Op::Open]);
        add("remove", &setup, vec![remove(last - STRIDE)]);
        add("remove-insert", &setup, vec![remove(STRIDE), insert(middle)]);
        add("update", &setup, vec![Op::Update(K::sample(last - STRIDE), 1)]);
        add("split", &setup, vec![insert(middle)]);
        self.wide_merge()
    }

    /// Adds a merge whose left leaf gets the most entries that a merge moves, so that they use the
    /// second line of its header: the left leaf loses its entries beside a full one. It was filled
    /// from its end. So what its split has left of its array differs from what the merge stores.
    fn wide_merge(&mut self) -> Result<(), TreeError> {
        let split = |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves;
        let merge = |before: &TreeStats, after: &TreeStats| after.leaves < before.leaves;
        let mut trial = Trial::new(self.design, &fresh())?;
        trial.apply(&insert(KEYS_MAX * STRIDE))?;
        let descending = (1..KEYS_MAX).rev().map(|count| count * STRIDE);
        let Some(halved) = trial.until(descending, insert, split)? else { return Ok(()) };
        let between = |count| [7, 3].map(|more| count * STRIDE + more);
        let between = (1..KEYS_MAX).rev().flat_map(between);
        let Some(full) = trial.until(between, insert, split)? else { return Ok(()) };
        let ascending = (halved.number / STRIDE..=KEYS_MAX).map(|count| count * STRIDE);
        let case = Trial::new(self.design, &full.setup)?.until(ascending, remove, merge)?;
        self.found("wide-merge", case);
        Ok(())
    }

    /// Adds creation, opening and closing.
    fn sessions(&mut self) {
        let near = [0, 2 * STRIDE, 25];
        self.add("create-pool", vec![], vec![Op::CreatePool], &near);
        self.add("create", vec![Op::CreatePool], vec![Op::Create], &near);
        self.add("close", few(), vec![Op::Close], &near);
        let closed = |mut ops: Vec<Op<K>>, last| {
            ops.push(last);
            ops
        };
        self.add("open-closed", closed(few(), Op::Close), vec![Op::Open], &near);
        self.add("open-killed", closed(few(), Op::Crash), vec![Op::Open], &near);
        let used = vec![Op::Open, insert(25), insert(35), Op::Update(K::sample(20), 1)];
        self.add("open-killed-use", closed(few(), Op::Crash), used, &near);
        let again = vec![Op::Close, Op::Open, insert(25)];
        self.add("close-open-insert", few(), again, &near);
        let then = vec![insert(25), remove(20), Op::Close, Op::Open];
        self.add("insert-close-open", few(), then, &near);
    }

    /// Adds operations that change no structure.
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
        // The pair comes back into the entry that it has left.
        let last = FEW * STRIDE;
        self.add("remove-then-insert", few(), vec![remove(last), insert(last)], &[40, 41, 39]);
        let two = vec![Op::Update(K::sample(30), 1), Op::Update(K::sample(30), 2)];
        self.add("update-twice", few(), two, &[30, 31]);
        // Key and value are what fresh memory holds, so that a store of them changes nothing.
        let mut zero = fresh();
        zero.push(insert(0));
        self.add("update-zero", zero, vec![Op::Update(K::sample(0), 0)], &[0, 1]);
    }

    /// Adds inserts that split nodes.
    fn splits(&mut self) -> Result<(), TreeError> {
        let ascending = || (1..).map(|count| count * STRIDE);
        let descending = || (1..=KEYS_MAX).rev().map(|count| count * STRIDE);
        let leaf =
            |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves && before.keys > 0;
        let first = Trial::new(self.design, &fresh())?.until(ascending(), insert, leaf)?;
        if let Some(IndexCase { setup, number, .. }) = &first {
            let updated = [&setup[..], &updates(number - STRIDE)].concat();
            let case = Trial::new(self.design, &updated)?.until([*number], insert, leaf)?;
            self.found("split-leaf-updated", case);
            let full = setup.len() as u64 - fresh::<K>().len() as u64;
            let middle = full.div_ceil(2) * STRIDE + 5;
            let near = [middle, middle - 5, middle + 5, middle + 1];
            self.add("split-leaf-middle", setup.clone(), vec![insert(middle)], &near);
            self.add("split-leaf-front", setup.clone(), vec![insert(0)], &[0, 1, STRIDE]);
            // In a leaf with one free entry, and in a full one, an operation moves the most
            // entries.
            let mut nearly = setup.clone();
            nearly.pop();
            self.add("insert-front-filling", nearly, vec![insert(0)], &[0, 1, STRIDE]);
            self.add("remove-front-full", setup.clone(), vec![remove(STRIDE)], &[0, 1, STRIDE]);
        }
        self.found("split-leaf", first);
        let case = Trial::new(self.design, &fresh())?.until(descending(), insert, leaf)?;
        self.found("split-leaf-descending", case);
        let below = |before: &TreeStats, after: &TreeStats| {
            before.height >= 2 && after.height == before.height && after.leaves > before.leaves
        };
        let case = Trial::new(self.design, &fresh())?.until(ascending(), insert, below)?;
        self.found("split-leaf-below-root", case);
        let root = |before: &TreeStats, after: &TreeStats| before.height == 2 && after.height == 3;
        let case = Trial::new(self.design, &fresh())?.until(ascending(), insert, root)?;
        self.found("split-root", case);
        let case = Trial::new(self.design, &fresh())?.until(descending(), insert, root)?;
        self.found("split-root-descending", case);
        Ok(())
    }

    /// Adds removes that empty, merge or collapse nodes.
    fn merges(&mut self) -> Result<(), TreeError> {
        let merge = |before: &TreeStats, after: &TreeStats| after.leaves < before.leaves;
        let collapse = |before: &TreeStats, after: &TreeStats| after.height < before.height;
        let Some((low, low_keys)) = grown(self.design, 2, 4)? else { return Ok(()) };
        let up = |count: u64| (1..=count).map(|count| count * STRIDE);
        let down = |count: u64| (1..=count).rev().map(|count| count * STRIDE);
        let case = Trial::new(self.design, &low)?.until(up(low_keys), remove, merge)?;
        self.found("merge-leaf-front", case);
        let case = Trial::new(self.design, &low)?.until(down(low_keys), remove, merge)?;
        self.found("merge-leaf-back", case);
        let third = low_keys / 3;
        let case = Trial::new(self.design, &low)?.until(
            up(low_keys).skip(third as usize),
            remove,
            merge,
        )?;
        if let Some(IndexCase { setup, number, .. }) = &case {
            // The last removes follow the updates. The second round of updates is in the log even
            // if the first one fills it, so that it is collected.
            let last = (setup.len() - low.len()).min(2);
            let round = updates(*number);
            let updated = [&setup[..setup.len() - last], &round, &round].concat();
            let less = (0..=last as u64).rev().map(|back| number - back * STRIDE);
            let case = Trial::new(self.design, &updated)?.until(less, remove, merge)?;
            self.found("merge-leaf-updated", case);
        }
        self.found("merge-leaf-middle", case);
        let case = Trial::new(self.design, &low)?.until(up(low_keys), remove, collapse)?;
        self.found("collapse-root", case);
        let case = Trial::new(self.design, &low)?.until(down(low_keys), remove, collapse)?;
        self.found("collapse-root-back", case);
        let Some((high, high_keys)) = grown(self.design, 3, 2)? else { return Ok(()) };
        let inner = |before: &TreeStats, after: &TreeStats| after.inner_nodes < before.inner_nodes;
        let case = Trial::new(self.design, &high)?.until(up(high_keys), remove, inner)?;
        self.found("merge-inner-front", case);
        let case = Trial::new(self.design, &high)?.until(down(high_keys), remove, inner)?;
        self.found("merge-inner-back", case);
        Ok(())
    }

    /// Adds removes beside a full inner node. A sparse node has to take a child from it, because
    /// the two do not fit together. The cases are the last few before inner nodes merge.
    fn refills(&mut self) -> Result<(), TreeError> {
        let ascending: Vec<_> = (1..=KEYS_MAX).map(|count| count * STRIDE).collect();
        let descending: Vec<_> = ascending.iter().rev().copied().collect();
        for (name, numbers) in [("refill-front", ascending), ("refill-back", descending)] {
            let mut trial = Trial::new(self.design, &fresh())?;
            let mut more = numbers.iter().copied();
            let high = |_: &TreeStats, after: &TreeStats| after.height >= 3;
            let inner =
                |before: &TreeStats, after: &TreeStats| after.inner_nodes > before.inner_nodes;
            trial.until(more.by_ref(), insert, high)?;
            let Some(full) = trial.until(more, insert, inner)? else { continue };
            let mut trial = Trial::new(self.design, &full.setup)?;
            let mut less = numbers.iter().copied();
            let leaf = |before: &TreeStats, after: &TreeStats| after.leaves < before.leaves;
            let (mut cases, inner_nodes) = (Vec::new(), trial.stats()?.inner_nodes);
            while trial.stats()?.inner_nodes == inner_nodes
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

    /// Adds a split into blocks that held other nodes before.
    fn reuse(&mut self) -> Result<(), TreeError> {
        let Some((mut setup, keys)) = grown(self.design, 2, 3)? else { return Ok(()) };
        setup.extend((1..=keys).rev().map(|number| remove(number * STRIDE)));
        setup.extend([Op::Crash, Op::Open]);
        let leaf =
            |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves && before.keys > 0;
        let ascending = (1..).map(|count| count * STRIDE + 3);
        let case = Trial::new(self.design, &setup)?.until(ascending, insert, leaf)?;
        self.found("split-into-used", case);
        Ok(())
    }
}
