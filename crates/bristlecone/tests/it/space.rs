//! Space: what a file of a given size holds, what comes free, and when.

use crate::{mapped, pairs, place, small};
use bristlecone::{Error, Order, Store};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Returns the numbers from 0 that a fixed generator chooses, one of `of`.
fn chosen(count: u64, of: u64) -> impl Iterator<Item = (u64, bool)> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    (0..count).map(move |number| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (number, state.is_multiple_of(of))
    })
}

fn key(number: u64) -> String {
    format!("key {:016x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[test]
fn a_full_store_closes_and_opens_clean() {
    let place = place();
    let options = small().max_bytes(4 << 20);
    let store = options.create(&place.path).unwrap();
    let mut count = 0;
    let error = loop {
        match store.put(key(count), [7; 100]) {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full { .. }), "{error}");
    store.close().unwrap();
    let mut store = options.open(&place.path).unwrap();
    assert!(!store.was_recovered());
    assert_eq!((store.stats().rebuilt_count, store.check().unwrap().keys), (0, count));
}

#[test]
fn values_of_20_kb_take_less_than_a_quarter_more() {
    let place = place();
    let store = small().create(&place.path).unwrap();
    let empty = store.stats().used_bytes;
    for number in 0..500 {
        store.put(key(number), vec![1; 20_000]).unwrap();
    }
    let used = store.stats().used_bytes - empty;
    assert!(used * 4 < 500 * 20_000 * 5, "{used} B for 500 values of 20 000 B");
}

#[test]
fn deleted_pairs_make_space_for_values_of_another_size() {
    let place = place();
    let store = small().initial_bytes(16 << 20).create(&place.path).unwrap();
    for number in 0..130_000 {
        store.put(key(number), [1; 100]).unwrap();
    }
    for (number, is_kept) in chosen(130_000, 10) {
        assert!(is_kept || store.delete(key(number)).unwrap());
    }
    let pool_bytes = store.stats().pool_bytes;
    for number in 0..900 {
        store.put(format!("large {number}"), vec![2; 20_000]).unwrap();
    }
    assert_eq!(store.stats().pool_bytes, pool_bytes, "the file has grown");
    for (number, is_kept) in chosen(130_000, 10) {
        let value = store.get(key(number)).unwrap();
        assert_eq!(value.as_deref(), is_kept.then_some(&[1; 100][..]));
    }
    drop(store);
    let mut store = small().open(&place.path).unwrap();
    assert_eq!(store.check().unwrap().unreachable_blocks, 0);
}

/// Blocks of others waited for readers in every look at them, so no record moved, and most of the
/// deleted pairs' space stayed out of reach.
#[test]
fn a_full_store_uses_the_space_of_deleted_pairs_while_others_write() {
    const VALUE_BYTES: usize = 30_000;
    for writers in [0, 1, 2, 4] {
        let place = place();
        let store = mapped().initial_bytes(4 << 20).max_bytes(4 << 20).create(&place.path).unwrap();
        for writer in 0..writers {
            store.put(format!("own {writer}"), [0; 20]).unwrap();
        }
        let small = |&number: &u64| store.put(key(number), [1; 100]).is_ok();
        let count = (0..100_000).take_while(small).count();
        for (number, is_kept) in chosen(count as u64, 10) {
            assert!(is_kept || store.delete(key(number)).unwrap());
        }
        let (is_done, writes) = (AtomicBool::new(false), AtomicU64::new(0));
        let fitting = std::thread::scope(|scope| {
            for writer in 0..writers {
                let (store, is_done, writes) = (&store, &is_done, &writes);
                scope.spawn(move || {
                    while !is_done.load(Relaxed) {
                        // It may find the store full, as others may.
                        let _ = store.put(format!("own {writer}"), [1; 20]);
                        writes.fetch_add(1, Relaxed);
                    }
                });
            }
            while writes.load(Relaxed) < 1000 * writers {
                std::thread::yield_now();
            }
            let value = vec![2; VALUE_BYTES];
            let large = |number: &u64| store.put(format!("large {number}"), &value).is_ok();
            let fitting = (0..1000).take_while(large).count();
            is_done.store(true, Relaxed);
            fitting
        });
        assert!(fitting * VALUE_BYTES > 2 << 20, "{writers} writers: {fitting} values fit");
    }
}

#[test]
fn threads_read_and_write_while_a_store_is_compacted() {
    let place = place();
    let mut store = small().create(&place.path).unwrap();
    let put = |store: &Store, number: u64, value: u8| {
        store.put(key(number), [value; 300]).unwrap();
    };
    (0..4000).for_each(|number| put(&store, number, 0));
    let is_kept: Vec<bool> = chosen(4000, 5).map(|(_, is_kept)| is_kept).collect();
    std::thread::scope(|scope| {
        let (store, is_kept) = (&store, &is_kept);
        scope.spawn(move || {
            for number in (0..4000).filter(|&number| !is_kept[number as usize]) {
                store.delete(key(number)).unwrap();
            }
        });
        for writer in 0..2 {
            scope.spawn(move || {
                for round in 1..=20 {
                    let own = (0..4000).filter(|number| number % 2 == writer);
                    for number in own.filter(|&number| is_kept[number as usize]) {
                        put(store, number, round);
                        let value = store.get(key(number)).unwrap();
                        assert_eq!(value, Some(vec![round; 300]), "a move undid a write");
                    }
                }
            });
        }
        for _ in 0..50 {
            store.compact().unwrap();
        }
    });
    let kept = is_kept.iter().filter(|is_kept| **is_kept).count();
    assert_eq!(pairs(&store).len(), kept);
    assert!(pairs(&store).iter().all(|(_, value)| *value == [20; 300]));
    store.compact().unwrap();
    let report = store.check().unwrap();
    assert_eq!((report.keys, report.unreachable_blocks), (kept as u64, 0));
}

#[test]
fn a_scan_of_one_store_holds_back_no_frees_of_another() {
    let [read, written] = [place(), place()];
    let [read, written] =
        [read, written].map(|place| (small().create(&place.path).unwrap(), place));
    read.0.put("only", "pair").unwrap();
    let update = || {
        for round in 0..30_000 {
            written.0.put(key(round % 100), [round as u8; 40]).unwrap();
        }
    };
    update();
    let before = written.0.stats().pool_bytes;
    let visit = |_: &[u8], _: &[u8]| {
        std::thread::scope(|scope| scope.spawn(update).join().unwrap());
        update(); // Also on the thread that reads.
        ControlFlow::Continue(())
    };
    read.0.scan_with(.., Order::Ascending, visit).unwrap();
    let stats = written.0.stats();
    assert_eq!(stats.pool_bytes, before, "the file has grown");
    assert!(stats.waiting_blocks < 256, "{stats:?}");
}

#[test]
fn stats_account_for_every_byte_of_the_file() {
    let place = place();
    let store = small().initial_bytes((2 << 20) + 5000).create(&place.path).unwrap();
    assert_eq!((store.stats().tail_bytes, store.stats().pool_bytes), (0, 2 << 20));
    drop(store);
    let file = std::fs::File::options().write(true).open(&place.path).unwrap();
    file.set_len((2 << 20) + 5000).unwrap();
    let store = small().open(&place.path).unwrap();
    assert_eq!(store.stats().tail_bytes, 5000);
    for (number, is_long) in chosen(3000, 20) {
        let length = if is_long { 9000 + number * 7 } else { number % 3000 };
        store.put(key(number), vec![1; length as usize]).unwrap();
    }
    for (number, is_kept) in chosen(3000, 3) {
        assert!(is_kept || store.delete(key(number)).unwrap());
    }
    let stats = store.stats();
    let free = stats.free_bytes + stats.free_page_bytes + stats.partial_bytes;
    let pool = stats.used_bytes + free + stats.rest_bytes + stats.kept_bytes;
    assert_eq!(pool, stats.pool_bytes);
    assert!(stats.partial_bytes > 0 && stats.free_page_bytes > 0 && stats.rest_bytes > 0);
    let partial: u64 = stats.classes.iter().map(|class| class.free_bytes).sum();
    assert_eq!(partial, stats.partial_bytes);
    assert!(stats.header_bytes + stats.waiting_bytes < stats.used_bytes);
}

#[test]
fn a_record_that_cannot_move_leaks_nothing() {
    let place = place();
    let store = small().initial_bytes(1 << 20).max_bytes(1 << 20).create(&place.path).unwrap();
    // The records of both series share chunks. Without the second, the chunks are sparse.
    for number in 0..300 {
        store.put(format!("a{number:03}"), [1; 40]).unwrap();
        for copy in 0..3 {
            store.put(format!("z{number:03}{copy}"), [1; 40]).unwrap();
        }
    }
    for number in 0..300 {
        (0..3).for_each(|copy| assert!(store.delete(format!("z{number:03}{copy}")).unwrap()));
    }
    store.pool().collect();
    // No leaf can split, and the leaves with the records become full. Each put that finds no space
    // tries to move records.
    let held: Vec<_> = core::iter::from_fn(|| store.pool().reserve(512).ok()).collect();
    for number in 0..300 {
        let put = |copy| store.put(format!("a{number:03}{copy:02}"), [1; 8]);
        let full = (0..30).map(put).find_map(Result::err);
        assert!(full.is_none_or(|error| matches!(error, Error::Full { .. })));
    }
    for block in held {
        store.pool().release(block, 512);
    }
    let mut store = store;
    assert_eq!(store.check().unwrap().unreachable_blocks, 0);
}
