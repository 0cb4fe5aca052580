//! A killed writer loses no acknowledged write.
//!
//! The child is this test binary; its environment makes [`writer`] use a store. It prints each
//! operation twice: before the call, and after the call has returned.

use crate::{place, small};
use bristlecone::Store;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

const STORE_VARIABLE: &str = "BRISTLECONE_TEST_KILL_STORE";
const ROUND_VARIABLE: &str = "BRISTLECONE_TEST_KILL_ROUND";
const ROUNDS: u64 = 10;
const WRITERS: u64 = 2;
const KEYS: u64 = 3000;

fn key(number: u64) -> String {
    format!("a prefix of its own/{number:06}")
}

fn value(number: u64, stamp: u64) -> Vec<u8> {
    let mut value = stamp.to_le_bytes().to_vec();
    value.resize(8 + (number * 7 + stamp) as usize % 2000, stamp as u8);
    value
}

/// One operation: a put with a unique stamp, or a delete.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    number: u64,
    stamp: Option<u64>,
}

impl Step {
    fn write(self, word: &str) -> String {
        let stamp = self.stamp.map_or("-".to_string(), |stamp| stamp.to_string());
        format!("\n@{word} {} {stamp}\n", self.number)
    }

    fn read(line: &str) -> Option<(&str, Self)> {
        let mut words = line.strip_prefix('@')?.split(' ');
        let word = words.next()?;
        let number = words.next()?.parse().ok()?;
        let stamp = words.next()?;
        let stamp = if stamp == "-" { None } else { Some(stamp.parse().ok()?) };
        Some((word, Self { number, stamp }))
    }
}

/// The body of the child. Without its environment variables it does nothing.
#[test]
fn writer() {
    let Ok(path) = std::env::var(STORE_VARIABLE) else { return };
    let round: u64 = std::env::var(ROUND_VARIABLE).unwrap().parse().unwrap();
    let store = small().open(path).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..WRITERS {
            let store = &store;
            scope.spawn(move || write_for_ever(store, round, thread));
        }
    });
}

/// Each thread has keys of its own, so that its lines come in the order in which the keys change.
fn write_for_ever(store: &Store, round: u64, thread: u64) {
    let mut state = round * WRITERS + thread;
    for count in 0.. {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let number = (state >> 33) % (KEYS / WRITERS) * WRITERS + thread;
        let stamp = (count % 4 != 3).then_some((round * WRITERS + thread) << 40 | count);
        let step = Step { number, stamp };
        say(&step.write("begin"));
        match stamp {
            Some(stamp) => store.put(key(number), value(number, stamp)).unwrap(),
            None => drop(store.delete(key(number)).unwrap()),
        }
        say(&step.write("done"));
    }
}

/// Writes one line in one call, so that a kill cannot mix the lines of two threads.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush()).expect("the parent listens");
}

/// The knowledge of the parent: the last acknowledged state of each key, and the operations in
/// flight.
#[derive(Default)]
struct Told {
    done: BTreeMap<u64, Option<u64>>,
    begun: BTreeMap<u64, Step>,
}

impl Told {
    fn hear(&mut self, line: &str) -> bool {
        let Some((word, step)) = Step::read(line) else { return false };
        let thread = step.number % WRITERS;
        if word == "begin" {
            self.begun.insert(thread, step);
            return false;
        }
        assert_eq!(self.begun.remove(&thread), Some(step));
        self.done.insert(step.number, step.stamp);
        true
    }

    /// Checks all keys. An operation in flight may have taken effect; its effect is then permanent.
    fn check(&mut self, store: &Store) {
        let begun = std::mem::take(&mut self.begun);
        for number in 0..KEYS {
            let found = store.get(key(number)).unwrap();
            let told = self.done.get(&number).copied().flatten();
            let stamp = found.as_ref().map(|v| u64::from_le_bytes(v[..8].try_into().unwrap()));
            let in_flight = begun.get(&(number % WRITERS)).filter(|step| step.number == number);
            let may_be = in_flight.is_some_and(|step| step.stamp == stamp);
            assert!(
                stamp == told || may_be,
                "key {number}: {stamp:?}, told {told:?}, {in_flight:?}"
            );
            assert_eq!(found, stamp.map(|stamp| value(number, stamp)), "key {number} is whole");
            self.done.insert(number, stamp);
        }
        let live = self.done.values().filter(|stamp| stamp.is_some()).count();
        assert_eq!(store.iter().count(), live);
    }
}

#[test]
fn a_killed_writer_loses_no_acknowledged_write() {
    let place = place();
    small().create(&place.path).unwrap().close().unwrap();
    let mut told = Told::default();
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["kill::writer", "--exact", "--nocapture", "--test-threads=1"])
            .env(STORE_VARIABLE, &place.path)
            .env(ROUND_VARIABLE, round.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        // Each round kills the child later. The exact moment depends on the scheduler.
        let enough = 200 + round * round * 100;
        let mut heard = 0;
        while heard < enough {
            let mut line = String::new();
            assert!(output.read_line(&mut line).unwrap() > 0, "the child died by itself");
            heard += u64::from(told.hear(line.trim_end()));
        }
        child.kill().unwrap();
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        let lines = rest.lines().count();
        for (index, line) in rest.lines().enumerate() {
            // The kill cut the line that lacks a line break.
            if index + 1 < lines || rest.ends_with('\n') {
                told.hear(line);
            }
        }
        child.wait().unwrap();

        let mut store = small().open(&place.path).unwrap();
        assert!(store.was_recovered());
        told.check(&store);
        assert_eq!(store.check().unwrap().unreachable_blocks, 0);
    }
}
