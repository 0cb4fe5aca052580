//! Crashes of recoveries, and of the recoveries from those.

use bristlecone_crash::{Campaign, CrashOptions, POOL, Request, Subject, run};

/// The recovery's own operations were once counted as those under test, of which there are more.
#[test]
fn a_third_crash_may_come_to_what_the_first_one_allowed() {
    let pool = Subject::named(&[POOL.to_owned()]).unwrap();
    let filter = "log-redo-twice".to_owned();
    let options = CrashOptions { depth: 3, ..CrashOptions::default() };
    let request = Request { filter, ..Request::new(Campaign::Crashes(options)) };
    let mut depths = Vec::new();
    let summary = run(&pool, &request, &mut |outcome| {
        for violation in &outcome.violations {
            eprintln!("{}: {violation}", outcome.scenario);
        }
        depths.push((outcome.depth(), outcome.recoveries() > 0));
    });
    assert_eq!(depths, [(1, true), (2, true), (3, true)]);
    assert!(summary.is_pass());
}
