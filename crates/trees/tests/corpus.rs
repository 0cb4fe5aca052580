//! The inputs of the fuzz target `tree_image`: what once failed, and seeds. See `fuzz/README.md`.

#[path = "../../../fuzz/entries/tree.rs"]
mod tree;

#[test]
fn every_input_of_the_corpus_is_survived() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/tree_image");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus is in the checkout") {
        let path = entry.expect("can be listed").path();
        eprintln!("{}", path.display());
        tree::tree_image(&std::fs::read(&path).expect("can be read"));
        count += 1;
    }
    assert!(count >= 6, "{count} inputs");
}
