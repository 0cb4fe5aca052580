//! The inputs of the fuzz target `store_image`: what once failed, and seeds. See `fuzz/README.md`.

#[path = "../../../../fuzz/entries/store.rs"]
mod store;

#[test]
fn every_input_of_the_corpus_is_survived() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/store_image");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus is in the checkout") {
        let path = entry.expect("can be listed").path();
        eprintln!("{}", path.display());
        store::store_image(&std::fs::read(&path).expect("can be read"));
        count += 1;
    }
    assert!(count >= 6, "{count} inputs");
}
