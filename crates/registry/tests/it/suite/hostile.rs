//! Damaged files: every answer is an error or plausible; no operation panics or runs without end.
//!
//! 1. A run without end is a number of loads that no correct walk of so small a pool needs: see
//!    [`Bounded`].
//! 2. A plausible answer obeys the rules of any contents: a scan is in strict order and ends.
//! 3. One seed damages the same words each time: the suite frees retired blocks itself, at fixed
//!    moments, and does not depend on other tests of the process.
//! 4. Writes and a close follow the reads: damage must not make them panic either, whatever blocks
//!    it makes them free.

use super::bounded::Bounded;
use super::keys::{Space, TestKey};
use super::scratch::{ROOT, Scratch, close, rng};
use super::{IS_THOROUGH, Index, Subject};
use bristlecone_trees::{Order, Text};
use core::ops::{Bound, ControlFlow};
use rand::RngExt;
use rand::rngs::StdRng;
use std::any::Any;
use std::collections::BTreeMap;
use std::panic::catch_unwind;

const KEYS: u64 = 500;
/// The number of damaged pools of a design.
const CASES: u32 = if IS_THOROUGH { 400 } else { 60 };
/// The loads allowed to one operation on one key. A correct operation may go through the whole pool
/// several times before it fails.
const OPERATION_STEPS: i64 = 4_000_000;
/// The loads allowed to one walk of the whole index.
const WALK_STEPS: i64 = 20_000_000;

/// Runs the suite with integer keys.
pub(crate) fn integers(subject: &Subject<u64>) {
    run(subject);
}

/// Runs the suite with byte-string keys.
pub(crate) fn texts(subject: &Subject<Text>) {
    run(subject);
}

fn run<K: TestKey>(subject: &Subject<K>) {
    if !subject.spec.persistent {
        return;
    }
    let mut rng = rng(5);
    let images = [image(subject, false), image(subject, true)];
    let mut opened = 0;
    let mut failures = BTreeMap::new();
    for case in 0..CASES {
        let mut bytes = images[case as usize % 2].clone();
        let damage = Damage::draw(&mut rng, &bytes);
        damage.apply(&mut bytes);
        match catch_unwind(|| live_with(subject, &bytes)) {
            Ok(true) => opened += 1,
            Ok(false) => {}
            Err(panic) => {
                eprintln!("case {case}: {damage:x?}\n");
                let (count, _) = failures.entry(message(&*panic)).or_insert((0, damage));
                *count += 1;
            }
        }
    }
    assert!(failures.is_empty(), "panics, how often and after which damage: {failures:#x?}");
    // If every open fails, the suite tests nothing of the design.
    assert!(opened >= CASES / 20, "only {opened} of {CASES} damaged pools opened");
}

/// Returns the message of a panic up to its first colon, so that equal failures are counted
/// together.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    let first = text.lines().next().unwrap_or_default();
    first.split(':').next().unwrap_or_default().to_string()
}

/// Returns the bytes of a pool with some hundred keys.
fn image<K: TestKey>(subject: &Subject<K>, clean: bool) -> Vec<u8> {
    let scratch = Scratch::new();
    let index = (subject.create)(scratch.create(256 << 10), ROOT).unwrap();
    let _pinned = index.pool().pin();
    for n in 0..KEYS {
        index.insert(K::borrow(&K::nth(Space::Clustered, n)), n).unwrap();
        index.pool().reclaim();
    }
    for n in (0..KEYS).step_by(5) {
        index.remove(K::borrow(&K::nth(Space::Clustered, n))).unwrap();
        index.pool().reclaim();
    }
    if clean {
        close(index).unwrap();
    } else {
        drop(index);
    }
    std::fs::read(scratch.path()).unwrap()
}

/// A kind of damage to a file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    FlippedBits {
        at: usize,
        mask: u64,
    },
    /// A word is replaced by one from elsewhere, or by one that looks valid.
    Overwritten {
        at: usize,
        word: u64,
    },
    TwoOverwritten {
        at: [usize; 2],
        words: [u64; 2],
    },
    ZeroedUnit {
        at: usize,
    },
    /// A unit holds the contents of another one, as after a stale or misplaced write.
    CopiedUnit {
        from: usize,
        to: usize,
    },
    Garbage {
        at: usize,
        bytes: usize,
        seed: u64,
    },
    CutShort {
        bytes: usize,
    },
}

