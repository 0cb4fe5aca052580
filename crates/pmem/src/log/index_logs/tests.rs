use super::*;
use crate::Pool;
use crate::log::Redoable;
use crate::medium::torn::Torn;

const POOL_BYTES: u64 = 5 * 32 * 1024;
/// The offset of the block with the logs.
const LOGS: PmPtr = PmPtr::new(0x8000);
/// The offset of the words that transactions change.
const WORDS: u64 = 0x1_0000;
const RECORDS: usize = 21;
/// The number of fresh words of a transaction, and the offset of those of the first one.
const FRESH: usize = 10;
const FRESH_AT: u64 = 0x1_1000;

fn open(image: &[u8]) -> (Pool<Torn>, UndoLogs) {
    let (pool, _) = Pool::open(Torn::new(image)).unwrap();
    let logs = pool.open_undo_logs(LOGS, RECORDS, FRESH).unwrap();
    (pool, logs)
}

fn word<M: Medium>(pool: &Pool<M>, index: u64) -> &PmWord {
    &pool.words(PmPtr::new(WORDS + index * 8), 1).unwrap()[0]
}

/// Returns a fresh word of transaction `value`.
fn fresh_word<M: Medium>(pool: &Pool<M>, value: u64, index: u64) -> &PmWord {
    &pool.words(PmPtr::new(FRESH_AT + value * 0x100 + index * 8), 1).unwrap()[0]
}

fn values<M: Medium>(pool: &Pool<M>) -> Vec<u64> {
    (0..RECORDS as u64).map(|index| pool.medium().load(word(pool, index))).collect()
}

fn change<'p, M: Medium>(pool: &'p Pool<M>, logs: &'p UndoLogs, value: u64) -> UndoLog<'p, M> {
    let mut log = pool.undo_log_in(logs);
    for index in 0..FRESH as u64 {
        log.new_redo(fresh_word(pool, value, index), value);
    }
    for index in 0..RECORDS as u64 - 1 {
        log.write_undo_redo(word(pool, index), value);
    }
    log
}

fn commit<'p, M: Medium>(pool: &'p Pool<M>, logs: &'p UndoLogs, value: u64) -> Redoable<'p, M> {
    change(pool, logs, value).commit(word(pool, RECORDS as u64 - 1), value)
}

#[test]
fn a_crash_anywhere_restores_or_keeps_all_of_a_transaction() {
    let fresh = {
        let pool = Pool::create(Torn::new(&vec![0; POOL_BYTES as usize])).unwrap();
        pool.medium().crash(pool.medium().events(), |_, most| most)
    };
    let (pool, logs) = open(&fresh);
    let mut committed_at = vec![0];
    for value in [1, 2] {
        let redoable = commit(&pool, &logs, value);
        committed_at.push(pool.medium().events());
        redoable.finish();
    }
    drop(change(&pool, &logs, 3));
    assert_eq!(values(&pool), [2; RECORDS]);
    pool.medium().crashes(1, |at, image| {
        let (recovered, _) = open(image);
        let found = values(&recovered);
        let decided = committed_at.iter().filter(|&&event| event <= at).count() as u64 - 1;
        assert!(found.iter().all(|&value| value == found[0]), "torn at {at}: {found:?}");
        let next = decided + u64::from(decided < 2);
        assert!(found[0] == decided || found[0] == next, "{} at {at}", found[0]);
        for index in (0..FRESH as u64).filter(|_| found[0] > 0) {
            let word = fresh_word(&recovered, found[0], index);
            assert_eq!(recovered.medium().load(word), found[0], "fresh word {index} at {at}");
        }
    });
}

#[test]
fn numbers_continue_above_those_in_the_block() {
    let fresh = {
        let pool = Pool::create(Torn::new(&vec![0; POOL_BYTES as usize])).unwrap();
        pool.medium().crash(pool.medium().events(), |_, most| most)
    };
    let (pool, logs) = open(&fresh);
    commit(&pool, &logs, 1).finish();
    let seal =
        |pool: &Pool<Torn>| pool.medium().load(&logs.slot(pool.medium(), 0).unwrap()[8 + 7]) >> 16;
    let before = seal(&pool);
    let image = pool.medium().crash(pool.medium().events(), |_, most| most);
    let (pool, again) = open(&image);
    commit(&pool, &again, 2).finish();
    assert!(seal(&pool) > before);
}

#[test]
fn recorded_blocks_are_read_back_and_a_flipped_bit_is_detected() {
    let fresh = {
        let pool = Pool::create(Torn::new(&vec![0; POOL_BYTES as usize])).unwrap();
        pool.medium().crash(pool.medium().events(), |_, most| most)
    };
    let (pool, logs) = open(&fresh);
    let blocks = [0x1_0000, 0x1_0200, 0x1_0400].map(PmPtr::new);
    let mut log = pool.undo_log_in(&logs);
    log.alloc_node(0, &blocks[..2]);
    log.alloc_node(1, &blocks[2..]);
    drop(log);
    assert_eq!(pool.allocated_nodes(&logs).unwrap(), blocks);
    let image = pool.medium().crash(pool.medium().events(), |_, most| most);
    let first = LOGS.offset() as usize + Shape::of(RECORDS, 0).lines() * LINE_BYTES;
    for bit in 0..64 {
        let mut damaged = image.clone();
        damaged[first + bit / 8] ^= 1 << (bit % 8);
        let (pool, logs) = open(&damaged);
        let found = pool.allocated_nodes(&logs);
        assert!(found.is_err_and(|corrupt| corrupt.at == first as u64), "bit {bit}");
    }
}
