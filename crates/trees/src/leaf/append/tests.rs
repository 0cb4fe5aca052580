//! Random inserts, updates and removes of few keys, checked against a map.

use super::*;
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::Count;
use std::collections::BTreeMap;

type Counted = Count<Mapped>;
type Contents = BTreeMap<u64, u64>;

const ROUNDS: usize = 300;

/// Returns the next pseudo-random number below `below` and advances `state`.
fn draw(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

fn fresh<const NODE: usize, E: ElementForm>(pool: &Pool<Counted>) -> &[PmWord] {
    let block = pool.reserve(NODE as u64).unwrap();
    let words = pool.words(block, NODE / 8).unwrap();
    Append::<NODE, E>::format::<u64, _>(pool, words, 0, 0, &[]).unwrap();
    words
}

fn assert_contents<const NODE: usize, E: ElementForm>(
    pool: &Pool<Counted>,
    words: &[PmWord],
    contents: &Contents,
    keys: u64,
) {
    let mut found = Vec::new();
    Append::<NODE, E>::collect(pool.medium(), words, &mut found);
    let found: Contents =
        found.iter().map(|tagged| (tagged.entry.key, tagged.entry.value)).collect();
    assert_eq!(found, *contents);
    assert_eq!(Append::<NODE, E>::count(pool.medium(), words), contents.len());
    let state = Append::<NODE, E>::state(pool.medium(), words);
    for key in 0..keys {
        let found = Append::<NODE, E>::find::<u64, _>(pool, words, key).unwrap();
        assert_eq!(found.map(|(_, value)| value.word), contents.get(&key).copied());
        // The search for layers whose words name records must find the same slot.
        let by_record =
            Append::<NODE, E>::find_by_record::<u64, _>(pool, words, state, key).unwrap();
        assert_eq!(by_record, found.map(|(slot, _)| slot));
    }
    Append::<NODE, E>::repair::<u64, _>(pool, 0, words).unwrap();
}

/// Runs one operation on `key` and applies it to `contents`. Returns `false` if the leaf was full.
fn step<const NODE: usize, E: ElementForm>(
    pool: &Pool<Counted>,
    words: &[PmWord],
    contents: &mut Contents,
    (key, value, removes): (u64, u64, bool),
) -> bool {
    let found = Append::<NODE, E>::find::<u64, _>(pool, words, key).unwrap();
    let has_room = Append::<NODE, E>::free_slots(pool.medium(), words) > 0;
    match found {
        Some((slot, former)) if removes => {
            let removed = Append::<NODE, E>::remove(pool, words, slot);
            assert_eq!((removed.key, removed.value), (key, former.word));
            contents.remove(&key);
            true
        }
        Some((slot, _)) => {
            let has_room =
                Append::<NODE, E>::free_slots(pool.medium(), words) >= E::UPDATE_ELEMENTS;
            let updated =
                Append::<NODE, E>::update::<u64, _>(pool, words, slot, Value::plain(value))
                    .is_some();
            assert_eq!(updated, has_room);
            if updated {
                contents.insert(key, value);
            }
            updated
        }
        None => {
            let room = Append::<NODE, E>::insert::<u64, _>(pool, words, key, Value::plain(value));
            let inserted = matches!(room, Ok(InsertResult::Done(_)));
            assert_eq!(inserted, has_room);
            if inserted {
                contents.insert(key, value);
            }
            inserted
        }
    }
}

fn run_random_operations<const NODE: usize, E: ElementForm>() {
    let pool = Pool::create(Count::new(Mapped::anonymous(4 << 20).unwrap())).unwrap();
    let mut random = 7;
    for round in 0..ROUNDS {
        let words = fresh::<NODE, E>(&pool);
        let keys = 2 + draw(&mut random, 2 * Append::<NODE, E>::CAPACITY as u64);
        let mut contents = Contents::new();
        let mut refused = 0;
        // A remove succeeds even in a full leaf, so some rounds go on after a refusal. The
        // remaining pairs then move to a fresh leaf, as in a merge.
        while refused < 4 && (contents.len() < keys as usize || refused == 0) {
            let draws = (draw(&mut random, keys), random, draw(&mut random, 3) == 0);
            pool.medium().take();
            refused += usize::from(!step::<NODE, E>(&pool, words, &mut contents, draws));
            let counts = pool.medium().take();
            assert!(
                counts.lines <= 1 + E::UPDATE_ELEMENTS as u64 && counts.fences <= 2,
                "round {round}: {counts:?}"
            );
            assert_contents::<NODE, E>(&pool, words, &contents, keys);
        }
        let mut pairs = Vec::new();
        Append::<NODE, E>::collect(pool.medium(), words, &mut pairs);
        let taken = fresh::<NODE, E>(&pool);
        let half = pairs.len() / 2;
        Append::<NODE, E>::format::<u64, _>(&pool, taken, 0, 0, &pairs[..half]).unwrap();
        let _ = Append::<NODE, E>::absorb::<u64, _>(&pool, taken, &pairs[half..]).unwrap();
        assert_contents::<NODE, E>(&pool, taken, &contents, keys);
        let is_even = |entry: Entry| Ok(entry.key.is_multiple_of(2));
        Append::<NODE, E>::retain(pool.medium(), taken, &mut { is_even }).unwrap();
        contents.retain(|key, _| key.is_multiple_of(2));
        assert_contents::<NODE, E>(&pool, taken, &contents, keys);
    }
}

#[test]
fn the_newest_element_of_a_key_decides() {
    run_random_operations::<256, KindBits>();
    run_random_operations::<256, KindWords>();
    run_random_operations::<512, KindBits>();
    run_random_operations::<512, KindWords>();
    run_random_operations::<1024, KindBits>();
    run_random_operations::<1024, KindWords>();
    run_random_operations::<2048, KindWords>();
}

/// The key word of a removed key may name another key's record by now, so no search may read it.
#[test]
fn a_reinserted_key_word_counts_once() {
    let pool = Pool::create(Count::new(Mapped::anonymous(1 << 20).unwrap())).unwrap();
    let words = fresh::<256, KindBits>(&pool);
    let find = |key| Append::<256, KindBits>::find::<u64, _>(&pool, words, key).unwrap();
    for value in [1, 2, 3] {
        for key in [10, 20] {
            Append::<256, KindBits>::insert::<u64, _>(&pool, words, key, Value::plain(value))
                .unwrap();
        }
        let (slot, found) = find(10).unwrap();
        assert_eq!(found, Value::plain(value));
        assert_eq!(Append::<256, KindBits>::count(pool.medium(), words), 2);
        Append::<256, KindBits>::remove(&pool, words, slot);
        let (slot, _) = find(20).unwrap();
        assert_eq!(Append::<256, KindBits>::free_slots(pool.medium(), words), 11);
        Append::<256, KindBits>::remove(&pool, words, slot);
        assert_eq!(
            Append::<256, KindBits>::free_slots(pool.medium(), words),
            14,
            "the last remove drops all elements"
        );
    }
}

fn refuses_states<E: ElementForm>(states: &[u64]) {
    let pool = Pool::create(Count::new(Mapped::anonymous(1 << 20).unwrap())).unwrap();
    let words = fresh::<256, E>(&pool);
    for &state in states {
        pool.medium().store(&words[STATE], state);
        let damage = Append::<256, E>::repair::<u64, _>(&pool, 64, words).unwrap_err();
        assert_eq!((damage.at, damage.found), (64, state));
        assert_eq!(Append::<256, E>::find::<u64, _>(&pool, words, 1).unwrap(), None);
    }
}

/// Zeros, more elements than a leaf has, the state of a leaf of the other form, and others.
#[test]
fn a_state_that_no_leaf_has_is_reported_as_damage() {
    refuses_states::<KindBits>(&[0, 1 << 15, KindWords::EMPTY + 3, u64::MAX]);
    refuses_states::<KindWords>(&[
        0,
        KindWords::EMPTY + 10,
        0b1011,
        KindWords::EMPTY - 1,
        u64::MAX,
    ]);
}

/// Crosses a line with an element of 24 B in two of eight places, and fills a leaf of 2 KiB.
#[test]
fn an_element_with_a_kind_costs_its_lines_and_the_header() {
    type Published = Append<2048, KindWords>;
    let pool = Pool::create(Count::new(Mapped::anonymous(1 << 20).unwrap())).unwrap();
    let words = fresh::<2048, KindWords>(&pool);
    assert_eq!(Published::CAPACITY, 84);
    let mut lines = 0;
    for key in 0..84 {
        pool.medium().take();
        let done = Published::insert::<u64, _>(&pool, words, key, Value::plain(key)).unwrap();
        assert!(matches!(done, InsertResult::Done(_)));
        let counts = pool.medium().take();
        let first = 4 + 3 * key;
        assert_eq!((counts.lines, counts.fences), ((first + 2) / 8 - first / 8 + 2, 2), "{key}");
        lines += counts.lines;
    }
    assert_eq!(lines, 2 * 84 + 21);
    let full = Published::insert::<u64, _>(&pool, words, 84, Value::plain(84)).unwrap();
    assert!(matches!(full, InsertResult::Full));
    let (slot, _) = Published::find::<u64, _>(&pool, words, 50).unwrap().unwrap();
    pool.medium().take();
    assert_eq!(Published::remove(&pool, words, slot), Entry::plain(50, 50));
    let counts = pool.medium().take();
    assert_eq!((counts.lines, counts.fences), (1, 1), "a full leaf takes no tombstone");
    assert_eq!(Published::find::<u64, _>(&pool, words, 50).unwrap(), None);
    assert_eq!(Published::count(pool.medium(), words), 83);
}

/// A tombstone and a pair become durable with one fence, and are counted by one store.
#[test]
fn an_update_of_two_elements_costs_their_lines_and_the_header() {
    type Published = Append<256, KindWords>;
    let pool = Pool::create(Count::new(Mapped::anonymous(1 << 20).unwrap())).unwrap();
    let words = fresh::<256, KindWords>(&pool);
    Published::insert::<u64, _>(&pool, words, 7, Value::plain(0)).unwrap();
    for (slot, count) in (0..4).map(|update| (2 * update, 1 + 2 * update)) {
        pool.medium().take();
        assert!(Published::update::<u64, _>(&pool, words, slot, Value::plain(9)).is_some());
        let counts = pool.medium().take();
        // The two elements are six words from word 4 + 3 * count on; eight words are a line.
        let first = 4 + 3 * count;
        let elements = (first + 5) / 8 - first / 8 + 1;
        assert_eq!((counts.lines, counts.fences), (elements as u64 + 1, 2), "after {count}");
        assert_eq!(Published::count(pool.medium(), words), 1);
    }
    let last = Published::update::<u64, _>(&pool, words, 8, Value::plain(9));
    assert!(last.is_none(), "the leaf is full");
}
