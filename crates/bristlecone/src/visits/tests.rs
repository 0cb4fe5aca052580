//! Under `Commit` scans wait for the leaves that they have copied, for nothing else.

use super::*;
use crate::{Durability, JournalStats};
use core::cell::RefCell;

/// The number of pairs, which take over 20 leaves.
const PAIRS: u64 = 1000;
/// The number of pairs by which writes are ahead of a scan: more than a leaf has.
const AHEAD: u64 = 64;

/// A store under `Commit` with writes that are fenced, and that no thread has waited for.
struct Unsettled {
    store: Store,
    /// The position of the journal behind the write of each value.
    positions: RefCell<Vec<u64>>,
    _folder: tempfile::TempDir,
}

impl Unsettled {
    /// Returns a store in which all pairs are on the disk.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = Store::options().durability(Durability::Commit).trust_file_system(true);
        let options = options.journal_bytes(8 << 20).reserve_bytes(1 << 30);
        let store = options.create(folder.path().join("trees.pool")).unwrap();
        let this = Self { store, positions: RefCell::default(), _folder: folder };
        (0..PAIRS).for_each(|key| this.put(key));
        this.store.sync().unwrap();
        this
    }

    /// Gives `key` the next value, if there is such a key.
    fn put(&self, key: u64) {
        if key < PAIRS {
            let mut positions = self.positions.borrow_mut();
            let (key, value) = (key.to_be_bytes(), (positions.len() as u64).to_be_bytes());
            self.store.index.upsert_pair(&key, Record::inline(&key, &value).unwrap()).unwrap();
            positions.push(self.stats().position);
        }
    }

    fn stats(&self) -> JournalStats {
        self.store.medium().journaled().unwrap().stats()
    }

    /// Returns the key of a pair that a scan has shown. No power cut can take it back.
    fn seen(&self, key: &[u8], value: &[u8]) -> u64 {
        let [key, value] = [key, value].map(|bytes| u64::from_be_bytes(bytes.try_into().unwrap()));
        assert!(self.positions.borrow()[value as usize] <= self.stats().synced, "{key}");
        key
    }

    /// Scans all pairs with a visitor, and calls `then` after each. Returns the number of waits.
    fn visit(&self, order: Order, mut then: impl FnMut(u64)) -> u64 {
        let (before, mut visited) = (self.stats().waits, 0);
        let scanned = self.store.scan_with(.., order, |key, value| {
            then(self.seen(key, value));
            visited += 1;
            ControlFlow::Continue(())
        });
        scanned.unwrap();
        assert_eq!(visited, PAIRS);
        self.stats().waits - before
    }
}

#[test]
fn a_scan_waits_once_for_each_leaf_that_was_written_and_for_no_other_line() {
    let unsettled = Unsettled::new();
    let other = unsettled.store.pool().words(bristlecone_pmem::PmPtr::NULL, 1).unwrap();
    let fence_other = |_| {
        unsettled.store.medium().flush(other);
        let _ = unsettled.store.medium().fence();
    };
    assert_eq!(unsettled.visit(Order::Ascending, fence_other), 0);
    assert_eq!(unsettled.visit(Order::Descending, fence_other), 0);
    let ahead = unsettled.visit(Order::Ascending, |key| unsettled.put(key + AHEAD));
    assert!((8..=PAIRS / 8).contains(&ahead), "{ahead}");
    let ahead = unsettled.visit(Order::Descending, |key| unsettled.put(key.wrapping_sub(AHEAD)));
    assert!((8..=PAIRS / 8).contains(&ahead), "{ahead}");
}

#[test]
fn an_iterator_waits_once_for_each_batch_and_a_count_once() {
    let unsettled = Unsettled::new();
    let before = unsettled.stats().waits;
    let mut returned = 0;
    for pair in &unsettled.store {
        let (key, value) = pair.unwrap();
        unsettled.put(unsettled.seen(&key, &value) + AHEAD);
        returned += 1;
    }
    assert_eq!(returned, PAIRS);
    let waits = unsettled.stats().waits - before;
    // Batches of 8 pairs, 16, and so on, and of 256 at last.
    assert!((4..=8).contains(&waits), "{waits}");
    unsettled.put(PAIRS - 1);
    assert_eq!(unsettled.store.len().unwrap(), PAIRS);
    assert_eq!(unsettled.stats().waits - before, waits + 1);
}
