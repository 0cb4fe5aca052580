use super::*;
use crate::medium::torn::Torn;
use crate::medium::{Count, Mapped};
use crate::pool::{Pool, PoolError};
use crate::word::PmPtr;
use std::collections::BTreeSet;

const POOL_BYTES: u64 = 5 * 32 * 1024;
/// The offset of the words in use, which are two lines apart.
const USED: u64 = 0x8000;
/// The offset of the words of fresh space, which are two lines apart.
const FRESH: u64 = 0x9000;
/// The most fresh words of a log in the header.
const FRESH_WORDS: u64 = 4;

fn fresh() -> Vec<u8> {
    let pool = Pool::create(Torn::new(&vec![0; POOL_BYTES as usize])).unwrap();
    pool.medium().crash(pool.medium().events(), |_, most| most)
}

fn open(image: &[u8]) -> Result<Pool<Torn>, PoolError> {
    Pool::open(Torn::new(image)).map(|(pool, _)| pool)
}

fn word<M: Medium>(pool: &Pool<M>, base: u64, index: u64) -> &PmWord {
    &pool.words(PmPtr::new(base + index * 128), 1).unwrap()[0]
}

fn values<M: Medium>(pool: &Pool<M>, base: u64) -> Vec<u64> {
    (0..7).map(|index| pool.medium().load(word(pool, base, index))).collect()
}

/// Changes the fresh words, then all but the last used word.
fn change<M: Medium>(pool: &Pool<M>, value: u64) -> UndoLog<'_, M> {
    let mut log = pool.undo_log();
    let fresh = FRESH + value * 0x1000; // Each transaction uses fresh words of its own.
    for index in 0..FRESH_WORDS {
        log.new_redo(word(pool, fresh, index), value);
    }
    for index in 0..6 {
        log.write_undo_redo(word(pool, USED, index), value);
    }
    log
}

/// Makes the changes of [`change`] and the last one, and commits.
fn commit<M: Medium>(pool: &Pool<M>, value: u64) -> Redoable<'_, M> {
    change(pool, value).commit(word(pool, USED, 6), value)
}

#[test]
fn a_crash_anywhere_restores_or_keeps_all_of_a_transaction() {
    let pool = open(&fresh()).unwrap();
    let mut committed_at = vec![0];
    for value in [1, 2] {
        let redoable = commit(&pool, value);
        committed_at.push(pool.medium().events());
        redoable.finish();
    }
    drop(change(&pool, 3));
    assert_eq!(values(&pool, USED), [2; 7]);
    let mut seen = BTreeSet::new();
    pool.medium().crashes(6, |at, image| {
        let recovered = open(image).unwrap();
        let found = values(&recovered, USED);
        let durable = committed_at.iter().filter(|&&end| end <= at).count() as u64 - 1;
        let whole = |value| found == [value; 7];
        assert!(whole(durable) || (whole(durable + 1) && durable < 2), "event {at}: {found:?}");
        if found[0] > 0 {
            let fresh = values(&recovered, FRESH + found[0] * 0x1000);
            assert_eq!(fresh[..FRESH_WORDS as usize], found[..FRESH_WORDS as usize], "event {at}");
        }
        let again = recovered.medium().crash(recovered.medium().events(), |least, _| least);
        let again = open(&again).unwrap();
        assert_eq!(values(&again, USED), found);
        commit(&again, 9).finish();
        assert_eq!(values(&again, USED), [9; 7]);
        seen.insert(found[0]);
    });
    assert_eq!(seen.len(), 3, "the crashes reach every state");
}

#[test]
fn a_word_that_changes_twice_gets_its_first_value_back() {
    let pool = open(&fresh()).unwrap();
    let mut log = pool.undo_log();
    for value in [5, 6, 7] {
        log.write_undo_redo(word(&pool, USED, 0), value);
    }
    let image = pool.medium().crash(pool.medium().events(), |_, most| most);
    drop(log);
    assert_eq!(values(&pool, USED)[0], 0);
    assert_eq!(values(&open(&image).unwrap(), USED)[0], 0);
}

#[test]
fn a_transaction_keeps_its_budget() {
    let pool = Pool::create(Count::new(Mapped::anonymous(POOL_BYTES).unwrap())).unwrap();
    let mut log = pool.undo_log();
    pool.medium().take();
    for index in 0..4 {
        log.new_redo(word(&pool, FRESH, index), 1);
        let counts = pool.medium().take();
        assert_eq!((counts.words, counts.lines, counts.fences), (1, 0, 0));
    }
    // The first word in use comes after the line with the records of the fresh ones.
    for (words, lines) in [(2 * 4 + 5, 2), (5, 1), (5, 1)] {
        log.write_undo_redo(word(&pool, USED, 0), 1);
        let counts = pool.medium().take();
        assert_eq!((counts.words, counts.lines, counts.fences), (words, lines, lines));
    }
    let redoable = log.commit(word(&pool, USED, 1), 1);
    let counts = pool.medium().take();
    assert_eq!((counts.words, counts.lines, counts.fences), (5, 1, 1));
    redoable.finish();
    let counts = pool.medium().take();
    // The two words in use and the four fresh ones lie in six lines.
    assert_eq!((counts.lines, counts.fences), (6 + 1, 2));
    drop(pool.undo_log());
    assert_eq!(
        pool.medium().take(),
        crate::medium::Counts::default(),
        "an empty transaction costs nothing"
    );
}

#[test]
fn every_flipped_bit_of_an_active_log_is_detected() {
    let pool = open(&fresh()).unwrap();
    let log = change(&pool, 4);
    let active = pool.medium().crash(pool.medium().events(), |_, most| most);
    let redoable = log.commit(word(&pool, USED, 6), 4);
    let committed = pool.medium().crash(pool.medium().events(), |least, _| least);
    redoable.finish();
    // The end and the records count, and the records of fresh words once they are committed.
    for (image, value, records, fresh) in [(active, 0, 6, 0), (committed, 4, 7, 64)] {
        assert_eq!(values(&open(&image).unwrap(), USED), [value; 7]);
        let bytes = (56..64 + records * 32).chain(448..448 + fresh);
        for bit in bytes.flat_map(|byte| (0..8).map(move |bit| byte * 8 + bit)) {
            let mut damaged = image.clone();
            damaged[0x7000 + bit / 8] ^= 1 << (bit % 8);
            match open(&damaged) {
                Err(PoolError::Corrupt(corrupt)) => assert_eq!(corrupt.at & !0x1ff, 0x7000),
                other => panic!("bit {bit} was not detected: {other:?}"),
            }
        }
    }
}
