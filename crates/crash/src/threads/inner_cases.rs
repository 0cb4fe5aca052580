//! Scenarios in which inner nodes in DRAM are split, merged, freed and reused while other threads
//! descend through them.
//!
//! 1. A dry run finds them by the statistics: the operation that splits an inner node, merges two,
//!    or removes a root. So they apply whatever the leaves of a design hold.
//! 2. Each execution builds the whole tree, because an open would build other inner nodes.
//! 3. A design with persistent inner nodes has one scenario, and another one if it has lock arrays.
//!    Its nodes are those of its own code, and the trees are large.

use crate::scenario::index::session::Op;
use crate::subject::design::SubjectDesign;
use crate::subject::keys::SampleKey;
use crate::threads::scenario::ThreadScenario;
use crate::threads::search::{STRIDE, ThreadCase, fresh, insert, remove, thread_scenario, until};
use bristlecone_trees::spec::{INNER_ARRAY, LOCK_ARRAYS, SELECTIVE};
use bristlecone_trees::{Order, TreeError, TreeStats};

/// The number of inner nodes, with the root, at which two can merge beside a third one, so that the
/// root stays.
const NODES: u64 = 5;
/// The keys before the last one among which a leaf is made sparse. It lies in the upper half of the
/// last inner node, and is not the last leaf.
const NEAR_END: u64 = 40;
/// The keys between the last leaf and one that is in the upper half of the inner node above, and is
/// not beside the last one.
const FROM_END: u64 = 20;
/// A number above the keys of all scenarios.
const HIGH: u64 = 901 * STRIDE;
/// The keys between the one whose removal merges two inner nodes and a leaf under the left node,
/// which is sparse then, and under the right one.
const IN_LEFT: u64 = 12;
const IN_RIGHT: u64 = 90;
/// The leaves under two inner nodes of which one merges when it has 8 left. The merged node is
/// full: 8 and 23. The first had 16 when the root was split.
const LEAVES: u64 = 16 + 23;

/// Returns all of these scenarios that a design has.
///
/// # Errors
/// The design fails without any crash.
pub(super) fn cases<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Vec<ThreadScenario<K>>, TreeError> {
    let moving = split_beside_writes(design)?;
    if !design.form.spec.features.contains(&SELECTIVE) {
        return Ok([moving, split_beside_post(design)?].into_iter().flatten().collect());
    }
    let found = [
        moving,
        merge_and_split(design)?,
        merge_and_grow(design)?,
        split_and_merge(design)?,
        collapse_and_split(design)?,
        rebuild_twice(design)?,
        rebuild_beside_split(design)?,
    ];
    Ok(found.into_iter().flatten().collect())
}

/// Returns a scenario in which one thread splits an inner node, while others write to one leaf that
/// moves to the new node. Its lock lies in another array from then on.
fn split_beside_writes<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    if !design.form.spec.features.contains(&LOCK_ARRAYS) {
        return Ok(None);
    }
    let higher = |before: &TreeStats, after: &TreeStats| before.height > 1 && rises(before, after);
    let Some(split) = until(design, &fresh(), ascending(0), insert, higher)? else {
        return Ok(None);
    };
    let key = |number| K::sample(number);
    let moving = split.number - FROM_END * STRIDE;
    let threads = [
        vec![insert(split.number), Op::Get(key(moving + 1))],
        vec![insert(moving + 1), Op::Get(key(moving + 2)), remove(moving)],
        vec![insert(moving + 2), Op::Get(key(moving + 1)), Op::Update(key(moving + 1), 301)],
        vec![Op::Get(key(split.number)), insert(moving + 3)],
    ];
    let live = split.before.len() - fresh::<K>().len();
    Ok(Some(thread_scenario(design, "inner-split-writes", split.before, live, threads)))
}

