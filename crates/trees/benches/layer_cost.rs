//! The cost, in instructions, of the layers between a tree and its memory.
//!
//! This compares the insert into a sorted leaf, composed from leaf layout, key layer and medium,
//! with the same insert written by hand on a slice of atomics. Both run on DRAM. Run it with `cargo
//! bench -p bristlecone-trees --bench layer_cost`. It runs each insert under valgrind's callgrind,
//! which counts instructions exactly, and fails if the composed insert takes over 3 % more.
//!
//! Both inserts choose their write-back instruction at run time, so both test that choice wherever
//! a line is complete. On DRAM there is nothing to write back.

use bristlecone_pmem::medium::Medium;
use bristlecone_pmem::sys::WriteBack;
use bristlecone_pmem::{Mapped, PmWord, Pool};
use bristlecone_trees::key::Value;
use bristlecone_trees::leaf::sorted_shift::{FencedAfter, SortedShift};
use bristlecone_trees::leaf::{InsertResult, Leaf};
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use std::error::Error;
use std::io::Write;
use std::process::Command;

const NODE: usize = 512;
const WORDS: usize = NODE / 8;
const ENTRIES: usize = 6;
const CAPACITY: usize = (WORDS - ENTRIES) / 2;
const ROUNDS: u64 = 2_000;
const INSERTS: u64 = ROUNDS * CAPACITY as u64;
/// The largest allowed ratio of the composed insert's instructions to those of the hand-written
/// one.
const RATIO_MAX: f64 = 1.03;

/// The run-time choices of a hand-written tree: how to write a line back, and whether to fence.
struct Machine {
    write_back: WriteBack,
    fences: bool,
}

impl Machine {
    #[inline(always)]
    fn persist(&self, word: &AtomicU64) {
        if self.write_back != WriteBack::None {
            self.write_back.line(core::ptr::from_ref(word) as usize);
        }
        if self.fences {
            bristlecone_pmem::sys::fence();
        }
    }
}

/// Inserts into a leaf in plain memory, failure-atomically (FAST). Returns `false` if the leaf is
/// full or has the key.
#[inline(never)]
fn insert_by_hand(machine: &Machine, leaf: &[AtomicU64], key: u64, value: u64) -> bool {
    let load = |index: usize| leaf[index].load(Ordering::Acquire);
    let store = |index: usize, value: u64| leaf[index].store(value, Ordering::Release);
    let (mut place, mut count) = (0, 0);
    if load(0) != 0 {
        while place < CAPACITY {
            let found = load(ENTRIES + 2 * place);
            if found == 0 && place > 0 || found > key {
                break;
            }
            if found == key {
                return false;
            }
            place += 1;
        }
        count = place.max(1);
        while count < CAPACITY && load(ENTRIES + 2 * count) != 0 {
            count += 1;
        }
        if count == CAPACITY {
            return false;
        }
    }
    if count + 1 < CAPACITY && load(ENTRIES + 2 * (count + 1)) != 0 {
        store(ENTRIES + 2 * (count + 1), 0);
        if (ENTRIES + 2 * (count + 1)).is_multiple_of(8) {
            machine.persist(&leaf[ENTRIES + 2 * (count + 1)]);
        }
    }
    for moved in (place..count).rev() {
        let (target, source) = (ENTRIES + 2 * (moved + 1), ENTRIES + 2 * moved);
        let (key, value) = (load(source), load(source + 1));
        store(target + 1, value);
        store(target, key);
        if target.is_multiple_of(8) {
            machine.persist(&leaf[target]);
        }
    }
    store(ENTRIES + 2 * place + 1, value);
    store(ENTRIES + 2 * place, key);
    if count == 0 {
        store(0, 1);
    }
    machine.persist(&leaf[ENTRIES + 2 * place]);
    true
}

/// Inserts as the designs do: through layout, key layer and medium.
#[inline(never)]
fn insert_composed(pool: &Pool<Mapped>, leaf: &[PmWord], key: u64, value: u64) -> bool {
    matches!(
        SortedShift::<NODE, FencedAfter>::insert::<u64, _>(pool, leaf, key, Value::plain(value)),
        Ok(InsertResult::Done(_))
    )
}

/// Fills a leaf in scattered order and clears it, `rounds` times.
fn fill_leaf(rounds: u64, clear: impl Fn(usize), insert: impl Fn(u64, u64) -> bool) {
    for round in 0..rounds {
        (0..WORDS).for_each(&clear);
        for i in 0..CAPACITY as u64 {
            let key = (i * 11 + round) % CAPACITY as u64 + 1;
            assert!(insert(black_box(key), i), "every key is new and the leaf has space");
        }
    }
}

fn run_inserts(mode: &str, rounds: u64) -> Result<(), Box<dyn Error>> {
    if mode == "hand" {
        let leaf: Vec<AtomicU64> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        let machine = black_box(Machine { write_back: WriteBack::None, fences: false });
        let clear = |index: usize| leaf[index].store(0, Ordering::Release);
        fill_leaf(rounds, clear, |key, value| insert_by_hand(&machine, &leaf, key, value));
    } else {
        let pool = Pool::create(Mapped::anonymous(1 << 20)?)?;
        let leaf = pool.words(pool.reserve(NODE as u64)?, WORDS)?;
        let clear = |index: usize| pool.medium().store(&leaf[index], 0);
        fill_leaf(rounds, clear, |key, value| insert_composed(&pool, leaf, key, value));
    }
    Ok(())
}

/// Returns the number of instructions that callgrind counts for a run.
fn instructions(mode: &str, rounds: u64) -> Result<u64, Box<dyn Error>> {
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args([mode, &rounds.to_string()])
        .output()?;
    let report = String::from_utf8_lossy(&run.stderr);
    let count = report.lines().find_map(|line| line.split_once("Collected : "));
    let (_, count) =
        count.ok_or_else(|| format!("callgrind printed no instruction count: {report}"))?;
    Ok(count.trim().parse()?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    if let [mode, rounds] = &arguments[..] {
        return run_inserts(mode, rounds.parse()?);
    }
    let mut out = std::io::stdout().lock();
    if Command::new("valgrind").arg("--version").output().is_err() {
        writeln!(out, "skipped: valgrind is not installed; install it to count instructions")?;
        return Ok(());
    }
    let mut per_insert = [0.0; 2];
    for (mode, taken) in ["hand", "composed"].into_iter().zip(&mut per_insert) {
        *taken = (instructions(mode, ROUNDS)? - instructions(mode, 0)?) as f64 / INSERTS as f64;
        writeln!(out, "{mode:<10} {taken:>8.2} instructions per insert")?;
    }
    let ratio = per_insert[1] / per_insert[0];
    writeln!(out, "composed / hand = {ratio:.4}, at most {RATIO_MAX}")?;
    if ratio > RATIO_MAX {
        Err("the layers cost instructions: the ratio is above its limit".into())
    } else {
        Ok(())
    }
}
