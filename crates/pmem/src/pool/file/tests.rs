use super::*;
use crate::medium::cached::Cached;
use crate::medium::torn::Torn;
use crate::medium::{FileOptions, LockedFile, Mapped};
use std::sync::Barrier;
use std::time::Duration;

fn pool_of(bytes: u64) -> Pool<Mapped> {
    Pool::create(Mapped::anonymous(bytes).unwrap()).unwrap()
}

#[test]
fn a_closed_pool_opens_clean_and_a_dropped_one_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let block = pool.reserve(100).unwrap();
    pool.create_root("r", 7, block).unwrap();
    let used = pool.usage().used_bytes;
    pool.close().unwrap();

    let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    assert_eq!(opened, Opened::Clean);
    assert_eq!(pool.usage().used_bytes, used);
    assert_eq!(pool.generation(), 2);
    let root = pool.root("r").unwrap().unwrap();
    assert_eq!((root.kind, root.block), (7, block));
    assert!(matches!(Mapped::open(&path, &options), Err(MediumError::Locked)));
    drop(pool);

    let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    assert_eq!(opened, Opened::Crashed);
    assert!(matches!(pool.reserve(1), Err(PoolError::Recovering)));
    pool.mark(root.block, 100).unwrap();
    pool.finish_recovery();
    assert_eq!(pool.usage().used_bytes, used);
}

#[test]
fn a_pool_in_use_grows_up_to_its_limit() {
    let pool = pool_of(POOL_BYTES_MIN);
    pool.limit(4 << 20);
    let mut blocks = 0;
    let full = loop {
        match pool.reserve(16 << 10) {
            Ok(block) => {
                blocks += 1;
                pool.medium().store(&pool.words(block, 2048).unwrap()[2047], 1);
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(full, PoolError::Full { .. }), "{full}");
    assert_eq!(blocks, (4 << 20) / (16 << 10) - 3, "less the header and what a close needs");
}

#[test]
fn damaged_headers_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let options = FileOptions::default();
    let try_open = || Pool::open(Mapped::open(&path, &options).unwrap()).map(|(_, opened)| opened);
    Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap().close().unwrap();
    let good = std::fs::read(&path).unwrap();
    let with = |changes: &[(usize, u8)]| {
        let mut bytes = good.clone();
        for &(at, flip) in changes {
            bytes[at] ^= flip;
        }
        std::fs::write(&path, bytes).unwrap();
    };

    for at in 0..128 {
        for copy in [0, 0x1000] {
            with(&[(copy + at, 1)]);
            assert!(try_open().is_ok(), "one damaged copy loses nothing");
        }
        with(&[(at, 1), (0x1000 + at, 1)]);
        let error = try_open().unwrap_err();
        match at {
            0..8 => assert!(matches!(error, PoolError::NotAPool { .. }), "{error}"),
            _ => assert!(matches!(error, PoolError::Superblocks), "{error}"),
        }
    }
    std::fs::write(&path, &good[..700_000]).unwrap();
    assert!(matches!(try_open(), Err(PoolError::Truncated { .. })));
    for bytes in [8, 5000, POOL_BYTES_MIN as usize - 1] {
        std::fs::write(&path, &good[..bytes]).unwrap();
        assert!(matches!(try_open(), Err(PoolError::Truncated { .. })), "{bytes}");
    }
    std::fs::write(&path, b"hello").unwrap();
    assert!(matches!(try_open(), Err(PoolError::TooSmall { .. })));
    std::fs::write(&path, b"hello, world").unwrap();
    assert!(matches!(try_open(), Err(PoolError::NotAPool { .. })));
    std::fs::write(&path, vec![7; 1 << 20]).unwrap();
    assert!(matches!(try_open(), Err(PoolError::NotAPool { .. })));
}

#[test]
fn a_pointer_outside_the_pool_is_an_error() {
    let pool = pool_of(1 << 20);
    assert!(pool.words(PmPtr::new((1 << 20) - 8), 1).is_ok());
    for at in [(1 << 20) - 4, 1 << 20, u64::MAX - 7, 12] {
        assert!(pool.words(PmPtr::new(at), 1).is_err());
    }
    assert!(pool.words(PmPtr::new(8), 1 << 20).is_err());
}

#[test]
fn retired_blocks_are_not_lost_by_a_close() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let guard = pool.pin();
    for _ in 0..100 {
        let block = pool.reserve(256).unwrap();
        pool.retire(block, 256, &guard);
    }
    pool.close().unwrap();
    let (pool, _) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    drop(guard);
    assert_eq!(pool.usage().blocks, 1); // The header.
}

