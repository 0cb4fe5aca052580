//! The scenarios of a design with several threads, found by trial.

use crate::scenario::index::session::Op;
use crate::subject::design::SubjectDesign;
use crate::subject::keys::SampleKey;
use crate::threads::scenario::{Room, ThreadScenario};
use crate::threads::search::{STRIDE, ThreadCase, fresh, insert, remove, thread_scenario, until};
use bristlecone_pmem::medium::schedule::Conditions;
use bristlecone_trees::{Order, TreeError, TreeStats};

/// The updates of one key that nearly fill a half-full leaf to which updates are appended.
const UPDATES: u64 = 6;
/// Returns all scenarios of a design, for four threads each.
///
/// # Errors
/// The design fails without any crash.
pub(crate) fn cases<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Vec<ThreadScenario<K>>, TreeError> {
    let mut list = vec![one_key(design), only_key(design), few_keys(design)];
    let ascending = || (1..).map(|count| count * STRIDE);
    let split =
        |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves && before.keys > 0;
    let found = until(design, &fresh(), ascending(), insert, split)?;
    if let Some(case) = found {
        let again = || ThreadCase { before: case.before.clone(), number: case.number };
        list.push(splits(design, "split-leaf", again(), 0));
        list.push(splits(design, "", again(), 0).with_room(Room::Grows, "split-leaf-growing"));
        list.push(splits(design, "", again(), 0).with_room(Room::Full, "split-leaf-full"));
        list.push(scan_split(design, "scan-split-leaf", again()));
    }
    list.push(scan_few(design));
    let aged = Conditions { aged: true, ..Conditions::USUAL };
    list.push(few_keys(design).under(aged, "aged"));
    if design.form.maintenance.is_some() {
        let small_scale = Conditions { small_scale: true, ..Conditions::USUAL };
        list.push(few_keys(design).under(small_scale, "lanes"));
    }
    let below = |before: &TreeStats, after: &TreeStats| {
        before.height >= 2 && after.height == before.height && split(before, after)
    };
    let found = until(design, &fresh(), ascending(), insert, below)?;
    list.extend(found.map(|case| splits(design, "split-leaf-below-root", case, 0)));
    let root = |before: &TreeStats, after: &TreeStats| before.height == 2 && after.height == 3;
    let found = until(design, &fresh(), ascending(), insert, root)?;
    list.extend(found.map(|case| {
        let half = case.before.len() / 2;
        splits(design, "split-root", case, half)
    }));
    let four = |_: &TreeStats, after: &TreeStats| after.height >= 2 && after.leaves >= 4;
    if let Some(case) = until(design, &fresh(), ascending(), insert, four)? {
        let (grown, keys) = (case.before, case.number / STRIDE);
        let up = || (1..keys).map(|count| count * STRIDE);
        let merge = |before: &TreeStats, after: &TreeStats| after.leaves < before.leaves;
        let found = two_full(design, &grown, case.number)?;
        if let Some((before, full)) = found {
            list.push(two_splits(design, "split-two-leaves", before.clone(), full));
            // Two threads that find no room at once: one gets what the growth of the other adds.
            let growing = two_splits(design, "split-two-leaves", before, full);
            list.push(growing.with_room(Room::Grows, "split-two-leaves-growing"));
        }
        list.extend(chain_splits(design, &grown, keys)?);
        list.push(updates(design, &grown, keys / 2 * STRIDE));
        list.extend(merge_beside_split(design, "merge-beside-split", &grown, keys)?);
        let found = until(design, &grown, up(), remove, merge)?;
        if let Some(case) = found {
            list.push(merges(design, "merge-leaf", case));
        }
        // Both leaves that merge have entries.
        let sparse = up().step_by(2).chain(up().skip(1).step_by(2));
        let found = until(design, &grown, sparse, remove, merge)?;
        list.extend(found.map(|case| scan_merge(design, "scan-merge-leaf", case)));
        let found = until(design, &grown, up().rev(), remove, merge)?;
        list.extend(found.map(|case| merges(design, "merge-leaf-back", case)));
        let collapse = |before: &TreeStats, after: &TreeStats| after.height < before.height;
        let found = until(design, &grown, up(), remove, collapse)?;
        list.extend(found.map(|case| merges(design, "collapse-root", case)));
    }
    list.extend(neighbours(design)?);
    list.extend(super::inner_cases::cases(design)?);
    list.extend(super::delete_cases::cases(design)?);
    list.extend(super::maintenance_cases::cases(design)?);
    list.extend(super::record_cases::cases(design)?);
    list.extend(super::batch_cases::cases(design)?);
    Ok(list)
}

