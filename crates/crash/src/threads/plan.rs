//! The pieces of a design, found by trying: where threads meet in splits and merges.

use super::inner;
use super::medium::Stage;
use super::piece::Piece;
use super::tended;
use crate::kind::Kind;
use crate::run::POOL_BYTES;
use crate::tree::{Life, Op, SampleKey};
use bristlecone_pmem::PoolError;
use bristlecone_trees::{TreeError, TreeStats};

/// Keys after which a case that has not come up is taken not to exist in the design.
const KEYS_MAX: u64 = 900;
/// Distance of the sample keys, so that others fit between them.
pub(super) const STRIDE: u64 = 10;
/// Updates of one key that nearly fill a leaf to which they are appended, where half of it is filled.
const UPDATES: u64 = 6;
/// The most players that a piece has parts for.
pub(crate) const PLAYERS_MAX: usize = 4;

/// What an operation was looked for, and everything that was done before it.
pub(super) struct Case<K: SampleKey> {
    pub(super) before: Vec<Op<K>>,
    pub(super) number: u64,
}

/// All pieces of a design, for four players each.
///
/// # Errors
/// The design fails without any crash.
pub(crate) fn pieces<K: SampleKey>(kind: Kind<K>) -> Result<Vec<Piece<K>>, TreeError> {
    let mut list = vec![one_key(kind), only_key(kind), few_keys(kind)];
    let ascending = || (1..).map(|count| count * STRIDE);
    let split =
        |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves && before.keys > 0;
    let found = until(kind, &fresh(), ascending(), insert, split)?;
    list.extend(found.map(|case| splits(kind, "split-leaf", case, 0)));
    let below = |before: &TreeStats, after: &TreeStats| {
        before.height >= 2 && after.height == before.height && split(before, after)
    };
    let found = until(kind, &fresh(), ascending(), insert, below)?;
    list.extend(found.map(|case| splits(kind, "split-leaf-below-root", case, 0)));
    let root = |before: &TreeStats, after: &TreeStats| before.height == 2 && after.height == 3;
    let found = until(kind, &fresh(), ascending(), insert, root)?;
    list.extend(found.map(|case| {
        let half = case.before.len() / 2;
        splits(kind, "split-root", case, half)
    }));
    let four = |_: &TreeStats, after: &TreeStats| after.height >= 2 && after.leaves >= 4;
    if let Some(case) = until(kind, &fresh(), ascending(), insert, four)? {
        let (grown, keys) = (case.before, case.number / STRIDE);
        let up = || (1..keys).map(|count| count * STRIDE);
        let merge = |before: &TreeStats, after: &TreeStats| after.leaves < before.leaves;
        let found = two_full(kind, &grown, case.number)?;
        list.extend(found.map(|(before, full)| two_splits(kind, before, full)));
        list.push(updates(kind, &grown, keys / 2 * STRIDE));
        list.extend(merge_beside_split(kind, &grown, keys)?);
        let found = until(kind, &grown, up(), remove, merge)?;
        list.extend(found.map(|case| merges(kind, "merge-leaf", case)));
        let found = until(kind, &grown, up().rev(), remove, merge)?;
        list.extend(found.map(|case| merges(kind, "merge-leaf-back", case)));
        let collapse = |before: &TreeStats, after: &TreeStats| after.height < before.height;
        let found = until(kind, &grown, up(), remove, collapse)?;
        list.extend(found.map(|case| merges(kind, "collapse-root", case)));
    }
    list.extend(inner::pieces(kind)?);
    list.extend(tended::pieces(kind)?);
    Ok(list)
}

pub(super) fn insert<K: SampleKey>(number: u64) -> Op<K> {
    Op::Insert(K::sample(number), number.wrapping_mul(3))
}

pub(super) fn remove<K: SampleKey>(number: u64) -> Op<K> {
    Op::Remove(K::sample(number))
}

pub(super) fn fresh<K: SampleKey>() -> Vec<Op<K>> {
    vec![Op::Found, Op::Create]
}

