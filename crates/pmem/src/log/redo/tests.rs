use super::*;
use crate::medium::cached::Cached;
use crate::medium::torn::Torn;
use crate::medium::{Count, Domain, Mapped};
use crate::pool::{Opened, Pool, PoolError};
use crate::word::PmPtr;
use proptest::prelude::*;

const POOL_BYTES: u64 = 5 * 32 * 1024;
/// The offset of the first test word. The words are two lines apart, so each is alone in its line.
const DATA: u64 = 0x8000;

fn fresh() -> Vec<u8> {
    let pool = Pool::create(Torn::new(&vec![0; POOL_BYTES as usize])).unwrap();
    pool.medium().crash(pool.medium().events(), |_, most| most)
}

fn open(image: &[u8]) -> Result<Pool<Torn>, PoolError> {
    Pool::open(Torn::new(image)).map(|(pool, _)| pool)
}

fn word<M: Medium>(pool: &Pool<M>, index: u64) -> &PmWord {
    &pool.words(PmPtr::new(DATA + index * 128), 1).unwrap()[0]
}

fn values<M: Medium>(pool: &Pool<M>, count: u64) -> Vec<u64> {
    (0..count).map(|index| pool.medium().load(word(pool, index))).collect()
}

fn changes<M: Medium>(pool: &Pool<M>, count: u64, value: u64) -> Vec<(&PmWord, u64)> {
    (0..count).map(|index| (word(pool, index), value + index)).collect()
}

fn transact<M: Medium>(pool: &Pool<M>, count: u64, value: u64) {
    let fenced = pool.medium().fence();
    pool.redo_log().commit(&changes(pool, count, value), fenced).finish();
}

#[test]
fn a_crash_anywhere_leaves_all_of_a_transaction_or_none() {
    let pool = open(&fresh()).unwrap();
    // Three transactions use one slot. Two have the same length, so old lines remain that would
    // fit.
    for (count, value) in [(8, 100), (8, 200), (5, 300)] {
        transact(&pool, count, value);
    }
    let mut states = vec![vec![0; 8]];
    for (count, value) in [(8, 100), (8, 200), (5, 300)] {
        let mut state = states.last().unwrap().clone();
        for i in 0..count {
            state[i as usize] = value + i;
        }
        states.push(state);
    }
    let mut seen = std::collections::BTreeSet::new();
    pool.medium().crashes(4, |at, image| {
        let recovered = open(image).unwrap();
        let found = values(&recovered, 8);
        assert!(states.contains(&found), "crash after event {at}: {found:?}");
        seen.insert(found);
        // A second recovery changes nothing, and further transactions work.
        let again = recovered.medium().crash(recovered.medium().events(), |least, _| least);
        let again = open(&again).unwrap();
        assert_eq!(values(&again, 8), values(&recovered, 8));
        transact(&again, 8, 400);
        assert_eq!(values(&again, 8), (400..408).collect::<Vec<_>>());
    });
    assert_eq!(seen.len(), 4, "the crashes reach every state");
}

#[test]
fn a_crash_in_a_replay_is_followed_by_the_same_replay() {
    let pool = open(&fresh()).unwrap();
    let fenced = pool.medium().fence();
    let committed = pool.redo_log().commit(&changes(&pool, 8, 100), fenced);
    let committed_image = pool.medium().crash(pool.medium().events(), |least, _| least);
    drop(committed);
    let replayed = open(&committed_image).unwrap();
    replayed.medium().crashes(4, |at, image| {
        let found = values(&open(image).unwrap(), 8);
        assert_eq!(found, (100..108).collect::<Vec<_>>(), "crash after event {at}");
    });
}

