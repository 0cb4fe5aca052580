//! The rows of the table.

use bristlecone_registry::{default_size, is_built, smallest_size, with_size};
use bristlecone_trees::names::{UnknownDesign, specs};

#[test]
fn rows_have_the_forms_that_the_explorer_and_the_laboratory_take() {
    for sizes in specs() {
        let name = sizes[0].name;
        if !is_built(name) {
            assert!(
                !cfg!(feature = "all-sizes") && ["fast-fair-wide", "wb-tree-words"].contains(&name),
                "{name}"
            );
            continue;
        }
        assert!(default_size(name).unwrap().memory.numbers.is_some(), "{name}");
        assert!(smallest_size(name).unwrap().simulated.text.is_some(), "{name}");
        for spec in &sizes {
            match with_size(name, spec.node_bytes) {
                Ok(row) => assert!(row.simulated.numbers.is_some(), "{name}"),
                Err(UnknownDesign::NotBuilt { .. }) if !cfg!(feature = "all-sizes") => {}
                Err(other) => panic!("{other}"),
            }
        }
        assert!(with_size(name, 7).is_err());
    }
    assert!(default_size("no such tree").is_err());
}