/// Retires that many blocks of 64 B, one after the other, and returns the most that waited.
fn retire_many(pool: &Pool<Mapped>, count: u64) -> usize {
    let most = (0..count).map(|_| {
        let block = pool.reserve(64).unwrap();
        pool.retire(block, 64, &pool.pin());
        pool.waiting_blocks()
    });
    most.max().unwrap_or(0)
}

#[test]
fn a_reader_of_one_pool_holds_back_no_frees_of_another() {
    let _others = crate::sync::PINS_EVERY_POOL.read();
    let [read, written] = [pool_of(1 << 20), pool_of(1 << 20)];
    let reader = read.pin();
    let most = retire_many(&written, 10_000);
    assert!(most <= 192, "{most} blocks waited for the reader of another pool");
    assert_eq!(written.usage().pool_bytes, 1 << 20);
    assert_eq!(retire_many(&read, 1000), 1000, "its own frees wait for the reader");
    drop(reader);
    assert!(retire_many(&read, 1000) <= 1064);
}

#[test]
fn one_retirement_frees_a_bounded_part_of_what_waits() {
    let _others = crate::sync::PINS_EVERY_POOL.read();
    let pool = pool_of(4 << 20);
    let reader = pool.pin();
    retire_many(&pool, 10_000);
    drop(reader);
    let mut waiting = pool.waiting_blocks();
    for _ in 0..10_000 {
        retire_many(&pool, 1);
        let now = pool.waiting_blocks();
        assert!(now + 256 > waiting, "one operation has freed {} blocks", waiting - now);
        waiting = now;
    }
    assert!(waiting < 192, "the backlog never shrinks");
}

#[test]
fn a_pool_frees_what_waits_before_it_grows() {
    let _others = crate::sync::PINS_EVERY_POOL.read();
    let pool = pool_of(1 << 20);
    pool.limit(u64::MAX);
    let reader = pool.pin();
    retire_many(&pool, 12_000);
    drop(reader);
    for _ in 0..8 {
        pool.reserve(64 << 10).unwrap();
    }
    assert_eq!(pool.usage().pool_bytes, 1 << 20);
}

#[test]
fn a_pool_is_never_created_over_other_data() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let options = FileOptions::default();
    Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap().close().unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = Pool::create(Mapped::open(&path, &options).unwrap()).unwrap_err();
    assert!(matches!(error, PoolError::NotEmpty { at: 0, .. }), "{error}");
    assert!(before == std::fs::read(&path).unwrap());
}

#[test]
fn a_medium_too_small_for_a_pool_is_an_error() {
    for bytes in [0, 4096, POOL_BYTES_MIN - 1] {
        let medium = || Mapped::anonymous(bytes).unwrap();
        let error = Pool::create(medium()).unwrap_err();
        let minimum = POOL_BYTES_MIN;
        assert_eq!(error.to_string(), PoolError::TooSmall { bytes, minimum }.to_string());
        let error = Pool::open(medium()).unwrap_err();
        let is_told = match error {
            PoolError::TooSmall { .. } => bytes < 8,
            PoolError::NotAPool { found: 0 } => bytes >= 8,
            _ => false,
        };
        assert!(is_told, "{bytes} bytes: {error}");
    }
}

#[test]
fn blocks_that_no_pool_can_hold_are_refused() {
    let pool = pool_of(POOL_BYTES_MIN);
    let most = (u64::from(u32::MAX) + 2) << 15; // The number of its chunks would be 1 in 32 bits.
    for bytes in [u64::MAX, u64::MAX - (1 << 15), most, 1 << 47, 1 << 40] {
        let error = pool.reserve(bytes).unwrap_err();
        assert!(matches!(error, PoolError::Full { wanted, .. } if wanted == bytes), "{error}");
        assert!(pool.grow(bytes).is_err());
    }
    assert_eq!(pool.usage().pool_bytes, POOL_BYTES_MIN);
    assert!(pool.reserve(0).is_ok());
}

