use super::*;
use crate::leaf_table::EntryChange;
use bristlecone_pmem::Mapped;

/// A slot that named another epoch than that of the log with its entry was not copied, and its
/// write was lost with the log.
#[test]
fn an_entry_has_the_epoch_of_its_chunk_if_another_begins() {
    let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
    let root = pool.reserve(8 * ROOT_WORDS as u64).unwrap();
    let root = pool.words(root, ROOT_WORDS).unwrap();
    let logs = LaneLogs::<Mapped>::new();
    let logged = LogEntry { stamp: 1, change: EntryChange::default() };
    let parity = |is_due: &dyn Fn() -> bool| {
        logs.append(&pool, root, &logged, is_due).unwrap().unwrap().parity
    };
    assert_eq!(parity(&|| false), 0);
    logs.lanes[own_lane::<Mapped>()].appended.store(ASK_ENTRIES, Ordering::Relaxed);
    let another_begins = || {
        logs.begin_epoch();
        false
    };
    assert_eq!(parity(&another_begins), 0);
    assert_eq!(parity(&|| false), 1);
}
