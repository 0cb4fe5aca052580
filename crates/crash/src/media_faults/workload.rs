//! The contents that are corrupted, and the operations on them: an index of a design, or a store.

use crate::medium::fault::FaultMedium;
use crate::subject::design::{Index, SubjectDesign};
use crate::subject::keys::SampleKey;
use crate::subject::store::{LEAF_BYTES, no_path};
use bristlecone::Store;
use bristlecone_pmem::Pool;
use bristlecone_pmem::Simulated;
use bristlecone_trees::{Key, Order, TreeError};
use core::ops::{Bound, ControlFlow};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The number of inserted keys. Every fifth is removed again.
pub(super) const KEYS: u64 = 90;
/// The number of moments whose contents are kept, as stale contents for later.
const MOMENTS: u64 = 4;
const ROOT: &str = "index";
/// The number of characters of a wrong answer that are shown.
const SHOWN: usize = 160;

/// The results of a run that neither panicked nor ran forever.
#[derive(Clone, Debug, Default)]
pub(super) struct Answers {
    /// The first error that refused an operation.
    pub(super) refused: Option<String>,
    /// The first wrong answer.
    pub(super) wrong: Option<String>,
    /// Set if the check of the whole structure found no damage.
    pub(super) check_passed: bool,
}

impl Answers {
    fn refuse(&mut self, error: &dyn core::fmt::Display) {
        self.refused.get_or_insert_with(|| error.to_string());
    }

    fn expect<T: PartialEq + core::fmt::Debug>(&mut self, what: &str, found: &T, right: &T) {
        if found != right {
            let shown = |text: String| text.chars().take(SHOWN).collect::<String>();
            let (found, right) = (shown(format!("{found:?}")), shown(format!("{right:?}")));
            self.wrong.get_or_insert_with(|| format!("{what}: {found}, and not {right}"));
        }
    }
}

/// Contents to corrupt, and a run on them.
pub(super) trait FaultWorkload: Send + Sync {
    /// Returns the name of the contents.
    fn name(&self) -> String;
    /// Writes the contents to an empty medium. Returns the contents at some moments before.
    fn build(&self, medium: &FaultMedium) -> Vec<Vec<u64>>;
    /// Opens the pool, reads all of it, and writes. The answers of reads go to `answers`; writes
    /// only have to end.
    fn run(&self, medium: &FaultMedium, answers: &mut Answers);
}

/// An index of a design.
pub(super) struct IndexWorkload<K: Key> {
    pub(super) closed: bool,
    pub(super) design: SubjectDesign<K>,
}

/// Returns the pairs of an index or a store, by number of key.
fn model() -> BTreeMap<u64, u64> {
    (0..KEYS).filter(|number| number % 5 != 0).map(|number| (number, number * 7)).collect()
}

fn state(closed: bool) -> &'static str {
    if closed { "closed" } else { "killed" }
}

impl<K: SampleKey> IndexWorkload<K> {
    fn read(index: &Index<K>, answers: &mut Answers) {
        let model = model();
        match index.check() {
            Ok(_) => answers.check_passed = true,
            Err(error) => answers.refuse(&error),
        }
        for order in [Order::Ascending, Order::Descending] {
            let mut expected: Vec<_> = model.iter().map(|(n, v)| (K::sample(*n), *v)).collect();
            if order == Order::Descending {
                expected.reverse();
            }
            let mut found = Vec::new();
            let all = (Bound::Unbounded, Bound::Unbounded);
            let scanned = index.scan(all, order, &mut |key, value| {
                found.push((K::to_owned(key), value));
                ControlFlow::Continue(())
            });
            match scanned {
                Ok(()) => answers.expect("scan", &found, &expected),
                Err(error) => {
                    answers.refuse(&error);
                    expected.truncate(found.len());
                    answers.expect("scan before it fails", &found, &expected);
                }
            }
        }
        for number in 0..KEYS {
            match index.get(K::borrow(&K::sample(number))) {
                Ok(found) => answers.expect("get", &found, &model.get(&number).copied()),
                Err(error) => answers.refuse(&error),
            }
        }
    }

    fn write(index: &Index<K>) {
        for number in (0..KEYS).step_by(4) {
            let key = |number| K::sample(number);
            let _ = index.update(K::borrow(&key(number)), 1);
            let _ = index.remove(K::borrow(&key(number + 1)));
            let _ = index.insert(K::borrow(&key(number * 3 + 500)), 2);
            let _ = index.upsert(K::borrow(&key(number + 2)), 3);
        }
    }
}

impl<K: SampleKey> FaultWorkload for IndexWorkload<K> {
    fn name(&self) -> String {
        format!("{}/{}", K::NAME, state(self.closed))
    }

