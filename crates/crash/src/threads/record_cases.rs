//! Scenarios of single designs. In designs that log their leaves in one line for each operation,
//! recovery depends on the order of the lines, and on what else changed before a record was over.
//! In designs that replace leaves, a leaf and its left neighbour may have two parents. A store may
//! be compacted.
//!
//! Each begins right before the structure change, and has few operations. So a few hundred
//! schedules cover the moments at which another thread can meet it.

use crate::scenario::index::session::Op;
use crate::scenario::index::structure_cases::{FIRST_OF_SECOND, LEAF_KEYS, sparse_chunks};
use crate::subject::design::{ResultVisibility, SubjectDesign};
use crate::subject::keys::SampleKey;
use crate::subject::store::QUARTER_VALUE;
use crate::threads::scenario::ThreadScenario;
use crate::threads::search::{STRIDE, fresh, insert, remove, thread_scenario, until};
use bristlecone_trees::spec::{PARENTS_MENDED, PARTIAL_LOGGING};
use bristlecone_trees::{TreeError, TreeStats};

/// The operations after an open that take all lines of a log but the last.
const LINES_BUT_ONE: u64 = 31;

/// Returns all of these scenarios that a design has.
///
/// # Errors
/// The design fails without any crash.
pub(super) fn cases<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Vec<ThreadScenario<K>>, TreeError> {
    if design.visibility == ResultVisibility::Presence {
        return Ok(vec![compacts(design)]);
    }
    let features = design.form.spec.features;
    if features.contains(&PARENTS_MENDED) {
        return Ok(splits_under_two_parents(design)?.into_iter().collect());
    }
    if features.contains(&PARTIAL_LOGGING) {
        return Ok(lines_begin_again(design)?.into_iter().collect());
    }
    Ok(Vec::new())
}

/// Returns a scenario in which a store is compacted while another thread removes the record that
/// moves, and writes one that can get its block.
fn compacts<K: SampleKey>(design: SubjectDesign<K>) -> ThreadScenario<K> {
    let key = |number| K::sample(number);
    let threads = [
        vec![Op::RunMaintenance],
        vec![remove(50), Op::Upsert(key(60), QUARTER_VALUE + 9)],
        vec![Op::Get(key(50)), Op::Get(key(40))],
        vec![Op::Upsert(key(50), QUARTER_VALUE + 11), Op::RunMaintenance],
    ];
    thread_scenario(design, "compact", sparse_chunks(), 0, threads)
}

fn ascending() -> impl Iterator<Item = u64> {
    (1..).map(|count| count * STRIDE)
}

/// Returns a scenario in which the record of a split is in the last line of the log, and those of
/// inserts into its right leaf are in the first ones.
fn lines_begin_again<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    let split =
        |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves && before.keys > 0;
    let found = until(design, &fresh(), ascending(), insert, split)?;
    let Some(mut case) = found else { return Ok(None) };
    // The last insert of the setup takes a line, too.
    let again =
        (1..LINES_BUT_ONE).map(|n| if n % 2 == 1 { remove(STRIDE) } else { insert(STRIDE) });
    case.before.extend(again);
    let last = case.number;
    let threads = [
        vec![insert(last)],
        vec![insert(last - 5)],
        vec![insert(last - 6)],
        vec![Op::Get(K::sample(last - 5))],
    ];
    let live = LINES_BUT_ONE as usize;
    Ok(Some(thread_scenario(design, "split-leaf-lines", case.before, live, threads)))
}

/// Returns a scenario in which two threads split the last leaf below one inner node and the first
/// leaf below the next one, each with its parent latched.
fn splits_under_two_parents<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    let root = |_: &TreeStats, after: &TreeStats| after.height >= 3;
    let Some(top) = until(design, &fresh(), ascending(), insert, root)? else { return Ok(None) };
    let leaf = |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves;
    let (right, left) = (FIRST_OF_SECOND * STRIDE, (FIRST_OF_SECOND - LEAF_KEYS) * STRIDE);
    let mut setup = top.before;
    setup.push(insert(top.number));
    let Some(second) = until(design, &setup, right + 1.., insert, leaf)? else { return Ok(None) };
    let Some(first) = until(design, &second.before, left + 1.., insert, leaf)? else {
        return Ok(None);
    };
    let threads = [
        vec![insert(second.number), Op::Get(K::sample(right))],
        vec![insert(first.number), Op::Get(K::sample(left))],
        vec![Op::Get(K::sample(right)), Op::Get(K::sample(left))],
        vec![remove(right)],
    ];
    Ok(Some(thread_scenario(design, "split-two-parents", first.before, 0, threads)))
}