/// Returns a scenario in which scans both ways and lookups of several keys meet a split.
fn scan_split<K: SampleKey>(
    design: SubjectDesign<K>,
    name: &str,
    case: ThreadCase<K>,
) -> ThreadScenario<K> {
    let ThreadCase { before, number } = case;
    let key = |number| K::sample(number);
    let (last, low) = (number - STRIDE, number - 4 * STRIDE);
    // The first insert is not the last key of the leaf: a design may give such a key a leaf of its
    // own, and then a split moves no entry.
    let threads = [
        vec![Op::Insert(key(low + 1), 101), Op::Remove(key(last))],
        vec![Op::Scan(Order::Ascending), Op::MultiGet(vec![key(low), key(last), key(low + 1)])],
        vec![Op::Scan(Order::Descending), Op::Insert(key(number - 2), 301)],
        vec![Op::MultiGet(vec![key(last), key(low + 1)]), Op::Scan(Order::Ascending)],
    ];
    thread_scenario(design, name, before, 0, threads)
}

/// Returns a scenario in which one thread splits three leaves behind the first one. A scan of the
/// others reaches these leaves by the links of the chain, and not by a descent, whose check of the
/// inner nodes would detect the split.
fn chain_splits<K: SampleKey>(
    design: SubjectDesign<K>,
    grown: &[Op<K>],
    keys: u64,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    let split = |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves;
    let (mut before, mut full) = (grown.to_vec(), [0; 3]);
    for (number, part) in full.iter_mut().zip([2, 3, 4]) {
        let first = keys * part / 5 * STRIDE + 1;
        let Some(case) = until(design, &before, first.., insert, split)? else { return Ok(None) };
        (before, *number) = (case.before, case.number);
    }
    let key = |number| K::sample(number);
    let below = full.map(|number| number / STRIDE * STRIDE);
    let threads = [
        full.map(|number| Op::Insert(key(number), 101)).into(),
        vec![Op::Scan(Order::Ascending), Op::MultiGet(below.map(key).into())],
        vec![Op::Scan(Order::Descending), Op::Update(key(below[1]), 301)],
        vec![Op::MultiGet(full.map(key).into()), Op::Scan(Order::Ascending)],
    ];
    Ok(Some(thread_scenario(design, "scan-split-chain", before, 0, threads)))
}

/// Returns a scenario in which scans both ways and lookups of several keys meet a merge, and then
/// inserts that reuse what the merge freed.
fn scan_merge<K: SampleKey>(
    design: SubjectDesign<K>,
    name: &str,
    case: ThreadCase<K>,
) -> ThreadScenario<K> {
    let ThreadCase { before, number } = case;
    let key = |number| K::sample(number);
    let next = number + STRIDE;
    let threads = [
        vec![remove(number), Op::Insert(key(number + 1), 101), remove(next)],
        vec![Op::Scan(Order::Ascending), Op::MultiGet(vec![key(next), key(number), key(next + 1)])],
        vec![Op::Scan(Order::Descending), Op::Insert(key(next + 1), 301)],
        vec![Op::MultiGet(vec![key(number + 1), key(next)]), Op::Scan(Order::Ascending)],
    ];
    thread_scenario(design, name, before, 0, threads)
}

