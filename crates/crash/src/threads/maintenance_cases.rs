//! Scenarios of designs with deferred work: maintenance workers run beside writers and readers.
//!
//! 1. A thread with maintenance steps is registered as a maintenance worker until its end. So
//!    writers find a worker at some times, and none at others.
//! 2. Each execution leaves the pending work anew, because an open may do it.

use crate::scenario::index::maintenance_cases::{LEAVES, pending_work};
use crate::scenario::index::session::Op;
use crate::subject::design::SubjectDesign;
use crate::subject::keys::SampleKey;
use crate::threads::scenario::ThreadScenario;
use crate::threads::search::{STRIDE, ThreadCase, fresh, insert, remove, thread_scenario, until};
use bristlecone_trees::{TreeError, TreeStats};

/// The number of keys of the tree that is one leaf.
const FEW: u64 = 4;

/// Returns all of these scenarios that a design has.
///
/// # Errors
/// The design fails without any crash.
pub(super) fn cases<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Vec<ThreadScenario<K>>, TreeError> {
    if design.form.maintenance.is_none() {
        return Ok(Vec::new());
    }
    let mut list = Vec::new();
    let few = [fresh(), (1..=FEW).map(|count| insert(count * STRIDE)).collect()].concat();
    let live_few = live(design, &few, &[20, 10, 40])?;
    list.extend(live_few.map(|live| one_leaf(design, few, live)));
    let many = |_: &TreeStats, after: &TreeStats| after.height >= 2 && after.leaves >= LEAVES;
    let ascending = (1..).map(|count| count * STRIDE);
    if let Some(case) = until(design, &fresh(), ascending, insert, many)? {
        list.extend(grows(design, &case)?);
        let live_many = live(design, &case.before, &[STRIDE, 2 * STRIDE])?;
        list.extend(live_many.map(|live| leaves(design, case, live)));
    }
    Ok(list)
}

/// Returns a scenario of updates of one leaf, or of neighbours, where the next update takes a block
/// for its log. A thread that finds the block relies on the link to it.
fn grows<K: SampleKey>(
    design: SubjectDesign<K>,
    tree: &ThreadCase<K>,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    let grows = |before: &TreeStats, after: &TreeStats| {
        after.blocks > before.blocks && after.leaves == before.leaves
    };
    let setup = [&tree.before[..], &[Op::Crash, Op::Open]].concat();
    let in_turn = (2..tree.number / STRIDE - 1).map(|count| count * STRIDE).cycle();
    let Some(case) = until(design, &setup, in_turn, update, grows)? else { return Ok(None) };
    let at = |number| K::sample(number);
    let (number, before, after) = (case.number, case.number - STRIDE, case.number + STRIDE);
    let threads = [
        vec![update(number)],
        vec![Op::Update(at(after), 202), Op::Get(at(number))],
        vec![Op::Update(at(before), 203), Op::Get(at(after))],
        vec![Op::Update(at(number), 204), Op::Get(at(before))],
    ];
    let done = [&tree.before[..], &case.before[setup.len()..]].concat();
    let live = done.len() - tree.before.len();
    Ok(Some(thread_scenario(design, "log-grows", done, live, threads)))
}

fn update<K: SampleKey>(number: u64) -> Op<K> {
    Op::Update(K::sample(number), 7)
}

/// Returns operations that leave pending work, after an open behind `setup`.
fn live<K: SampleKey>(
    design: SubjectDesign<K>,
    setup: &[Op<K>],
    numbers: &[u64],
) -> Result<Option<Vec<Op<K>>>, TreeError> {
    let opened = [setup, &[Op::Crash, Op::Open]].concat();
    Ok(pending_work(design, &opened, numbers)?.map(|pending_work| pending_work.ops))
}

/// Returns a scenario with a maintenance worker, a writer, a reader, and a worker that also writes,
/// at the keys of one leaf.
fn one_leaf<K: SampleKey>(
    design: SubjectDesign<K>,
    before: Vec<Op<K>>,
    live: Vec<Op<K>>,
) -> ThreadScenario<K> {
    let key = |number| K::sample(number);
    let threads = [
        vec![Op::RunMaintenance; 4],
        vec![Op::Update(key(20), 201), remove(30), Op::Update(key(10), 202)],
        vec![Op::Get(key(20)), Op::Get(key(30)), Op::Get(key(40))],
        vec![Op::RunMaintenance, Op::Upsert(key(40), 401), Op::RunMaintenance, Op::Get(key(20))],
    ];
    let count = live.len();
    thread_scenario(design, "tend", [before, live].concat(), count, threads)
}

/// Returns a scenario in which the records of other leaves are still live: the workers copy them
/// while others change them. The second worker splits such a leaf.
fn leaves<K: SampleKey>(
    design: SubjectDesign<K>,
    case: ThreadCase<K>,
    live: Vec<Op<K>>,
) -> ThreadScenario<K> {
    let ThreadCase { before, number } = case;
    let key = |number| K::sample(number);
    // The ninth of twelve leaves.
    let beside = number / STRIDE * 7 / 10 * STRIDE;
    let threads = [
        vec![Op::RunMaintenance; 4],
        vec![Op::Update(key(STRIDE), 201), Op::Update(key(beside), 202), remove(20)],
        vec![Op::Get(key(STRIDE)), Op::Get(key(beside)), Op::Get(key(20))],
        vec![Op::RunMaintenance, insert(beside + 1), Op::RunMaintenance],
    ];
    let count = live.len();
    thread_scenario(design, "tend-beside", [before, live].concat(), count, threads)
}
