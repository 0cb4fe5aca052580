//! Linearizability of short histories, decided exactly.
//!
//! A history has the operations of several threads on one key, each with the moments of its call
//! and of its return. It is linearizable if some order of the operations agrees with the moments
//! and with all answers. The search is Wing and Gong's, with a memory of the states that lead
//! nowhere. Keys are independent, so each is decided by itself.

use super::scratch::{ROOT, check_settled, plain, rng};
use bristlecone_registry::Memory;
use bristlecone_trees::{ErasedDesign, PmIndex};
use core::sync::atomic::{AtomicU64, Ordering};
use rand::RngExt;
use rand::rngs::StdRng;
use std::collections::HashSet;
use std::sync::Barrier;

const THREADS: u64 = 4;
const ROUNDS: u64 = 1200;
const OPERATIONS_A_ROUND: u64 = 6;

/// An index on the medium of the suites with several threads.
type Index = dyn PmIndex<Memory, u64>;

/// The request of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    Get,
    Insert(u64),
    Update(u64),
    Upsert(u64),
    Remove,
}

/// An operation that has returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) called: u64,
    pub(crate) returned: u64,
    pub(crate) ask: Ask,
    pub(crate) answer: Option<u64>,
}

impl Ask {
    /// Returns the value of the key afterwards, if it was `before`. The answer is always `before`.
    fn after(self, before: Option<u64>) -> Option<u64> {
        match self {
            Self::Get => before,
            Self::Insert(value) => before.or(Some(value)),
            Self::Update(value) => before.map(|_| value),
            Self::Upsert(value) => Some(value),
            Self::Remove => None,
        }
    }
}

/// Returns `true` if some order of `events`, at most 64, explains every answer from `initial` on.
pub(crate) fn is_linearizable(initial: Option<u64>, events: &[Event]) -> bool {
    assert!(events.len() <= 64);
    search(initial, events, 0, &mut HashSet::new())
}

fn search(
    state: Option<u64>,
    events: &[Event],
    done: u64,
    hopeless: &mut HashSet<(u64, Option<u64>)>,
) -> bool {
    let left = || (0..events.len()).filter(|i| done & 1 << i == 0);
    // Only an operation that was called before every other one returned can be the next.
    let Some(first_return) = left().map(|i| events[i].returned).min() else { return true };
    if hopeless.contains(&(done, state)) {
        return false;
    }
    for i in left() {
        let event = events[i];
        if event.called <= first_return
            && event.answer == state
            && search(event.ask.after(state), events, done | 1 << i, hopeless)
        {
            return true;
        }
    }
    hopeless.insert((done, state));
    false
}

/// Runs rounds of a few operations by four threads on two keys of one node. Beside them the threads
/// insert and remove neighbours of the keys, so that the node splits and merges.
pub(crate) fn run(subject: &ErasedDesign<Memory, u64>) {
    let index = &*(subject.create)(plain(), ROOT).unwrap();
    let clock = AtomicU64::new(0);
    let mut rngs: Vec<_> = (0..THREADS).map(|thread| rng(16 + thread)).collect();
    for round in 0..ROUNDS {
        let initial = [0, 1].map(|which| index.get(key(which)).unwrap());
        let barrier = Barrier::new(rngs.len());
        let mut events = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..)
                .zip(&mut rngs)
                .map(|(thread, rng)| {
                    let (clock, barrier) = (&clock, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        work(index, clock, rng, thread, round)
                    })
                })
                .collect();
            let joined = threads.into_iter().map(|thread| thread.join().expect("no thread fails"));
            joined.flatten().collect::<Vec<_>>()
        });
        for (which, initial) in initial.into_iter().enumerate() {
            events.push((which, perform(index, &clock, key(which), Ask::Get)));
            let own = events.iter().filter(|event| event.0 == which).map(|event| event.1);
            let own: Vec<_> = own.collect();
            let explained = is_linearizable(initial, &own);
            assert!(explained, "no order explains round {round}, from {initial:?}: {own:#?}");
        }
    }
    check_settled(index);
}