    fn build(&self, medium: &FaultMedium) -> Vec<Vec<u64>> {
        let mut moments = Vec::new();
        let pool =
            Arc::new(Pool::create(Simulated::from(medium)).expect("a fresh medium takes a pool"));
        let index = (self.design.form.create)(pool, ROOT).expect("the medium has space");
        for number in 0..KEYS {
            let value = number * 7;
            index.insert(K::borrow(&K::sample(number)), value).expect("the medium has space");
            if number % (KEYS / MOMENTS) == KEYS / MOMENTS - 1 {
                moments.push(medium.image());
            }
        }
        for number in (0..KEYS).step_by(5) {
            index.remove(K::borrow(&K::sample(number))).expect("no content is damaged");
        }
        moments.push(medium.image());
        if self.closed {
            let pool = Arc::into_inner(index.close().expect("the medium has space"));
            pool.expect("the index was the last owner of the pool")
                .close()
                .expect("the medium has space");
        }
        moments.reverse();
        moments
    }

    fn run(&self, medium: &FaultMedium, answers: &mut Answers) {
        let opened = Pool::open(Simulated::from(medium)).map_err(TreeError::from);
        let index =
            opened.and_then(|(pool, opened)| (self.design.form.open)(Arc::new(pool), ROOT, opened));
        let index = match index {
            Ok(index) => index,
            Err(error) => return answers.refuse(&error),
        };
        Self::read(&*index, answers);
        Self::write(&*index);
        let _ = index.check();
        if let Ok(pool) = index.close() {
            let _ = Arc::into_inner(pool).map(Pool::close);
        }
    }
}

/// A store with keys and values of many lengths.
pub(super) struct StoreWorkload {
    pub(super) closed: bool,
}

/// Half of the keys differ in their first bytes. The others share a prefix so long that a separator
/// of two of them needs a record.
fn store_key(number: u64) -> Vec<u8> {
    let head = if number < KEYS / 2 { "" } else { "what many begin with, " };
    let tail = "k".repeat([0, 3, 9, 60][(number % 4) as usize]);
    format!("{head}{number:04}{tail}").into_bytes()
}

fn store_value(number: u64) -> Vec<u8> {
    let bytes = [0, 8, 5, 100, 24, 700][(number % 6) as usize];
    (0..bytes).map(|place| (number + place * 31) as u8).collect()
}

/// A store with the smallest leaves.
type SmallStore = Store<Simulated, LEAF_BYTES>;

impl StoreWorkload {
    fn read(store: &mut SmallStore, answers: &mut Answers) {
        match store.check() {
            Ok(report) => {
                // A leak is not a wrong answer: the check has found it, and reports it.
                match report.unreachable_blocks {
                    0 => answers.check_passed = true,
                    blocks => answers.refuse(&format!("{blocks} blocks that nothing reaches")),
                }
            }
            Err(error) => answers.refuse(&error),
        }
        let mut expected = model().into_keys().map(|n| (store_key(n), store_value(n)));
        for pair in store.iter() {
            match pair {
                Ok(pair) => answers.expect("scan", &Some(pair), &expected.next()),
                Err(error) => {
                    answers.refuse(&error);
                    expected.by_ref().for_each(drop);
                }
            }
        }
        answers.expect("end of scan", &None, &expected.next());
        let model = model();
        for number in 0..KEYS {
            let right = model.contains_key(&number).then(|| store_value(number));
            match store.get(store_key(number)) {
                Ok(found) => answers.expect("get", &found, &right),
                Err(error) => answers.refuse(&error),
            }
        }
    }

    fn write(store: &SmallStore) {
        for number in (0..KEYS).step_by(4) {
            let _ = store.put(store_key(number + 1), store_value(number + 2));
            let _ = store.delete(store_key(number + 2));
            let _ = store.insert(store_key(number + 500), store_value(number));
        }
    }
}

impl FaultWorkload for StoreWorkload {
    fn name(&self) -> String {
        state(self.closed).into()
    }

    fn build(&self, medium: &FaultMedium) -> Vec<Vec<u64>> {
        let mut moments = Vec::new();
        let pool = Pool::create(Simulated::from(medium)).expect("a fresh medium takes a pool");
        let store = SmallStore::create_in(Arc::new(pool), no_path()).expect("and a store");
        for number in 0..KEYS {
            store.put(store_key(number), store_value(number + 1)).expect("the medium has space");
            store.put(store_key(number), store_value(number)).expect("the medium has space");
            if number % (KEYS / MOMENTS) == KEYS / MOMENTS - 1 {
                moments.push(medium.image());
            }
        }
        for number in (0..KEYS).step_by(5) {
            store.delete(store_key(number)).expect("no content is damaged");
        }
        moments.push(medium.image());
        if self.closed {
            store.close().expect("the medium has space");
        }
        moments.reverse();
        moments
    }

    fn run(&self, medium: &FaultMedium, answers: &mut Answers) {
        let (pool, opened) = match Pool::open(Simulated::from(medium)) {
            Ok(opened) => opened,
            Err(error) => return answers.refuse(&error),
        };
        let mut store = match SmallStore::open_in(Arc::new(pool), opened, no_path()) {
            Ok(store) => store,
            Err(error) => return answers.refuse(&error),
        };
        Self::read(&mut store, answers);
        Self::write(&store);
        let _ = store.check();
        let _ = store.close();
    }
}
