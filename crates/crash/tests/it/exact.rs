//! The right toy passes, and the explorer counts as many images as a count by hand.

use crate::explore;
use crate::toy::{self, Toy};
use bristlecone_crash::{Campaign, CrashOptions, Modes, PersistenceModel, Request, Subject, run};

#[test]
fn the_right_toy_passes_everywhere() {
    let (summary, outcomes) = explore::<{ toy::NONE }>("", Modes::Auto);
    for violation in outcomes.iter().flat_map(|outcome| &outcome.violations) {
        eprintln!("{violation}");
    }
    assert!(summary.is_pass(), "{summary:?}");
    let covered = |name: &str| outcomes.iter().any(|outcome| outcome.scenario == name);
    for name in ["u64/create", "text/insert-middle", "u64/remove-last", "text/close"] {
        assert!(covered(name), "{name} is not among the scenarios");
    }
}

#[track_caller]
fn assert_images(scenario: &str, mode: PersistenceModel, images: u128) {
    let (_, outcomes) = explore::<{ toy::NONE }>(scenario, Modes::Only(mode));
    let outcome = outcomes.iter().find(|outcome| outcome.scenario == scenario);
    let outcome = outcome.expect("the scenario exists");
    assert_eq!((outcome.images(), outcome.incomplete), (images, false), "{scenario} {mode:?}");
    assert!(u128::from(outcome.recoveries()) <= images);
}

#[test]
fn an_insert_has_the_images_that_one_counts() {
    // 1 image before. The record is 4 stores to a line: 4 more, a prefix each. Then that line is
    // guaranteed, and the count adds 1.
    assert_images("u64/insert-empty", PersistenceModel::Px86, 6);
    // Word by word: after the first store 1, then 2, 4, 8, the words before being free each time.
    assert_images("u64/insert-empty", PersistenceModel::Word, 1 + (1 + 2 + 4 + 8) + 1);
}

#[test]
fn a_key_record_is_a_fill_without_order() {
    // The key of number 20 is 12 + 60 bytes behind a word of length: 10 words, 8 in a line and 2 in
    // the next. 1 image before; 255 subsets of the first line; 3 of the second times 256 of the
    // first; each of the 4 stores of the record times 256 * 4; 1 with the count.
    assert_images("text/insert-empty", PersistenceModel::Px86, 1 + 255 + 3 * 256 + 4 * 1024 + 1);
    // Word by word: each of the 14 words doubles the images.
    assert_images("text/insert-empty", PersistenceModel::Word, 1 + ((1 << 14) - 1) + 1);
}

#[test]
fn two_operations_add_up() {
    // The records of the two operations share a line: the fourth record ends it, the fifth begins
    // another. Each operation adds the 5 images of an insert.
    assert_images("u64/insert-then-remove", PersistenceModel::Px86, 1 + 5 + 5);
    assert_images("u64/insert-then-remove", PersistenceModel::Word, 1 + 16 + 16);
}

#[test]
fn an_operation_that_changes_nothing_has_one_image() {
    assert_images("u64/insert-present", PersistenceModel::Px86, 1);
    assert_images("u64/remove-absent", PersistenceModel::Word, 1);
}

#[test]
fn a_budget_is_one_of_images() {
    let explored = |budget| {
        let filter = "u64/insert-empty".into();
        let modes = Modes::Only(PersistenceModel::Px86);
        let options = CrashOptions { budget, ..CrashOptions::default() };
        let request = Request { modes, filter, ..Request::new(Campaign::Crashes(options)) };
        run(&[Subject::of::<Toy<{ toy::NONE }>>()], &request, &mut |_| {})
    };
    assert!(explored(6).is_pass());
    let summary = explored(5);
    assert_eq!((summary.images, summary.incomplete, summary.violated), (6, 1, 0));
}
