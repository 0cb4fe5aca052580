//! The catalogue of defects: each is caught, and the toys without a defect pass.

use bristlecone_crash::{
    Defect, Modes, PersistenceModel, Request, run_as_printed, run_catalogue, run_defects, run_toys,
};

/// Looks for all defects of `designs`, of which there are `least` at least.
#[track_caller]
fn assert_caught(designs: &[&str], least: usize) {
    let names: Vec<_> = designs.iter().copied().map(String::from).collect();
    let (mut total, mut missed) = (0, Vec::new());
    let outcome = run_catalogue(&names, &Request::default(), &mut |result| {
        total += 1;
        if result.caught().is_none() {
            missed.push(result.defect.about().name);
        }
    });
    outcome.expect("every defect names a design");
    assert!(missed.is_empty(), "not caught: {missed:?}");
    assert!(total >= least, "{total} defects of {designs:?}");
}

// Designs whose defects take little time. The command `crash --catalogue` looks for the defects of
// all designs.

#[test]
fn the_defects_of_the_pool_and_nine_designs_are_caught() {
    let designs = [
        "pool",
        "wb-tree-bitmap-leaf",
        "btree-native",
        "circ-tree",
        "ccl-btree",
        "lb-tree",
        "cell-tree",
        "unit-tree",
        "kv-isle-tree",
        "kv-wb-tree",
    ];
    assert_caught(&designs, 60);
    assert!(Defect::ALL.len() >= 188, "only {} defects are seeded", Defect::ALL.len());
}

/// Looks for defects that only certain scenarios can show, in those alone.
#[test]
fn defects_that_take_a_certain_scenario_are_caught() {
    let cases = [
        ("u64/small-scale", Defect::WalkTrusted),
        ("u64/aged-split-leaf-below-root", Defect::IndexReplayKept),
        ("u64/wide-merge", Defect::AppliedLineUnflushed),
        ("u64/merge-open-split", Defect::LsLeafReused),
        ("u64/compact@2", Defect::CompactRepinned),
        ("u64/scan-merge-leaf@2", Defect::ScanMergeMisses),
        ("u64/scan-merge-leaf@2", Defect::ScanMergeRepeats),
        ("u64/scan-split-chain@2", Defect::ScanLinkFirst),
        ("u64/split-two-leaves-growing@2", Defect::GrowthEarly),
        ("u64/split-leaf-middle", Defect::CutWithoutRoom),
    ];
    assert_each_caught(&cases);
}

#[test]
fn a_defect_is_caught_while_a_thread_is_stopped() {
    assert_each_caught(&[("u64/inner-split-post@2", Defect::RightInnerOpen)]);
}

/// Looks for each defect in the scenarios whose names contain its filter.
#[track_caller]
fn assert_each_caught(cases: &[(&str, Defect)]) {
    for &(filter, defect) in cases {
        let request = Request { filter: filter.into(), ..Request::default() };
        let mut is_caught = false;
        let outcome = run_defects(&[defect], &request, &mut |result| {
            is_caught = result.caught().is_some();
        });
        outcome.expect("the design exists");
        assert!(is_caught, "{} in {filter}", defect.about().name);
    }
}

#[test]
fn defects_of_batches_are_caught() {
    assert_each_caught(&[
        ("u64/commit-many-empty", Defect::BatchEarly),
        ("u64/commit-leaves", Defect::BatchKept),
        ("u64/commit-leaves", Defect::BatchFractured),
        ("u64/commit-beside-reads@2", Defect::BatchUnlatched),
        ("text/commit-beside-writes@2", Defect::BatchStale),
        ("text/commit-beside-writes@2", Defect::UnmetLeaks),
    ]);
}

#[test]
fn defects_of_isle_trees_are_caught() {
    assert_each_caught(&[
        ("", Defect::ValuesEqual),
        ("", Defect::LeftUnlatched),
        ("", Defect::FreshUnfenced),
        ("", Defect::ParentFirst),
        ("u64/inner-split-writes", Defect::LockLeftBehind),
        ("u64/inner-split-writes", Defect::ChildrenUnheld),
        ("u64/split", Defect::LockUnchecked),
    ]);
}

#[test]
fn defects_of_repairs_are_caught() {
    assert_each_caught(&[
        ("u64/split", Defect::CopyTrusted),
        ("text/split", Defect::CopyTrusted),
        ("u64/split", Defect::InnerUnrepaired),
        ("u64/", Defect::UnlatchedUnrepaired),
    ]);
}

#[test]
fn the_toys_without_a_defect_are_right() {
    let mut explored = 0;
    let summary = run_toys(&Request::default(), &mut |outcome| {
        explored += 1;
        for violation in &outcome.violations {
            eprintln!("{} {}: {violation}", outcome.subject, outcome.scenario);
        }
    });
    assert!(summary.is_pass() && explored > 100, "{summary:?}");
}

#[test]
fn what_is_printed_loses_data_with_the_least_trace() {
    let request = Request { filter: "u64/remove-front".into(), ..Request::default() };
    let designs = ["fast-fair".into()];
    let mut found = None;
    let outcome = run_as_printed(&designs, &request, &mut |result| {
        if result.defect == Defect::DeleteFlush {
            found = result.caught().cloned();
        }
    });
    outcome.expect("the design exists");
    let violation = found.expect("the delete as printed loses data");
    assert!((1..=2).contains(&violation.lost_words()), "{violation}");
    assert!(violation.trace.contains("LOST"), "{violation}");
}

/// A fence guarantees nothing on a disk with a journal: these defects leave out a wait for it, or
/// break the order of its copies.
#[test]
fn defects_of_a_journal_and_its_waits_are_caught_on_a_disk_alone() {
    let cases = [
        ("u64/insert-empty", Defect::WriteUnsettled),
        ("u64/one-key@2", Defect::LookupUnsettled),
        ("u64/scan-few-keys@2", Defect::ScanUnsettled),
        ("u64/one-key@2", Defect::CopyFirst),
    ];
    for (filter, defect) in cases {
        let is_caught = |modes| {
            let request = Request { filter: filter.into(), modes, ..Request::default() };
            let mut is_caught = false;
            let outcome = run_defects(&[defect], &request, &mut |result| {
                is_caught = result.caught().is_some();
            });
            outcome.expect("the design exists");
            is_caught
        };
        assert!(is_caught(Modes::Auto), "{} in {filter}", defect.about().name);
        assert!(!is_caught(Modes::Only(PersistenceModel::Px86)), "{}", defect.about().name);
    }
}
