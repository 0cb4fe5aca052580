//! The inputs of the fuzz target `workload_text`: what once failed, and seeds. See
//! `fuzz/README.md`.

#[path = "../../../../fuzz/entries/workload.rs"]
mod workload;

#[test]
fn every_input_of_the_corpus_is_survived() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/workload_text");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the corpus is in the checkout") {
        let path = entry.expect("can be listed").path();
        eprintln!("{}", path.display());
        workload::workload_text(&std::fs::read(&path).expect("can be read"));
        count += 1;
    }
    assert!(count >= 6, "{count} inputs");
}