/// A pool that was killed on a medium that covers a power cut counts as whole. Opened in the page
/// cache, it once ended its log before the mark that it is open was on the device.
#[test]
fn a_power_cut_in_an_open_of_a_whole_pool_keeps_a_committed_transaction() {
    let killed = Cached::new(&vec![0; POOL_BYTES as usize], 1).with_domain(Domain::Disk);
    let pool = Pool::create(killed.clone()).unwrap();
    pool.create_root("r", 7, pool.reserve(64).unwrap()).unwrap();
    let committed = pool.redo_log().commit(&changes(&pool, 8, 100), killed.fence());
    let image = killed.contents();
    drop(committed);
    let medium = Cached::new(&image, 1);
    drop(Pool::open(medium.clone()).unwrap());
    let mut outcomes = [0; 2];
    for (moment, seed) in (0..medium.moments()).flat_map(|at| (0..64).map(move |seed| (at, seed))) {
        match Pool::open(Cached::new(&medium.cut(moment, seed), 2)) {
            Err(PoolError::MayBeTorn { .. }) => outcomes[0] += 1,
            opened => {
                let found = values(&opened.unwrap().0, 8);
                assert_eq!(found, (100..108).collect::<Vec<_>>(), "moment {moment}, seed {seed}");
                outcomes[1] += 1;
            }
        }
    }
    assert!(outcomes.iter().all(|&count| count > 0), "{outcomes:?}");
}

#[test]
fn a_transaction_keeps_its_budget() {
    let pool = Pool::create(Count::new(Mapped::anonymous(POOL_BYTES).unwrap())).unwrap();
    for count in [1, 3, 4, 24] {
        let changes = changes(&pool, count, 7);
        let fenced = pool.medium().fence();
        pool.medium().take();
        let committed = pool.redo_log().commit(&changes, fenced);
        let counts = pool.medium().take();
        assert_eq!((counts.lines, counts.fences), (count.div_ceil(3), 1));
        let applied = committed.apply();
        let counts = pool.medium().take();
        assert_eq!((counts.lines, counts.fences, counts.words), (count, 1, count));
        let _ = committed.truncate(applied);
        let counts = pool.medium().take();
        assert_eq!((counts.lines, counts.fences, counts.words), (1, 1, 1));
    }
    let line = pool.words(PmPtr::new(DATA), 8).unwrap();
    let changes: Vec<_> = line.iter().map(|word| (word, 1)).collect();
    let fenced = pool.medium().fence();
    let committed = pool.redo_log().commit(&changes, fenced);
    pool.medium().take();
    let _ = committed.apply();
    assert_eq!(pool.medium().take().lines, 1, "words of one line are flushed once");
}

#[test]
fn a_drop_finishes_a_transaction_and_a_panic_leaves_it_to_the_next_open() {
    let pool = open(&fresh()).unwrap();
    let fenced = pool.medium().fence();
    drop(pool.redo_log().commit(&changes(&pool, 4, 50), fenced));
    assert_eq!(values(&pool, 4), [50, 51, 52, 53]);
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let fenced = pool.medium().fence();
        let _committed = pool.redo_log().commit(&changes(&pool, 4, 60), fenced);
        std::panic::resume_unwind(Box::new(()));
    }));
    assert!(panicked.is_err());
    assert_eq!(values(&pool, 4), [50, 51, 52, 53]);
    transact(&pool, 2, 70); // No transaction uses the slot that the panic left,
    let image = pool.medium().crash(pool.medium().events(), |least, _| least);
    // so the next open finds its transaction and finishes it.
    assert_eq!(values(&open(&image).unwrap(), 4), [60, 61, 62, 63]);
}

#[test]
fn a_thread_waits_for_a_slot_until_one_is_returned() {
    let pool = open(&fresh()).unwrap();
    let mut held: Vec<_> = (0..32).map(|_| pool.redo_log()).collect();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| transact(&pool, 3, 9));
        held.pop();
        waiting.join().unwrap();
    });
    assert_eq!(values(&pool, 3), [9, 10, 11]);
    drop(held);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..100 {
                    let fenced = pool.medium().fence();
                    let word = word(pool, thread);
                    pool.redo_log().commit(&[(word, round)], fenced).finish();
                }
            });
        }
    });
    assert_eq!(values(&pool, 4), [99; 4]);
}