/// Returns a scenario in which scans and lookups of several keys meet writes of one leaf.
fn scan_few<K: SampleKey>(design: SubjectDesign<K>) -> ThreadScenario<K> {
    let mut before = fresh();
    before.extend((1..=4).map(|number| insert(number * STRIDE)));
    let key = |number| K::sample(number);
    let threads = [
        vec![Op::Remove(key(20)), Op::Insert(key(25), 101), Op::Insert(key(15), 102)],
        vec![Op::Scan(Order::Ascending), Op::MultiGet(vec![key(25), key(20), key(15)])],
        vec![Op::Update(key(30), 301), Op::Scan(Order::Descending)],
        vec![Op::MultiGet(vec![key(30), key(20)]), Op::Upsert(key(20), 401)],
    ];
    thread_scenario(design, "scan-few-keys", before, 0, threads)
}

/// The operations before, and the keys that then split two leaves.
type TwoFull<K> = (Vec<Op<K>>, [u64; 2]);

/// Returns operations that fill the first and the last leaf of a grown tree, and the keys that then
/// split them.
fn two_full<K: SampleKey>(
    design: SubjectDesign<K>,
    grown: &[Op<K>],
    last: u64,
) -> Result<Option<TwoFull<K>>, TreeError> {
    let split = |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves;
    let Some(first) = until(design, grown, STRIDE + 1.., insert, split)? else { return Ok(None) };
    let downward = (first.number + STRIDE..last).rev();
    let second = until(design, &first.before, downward, insert, split)?;
    Ok(second.map(|second| (second.before, [first.number, second.number])))
}

/// Returns a scenario in which all threads use one key and its neighbour.
fn one_key<K: SampleKey>(design: SubjectDesign<K>) -> ThreadScenario<K> {
    let mut before = fresh();
    before.extend((1..=4).map(|number| insert(number * STRIDE)));
    let key = |number| K::sample(number);
    let threads = [
        vec![Op::Upsert(key(20), 101), Op::Remove(key(20)), Op::Get(key(25))],
        vec![Op::Get(key(20)), Op::Insert(key(20), 201), Op::Get(key(20))],
        vec![Op::Update(key(20), 301), Op::Insert(key(25), 302)],
        vec![Op::Get(key(20)), Op::Remove(key(25)), Op::Upsert(key(20), 401)],
    ];
    thread_scenario(design, "one-key", before, 0, threads)
}

/// Returns a scenario in which the only key is removed and another takes its place in the leaf,
/// while threads look for either.
fn only_key<K: SampleKey>(design: SubjectDesign<K>) -> ThreadScenario<K> {
    let mut before = fresh();
    before.push(insert(20));
    let key = |number| K::sample(number);
    let threads = [
        vec![Op::Remove(key(20)), Op::Insert(key(25), 101), Op::Remove(key(25))],
        vec![Op::Get(key(25)), Op::Get(key(20)), Op::Get(key(25))],
        vec![Op::Get(key(20)), Op::Get(key(25)), Op::Insert(key(30), 301)],
        vec![Op::Get(key(25)), Op::Get(key(30)), Op::Upsert(key(20), 401)],
    ];
    thread_scenario(design, "only-key", before, 0, threads)
}

/// Returns a scenario of writers and readers of one leaf that neither splits nor merges.
fn few_keys<K: SampleKey>(design: SubjectDesign<K>) -> ThreadScenario<K> {
    let mut before = fresh();
    before.extend((1..=4).map(|number| insert(number * STRIDE)));
    let key = |number| K::sample(number);
    let threads = [
        vec![Op::Insert(key(5), 101), Op::Remove(key(30))],
        vec![Op::Get(key(30)), Op::Get(key(5)), Op::Insert(key(35), 201)],
        vec![Op::Remove(key(10)), Op::Upsert(key(40), 301), Op::Get(key(30))],
        vec![Op::Get(key(40)), Op::Get(key(10)), Op::Get(key(35))],
    ];
    thread_scenario(design, "few-keys", before, 0, threads)
}

