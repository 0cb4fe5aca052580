//! A child of `fork` neither uses nor unlocks the store of its parent.
//!
//! Each test runs in a process of its own: the threads of other tests could hold a lock when the
//! process forks.
#![expect(unsafe_code, reason = "a fork has no safe form")]

use crate::{in_own_process, journaled, path_of_own_process, small};
use bristlecone::{Durability, Error, Order, Store};
use std::ops::ControlFlow;
use std::time::Duration;

const KEYS: u32 = 500;

fn key(number: u32) -> String {
    format!("a key of its own/{number:05}")
}

fn filled(path: &str) -> Store {
    let store = small().create(path).unwrap();
    for number in 0..KEYS {
        store.put(key(number), format!("value {number}")).unwrap();
    }
    store
}

/// Calls `child` in a child of this process. Returns `true` if it ended with `true`.
fn forked(child: impl FnOnce() -> bool) -> bool {
    // SAFETY: no other thread of this process holds a lock, and the child ends with `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            let is_right = child();
            // SAFETY: the call ends the process and runs no other code of it.
            unsafe { libc::_exit(i32::from(!is_right)) }
        }
        process => {
            let mut status = 0;
            // SAFETY: the pointer is valid.
            assert_eq!(unsafe { libc::waitpid(process, &raw mut status, 0) }, process);
            status == 0
        }
    }
}

fn is_refused<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::ForkedChild { .. }))
}

#[test]
fn every_method_of_a_child_is_refused() {
    let Some(path) = path_of_own_process() else {
        return in_own_process("fork::every_method_of_a_child_is_refused");
    };
    let mut store = filled(&path);
    let mut scan = store.iter();
    scan.next().unwrap().unwrap();
    assert!(
        forked(|| scan.find(Result::is_err).is_some_and(|found| is_refused(&found))),
        "a scan under way"
    );
    assert!(forked(|| {
        let name = key(1);
        let visit = |_: &[u8], _: &[u8]| ControlFlow::Continue(());
        let reads = [
            is_refused(&store.get(&name)),
            is_refused(&store.get_with(&name, <[u8]>::len)),
            is_refused(&store.contains(&name)),
            is_refused(&store.multi_get(&[&name])),
            is_refused(&store.len()),
            is_refused(&store.is_empty()),
            is_refused(&store.scan_with(.., Order::Descending, visit)),
            is_refused(&store.check()),
        ];
        let writes = [
            is_refused(&store.put(&name, "of a child")),
            is_refused(&store.insert("new", "of a child")),
            is_refused(&store.update(&name, "of a child")),
            is_refused(&store.delete(&name)),
            is_refused(&store.close()),
        ];
        reads.iter().chain(&writes).all(|&refused| refused)
    }));
}

#[test]
fn a_drop_in_a_child_changes_nothing_for_the_parent() {
    let Some(path) = path_of_own_process() else {
        return in_own_process("fork::a_drop_in_a_child_changes_nothing_for_the_parent");
    };
    let store = filled(&path);
    let mut of_child = Some(store);
    // The child drops its copy; the parent still has its own.
    assert!(forked(|| {
        drop(of_child.take());
        true
    }));
    let store = of_child.take().expect("only the child has dropped it");
    assert!(matches!(small().open(&path), Err(Error::InUse { .. })));
    for number in KEYS..2 * KEYS {
        store.put(key(number), format!("value {number}")).unwrap();
    }
    store.close().unwrap();
    let mut store = small().open(&path).unwrap();
    assert!(!store.was_recovered());
    assert_eq!(store.check().unwrap().keys, u64::from(2 * KEYS));
}

#[test]
fn a_child_has_stores_of_its_own() {
    let Some(path) = path_of_own_process() else {
        return in_own_process("fork::a_child_has_stores_of_its_own");
    };
    filled(&path).close().unwrap();
    let kept = filled(&format!("{path}.kept"));
    assert!(forked(|| {
        let store = small().open(&path).unwrap();
        store.put("child", "value").unwrap();
        store.close().is_ok()
    }));
    assert!(small().open(&path).unwrap().contains("child").unwrap());
    kept.close().unwrap();
}

#[test]
fn a_child_writes_nothing_to_the_journal_of_its_parent() {
    let Some(path) = path_of_own_process() else {
        return in_own_process("fork::a_child_writes_nothing_to_the_journal_of_its_parent");
    };
    let durability = Durability::Interval(Duration::from_millis(1));
    let options = journaled(durability);
    let store = options.create(&path).unwrap();
    store.put(key(0), "value 0").unwrap();
    let mut of_child = Some(store);
    assert!(forked(|| {
        let store = of_child.take().unwrap();
        let refused = [
            is_refused(&store.put(key(1), "of a child")),
            is_refused(&store.get(key(0)).map(|_| ())),
            is_refused(&store.sync()),
        ];
        drop(store);
        refused.iter().all(|&refused| refused)
    }));
    let store = of_child.take().expect("only the child has dropped it");
    for number in 1..KEYS {
        store.put(key(number), format!("value {number}")).unwrap();
    }
    drop(store);
    let mut store = small().open(&path).unwrap();
    assert_eq!(store.check().unwrap().keys, u64::from(KEYS));
}

/// The ring of the journal is a mapping that a child does not have.
#[test]
fn a_child_gets_statistics_without_a_journal() {
    let Some(path) = path_of_own_process() else {
        return in_own_process("fork::a_child_gets_statistics_without_a_journal");
    };
    let store = journaled(Durability::Commit).create(&path).unwrap();
    store.put("a", "b").unwrap();
    assert!(forked(|| store.stats().journal.is_none()));
    assert!(store.stats().journal.is_some());
}