/// Returns a scenario in which one thread splits the last leaf and the root above it. Another one
/// splits the leaf to the left, whose parent is the new inner node.
fn split_beside_post<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    let higher = |before: &TreeStats, after: &TreeStats| before.height > 1 && rises(before, after);
    let Some(split) = until(design, &fresh(), ascending(0), insert, higher)? else {
        return Ok(None);
    };
    // The last leaf is full. The last key that has room is one of the leaf to the left.
    let fits = |before: &TreeStats, after: &TreeStats| after.leaves == before.leaves;
    let mut next_to_last = None;
    for count in 1..split.number / STRIDE {
        let one = core::iter::once(split.number - count * STRIDE + STRIDE / 2);
        next_to_last = until(design, &split.before, one, insert, fits)?;
        if next_to_last.is_some() {
            break;
        }
    }
    let Some(ThreadCase { number: from, .. }) = next_to_last else { return Ok(None) };
    let between = (STRIDE..=from).rev().filter(|number| number % STRIDE != 0);
    // By itself this split would be that of the root.
    let leaf = |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves;
    let Some(post) = until(design, &split.before, between, insert, leaf)? else {
        return Ok(None);
    };
    let key = |number| K::sample(number);
    let near = post.number / STRIDE * STRIDE;
    let threads = [
        vec![insert(split.number), Op::Get(key(post.number))],
        // The remove changes the left half: from then on no log need know of the split.
        vec![insert(post.number), remove(near - 3 * STRIDE), Op::Get(key(split.number))],
        vec![Op::Get(key(post.number)), remove(near), Op::Get(key(near + STRIDE))],
        vec![Op::Update(key(near + STRIDE), 401), Op::Get(key(near)), Op::Get(key(split.number))],
    ];
    Ok(Some(thread_scenario(design, "inner-split-post", post.before, 0, threads)))
}

fn rises(before: &TreeStats, after: &TreeStats) -> bool {
    after.height > before.height
}

/// Returns a scenario in which two threads split leaves below one full inner node of an array, so
/// that both find it full. Other threads look up and scan while one of them rebuilds the array.
fn rebuild_twice<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    rebuild(design, "inner-rebuild", 2, rebuilds)
}

/// Returns a scenario in which one thread rebuilds an array of inner nodes. Another splits a leaf
/// below a node that has room: its separator must not be lost with the former array.
fn rebuild_beside_split<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    let splits = |before: &TreeStats, after: &TreeStats| {
        after.leaves > before.leaves && after.inner_nodes == before.inner_nodes
    };
    rebuild(design, "inner-rebuild-beside", 3, splits)
}

fn rebuilds(before: &TreeStats, after: &TreeStats) -> bool {
    after.inner_nodes > before.inner_nodes
}

/// Returns a scenario in which the last leaf of a tree of `height` is split, which rebuilds the
/// array of inner nodes, beside an insert at the front that changes the tree as `wanted`.
fn rebuild<K: SampleKey>(
    design: SubjectDesign<K>,
    name: &str,
    height: u32,
    wanted: impl Fn(&TreeStats, &TreeStats) -> bool,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    if !design.form.spec.features.contains(&INNER_ARRAY) {
        return Ok(None);
    }
    let more =
        |before: &TreeStats, after: &TreeStats| before.height == height && rebuilds(before, after);
    let Some(last) = until(design, &fresh(), ascending(0), insert, more)? else { return Ok(None) };
    let Some(first) = until(design, &last.before, 1..STRIDE, insert, wanted)? else {
        return Ok(None);
    };
    let key = |number| K::sample(number);
    let (low, high) = (first.number, last.number);
    let threads = [
        vec![insert(low), Op::Get(key(high)), Op::Insert(key(high - 1), 101)],
        vec![insert(high), Op::Get(key(low)), Op::Insert(key(low + STRIDE + 1), 201)],
        vec![Op::Scan(Order::Descending), Op::MultiGet(vec![key(low), key(high), key(STRIDE)])],
        vec![Op::Get(key(high)), Op::Scan(Order::Ascending), remove(STRIDE)],
    ];
    let live = first.before.len() - fresh::<K>().len();
    Ok(Some(thread_scenario(design, name, first.before, live, threads)))
}