/// Returns a scenario at a leaf between others. One of its keys was updated as often as nearly
/// fills a leaf to which updates are appended.
fn updates<K: SampleKey>(
    design: SubjectDesign<K>,
    grown: &[Op<K>],
    number: u64,
) -> ThreadScenario<K> {
    let key = |number| K::sample(number);
    let mut before = grown.to_vec();
    before.extend((0..UPDATES).map(|n| Op::Update(key(number), n)));
    let (low, high) = (number - STRIDE, number + STRIDE);
    let threads = [
        vec![Op::Update(key(number), 101), Op::Get(key(low)), Op::Update(key(high), 102)],
        vec![Op::Update(key(low), 201), Op::Get(key(number)), Op::Get(key(high))],
        vec![Op::Get(key(number)), Op::Upsert(key(number + 1), 301), Op::Get(key(low))],
        vec![Op::Remove(key(high)), Op::Update(key(number), 401), Op::Get(key(number + 1))],
    ];
    thread_scenario(design, "update-often", before, 0, threads)
}

/// Returns a scenario in which one thread splits a node and the others use both of its halves.
fn splits<K: SampleKey>(
    design: SubjectDesign<K>,
    name: &str,
    case: ThreadCase<K>,
    live: usize,
) -> ThreadScenario<K> {
    let ThreadCase { before, number } = case;
    let key = |number| K::sample(number);
    // The leaf holds at least the four keys before the one that splits it.
    let (last, low) = (number - STRIDE, number - 4 * STRIDE);
    let threads = [
        vec![Op::Insert(key(number - 2), 101), Op::Get(key(low))],
        vec![Op::Insert(key(low + 1), 201), Op::Get(key(number - 2)), Op::Remove(key(last))],
        vec![Op::Get(key(last)), Op::Get(key(low + 1)), Op::Update(key(low), 301)],
        vec![Op::Remove(key(low)), Op::Insert(key(last + 1), 401), Op::Get(key(last))],
    ];
    thread_scenario(design, name, before, live, threads)
}

/// Returns a scenario in which two threads split two leaves, perhaps of one parent, and the others
/// use their halves.
fn two_splits<K: SampleKey>(
    design: SubjectDesign<K>,
    name: &str,
    before: Vec<Op<K>>,
    full: [u64; 2],
) -> ThreadScenario<K> {
    let [first, second] = full;
    let key = |number| K::sample(number);
    let threads = [
        vec![Op::Insert(key(first), 101), Op::Get(key(second))],
        vec![Op::Insert(key(second), 201), Op::Get(key(first))],
        vec![Op::Get(key(second)), Op::Get(key(STRIDE)), Op::Insert(key(first + 1), 301)],
        vec![Op::Remove(key(STRIDE)), Op::Insert(key(second - 1), 401), Op::Get(key(first))],
    ];
    thread_scenario(design, name, before, 0, threads)
}

/// Returns a scenario in which one thread merges the last leaves and another splits the first one,
/// which moves the later entries of their parent; the others use both.
fn merge_beside_split<K: SampleKey>(
    design: SubjectDesign<K>,
    name: &str,
    grown: &[Op<K>],
    keys: u64,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    let merge = |before: &TreeStats, after: &TreeStats| {
        after.leaves < before.leaves && after.height == before.height
    };
    let down = (1..keys).rev().map(|count| count * STRIDE);
    let Some(last) = until(design, grown, down, remove, merge)? else { return Ok(None) };
    let split = |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves;
    let Some(first) = until(design, &last.before, STRIDE + 1.., insert, split)? else {
        return Ok(None);
    };
    let key = |number| K::sample(number);
    let (low, high) = (first.number, last.number);
    let threads = [
        vec![remove(high), Op::Get(key(high - STRIDE))],
        vec![insert(low), Op::Get(key(low)), Op::Get(key(high))],
        vec![Op::Get(key(low)), Op::Insert(key(high + 1), 301), Op::Get(key(STRIDE))],
        vec![Op::Update(key(high - STRIDE), 401), Op::Get(key(low)), remove(STRIDE)],
    ];
    Ok(Some(thread_scenario(design, name, first.before, 0, threads)))
}

