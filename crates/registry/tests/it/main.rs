//! The conformance suite on every design of the registry, and on toys that it must reject.

mod flaws;
mod suite;
mod table;
mod toy;

use bristlecone_registry::{sizes, smallest_size};
use bristlecone_trees::names::specs;
use suite::{Subjects, Suite};

/// Runs `suite` on the design called `name` at its smallest node size, where nodes split and merge
/// most often.
fn run(name: &str, suite: Suite) {
    let row = smallest_size(name);
    suite(&Subjects::registered(row.unwrap_or_else(|_| panic!("{name} is not in the registry"))));
}

/// Runs `suite` on the design called `name` at every node size.
fn run_sizes(name: &str, suite: Suite) {
    for row in sizes(name).expect("the registry lists it") {
        eprintln!("nodes of {} B", row.spec.node_bytes);
        suite(&Subjects::registered(row));
    }
}

/// Declares a module for each design, with a test for each suite, so that a failure names the
/// design.
macro_rules! conform {
    ($($(#[$built:meta])? $module:ident: $name:literal),* $(,)?) => {
        const TESTED: &[&str] = &[$($name),*];
        $($(#[$built])? mod $module {
            conform!(@tests $name, run_sizes; integer_model, budget);
            conform!(@tests $name, run; text_model, visits, bulk, loads, reopen, threads, histories,
                maintainers, full, hostile_integers, hostile_texts);
        })*
    };
    (@tests $name:literal, $run:ident; $($test:ident),*) => {$(
        #[test]
        fn $test() {
            crate::$run($name, crate::suite::$test);
        }
    )*};
}

// One line a design, in the order of the registry.
conform! {
    btree: "btree",
    btree_linear: "btree-linear",
    unsorted_leaf: "unsorted-leaf",
    btree_log: "btree-log",
    btree_native: "btree-native",
    unsorted_leaf_log: "unsorted-leaf-log",
    unsorted_bitmap_log: "unsorted-bitmap-log",
    btree_shadow: "btree-shadow",
    unsorted_leaf_shadow: "unsorted-leaf-shadow",
    unsorted_bitmap_shadow: "unsorted-bitmap-shadow",
    btree_gf: "btree-gf",
    btree_wal: "btree-wal",
    persistent_unsorted: "persistent-unsorted",
    wb_tree: "wb-tree",
    wb_tree_bitmap_leaf: "wb-tree-bitmap-leaf",
    wb_tree_slot_only: "wb-tree-slot-only",
    #[cfg(feature = "all-sizes")]
    wb_tree_words: "wb-tree-words",
    wb_tree_r: "wb-tree-r",
    fast_fair: "fast-fair",
    fast_fair_r: "fast-fair-r",
    #[cfg(feature = "all-sizes")]
    fast_fair_wide: "fast-fair-wide",
    fast_fair_sp: "fast-fair-sp",
    fast_fair_sp_r: "fast-fair-sp-r",
    wo_tree: "wo-tree",
    wo_tree_r: "wo-tree-r",
    fptree: "fptree",
    fptree_r: "fptree-r",
    isle_tree: "isle-tree",
    isle_tree_r: "isle-tree-r",
    isle_tree_all: "isle-tree-all",
    ccl_btree: "ccl-btree",
    lb_tree: "lb-tree",
    nv_tree: "nv-tree",
    nv_tree_r: "nv-tree-r",
    circ_tree: "circ-tree",
    circ_tree_r: "circ-tree-r",
    btree_ls: "btree-ls",
    btree_ls_r: "btree-ls-r",
    cell_tree: "cell-tree",
    unit_tree: "unit-tree",
    bristlecone: "bristlecone",
}

#[test]
#[should_panic(expected = "is not in the registry")]
fn a_design_that_is_not_registered_is_not_tested() {
    run("no such design", suite::budget);
}

#[test]
fn every_registered_design_is_tested() {
    let registered: Vec<_> = specs().iter().map(|sizes| sizes[0].name).collect();
    assert_eq!(registered, TESTED, "the list above and the registry differ");
}
