//! Pieces of designs that put work off: keepers tend the index while others write and read.
//!
//! 1. Whoever tends in a part is registered for as long as the part lasts: so writers find a keeper at times,
//!    and none at others.
//! 2. What there is to do comes about anew for each play, by writes that leave it to a keeper: an open may do
//!    away with it.

use super::medium::Stage;
use super::piece::Piece;
use super::plan::{STRIDE, fresh, insert, piece, remove, until};
use crate::kind::Kind;
use crate::run::POOL_BYTES;
use crate::tree::{Life, Op, SampleKey, left, tends};
use bristlecone_trees::{Census, TreeError};

/// Keys of the tree that is one leaf.
const FEW: u64 = 4;

/// All of them that a design has.
///
/// # Errors
/// The design fails without any crash.
pub(super) fn pieces<K: SampleKey>(kind: Kind<K>) -> Result<Vec<Piece<K>>, TreeError> {
    if kind.design.upkeep.is_none() {
        return Ok(Vec::new());
    }
    let mut list = Vec::new();
    let few = [fresh(), (1..=FEW).map(|count| insert(count * STRIDE)).collect()].concat();
    let updates = due(kind, &few, &[20, 10, 40])?;
    list.extend(updates.map(|updates| one_leaf(kind, few, updates)));
    let four = |_: &Census, after: &Census| after.height >= 2 && after.leaves >= 4;
    let ascending = (1..).map(|count| count * STRIDE);
    if let Some(case) = until(kind, &fresh(), ascending, insert, four)? {
        let numbers: Vec<_> = (1..case.number / STRIDE).map(|count| count * STRIDE).collect();
        let updates = due(kind, &case.before, &numbers)?;
        list.extend(updates.map(|updates| leaves(kind, case.before, updates, &numbers)));
    }
    Ok(list)
}

/// Updates of keys after which there is something to do for a keeper, from an open behind `setup` on.
fn due<K: SampleKey>(
    kind: Kind<K>,
    setup: &[Op<K>],
    numbers: &[u64],
) -> Result<Option<Vec<Op<K>>>, TreeError> {
    let stage = Stage::new(POOL_BYTES);
    let mut life = Life::<K>::Closed;
    for op in setup.iter().chain(&[Op::Die, Op::Open]) {
        life.apply(kind, &(&stage).into(), op)?;
    }
    let mut done = Vec::new();
    for op in left(numbers) {
        life.apply(kind, &(&stage).into(), &op)?;
        done.push(op);
        if tends(&life)? {
            return Ok(Some(done));
        }
    }
    Ok(None)
}

/// A keeper, a writer, a reader, and a keeper who writes, at the keys of one leaf.
fn one_leaf<K: SampleKey>(kind: Kind<K>, before: Vec<Op<K>>, updates: Vec<Op<K>>) -> Piece<K> {
    let key = |number| K::sample(number);
    let parts = [
        vec![Op::Tend; 4],
        vec![Op::Update(key(20), 201), remove(30), Op::Update(key(10), 202)],
        vec![Op::Get(key(20)), Op::Get(key(30)), Op::Get(key(40))],
        vec![Op::Tend, Op::Upsert(key(40), 401), Op::Tend, Op::Get(key(20))],
    ];
    let live = updates.len();
    piece(kind, "tend", [before, updates].concat(), live, parts)
}

/// The same at several leaves, one of which may split.
fn leaves<K: SampleKey>(
    kind: Kind<K>,
    before: Vec<Op<K>>,
    updates: Vec<Op<K>>,
    numbers: &[u64],
) -> Piece<K> {
    let key = |number| K::sample(number);
    let (low, middle, high) = (STRIDE, numbers[numbers.len() / 2], numbers[numbers.len() - 1]);
    let parts = [
        vec![Op::Tend; 6],
        vec![Op::Update(key(middle), 201), insert(middle + 1), remove(low)],
        vec![Op::Get(key(low)), Op::Get(key(middle + 1)), Op::Get(key(high))],
        vec![Op::Tend, Op::Update(key(high), 401), Op::Tend, Op::Tend, insert(high + STRIDE)],
    ];
    let live = updates.len();
    piece(kind, "tend-beside", [before, updates].concat(), live, parts)
}
