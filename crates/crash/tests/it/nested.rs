//! Crashes of recoveries, and of the recoveries from those.

use bristlecone_crash::{POOL, Request, run};

/// The recovery's own operations were once counted as those under test, of which there are more.
#[test]
fn a_third_crash_may_come_to_what_the_first_one_allowed() {
    let designs = vec![POOL.to_owned()];
    let filter = "log-redo-twice".to_owned();
    let request = Request { designs, filter, depth: 3, ..Request::default() };
    let mut depths = Vec::new();
    let summary = run(&request, &mut |outcome| {
        for violation in &outcome.violations {
            eprintln!("{}: {violation}", outcome.scenario);
        }
        depths.push((outcome.depth, outcome.recoveries > 0));
    });
    assert_eq!(depths, [(1, true), (2, true), (3, true)]);
    assert!(summary.unwrap().is_pass());
}
