//! A store whose file is cut into stripes of several NUMA nodes.

use super::{place, small};
use bristlecone::{Error, ErrorKind, Placement, Store};
use bristlecone_pmem::numa::{NODE_NUMBERS, override_node};

const STRIPE_BYTES: u64 = 256 << 10;

fn used(store: &Store) -> Vec<(u16, u64)> {
    store.stats().nodes.iter().map(|usage| (usage.node, usage.used_bytes)).collect()
}

#[test]
fn what_a_thread_writes_is_on_its_node() {
    let place = place();
    let striped = small().placement(Placement::as_it_lies(&[0, 1], STRIPE_BYTES).unwrap());
    let store = striped.create(&place.path).unwrap();
    for node in [0, 1] {
        let _on = override_node(node);
        let before = used(&store);
        for key in 0..2000u32 {
            store.put(format!("{node}/{key:05}"), [7; 300]).unwrap();
        }
        let after = used(&store);
        let (own, other) = (usize::from(node), usize::from(1 - node));
        assert_eq!([before[0].0, before[1].0], [0, 1]);
        assert!(after[own].1 > before[own].1 + 2000 * 300, "{before:?} {after:?}");
        assert!(after[other].1 <= before[other].1, "{before:?} {after:?}");
    }
    drop(store);
    let mut store = Store::open(&place.path).unwrap();
    assert!(store.stats().nodes.is_empty());
    assert_eq!(store.check().unwrap().keys, 4000);
    store.close().unwrap();
    let mut store = striped.open(&place.path).unwrap();
    let stats = store.stats();
    assert_eq!(stats.nodes.iter().map(|usage| usage.pool_bytes).sum::<u64>(), stats.pool_bytes);
    assert_eq!(store.check().unwrap().unreachable_blocks, 0);
}

#[test]
fn a_node_that_cannot_be_had_is_named() {
    let place = place();
    let nowhere = Placement::new(&[NODE_NUMBERS - 1], 2 << 20).unwrap();
    let error = small().placement(nowhere).create(&place.path).unwrap_err();
    assert!(matches!(error, Error::Node { node: 1023, .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::System);
    assert!(error.to_string().contains("test.pool: cannot put memory on NUMA node 1023"));
    assert!(!place.path.exists());
}