/// Returns the scenarios in which threads change leaves that lie one beside the other: two splits,
/// a split beside a merge, two merges.
fn neighbours<K: SampleKey>(design: SubjectDesign<K>) -> Result<Vec<ThreadScenario<K>>, TreeError> {
    let mut list = Vec::new();
    let leaves = |count: u64| {
        let wanted =
            move |_: &TreeStats, after: &TreeStats| after.height >= 2 && after.leaves >= count;
        let ascending = (1..).map(|count| count * STRIDE);
        let case = until(design, &fresh(), ascending, insert, wanted)?;
        Ok::<_, TreeError>(case.map(|ThreadCase { mut before, number }| {
            before.push(insert(number));
            (before, number)
        }))
    };
    if let Some((grown, last)) = leaves(2)? {
        let found = two_full(design, &grown, last)?;
        list.extend(
            found.map(|(before, full)| two_splits(design, "split-neighbours", before, full)),
        );
    }
    if let Some((grown, last)) = leaves(3)? {
        list.extend(merge_beside_split(design, "merge-next-to-split", &grown, last / STRIDE + 1)?);
    }
    if let Some((grown, last)) = leaves(4)? {
        list.extend(two_merges(design, &grown, last / STRIDE)?);
    }
    Ok(list)
}

/// Returns a scenario in which one thread merges the first leaves and another the last ones.
fn two_merges<K: SampleKey>(
    design: SubjectDesign<K>,
    grown: &[Op<K>],
    keys: u64,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    let merge = |before: &TreeStats, after: &TreeStats| {
        after.leaves < before.leaves && after.height == before.height
    };
    let up = || (1..=keys).map(|count| count * STRIDE);
    let Some(first) = until(design, grown, up(), remove, merge)? else { return Ok(None) };
    let Some(last) = until(design, &first.before, up().rev(), remove, merge)? else {
        return Ok(None);
    };
    let key = |number| K::sample(number);
    let (low, high) = (first.number, last.number);
    let threads = [
        vec![remove(low), Op::Get(key(high - STRIDE)), Op::Insert(key(low + 1), 101)],
        vec![remove(high), Op::Get(key(low + STRIDE)), Op::Insert(key(high + 1), 201)],
        vec![Op::Get(key(low)), Op::Insert(key(low + STRIDE + 1), 301), Op::Get(key(high))],
        vec![Op::Get(key(high)), Op::Update(key(high - STRIDE), 401), Op::Get(key(low + 1))],
    ];
    Ok(Some(thread_scenario(design, "merge-neighbours", last.before, 0, threads)))
}

/// Returns a scenario in which one thread merges leaves and the others use both of them.
fn merges<K: SampleKey>(
    design: SubjectDesign<K>,
    name: &str,
    case: ThreadCase<K>,
) -> ThreadScenario<K> {
    let ThreadCase { before, number } = case;
    let key = |number| K::sample(number);
    let next = number + STRIDE;
    let threads = [
        vec![remove(number), Op::Get(key(next))],
        vec![Op::Insert(key(number + 1), 201), Op::Get(key(number)), Op::Update(key(next), 202)],
        vec![Op::Get(key(number + 1)), Op::Get(key(next)), Op::Insert(key(number), 301)],
        vec![remove(next), Op::Insert(key(next + 1), 401), Op::Get(key(number))],
    ];
    thread_scenario(design, name, before, 0, threads)
}