#[test]
fn threads_that_run_out_of_room_together_grow_the_pool_once() {
    for _ in 0..20 {
        let pool = pool_of(POOL_BYTES_MIN);
        for _ in 0..8 {
            pool.reserve(16 << 10).unwrap();
        }
        assert_eq!(pool.usage().free_bytes, 0);
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    pool.reserve(16 << 10).unwrap();
                });
            }
        });
        assert_eq!(pool.usage().pool_bytes, POOL_BYTES_MIN + (1 << 20));
    }
}

#[test]
fn nothing_is_lost_or_shared_while_threads_reserve_retire_and_grow() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, POOL_BYTES_MIN, &options).unwrap()).unwrap();
    let held: u64 = std::thread::scope(|scope| {
        let work = |seed: u64| {
            let pool = &pool;
            scope.spawn(move || {
                let mut held = Vec::new();
                for round in 0..400 {
                    let bytes = 64 + (round * 7919 + seed * 104_729) % 3000;
                    let block = pool.reserve(bytes).unwrap();
                    let words = pool.words(block, bytes as usize / 8).unwrap();
                    let mark = seed << 32 | round;
                    for word in words {
                        pool.medium().store(word, mark);
                    }
                    held.push((block, bytes, mark));
                    if round % 3 > 0 {
                        let (block, bytes, mark) = held.swap_remove(round as usize % held.len());
                        let words = pool.words(block, bytes as usize / 8).unwrap();
                        let whole = words.iter().all(|word| pool.medium().load(word) == mark);
                        assert!(whole, "another thread wrote a block of this one");
                        pool.retire(block, bytes, &pool.pin());
                    }
                }
                held.len() as u64
            })
        };
        let threads: Vec<_> = (1..=4).map(work).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    pool.close().unwrap();
    let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    assert_eq!((opened, pool.usage().blocks), (Opened::Clean, 1 + held));
}

#[test]
fn a_full_pool_closes_cleanly() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, 2 << 20, &options).unwrap()).unwrap();
    pool.limit(3 << 20);
    let mut blocks = 1;
    for bytes in [9 << 10, 64] {
        while pool.reserve(bytes).is_ok() {
            blocks += 1;
        }
    }
    pool.close().unwrap();
    let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    assert_eq!((opened, pool.usage().blocks), (Opened::Clean, blocks));
    pool.limit(3 << 20);
    assert!(matches!(pool.reserve(64), Err(PoolError::Full { .. })));
}

#[test]
fn a_small_full_pool_closes_without_its_free_map() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, POOL_BYTES_MIN, &options).unwrap()).unwrap();
    pool.limit(POOL_BYTES_MIN);
    while pool.reserve(64).is_ok() {}
    pool.close().unwrap();
    let (_, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    assert_eq!(opened, Opened::Crashed);
}

/// Returns the image of a pool that has one root and was not closed, and the root's block.
fn used_image() -> (Vec<u8>, PmPtr) {
    let medium = Torn::new(&vec![0; POOL_BYTES_MIN as usize]);
    let pool = Pool::create(medium.clone()).unwrap();
    let block = pool.reserve(100).unwrap();
    pool.create_root("r", 7, block).unwrap();
    (medium.crash(medium.events(), |least, _| least), block)
}

/// Opens the image that a crash left and checks that it is the pool of [`used_image`].
fn check_used(image: &[u8], block: PmPtr) -> (Pool<Torn>, Opened) {
    let (pool, opened) = Pool::open(Torn::new(image)).unwrap();
    assert_eq!(pool.root("r").unwrap().unwrap().block, block);
    if opened == Opened::Crashed {
        pool.mark(block, 100).unwrap();
        pool.finish_recovery();
    }
    assert_eq!((pool.usage().blocks, pool.is_reserved(block)), (2, true));
    (pool, opened)
}