impl Damage {
    fn draw(rng: &mut StdRng, bytes: &[u8]) -> Self {
        // Damage to unused space is mostly harmless, so most of it hits words that are not zero.
        let used: Vec<usize> =
            (0..bytes.len()).step_by(8).filter(|&at| word_at(bytes, at) != 0).collect();
        let place = |rng: &mut StdRng| match rng.random_range(0..8) {
            0 => rng.random_range(0..bytes.len() / 8) * 8,
            // The header gets a fixed share of the damage.
            1 => used[rng.random_range(0..used.len())],
            _ => {
                let body = used.partition_point(|&at| at < 32 << 10);
                used[rng.random_range(body..used.len())]
            }
        };
        let word = |rng: &mut StdRng| match rng.random_range(0..6) {
            0 => u64::MAX,
            1 => rng.random_range(0..64),
            2 => place(rng) as u64,
            3 => rng.random_range(0..bytes.len() as u64 / 256) * 256,
            4 => word_at(bytes, place(rng)),
            _ => rng.random(),
        };
        let unit = |rng: &mut StdRng| place(rng) / 256 * 256;
        match rng.random_range(0..16) {
            0..4 => Self::FlippedBits { at: place(rng), mask: 1 << rng.random_range(0..64) },
            4 => Self::FlippedBits { at: place(rng), mask: rng.random() },
            5..9 => Self::Overwritten { at: place(rng), word: word(rng) },
            9..11 => {
                Self::TwoOverwritten { at: [place(rng), place(rng)], words: [word(rng), word(rng)] }
            }
            11 => Self::ZeroedUnit { at: unit(rng) },
            12..14 => Self::CopiedUnit { from: unit(rng), to: unit(rng) },
            14 => Self::Garbage {
                at: unit(rng),
                bytes: 64 << rng.random_range(0..6),
                seed: rng.random(),
            },
            _ => Self::CutShort { bytes: rng.random_range(0..bytes.len()) },
        }
    }

    fn apply(self, bytes: &mut Vec<u8>) {
        match self {
            Self::FlippedBits { at, mask } => {
                let word = word_at(bytes, at) ^ mask;
                write_word(bytes, at, word);
            }
            Self::Overwritten { at, word } => write_word(bytes, at, word),
            Self::TwoOverwritten { at, words } => {
                for (at, word) in at.into_iter().zip(words) {
                    write_word(bytes, at, word);
                }
            }
            Self::ZeroedUnit { at } => bytes[at..at + 256].fill(0),
            Self::CopiedUnit { from, to } => bytes.copy_within(from..from + 256, to),
            Self::Garbage { at, bytes: count, seed } => {
                let end = (at + count).min(bytes.len());
                let mut rng = <StdRng as rand::SeedableRng>::seed_from_u64(seed);
                bytes[at..end].fill_with(|| rng.random());
            }
            Self::CutShort { bytes: count } => bytes.truncate(count),
        }
    }
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

fn write_word(bytes: &mut [u8], at: usize, word: u64) {
    for (i, byte) in bytes[at..at + 8].iter_mut().enumerate() {
        *byte = (word >> (8 * i)) as u8;
    }
}

/// Opens the file and runs all operations on it. Returns `true` if it opened.
fn live_with<K: TestKey>(subject: &Subject<K>, bytes: &[u8]) -> bool {
    let scratch = Scratch::new();
    std::fs::write(scratch.path(), bytes).unwrap();
    let Ok((pool, opened)) = scratch.open_within(WALK_STEPS) else {
        return false;
    };
    let _pinned = pool.pin();
    let Ok(index) = (subject.open)(pool, ROOT, opened) else { return false };
    read_all(&*index);
    write_some(&*index);
    read_all(&*index);
    Bounded::of(index.pool().medium()).allow(WALK_STEPS);
    let _ = close(index);
    true
}

fn read_all<K: TestKey>(index: &Index<K>) {
    let allow = |steps| Bounded::of(index.pool().medium()).allow(steps);
    let keys: Vec<_> = (0..KEYS).map(|n| K::nth(Space::Clustered, n)).collect();
    for key in &keys {
        allow(OPERATION_STEPS);
        let _ = index.get(K::borrow(key));
    }
    allow(WALK_STEPS);
    let borrowed: Vec<_> = keys.iter().map(K::borrow).collect();
    let _ = index.multi_get(&borrowed, &mut vec![None; keys.len()]);
    let middle = K::borrow(&keys[keys.len() / 2]);
    for order in [Order::Ascending, Order::Descending] {
        for bounds in [
            (Bound::Unbounded, Bound::Unbounded),
            (Bound::Included(middle), Bound::Unbounded),
            (Bound::Unbounded, Bound::Excluded(middle)),
        ] {
            allow(WALK_STEPS);
            let mut last: Option<K::Owned> = None;
            let _ = index.scan(bounds, order, &mut |key, _| {
                let key = K::to_owned(key);
                let in_order = last.as_ref().is_none_or(|last| match order {
                    Order::Ascending => *last < key,
                    Order::Descending => *last > key,
                });
                assert!(in_order, "a scan {order:?} is out of order: {key:?} after {last:?}");
                last = Some(key);
                ControlFlow::Continue(())
            });
        }
    }
    allow(WALK_STEPS);
    let _ = index.check();
}

fn write_some<K: TestKey>(index: &Index<K>) {
    let allow = || Bounded::of(index.pool().medium()).allow(OPERATION_STEPS);
    for n in 0..KEYS {
        let key = K::nth(Space::Clustered, n);
        allow();
        let _ = match n % 4 {
            0 => index.insert(K::borrow(&key), n),
            1 => index.update(K::borrow(&key), n),
            _ => index.remove(K::borrow(&key)),
        };
        index.pool().reclaim();
    }
    for n in KEYS..KEYS + KEYS / 4 {
        allow();
        let _ = index.upsert(K::borrow(&K::nth(Space::Clustered, n)), n);
        index.pool().reclaim();
    }
}