/// Returns the image of a pool with a committed transaction in slot 0 that is not applied. It has
/// two lines.
fn committed_image() -> Vec<u8> {
    let pool = open(&fresh()).unwrap();
    let fenced = pool.medium().fence();
    let committed = pool.redo_log().commit(&changes(&pool, 5, 100), fenced);
    let image = pool.medium().crash(pool.medium().events(), |least, _| least);
    drop(committed);
    image
}

#[test]
fn every_flipped_bit_of_a_committed_log_is_detected() {
    let image = committed_image();
    assert_eq!(values(&open(&image).unwrap(), 5), [100, 101, 102, 103, 104]);
    // The last pair of line 1 is not in use.
    let used = (0..64).chain(64..64 + 32).chain(64 + 48..128);
    for bit in used.flat_map(|byte| (0..8).map(move |bit| byte * 8 + bit)) {
        let mut damaged = image.clone();
        damaged[0x3000 + bit / 8] ^= 1 << (bit % 8);
        match open(&damaged) {
            Err(PoolError::Corrupt(corrupt)) => {
                assert_eq!(corrupt.at & !0x7f, 0x3000, "bit {bit}: {corrupt}");
            }
            other => panic!("bit {bit} was not detected: {other:?}"),
        }
    }
}

#[test]
fn a_hostile_log_changes_nothing() {
    let image = committed_image();
    let craft = |offset: u64, txid: u64| {
        let mut image = image.clone();
        let seal = Seal { txid, line: 0, lines: 1, pairs: 2 };
        let pairs = [(DATA, 55), (offset, 66)];
        let words = [DATA, 55, offset, 66, 0, 0, line_checksum(&pairs, seal), seal.encode()];
        for (index, word) in words.iter().enumerate() {
            image[0x3000 + index * 8..][..8].copy_from_slice(&word.to_le_bytes());
        }
        image
    };
    for offset in [0, 8, 0x1ff8, 0x3000, 0x7ff8, DATA + 4, POOL_BYTES, u64::MAX - 7] {
        let hostile = craft(offset, 9);
        let medium = Torn::new(&hostile);
        assert!(matches!(Pool::open(medium), Err(PoolError::Corrupt(_))), "{offset:#x}");
    }
    for txid in [TXID_NEAR_END, (1 << 48) - 1] {
        let pool = open(&craft(DATA + 128, txid)).unwrap();
        assert_eq!(values(&pool, 2), [55, 66]);
        transact(&pool, 24, 5);
        let line = slots::words(pool.medium(), 0);
        assert_eq!(
            pool.medium().load(&line[LINE_WORDS + SEAL]) >> 16,
            1,
            "numbers begin at 1 again"
        );
    }
}

const TXID_NEAR_END: u64 = slots::TXID_RESTART;

#[test]
fn numbers_continue_after_a_clean_close() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let options = crate::medium::FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, POOL_BYTES, &options).unwrap()).unwrap();
    transact(&pool, 6, 1);
    transact(&pool, 6, 1);
    pool.close().unwrap();
    let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    assert_eq!(opened, Opened::Clean);
    assert_eq!(pool.log_slots.next_txid(), 3);
}

proptest! {
    /// For every prefix of each line that persists, a replay stores all of the changes or none.
    #[test]
    fn torn_lines_never_apply_part_of_a_transaction(
        counts in prop::collection::vec(1u64..=24, 1..4),
        crash in any::<prop::sample::Index>(),
        picks in prop::collection::vec(any::<u16>(), 64),
    ) {
        let pool = open(&fresh()).unwrap();
        let mut states = vec![vec![0; 24]];
        for (round, &count) in counts.iter().enumerate() {
            transact(&pool, count, 1000 * (round as u64 + 1));
            states.push(values(&pool, 24));
        }
        let mut picks = picks.into_iter().cycle();
        let image = pool.medium().crash(crash.index(pool.medium().events() + 1), |least, most| {
            least + usize::from(picks.next().unwrap()) % (most - least + 1)
        });
        let found = values(&open(&image).unwrap(), 24);
        prop_assert!(states.contains(&found), "{:?}", found);
    }
}