#[test]
fn a_crash_while_a_root_is_added_leaves_it_whole_or_absent() {
    let (image, block) = used_image();
    let medium = Torn::new(&image);
    let (pool, _) = Pool::open(medium.clone()).unwrap();
    pool.mark(block, 100).unwrap();
    pool.finish_recovery();
    let before = medium.events();
    let other = pool.reserve(64).unwrap();
    pool.create_root("s", 8, other).unwrap();
    let mut seen = [false; 2];
    medium.crashes(20, |at, image| {
        let (pool, _) = Pool::open(Torn::new(image)).unwrap();
        let root = pool.root("s").unwrap();
        assert!(root.is_none() || at > before);
        assert!(root.as_ref().is_none_or(|root| (root.kind, root.block) == (8, other)));
        seen[usize::from(root.is_some())] = true;
    });
    assert_eq!(seen, [true; 2]);
    assert!(pool.root("s").unwrap().is_some());
}

#[test]
fn every_flipped_bit_of_a_root_is_detected() {
    let (image, _) = used_image();
    for bit in 0..512 {
        let mut damaged = image.clone();
        damaged[0x2000 + bit / 8] ^= 1 << (bit % 8);
        let (pool, _) = Pool::open(Torn::new(&damaged)).unwrap();
        assert_eq!(pool.roots().unwrap_err().at, 0x2000, "bit {bit}");
        // A free entry stays free unless its block word changes.
        let mut damaged = image.clone();
        damaged[0x2040 + bit / 8] ^= 1 << (bit % 8);
        let (pool, _) = Pool::open(Torn::new(&damaged)).unwrap();
        assert_eq!(pool.roots().is_err(), bit < 64, "bit {bit} of a free entry");
    }
}

#[test]
fn a_crash_while_a_pool_grows_leaves_the_old_size_or_the_new() {
    let (image, block) = used_image();
    let medium = Torn::new(&image);
    let (pool, _) = Pool::open(medium.clone()).unwrap();
    let new = POOL_BYTES_MIN + 3 * CHUNK_BYTES;
    let before = medium.events();
    pool.grow(new).unwrap();
    let mut sizes = [0; 2];
    medium.crashes(20, |at, image| {
        let (pool, _) = check_used(image, block);
        let bytes = pool.usage().pool_bytes;
        assert!(bytes == POOL_BYTES_MIN || (bytes == new && at > before), "event {at}: {bytes}");
        sizes[usize::from(bytes == new)] += 1;
        assert!(pool.reserve(3 * CHUNK_BYTES).is_ok(), "the pool can grow again");
    });
    assert!(sizes.iter().all(|&count| count > 0));
}

#[test]
fn a_crash_while_a_pool_is_closed_or_opened_loses_nothing() {
    let (image, block) = used_image();
    let medium = Torn::new(&image);
    let (pool, _) = Pool::open(medium.clone()).unwrap();
    pool.mark(block, 100).unwrap();
    pool.finish_recovery();
    pool.close().unwrap();
    let mut clean = 0;
    medium.crashes(20, |at, image| {
        let (_, opened) = check_used(image, block);
        clean += usize::from(opened == Opened::Clean);
        assert!(at < medium.events() || opened == Opened::Clean, "a close is durable on return");
    });
    assert!(clean > 0);

    let closed = medium.crash(medium.events(), |least, _| least);
    let medium = Torn::new(&closed);
    let (pool, opened) = Pool::open(medium.clone()).unwrap();
    assert_eq!(opened, Opened::Clean);
    medium.crashes(20, |at, image| {
        let (_, opened) = check_used(image, block);
        // No saved map contains the blocks that are reserved after this open, so no later open may
        // use one.
        assert!(at < medium.events() || opened == Opened::Crashed);
    });
    drop(pool);
}

/// A process that is killed leaves stores in the caches that it has not written back. The next one
/// finds them there, and a power cut may still lose them.
#[test]
fn what_a_killed_process_stored_is_durable_before_the_next_relies_on_it() {
    let (image, block) = used_image();
    let medium = Torn::new(&image);
    let (pool, _) = Pool::open(medium.clone()).unwrap();
    pool.mark(block, 100).unwrap();
    pool.finish_recovery();
    let begin = medium.events();
    pool.create_root("s", 7, pool.reserve(100).unwrap()).unwrap();
    let mut found = [0; 2];
    for killed in begin..=medium.events() {
        let next = Torn::new(&medium.crash(killed, |least, _| least));
        next.leave_in_caches(&medium.crash(killed, |_, most| most));
        let has_root = |medium| Pool::open(medium).unwrap().0.root("s").unwrap().is_some();
        let is_found = has_root(next.clone());
        let cut = next.crash(next.events(), |least, _| least);
        assert_eq!(has_root(Torn::new(&cut)), is_found, "killed after {killed} events");
        found[usize::from(is_found)] += 1;
    }
    assert!(found.iter().all(|&count| count > 0), "{found:?}");
}

