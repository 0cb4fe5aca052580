//! Scenarios in which threads delete leaves, in designs that free a leaf with its last entry.
//!
//! Trials find leaves with one entry each: keys are removed in ascending order until a leaf would
//! go, then from the next key on.

use crate::scenario::index::session::Op;
use crate::subject::design::SubjectDesign;
use crate::subject::keys::SampleKey;
use crate::threads::scenario::ThreadScenario;
use crate::threads::search::{STRIDE, ThreadCase, fresh, insert, remove, thread_scenario, until};
use bristlecone_trees::spec::EMPTY_LEAVES;
use bristlecone_trees::{Order, TreeError, TreeStats};

/// Returns all of these scenarios that a design has.
///
/// # Errors
/// The design fails without any crash.
pub(super) fn cases<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Vec<ThreadScenario<K>>, TreeError> {
    if !design.form.spec.features.contains(&EMPTY_LEAVES) {
        return Ok(Vec::new());
    }
    let four = |_: &TreeStats, after: &TreeStats| after.leaves >= 5;
    let ascending = (1..).map(|count| count * STRIDE);
    let Some(case) = until(design, &fresh(), ascending, insert, four)? else {
        return Ok(Vec::new());
    };
    let found = [neighbours(design, &case)?, beside_split(design, &case)?];
    Ok(found.into_iter().flatten().collect())
}

/// Removes keys from `from` on until the next one would delete a leaf.
fn single<K: SampleKey>(
    design: SubjectDesign<K>,
    before: &[Op<K>],
    from: u64,
) -> Result<Option<ThreadCase<K>>, TreeError> {
    let delete = |before: &TreeStats, after: &TreeStats| after.leaves < before.leaves;
    let ascending = (from / STRIDE..).map(|count| count * STRIDE);
    until(design, before, ascending, remove, delete)
}

/// Returns a scenario in which two threads delete the first three leaves, one insert in the range
/// of each, and scans pass them.
fn neighbours<K: SampleKey>(
    design: SubjectDesign<K>,
    grown: &ThreadCase<K>,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    let Some(first) = single(design, &grown.before, STRIDE)? else { return Ok(None) };
    let Some(second) = single(design, &first.before, first.number + STRIDE)? else {
        return Ok(None);
    };
    let Some(third) = single(design, &second.before, second.number + STRIDE)? else {
        return Ok(None);
    };
    let key = |number| K::sample(number);
    let [a, b, c] = [first.number, second.number, third.number];
    let threads = [
        vec![remove(b), remove(a), Op::Get(key(c))],
        vec![Op::Insert(key(b + 1), 201), remove(c), Op::Get(key(b))],
        vec![Op::Insert(key(a + 1), 301), Op::Scan(Order::Ascending)],
        vec![Op::Scan(Order::Descending), Op::Insert(key(c + 1), 401), Op::Get(key(a))],
    ];
    Ok(Some(thread_scenario(design, "delete-neighbours", third.before, 0, threads)))
}

/// Returns a scenario in which one thread deletes the two leaves to the right of a full one, and
/// another splits that one, into a block that a delete freed.
fn beside_split<K: SampleKey>(
    design: SubjectDesign<K>,
    grown: &ThreadCase<K>,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    let Some(first) = single(design, &grown.before, STRIDE)? else { return Ok(None) };
    let split = |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves;
    let between = (STRIDE + 1..first.number).filter(|number| number % STRIDE != 0);
    let Some(full) = until(design, &grown.before, between, insert, split)? else {
        return Ok(None);
    };
    let Some(second) = single(design, &full.before, first.number + STRIDE)? else {
        return Ok(None);
    };
    let Some(third) = single(design, &second.before, second.number + STRIDE)? else {
        return Ok(None);
    };
    let key = |number| K::sample(number);
    let [a, b, c] = [full.number, second.number, third.number];
    let threads = [
        vec![remove(b), remove(c), Op::Get(key(a))],
        vec![insert(a), Op::Get(key(b)), Op::Insert(key(c + 1), 201)],
        vec![remove(c), Op::Insert(key(b + 1), 301), Op::Scan(Order::Ascending)],
        vec![Op::Insert(key(a + 1), 401), remove(STRIDE), Op::Scan(Order::Descending)],
    ];
    Ok(Some(thread_scenario(design, "delete-beside-split", third.before, 0, threads)))
}