/// Does the operation that `make` makes of each number, after `setup`, until one changes the census
/// as wanted.
pub(super) fn until<K: SampleKey>(
    kind: Kind<K>,
    setup: &[Op<K>],
    numbers: impl IntoIterator<Item = u64>,
    make: fn(u64) -> Op<K>,
    wanted: impl Fn(&TreeStats, &TreeStats) -> bool,
) -> Result<Option<Case<K>>, TreeError> {
    let stage = Stage::new(POOL_BYTES);
    let mut life = Life::<K>::Closed;
    let mut before = setup.to_vec();
    for op in setup {
        life.apply(kind, &(&stage).into(), op)?;
    }
    let census = |life: &Life<K>| match life {
        Life::Index(index) => index.check(),
        Life::Closed | Life::Pool(_) => Ok(TreeStats::default()),
    };
    let mut was = census(&life)?;
    for number in numbers.into_iter().take(KEYS_MAX as usize) {
        match life.apply(kind, &(&stage).into(), &make(number)) {
            Err(TreeError::Pool(PoolError::Full { .. })) => return Ok(None),
            done => done?,
        };
        let is = census(&life)?;
        if wanted(&was, &is) {
            return Ok(Some(Case { before, number }));
        }
        was = is;
        before.push(make(number));
    }
    Ok(None)
}

/// What was done before, and the keys that then split two leaves.
type TwoFull<K> = (Vec<Op<K>>, [u64; 2]);

/// What makes the first and the last leaf of a grown tree full, and the keys that then split them.
fn two_full<K: SampleKey>(
    kind: Kind<K>,
    grown: &[Op<K>],
    last: u64,
) -> Result<Option<TwoFull<K>>, TreeError> {
    let split = |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves;
    let Some(first) = until(kind, grown, STRIDE + 1.., insert, split)? else { return Ok(None) };
    let downward = (first.number + STRIDE..last).rev();
    let second = until(kind, &first.before, downward, insert, split)?;
    Ok(second.map(|second| (second.before, [first.number, second.number])))
}

/// A piece that begins after `before`, of which the last `live` operations are done anew for each
/// play: inner nodes that an open builds are then as they came about. A volatile design does all
/// of them.
pub(super) fn piece<K: SampleKey>(
    kind: Kind<K>,
    name: &str,
    mut before: Vec<Op<K>>,
    live: usize,
    parts: [Vec<Op<K>>; PLAYERS_MAX],
) -> Piece<K> {
    let kept = if kind.design.spec.persistent { before.len() - live } else { 0 };
    let prelude = before.split_off(kept);
    let name = format!("{}/{name}", K::NAME);
    Piece { name, setup: before, prelude, parts: parts.into(), kind }
}

/// Everyone at one key, and at one beside it.
fn one_key<K: SampleKey>(kind: Kind<K>) -> Piece<K> {
    let mut before = fresh();
    before.extend((1..=4).map(|number| insert(number * STRIDE)));
    let key = |number| K::sample(number);
    let parts = [
        vec![Op::Upsert(key(20), 101), Op::Remove(key(20)), Op::Get(key(25))],
        vec![Op::Get(key(20)), Op::Insert(key(20), 201), Op::Get(key(20))],
        vec![Op::Update(key(20), 301), Op::Insert(key(25), 302)],
        vec![Op::Get(key(20)), Op::Remove(key(25)), Op::Upsert(key(20), 401)],
    ];
    piece(kind, "one-key", before, 0, parts)
}

/// The only key goes, and another takes its place in the leaf, while others look for either.
fn only_key<K: SampleKey>(kind: Kind<K>) -> Piece<K> {
    let mut before = fresh();
    before.push(insert(20));
    let key = |number| K::sample(number);
    let parts = [
        vec![Op::Remove(key(20)), Op::Insert(key(25), 101), Op::Remove(key(25))],
        vec![Op::Get(key(25)), Op::Get(key(20)), Op::Get(key(25))],
        vec![Op::Get(key(20)), Op::Get(key(25)), Op::Insert(key(30), 301)],
        vec![Op::Get(key(25)), Op::Get(key(30)), Op::Upsert(key(20), 401)],
    ];
    piece(kind, "only-key", before, 0, parts)
}

/// Writers and readers of one leaf that neither splits nor merges.
fn few_keys<K: SampleKey>(kind: Kind<K>) -> Piece<K> {
    let mut before = fresh();
    before.extend((1..=4).map(|number| insert(number * STRIDE)));
    let key = |number| K::sample(number);
    let parts = [
        vec![Op::Insert(key(5), 101), Op::Remove(key(30))],
        vec![Op::Get(key(30)), Op::Get(key(5)), Op::Insert(key(35), 201)],
        vec![Op::Remove(key(10)), Op::Upsert(key(40), 301), Op::Get(key(30))],
        vec![Op::Get(key(40)), Op::Get(key(10)), Op::Get(key(35))],
    ];
    piece(kind, "few-keys", before, 0, parts)
}