#[test]
fn an_older_clean_copy_is_not_used_if_the_newer_copy_is_damaged() {
    let (image, block) = used_image();
    let medium = Torn::new(&image);
    let (pool, _) = Pool::open(medium.clone()).unwrap();
    pool.mark(block, 100).unwrap();
    pool.finish_recovery();
    pool.close().unwrap();
    let closed = medium.crash(medium.events(), |least, _| least);
    let medium = Torn::new(&closed);
    drop(Pool::open(medium.clone()).unwrap());
    let open = medium.crash(medium.events(), |least, _| least);
    for copy in [0, 0x1000] {
        let mut damaged = open.clone();
        damaged[copy + 50] ^= 1;
        assert_eq!(Pool::open(Torn::new(&damaged)).unwrap().1, Opened::Crashed);
    }
}

#[test]
fn recreate_takes_an_interrupted_creation_and_no_pool() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let options = FileOptions::default();
    let recreate = || {
        let locked = LockedFile::open_within(&path, Duration::ZERO)?;
        let blank = crate::pool::holds_nothing;
        Mapped::recreate(locked, 1 << 20, &options, blank).map(Pool::create)
    };
    let mut torn = vec![0; POOL_BYTES_MIN as usize];
    torn[0x1000..0x1040].fill(0xa5);
    for blank in [&[][..], &[0; 5000], &torn] {
        std::fs::write(&path, blank).unwrap();
        recreate().unwrap().unwrap().close().unwrap();
    }
    torn[0x2000] = 1;
    let pool = std::fs::read(&path).unwrap();
    // Longer than an interrupted creation leaves it: it may have been a pool.
    let zeros = vec![0; POOL_BYTES_MIN as usize + 1];
    for used in [&torn, &pool, &zeros] {
        std::fs::write(&path, used).unwrap();
        assert!(matches!(recreate(), Err(MediumError::System { .. })));
        assert_eq!(&std::fs::read(&path).unwrap(), used);
    }
    std::fs::write(&path, &pool).unwrap();
    let (_open, _) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    assert!(matches!(recreate(), Err(MediumError::Locked)));
}

/// Damage once made two nodes of `wb-tree-slot-only` overlap, and an update waited for its own
/// latch.
#[test]
fn a_block_begins_at_a_multiple_of_its_size() {
    let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
    for words in [8, 16, 64, 512, 24] {
        let at = pool.reserve(8 * words as u64).unwrap();
        assert_eq!(pool.block(at, words).unwrap().len(), words);
        let apart = if words == 24 { 64 } else { 8 * words as u64 };
        for off in [8, apart / 2, apart - 8] {
            let at = PmPtr::new(at.offset() + off);
            assert!(pool.block(at, words).is_err(), "{words} words at {off}");
        }
        assert!(pool.block(PmPtr::new(1 << 40), words).is_err());
    }
}

