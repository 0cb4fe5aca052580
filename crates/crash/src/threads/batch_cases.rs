//! Scenarios of batches beside reads, writes and other batches, in a design that has them.

use crate::scenario::index::session::Op;
use crate::subject::design::SubjectDesign;
use crate::subject::keys::SampleKey;
use crate::threads::scenario::ThreadScenario;
use crate::threads::search::{STRIDE, ThreadCase, fresh, insert, remove, thread_scenario, until};
use bristlecone_trees::{TreeError, TreeStats};

/// The number of new keys that need several new leaves.
const MANY: u64 = 12;

fn commit<K: SampleKey>(changes: &[(u64, Option<u64>)]) -> Op<K> {
    let mut changes: Vec<_> =
        changes.iter().map(|&(number, value)| (K::sample(number), value)).collect();
    changes.sort_unstable();
    Op::Commit(changes)
}

/// Returns all of these scenarios.
///
/// # Errors
/// The design fails without any crash.
pub(super) fn cases<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Vec<ThreadScenario<K>>, TreeError> {
    if !design.has_batches() {
        return Ok(Vec::new());
    }
    let three = |_: &TreeStats, after: &TreeStats| after.leaves >= 3;
    let ascending = (1..).map(|count| count * STRIDE);
    let Some(ThreadCase { before, number }) = until(design, &fresh(), ascending, insert, three)?
    else {
        return Ok(Vec::new());
    };
    let key = |number: u64| K::sample(number);
    // Keys of the first, the second and the last leaf.
    let (low, middle, high) = (STRIDE, number / STRIDE / 2 * STRIDE, number - STRIDE);
    let batch =
        || commit(&[(low, Some(101)), (middle, None), (high, Some(102)), (high + 1, Some(3))]);
    let reads =
        || [Op::Get(key(high)), Op::Get(key(low)), Op::Get(key(middle)), Op::Get(key(high))];
    let readers = [
        // The insert can get the block of a record that the batch has replaced.
        vec![batch(), insert(low + 5)],
        reads().into(),
        vec![Op::MultiGet(vec![key(high + 1), key(low)]), Op::Get(key(high)), Op::Get(key(low))],
        reads().into_iter().rev().collect(),
    ];
    let writers = [
        vec![batch(), Op::Get(key(low + 5))],
        vec![commit(&[(low + 5, Some(201)), (high, Some(202))]), Op::Get(key(high))],
        vec![insert(middle + 5), remove(low + STRIDE), Op::Get(key(high + 5))],
        vec![commit(&[(middle + STRIDE, Some(401)), (high + 6, None)]), Op::Get(key(middle))],
    ];
    let many: Vec<_> = (1..=MANY).map(|count| (high + count, Some(count))).collect();
    let far = || Op::Get(key(high + MANY));
    let behind = [
        vec![commit(&many)],
        vec![far(), Op::Get(key(high + 1)), far()],
        vec![Op::MultiGet(vec![key(high + 1), key(high + MANY)]), far()],
        vec![Op::Get(key(high + MANY / 2)), far(), Op::Get(key(high + 1))],
    ];
    Ok(vec![
        thread_scenario(design, "commit-beside-reads", before.clone(), 0, readers),
        thread_scenario(design, "commit-many-beside-reads", before.clone(), 0, behind),
        thread_scenario(design, "commit-beside-writes", before, 0, writers),
    ])
}