/// Runs one thread's part of a round, and returns its operations, each with the number of its key.
fn work(
    index: &Index,
    clock: &AtomicU64,
    rng: &mut StdRng,
    thread: u64,
    round: u64,
) -> Vec<(usize, Event)> {
    let mut events = Vec::new();
    for _ in 0..OPERATIONS_A_ROUND {
        let which = rng.random_range(0..2);
        let value = rng.random::<u64>();
        let ask = match rng.random_range(0..12) {
            0..3 => Ask::Get,
            3..6 => Ask::Remove,
            6..8 => Ask::Insert(value),
            8..10 => Ask::Update(value),
            _ => Ask::Upsert(value),
        };
        events.push((which, perform(index, clock, key(which), ask)));
        neighbours(index, thread, round);
    }
    events
}

/// Returns one of the two keys, with room for neighbours on all sides.
fn key(which: usize) -> u64 {
    10_000 + which as u64 * 10
}

fn perform(index: &Index, clock: &AtomicU64, key: u64, ask: Ask) -> Event {
    let called = clock.fetch_add(1, Ordering::SeqCst);
    let answer = match ask {
        Ask::Get => index.get(key),
        Ask::Insert(value) => index.insert(key, value),
        Ask::Update(value) => index.update(key, value),
        Ask::Upsert(value) => index.upsert(key, value),
        Ask::Remove => index.remove(key),
    };
    let answer = answer.unwrap();
    Event { called, returned: clock.fetch_add(1, Ordering::SeqCst), ask, answer }
}

/// Inserts the neighbours of the keys in one round and removes them in the next.
fn neighbours(index: &Index, thread: u64, round: u64) {
    for i in 0..12 {
        let beside = 9_900 + (round / 2 * 37 + i * 17) % 230 * THREADS + thread;
        if beside == key(0) || beside == key(1) {
            continue;
        }
        if round.is_multiple_of(2) {
            index.insert(beside, beside).unwrap();
        } else {
            index.remove(beside).unwrap();
        }
    }
}

mod tests {
    use super::*;

    fn event(called: u64, returned: u64, ask: Ask, answer: Option<u64>) -> Event {
        Event { called, returned, ask, answer }
    }

    #[test]
    fn good_histories_pass() {
        // A get beside an insert may see it or not; a get after it must.
        let insert = event(0, 5, Ask::Insert(1), None);
        for seen in [None, Some(1)] {
            let get = event(1, 2, Ask::Get, seen);
            assert!(is_linearizable(None, &[insert, get, event(6, 7, Ask::Get, Some(1))]));
        }
        // Of two upserts at once either may be the first.
        let first = event(0, 9, Ask::Upsert(1), Some(2));
        let second = event(1, 8, Ask::Upsert(2), None);
        assert!(is_linearizable(None, &[first, second, event(10, 11, Ask::Remove, Some(1))]));
        assert!(is_linearizable(Some(3), &[]));
    }

    #[test]
    fn bad_histories_are_rejected() {
        let insert = event(0, 1, Ask::Insert(1), None);
        let cases: [&[Event]; 5] = [
            // A lost insert.
            &[insert, event(2, 3, Ask::Get, None)],
            // Two inserts that both found nothing.
            &[insert, event(0, 1, Ask::Insert(2), None)],
            // A later get returns an older value.
            &[
                event(0, 9, Ask::Insert(1), None),
                event(1, 2, Ask::Get, Some(1)),
                event(3, 4, Ask::Get, None),
            ],
            // A value that no thread wrote.
            &[insert, event(2, 3, Ask::Get, Some(7))],
            // One pair is removed twice.
            &[insert, event(2, 5, Ask::Remove, Some(1)), event(3, 4, Ask::Remove, Some(1))],
        ];
        for events in cases {
            assert!(!is_linearizable(None, events), "{events:?}");
        }
    }
}