/// A machine whose power is cut at any moment has each page of a plain file as the last sync left
/// it, or newer. The next boot opens what a close left, to the byte, or says what may have
/// happened.
#[test]
fn a_power_cut_leaves_a_closed_pool_or_one_that_may_be_torn() {
    let medium = Cached::new(&vec![0; POOL_BYTES_MIN as usize], 1);
    let mut closed = Vec::new();
    let pool = Pool::create(medium.clone()).unwrap();
    let created = medium.moments();
    let mut block = pool.reserve(100).unwrap();
    pool.create_root("r0", 7, block).unwrap();
    let rooted = medium.moments();
    let mut pool = Some(pool);
    for session in 1..4 {
        let open = pool.take().unwrap();
        open.close().unwrap();
        closed.push((medium.moments(), medium.contents()));
        let (open, opened) = Pool::open(medium.clone()).unwrap();
        assert_eq!(opened, Opened::Clean);
        for word in open.words(block, 12).unwrap() {
            open.medium().store(word, session);
        }
        block = open.reserve(100).unwrap();
        open.create_root(&format!("r{session}"), 7, block).unwrap();
        pool = Some(open);
    }
    let mut counts = [0; 3];
    for moment in 0..medium.moments() {
        for seed in 0..64 {
            let image = medium.cut(moment, seed);
            match Pool::open(Cached::new(&image, 2)) {
                Err(PoolError::NotAPool { found: 0 }) => {
                    assert!(moment < created, "moment {moment}, seed {seed}");
                    counts[0] += 1;
                }
                Err(PoolError::MayBeTorn { .. }) => {
                    // The open after a close may have written its mark already.
                    let is_closed = closed.iter().any(|&(after, _)| moment + 1 == after);
                    assert!(!is_closed, "a closed pool is whole: moment {moment}, seed {seed}");
                    counts[1] += 1;
                }
                Ok((_, Opened::Clean)) => {
                    let same = closed.iter().any(|(_, whole)| whole[0x2000..] == image[0x2000..]);
                    assert!(same, "moment {moment}, seed {seed}: the pages are a mixture");
                    counts[2] += 1;
                }
                Ok((pool, Opened::Crashed)) => {
                    assert!(pool.roots().unwrap().is_empty());
                    assert!(moment < rooted - 1, "a root is durable: moment {moment}, seed {seed}");
                }
                Err(error) => panic!("moment {moment}, seed {seed}: {error}"),
            }
        }
    }
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
}

/// A close that finds no space for the free map syncs the pages too, and the superblock then names
/// no boot. So the next boot recovers the pool, and does not refuse it as perhaps torn.
#[test]
fn a_full_pool_that_closed_without_its_free_map_is_whole_after_a_restart() {
    const VALUE: u64 = 0x000A_C024;
    let medium = Cached::new(&vec![0; POOL_BYTES_MIN as usize], 1);
    let pool = Pool::create(medium.clone()).unwrap();
    let block = pool.reserve(100).unwrap();
    pool.create_root("r", 7, block).unwrap();
    pool.limit(POOL_BYTES_MIN);
    while pool.reserve(64).is_ok() {}
    // No flush follows, so only the sync of the close takes this word to the device.
    pool.medium().store(&pool.words(block, 12).unwrap()[11], VALUE);
    let open = medium.moments();
    pool.close().unwrap();
    let closed = medium.moments() - 1;
    let (mut refused, mut whole) = (0, 0);
    for (moment, seed) in (open..=closed).flat_map(|moment| (0..64).map(move |s| (moment, s))) {
        match Pool::open(Cached::new(&medium.cut(moment, seed), 2)) {
            Err(PoolError::MayBeTorn { .. }) => {
                assert!(moment < closed, "a closed pool is whole: seed {seed}");
                refused += 1;
            }
            Ok((pool, Opened::Crashed)) => {
                let found = pool.root("r").unwrap().unwrap().block;
                assert_eq!(found, block, "moment {moment}, seed {seed}");
                let last = &pool.words(block, 12).unwrap()[11];
                assert_eq!(pool.medium().load(last), VALUE, "moment {moment}, seed {seed}");
                whole += 1;
            }
            Ok((_, Opened::Clean)) => panic!("moment {moment}, seed {seed}: no map was saved"),
            Err(error) => panic!("moment {moment}, seed {seed}: {error}"),
        }
    }
    assert!(refused > 0 && whole >= 64, "{refused} refused, {whole} whole");
}

/// The boot that opened a pool may be the one that finds it, after the death of the process.
#[test]
fn a_pool_that_was_not_closed_opens_in_the_same_boot() {
    let medium = Cached::new(&vec![0; POOL_BYTES_MIN as usize], 1);
    let pool = Pool::create(medium.clone()).unwrap();
    pool.create_root("r", 7, pool.reserve(100).unwrap()).unwrap();
    drop(pool);
    for boot in [1, 1, 0] {
        let (pool, opened) = Pool::open(Cached::new(&medium.contents(), boot)).unwrap();
        assert_eq!(opened, Opened::Crashed);
        assert_ne!(pool.former_nonce() & 0xff_ffff, pool.nonce() & 0xff_ffff);
    }
    let torn = Cached::new(&medium.contents(), 2);
    assert!(matches!(Pool::open(torn.clone()), Err(PoolError::MayBeTorn { opened_in: 1, now: 2 })));
    let (pool, _) = Pool::open_torn(torn.clone()).unwrap();
    drop(pool);
    assert!(Pool::open(torn).is_ok(), "a pool that was accepted counts as whole");
}