fn ascending(from: u64) -> impl Iterator<Item = u64> {
    (from / STRIDE + 1..).map(|count| count * STRIDE)
}

/// Returns the operations before a case, and its own.
fn with<K: SampleKey>(case: &ThreadCase<K>, make: fn(u64) -> Op<K>) -> Vec<Op<K>> {
    [&case.before[..], &[make(case.number)]].concat()
}

/// Returns a scenario in which one thread merges inner nodes at the front, so that one becomes
/// free. Another splits the last inner node, reuses the free one, and inserts a separator into the
/// same parent. A third merges leaves below the split node, and reads at both ends.
fn merge_and_split<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    let many = |_: &TreeStats, after: &TreeStats| after.inner_nodes >= NODES;
    let Some(grown) = until(design, &fresh(), ascending(0), insert, many)? else { return Ok(None) };
    let more = |before: &TreeStats, after: &TreeStats| {
        after.inner_nodes > before.inner_nodes && after.height == before.height
    };
    let (setup, from) = (with(&grown, insert), grown.number);
    let Some(split) = until(design, &setup, ascending(from), insert, more)? else {
        return Ok(None);
    };
    let less = |before: &TreeStats, after: &TreeStats| {
        after.inner_nodes < before.inner_nodes && after.height == before.height
    };
    let Some(merge) = until(design, &split.before, ascending(0), remove, less)? else {
        return Ok(None);
    };
    let leaf = |before: &TreeStats, after: &TreeStats| after.leaves < before.leaves;
    let near = split.number - NEAR_END * STRIDE;
    let Some(sparse) = until(design, &merge.before, ascending(near), remove, leaf)? else {
        return Ok(None);
    };
    let key = |number| K::sample(number);
    let (next, last, beside) =
        (merge.number + STRIDE, split.number - STRIDE, sparse.number + STRIDE);
    let threads = [
        vec![remove(merge.number), Op::Get(key(next)), Op::Get(key(last))],
        vec![insert(split.number), Op::Get(key(next)), Op::Get(key(beside))],
        vec![remove(sparse.number), Op::Get(key(split.number)), Op::Insert(key(next + 1), 301)],
        vec![Op::Get(key(next)), Op::Get(key(last)), Op::Update(key(beside), 401)],
    ];
    let live = sparse.before.len() - fresh::<K>().len();
    Ok(Some(thread_scenario(design, "inner-merge-split", sparse.before, live, threads)))
}

/// Returns a scenario in which one thread merges inner nodes at the front. Others split leaves
/// below these two nodes, which get a separator each between the count of their entries and the
/// merge.
fn merge_and_grow<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    let many = |_: &TreeStats, after: &TreeStats| after.inner_nodes >= NODES;
    let Some(grown) = until(design, &fresh(), ascending(0), insert, many)? else { return Ok(None) };
    let less = |before: &TreeStats, after: &TreeStats| {
        after.inner_nodes < before.inner_nodes && after.height == before.height
    };
    let Some(merge) = until(design, &with(&grown, insert), ascending(0), remove, less)? else {
        return Ok(None);
    };
    let leaf = |before: &TreeStats, after: &TreeStats| {
        after.leaves > before.leaves && after.inner_nodes == before.inner_nodes
    };
    let between = |keys: u64| (merge.number + keys * STRIDE..).filter(|key| key % STRIDE != 0);
    let Some(pending_work) = until(design, &merge.before, between(IN_LEFT), insert, leaf)? else {
        return Ok(None);
    };
    let Some(right) = until(design, &pending_work.before, between(IN_RIGHT), insert, leaf)? else {
        return Ok(None);
    };
    let key = |number| K::sample(number);
    let next = merge.number + STRIDE;
    let threads = [
        vec![remove(merge.number), Op::Get(key(pending_work.number))],
        vec![insert(pending_work.number), Op::Get(key(pending_work.number))],
        vec![insert(right.number), Op::Get(key(right.number))],
        vec![Op::Get(key(next)), Op::Get(key(right.number)), Op::Update(key(next), 401)],
    ];
    let live = right.before.len() - fresh::<K>().len();
    Ok(Some(thread_scenario(design, "inner-merge-grow", right.before, live, threads)))
}

