//! The catalogue of published defects: each is caught.

use bristlecone_crash::{Request, run_catalogue};

#[test]
fn every_published_defect_is_caught() {
    let mut missed = Vec::new();
    run_catalogue(&Request::default(), &mut |tried| {
        let about = tried.defect.about();
        match &tried.caught {
            Some((scenario, violation)) => eprintln!(
                "{}: {scenario} {} depth {} after {}: {}, found {}",
                about.name,
                tried.mode.name(),
                tried.depth,
                tried.recoveries,
                violation.what,
                violation.found
            ),
            None => missed.push(about.name),
        }
    })
    .expect("every defect names a design");
    assert!(missed.is_empty(), "not caught: {missed:?}");
}
