//! The mean cost of an insert, splits included, against simulations of the published persist orders
//! that hold no tree.

use crate::assert_near;
use bristlecone_lab::bench::{counter, counting_medium};
use bristlecone_lab::system::DesignTree;
use bristlecone_registry::with_size;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng};

/// Designs, the size of their nodes in bytes, and the simulated lines and fences of an insert of
/// uniform keys into an empty tree. Without a second number the fences were not simulated.
const SIMULATED: [(&str, usize, f64, Option<f64>); 11] = [
    ("wo-tree", 256, 5.4, None),
    ("wo-tree", 512, 5.2, None),
    ("wo-tree", 1024, 5.03, Some(4.24)),
    ("wo-tree", 2048, 5.8, None),
    ("isle-tree", 512, 2.87, Some(2.15)),
    ("isle-tree-all", 512, 3.12, Some(2.39)),
    ("btree-native", 1024, 25.7, Some(25.7)),
    ("fast-fair", 512, 4.1, None),
    ("fast-fair", 1024, 6.9, None),
    ("fast-fair", 2048, 12.6, None),
    ("lb-tree", 256, 1.8, Some(1.4)),
];

const INSERTS: u64 = 300_000;
const POOL_BYTES: u64 = 64 << 20;

#[test]
fn an_insert_costs_what_its_persist_order_predicts() {
    for (name, node_bytes, lines, fences) in SIMULATED {
        let built = with_size(name, node_bytes).ok().and_then(|entry| entry.simulated.numbers);
        let Some(form) = built else {
            // A build with the named designs alone has no others.
            let is_named = option_env!("BRISTLECONE_DESIGNS").is_some();
            assert!(is_named || !cfg!(feature = "all-sizes"), "{name} of {node_bytes} B");
            continue;
        };
        let tree = DesignTree::create(&form, counting_medium(POOL_BYTES).unwrap()).unwrap();
        let mut keys = StdRng::seed_from_u64(1);
        let _ = counter(tree.medium()).take();
        for value in 0..INSERTS {
            assert_eq!(tree.index().insert(keys.random(), value).unwrap(), None);
        }
        let counts = counter(tree.medium()).take();
        let mean = |count: u64| count as f64 / INSERTS as f64;
        assert_near(&format!("lines, {name}, {node_bytes} B"), mean(counts.lines), lines, 0.05);
        if let Some(fences) = fences {
            let what = format!("fences, {name}, {node_bytes} B");
            assert_near(&what, mean(counts.fences), fences, 0.05);
        }
    }
}
