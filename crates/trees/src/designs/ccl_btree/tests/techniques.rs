//! Tests without techniques of the paper.

use super::*;
use crate::designs::ccl_btree::techniques::Chosen;

#[test]
fn pairs_survive_crashes_without_techniques() {
    run_sessions::<2, Chosen<false, true>>(2000);
    run_sessions::<2, Chosen<true, false>>(2000);
    run_sessions::<2, Chosen<false, false>>(20);
}

#[test]
fn without_write_conservative_logging_a_settling_write_is_logged() {
    let index = counted::<Index<_, 2, Chosen<false, true>>>();
    index.insert(0, 0).unwrap();
    index.insert(1, 1).unwrap();
    // The third entry of the log crosses the end of a line; the batch costs as much again.
    assert_eq!(cost(&index, |index| assert_eq!(index.insert(2, 2).unwrap(), None)), (4, 4));
    assert_eq!(index.log.fill(), [3, 3]);
    assert_eq!(index.check().unwrap().keys, 3);
}

#[test]
fn without_locality_aware_collection_buffers_settle() {
    let index = counted::<Index<_, 2, Chosen<true, false>>>();
    index.insert(0, 0).unwrap();
    index.insert(1, 1).unwrap();
    index.collect().unwrap();
    assert_eq!(index.log.fill(), [0, 0]);
    assert!(log::chunks(&index.pool, index.root_words().unwrap()).unwrap().is_empty());
    assert_eq!((index.get(0).unwrap(), index.get(1).unwrap()), (Some(0), Some(1)));
}
