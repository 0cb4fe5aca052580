//! Pieces of designs that put work off: keepers tend the index while others write and read.
//!
//! 1. Whoever tends in a part is registered for as long as the part lasts: so writers find a keeper at times,
//!    and none at others.
//! 2. What there is to do comes about anew for each play, by writes that leave it to a keeper: an open may do
//!    away with it.

use super::piece::Piece;
use super::plan::{Case, STRIDE, fresh, insert, piece, remove, until};
use crate::kind::Kind;
use crate::tree::{LEAVES, Op, SampleKey, left};
use bristlecone_trees::{TreeError, TreeStats};

/// Keys of the tree that is one leaf.
const FEW: u64 = 4;

/// All of them that a design has.
///
/// # Errors
/// The design fails without any crash.
pub(super) fn pieces<K: SampleKey>(kind: Kind<K>) -> Result<Vec<Piece<K>>, TreeError> {
    if kind.design.maintenance.is_none() {
        return Ok(Vec::new());
    }
    let mut list = Vec::new();
    let few = [fresh(), (1..=FEW).map(|count| insert(count * STRIDE)).collect()].concat();
    let live_few = live(kind, &few, &[20, 10, 40])?;
    list.extend(live_few.map(|live| one_leaf(kind, few, live)));
    let many = |_: &TreeStats, after: &TreeStats| after.height >= 2 && after.leaves >= LEAVES;
    let ascending = (1..).map(|count| count * STRIDE);
    if let Some(case) = until(kind, &fresh(), ascending, insert, many)? {
        list.extend(grows(kind, &case)?);
        let live_many = live(kind, &case.before, &[STRIDE, 2 * STRIDE])?;
        list.extend(live_many.map(|live| leaves(kind, case, live)));
    }
    Ok(list)
}

/// Updates of one leaf, or of two beside each other, where the next one takes a block for what is said of them:
/// whoever finds it there relies on what leads to it.
fn grows<K: SampleKey>(kind: Kind<K>, tree: &Case<K>) -> Result<Option<Piece<K>>, TreeError> {
    let grows = |before: &TreeStats, after: &TreeStats| {
        after.blocks > before.blocks && after.leaves == before.leaves
    };
    let setup = [&tree.before[..], &[Op::Die, Op::Open]].concat();
    let in_turn = (2..tree.number / STRIDE - 1).map(|count| count * STRIDE).cycle();
    let Some(case) = until(kind, &setup, in_turn, update, grows)? else { return Ok(None) };
    let at = |number| K::sample(number);
    let (number, before, after) = (case.number, case.number - STRIDE, case.number + STRIDE);
    let parts = [
        vec![update(number)],
        vec![Op::Update(at(after), 202), Op::Get(at(number))],
        vec![Op::Update(at(before), 203), Op::Get(at(after))],
        vec![Op::Update(at(number), 204), Op::Get(at(before))],
    ];
    let done = [&tree.before[..], &case.before[setup.len()..]].concat();
    let live = done.len() - tree.before.len();
    Ok(Some(piece(kind, "log-grows", done, live, parts)))
}

fn update<K: SampleKey>(number: u64) -> Op<K> {
    Op::Update(K::sample(number), 7)
}

/// What leaves something to do for a keeper, from an open behind `setup` on.
fn live<K: SampleKey>(
    kind: Kind<K>,
    setup: &[Op<K>],
    numbers: &[u64],
) -> Result<Option<Vec<Op<K>>>, TreeError> {
    let opened = [setup, &[Op::Die, Op::Open]].concat();
    Ok(left(kind, &opened, numbers)?.map(|left| left.ops))
}

/// A keeper, a writer, a reader, and a keeper who writes, at the keys of one leaf.
fn one_leaf<K: SampleKey>(kind: Kind<K>, before: Vec<Op<K>>, live: Vec<Op<K>>) -> Piece<K> {
    let key = |number| K::sample(number);
    let parts = [
        vec![Op::Tend; 4],
        vec![Op::Update(key(20), 201), remove(30), Op::Update(key(10), 202)],
        vec![Op::Get(key(20)), Op::Get(key(30)), Op::Get(key(40))],
        vec![Op::Tend, Op::Upsert(key(40), 401), Op::Tend, Op::Get(key(20))],
    ];
    let count = live.len();
    piece(kind, "tend", [before, live].concat(), count, parts)
}

/// The same where what was said of other leaves counts still: the keepers copy it while others change it. The
/// second keeper splits such a leaf.
fn leaves<K: SampleKey>(kind: Kind<K>, case: Case<K>, live: Vec<Op<K>>) -> Piece<K> {
    let Case { before, number } = case;
    let key = |number| K::sample(number);
    // Of twelve leaves the ninth.
    let beside = number / STRIDE * 7 / 10 * STRIDE;
    let parts = [
        vec![Op::Tend; 4],
        vec![Op::Update(key(STRIDE), 201), Op::Update(key(beside), 202), remove(20)],
        vec![Op::Get(key(STRIDE)), Op::Get(key(beside)), Op::Get(key(20))],
        vec![Op::Tend, insert(beside + 1), Op::Tend],
    ];
    let count = live.len();
    piece(kind, "tend-beside", [before, live].concat(), count, parts)
}