/// Returns a scenario in which one thread merges the last two inner nodes below the root, while
/// another splits the first, which moves the later entries of the root. Keys come in descending
/// order, so the first node fills.
fn split_and_merge<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    let descending = |from: u64| (1..from / STRIDE).rev().map(|count| count * STRIDE);
    let many = |_: &TreeStats, after: &TreeStats| after.inner_nodes >= NODES;
    let Some(grown) = until(design, &fresh(), descending(HIGH), insert, many)? else {
        return Ok(None);
    };
    let more = |before: &TreeStats, after: &TreeStats| {
        after.inner_nodes > before.inner_nodes && after.height == before.height
    };
    let (setup, from) = (with(&grown, insert), grown.number);
    let Some(split) = until(design, &setup, descending(from), insert, more)? else {
        return Ok(None);
    };
    let less = |before: &TreeStats, after: &TreeStats| {
        after.inner_nodes < before.inner_nodes && after.height == before.height
    };
    let Some(merge) = until(design, &split.before, descending(HIGH), remove, less)? else {
        return Ok(None);
    };
    let key = |number| K::sample(number);
    let (first, last) = (split.number + STRIDE, merge.number - STRIDE);
    let threads = [
        vec![remove(merge.number), Op::Get(key(last))],
        vec![insert(split.number), Op::Get(key(first))],
        vec![Op::Get(key(last)), Op::Insert(key(first + 1), 301), Op::Get(key(last))],
        vec![Op::Get(key(first)), Op::Update(key(last), 401)],
    ];
    let live = merge.before.len() - fresh::<K>().len();
    Ok(Some(thread_scenario(design, "inner-split-merge", merge.before, live, threads)))
}

/// Returns a scenario in which one thread merges the two inner nodes below the root, which removes
/// the root. The merged node is full: another thread's split of a leaf splits it at once, and
/// reuses both free nodes at other levels. Other threads descend through the old root.
fn collapse_and_split<K: SampleKey>(
    design: SubjectDesign<K>,
) -> Result<Option<ThreadScenario<K>>, TreeError> {
    let many = |_: &TreeStats, after: &TreeStats| after.leaves >= LEAVES && after.height >= 3;
    let Some(grown) = until(design, &fresh(), ascending(0), insert, many)? else { return Ok(None) };
    let leaf = |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves;
    let (setup, from) = (with(&grown, insert), grown.number);
    let Some(split) = until(design, &setup, ascending(from), insert, leaf)? else {
        return Ok(None);
    };
    let lower = |before: &TreeStats, after: &TreeStats| after.height < before.height;
    let Some(merge) = until(design, &split.before, ascending(0), remove, lower)? else {
        return Ok(None);
    };
    let higher = |before: &TreeStats, after: &TreeStats| after.height > before.height;
    let at_once = ascending(split.number - STRIDE).take(1);
    if until(design, &with(&merge, remove), at_once, insert, higher)?.is_none() {
        return Ok(None);
    }
    let key = |number| K::sample(number);
    let (next, last) = (merge.number + STRIDE, split.number - STRIDE);
    let reads = [next, last, next + STRIDE, last - STRIDE].map(|number| Op::Get(key(number)));
    let threads = [
        vec![remove(merge.number), Op::Get(key(next))],
        vec![insert(split.number), Op::Get(key(last))],
        reads.to_vec(),
        vec![Op::Get(key(next)), Op::Update(key(last), 401), Op::Get(key(split.number))],
    ];
    let live = merge.before.len() - fresh::<K>().len();
    Ok(Some(thread_scenario(design, "inner-collapse-split", merge.before, live, threads)))
}