/// After a sync that failed, the system may drop the pages that it could not write, in the same
/// boot. So the pool must not be opened as if only its process had died.
#[test]
fn a_pool_whose_pages_the_device_refused_may_be_torn() {
    let medium = Cached::new(&vec![0; POOL_BYTES_MIN as usize], 1);
    let pool = Pool::create(medium.clone()).unwrap();
    pool.create_root("r", 7, pool.reserve(100).unwrap()).unwrap();
    pool.close().unwrap();
    // All pages of a closed pool are durable, so an open that fails loses none.
    medium.refuse_syncs(true);
    assert!(matches!(Pool::open(medium.clone()), Err(PoolError::Medium(_))));
    medium.refuse_syncs(false);
    let (pool, opened) = Pool::open(medium.clone()).unwrap();
    assert_eq!(opened, Opened::Crashed);
    pool.finish_recovery();
    medium.refuse_syncs(true);
    assert!(matches!(pool.close(), Err(PoolError::Medium(_))));
    medium.refuse_syncs(false);
    assert!(matches!(Pool::open(medium.clone()), Err(PoolError::MayBeTorn { .. })));
    let (pool, _) = Pool::open_torn(medium.clone()).unwrap();
    drop(pool);
    // The first open after the death of a process learns that pages were refused.
    medium.refuse_syncs(true);
    assert!(matches!(Pool::open(medium.clone()), Err(PoolError::Medium(_))));
    medium.refuse_syncs(false);
    assert!(matches!(Pool::open(medium), Err(PoolError::MayBeTorn { .. })));
}

/// The system reports a lost page to one sync alone. So the next one, and a close, once called a
/// pool whole that had lost pages.
#[test]
fn a_close_after_a_sync_that_failed_does_not_call_the_pool_whole() {
    let medium = Cached::new(&vec![0; POOL_BYTES_MIN as usize], 1);
    let pool = Pool::create(medium.clone()).unwrap();
    pool.create_root("a", 7, pool.reserve(100).unwrap()).unwrap();
    pool.sync().unwrap();
    medium.refuse_syncs(true);
    assert!(matches!(pool.sync(), Err(PoolError::Medium(_))));
    medium.refuse_syncs(false);
    assert!(matches!(pool.sync(), Err(PoolError::Medium(_))));
    let root = pool.create_root("b", 7, pool.reserve(100).unwrap());
    assert!(matches!(root, Err(PoolError::Medium(_))));
    assert!(matches!(pool.close(), Err(PoolError::Medium(_))));
    assert!(matches!(Pool::open(medium.clone()), Err(PoolError::MayBeTorn { .. })));
    // Nor is it whole if the process dies before the close.
    let (pool, _) = Pool::open_torn(medium.clone()).unwrap();
    medium.refuse_syncs(true);
    assert!(matches!(pool.sync(), Err(PoolError::Medium(_))));
    medium.refuse_syncs(false);
    drop(pool);
    assert!(matches!(Pool::open(medium), Err(PoolError::MayBeTorn { .. })));
}

/// The domain of the file that is opened says nothing about the file that was in use when the
/// machine stopped.
#[test]
fn a_torn_pool_is_refused_on_persistent_memory_too() {
    let open_on = |domain| {
        let medium = Cached::new(&vec![0; POOL_BYTES_MIN as usize], 1).with_domain(domain);
        let pool = Pool::create(medium.clone()).unwrap();
        pool.create_root("r", 7, pool.reserve(100).unwrap()).unwrap();
        drop(pool);
        medium.contents()
    };
    for now in [Domain::Adr, Domain::Eadr, Domain::ProcessCrash] {
        let copy = Cached::new(&open_on(Domain::ProcessCrash), 2).with_domain(now);
        assert!(matches!(Pool::open(copy), Err(PoolError::MayBeTorn { .. })), "{now}");
        let copy = Cached::new(&open_on(Domain::Adr), 2).with_domain(now);
        assert_eq!(Pool::open(copy).unwrap().1, Opened::Crashed, "{now}");
    }
}
