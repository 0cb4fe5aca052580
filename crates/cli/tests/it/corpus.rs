//! The inputs of the fuzz target `load_lines`: what once failed, and seeds. See `fuzz/README.md`.

#[path = "../../../../fuzz/entries/pairs.rs"]
mod pairs;

#[test]
fn every_input_of_the_corpus_is_survived() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/load_lines");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus is in the checkout") {
        let path = entry.expect("can be listed").path();
        eprintln!("{}", path.display());
        pairs::load_lines(&std::fs::read(&path).expect("can be read"));
        count += 1;
    }
    assert!(count >= 6, "{count} inputs");
}