/// Players at a leaf between others, one of whose keys was updated as often as nearly fills a leaf to
/// which updates are appended.
fn updates<K: SampleKey>(kind: Kind<K>, grown: &[Op<K>], number: u64) -> Piece<K> {
    let key = |number| K::sample(number);
    let mut before = grown.to_vec();
    before.extend((0..UPDATES).map(|n| Op::Update(key(number), n)));
    let (low, high) = (number - STRIDE, number + STRIDE);
    let parts = [
        vec![Op::Update(key(number), 101), Op::Get(key(low)), Op::Update(key(high), 102)],
        vec![Op::Update(key(low), 201), Op::Get(key(number)), Op::Get(key(high))],
        vec![Op::Get(key(number)), Op::Upsert(key(number + 1), 301), Op::Get(key(low))],
        vec![Op::Remove(key(high)), Op::Update(key(number), 401), Op::Get(key(number + 1))],
    ];
    piece(kind, "update-often", before, 0, parts)
}

/// One player splits a node; the others are at both of its halves.
fn splits<K: SampleKey>(kind: Kind<K>, name: &str, case: Case<K>, live: usize) -> Piece<K> {
    let Case { before, number } = case;
    let key = |number| K::sample(number);
    // The leaf that splits holds at least the four keys before the one that splits it.
    let (last, low) = (number - STRIDE, number - 4 * STRIDE);
    let parts = [
        vec![Op::Insert(key(number - 2), 101), Op::Get(key(low))],
        vec![Op::Insert(key(low + 1), 201), Op::Get(key(number - 2)), Op::Remove(key(last))],
        vec![Op::Get(key(last)), Op::Get(key(low + 1)), Op::Update(key(low), 301)],
        vec![Op::Remove(key(low)), Op::Insert(key(last + 1), 401), Op::Get(key(last))],
    ];
    piece(kind, name, before, live, parts)
}

/// Two players split two leaves, perhaps of one parent; the others are at their halves.
fn two_splits<K: SampleKey>(kind: Kind<K>, before: Vec<Op<K>>, full: [u64; 2]) -> Piece<K> {
    let [first, second] = full;
    let key = |number| K::sample(number);
    let parts = [
        vec![Op::Insert(key(first), 101), Op::Get(key(second))],
        vec![Op::Insert(key(second), 201), Op::Get(key(first))],
        vec![Op::Get(key(second)), Op::Get(key(STRIDE)), Op::Insert(key(first + 1), 301)],
        vec![Op::Remove(key(STRIDE)), Op::Insert(key(second - 1), 401), Op::Get(key(first))],
    ];
    piece(kind, "split-two-leaves", before, 0, parts)
}

/// One player merges the last leaves, another splits the first one, which moves what their parent has behind it; the
/// others are at both.
fn merge_beside_split<K: SampleKey>(
    kind: Kind<K>,
    grown: &[Op<K>],
    keys: u64,
) -> Result<Option<Piece<K>>, TreeError> {
    let merge = |before: &TreeStats, after: &TreeStats| {
        after.leaves < before.leaves && after.height == before.height
    };
    let down = (1..keys).rev().map(|count| count * STRIDE);
    let Some(last) = until(kind, grown, down, remove, merge)? else { return Ok(None) };
    let split = |before: &TreeStats, after: &TreeStats| after.leaves > before.leaves;
    let Some(first) = until(kind, &last.before, STRIDE + 1.., insert, split)? else {
        return Ok(None);
    };
    let key = |number| K::sample(number);
    let (low, high) = (first.number, last.number);
    let parts = [
        vec![remove(high), Op::Get(key(high - STRIDE))],
        vec![insert(low), Op::Get(key(low)), Op::Get(key(high))],
        vec![Op::Get(key(low)), Op::Insert(key(high + 1), 301), Op::Get(key(STRIDE))],
        vec![Op::Update(key(high - STRIDE), 401), Op::Get(key(low)), remove(STRIDE)],
    ];
    Ok(Some(piece(kind, "merge-beside-split", first.before, 0, parts)))
}

/// One player merges leaves; the others are at both of them.
fn merges<K: SampleKey>(kind: Kind<K>, name: &str, case: Case<K>) -> Piece<K> {
    let Case { before, number } = case;
    let key = |number| K::sample(number);
    let next = number + STRIDE;
    let parts = [
        vec![remove(number), Op::Get(key(next))],
        vec![Op::Insert(key(number + 1), 201), Op::Get(key(number)), Op::Update(key(next), 202)],
        vec![Op::Get(key(number + 1)), Op::Get(key(next)), Op::Insert(key(number), 301)],
        vec![remove(next), Op::Insert(key(next + 1), 401), Op::Get(key(number))],
    ];
    piece(kind, name, before, 0, parts)
}
