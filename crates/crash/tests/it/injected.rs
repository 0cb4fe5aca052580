//! Injected defects of toys: each must be caught by the right scenario, with the right violation.

use crate::explore;
use crate::toy::{self, Toy};
use bristlecone_crash::{
    Campaign, CrashOptions, Modes, Mutant, Mutation, MutationScore, Outcome, Request, Subject,
    Violation, run, run_crash_mutants,
};
use bristlecone_trees::designs::WbTree;

/// Returns the first violation of a toy in a scenario.
#[track_caller]
fn caught<const DEFECT: u8>(scenario: &str) -> Violation {
    let (summary, outcomes) = explore::<DEFECT>(scenario, Modes::Auto);
    assert!(!summary.is_pass());
    let mut violations = outcomes.into_iter().flat_map(|outcome| outcome.violations);
    violations.next().expect("the defect is caught")
}

#[test]
fn a_count_stored_before_its_record_is_fenced() {
    let violation = caught::<{ toy::COMMIT_EARLY }>("u64/insert-empty");
    assert_eq!(violation.what, "it does not open");
    // The least trace: the last word of the record is lost, the count is not.
    assert_eq!(violation.lost_words(), 1, "{violation}");
    let lost: Vec<_> = violation.trace.lines().filter(|line| line.contains("LOST")).collect();
    assert_eq!(lost.len(), 1, "{violation}");
    assert!(lost[0].trim_start().starts_with('W'), "{violation}");
}

#[test]
fn an_operation_acknowledged_before_its_fence() {
    let violation = caught::<{ toy::NO_LAST_FENCE }>("u64/insert-empty");
    assert_eq!(violation.what, "an acknowledged operation is lost");
    caught::<{ toy::NO_LAST_FENCE }>("text/remove-middle");
    caught::<{ toy::NO_LAST_FENCE }>("u64/insert-then-remove");
}

#[test]
fn a_record_that_is_never_flushed() {
    let violation = caught::<{ toy::NO_RECORD_FLUSH }>("u64/insert-middle");
    assert_eq!(violation.what, "it does not open");
}

#[test]
fn an_update_of_two_words_in_place() {
    let violation = caught::<{ toy::TWO_WORDS }>("u64/update");
    assert!(violation.found.contains("second value"), "{violation}");
}

#[test]
fn a_store_around_the_medium() {
    let violation = caught::<{ toy::BYPASS }>("u64/insert-empty");
    assert_eq!(violation.what, "a store went around the medium");
}

#[test]
fn a_block_that_recovery_loses() {
    let violation = caught::<{ toy::LEAK }>("u64/insert-empty");
    assert_eq!(violation.what, "what is allocated is not what is reachable");
}

#[test]
fn a_recovery_that_does_not_end() {
    let violation = caught::<{ toy::SPIN }>("u64/insert-empty");
    assert_eq!(violation.what, "it does not end");
}

#[test]
fn a_recovery_that_panics() {
    let violation = caught::<{ toy::PANIC }>("u64/insert-empty");
    assert_eq!(violation.what, "panic");
    assert!(violation.found.contains("a record is cut off"), "{violation}");
}

#[test]
fn a_recovery_that_is_not_the_same_twice() {
    let (summary, outcomes) = explore::<{ toy::FORGET }>("u64/update-absent", Modes::Auto);
    assert!(!summary.is_pass());
    assert!(outcomes.iter().all(|outcome| !outcome.violations.is_empty()));
}

#[test]
fn a_repair_that_a_second_crash_tears() {
    let violation = caught::<{ toy::TORN_REPAIR }>("u64/update");
    assert!(violation.trace.contains("begin the recovery"), "{violation}");
    assert!(violation.trace.contains("begin update"), "the first crash is told too: {violation}");
    let (summary, outcomes) = explore::<{ toy::WHOLE_REPAIR }>("u64/update", Modes::Auto);
    assert!(summary.is_pass());
    let nested = |outcome: &&Outcome| outcome.scenario == "u64/update+recovery";
    assert!(outcomes.iter().find(nested).is_some_and(|outcome| outcome.recoveries() > 0));
}

/// The first recovery does the same for all contents of the record; a second one reads it.
#[test]
fn a_record_that_only_a_second_recovery_reads() {
    let violation = caught::<{ toy::COUNTS_AGAIN }>("u64/update");
    assert!(violation.trace.contains("begin the recovery"), "{violation}");
}

/// Of the images that a first recovery cannot tell apart, the newest is never wrong here.
#[test]
fn a_lost_word_that_only_a_second_recovery_reads() {
    let violation = caught::<{ toy::COUNTS_TAILS }>("u64/update");
    assert!(violation.trace.contains("begin the recovery"), "{violation}");
}

#[test]
fn every_flush_and_fence_of_the_right_toy_is_needed() {
    let request = Request { filter: "u64/".into(), ..Request::default() };
    let mut survivors = Vec::new();
    let mut score = MutationScore::default();
    let mut see = |mutant: &Mutant| {
        score.add(mutant);
        if mutant.killed.is_none() {
            survivors.push(mutant.mutation.to_string());
        }
    };
    run_crash_mutants(&[Subject::of::<Toy<{ toy::NONE }>>()], &request, &mut see);
    // The toy's two flushes and its fences, and those of the pool that creation, opening and
    // closing come by.
    assert!(score.total >= 8 && score.killed + score.survived == score.total, "{score:?}");
    let of_the_toy = |step: &str| {
        let those = survivors.iter().filter(|survivor| survivor.contains("toy.rs"));
        those.filter(|survivor| survivor.contains(step)).count()
    };
    assert_eq!(of_the_toy("without the flush"), 0, "{survivors:?}");
    assert_eq!(of_the_toy("without the fence"), 0, "{survivors:?}");
}

/// In the smallest nodes bitmap and slot array share a line, and no scenario misses this fence. If
/// the array takes a second line, a scenario misses every flush and fence of a remove from a full
/// leaf.
#[test]
fn an_array_of_two_lines_needs_every_fence_of_a_remove() {
    let filter = "u64/remove-front-full".into();
    let request = Request { filter, ..Request::default() };
    let (mut killed, mut survivors) = (0, Vec::new());
    run_crash_mutants(&[Subject::of::<WbTree<1024>>()], &request, &mut |mutant| {
        let name = mutant.mutation.to_string();
        if name.starts_with("without the f") && name.contains("slot_bitmap") {
            killed += u32::from(mutant.killed.is_some());
            survivors.extend(mutant.killed.is_none().then_some(name));
        }
    });
    assert!(killed > 0, "no flush and no fence of a slot array was met");
    assert_eq!(survivors, [""; 0]);
}

#[test]
fn a_mutation_past_the_last_site_changes_nothing() {
    let mutation = Some(Mutation::SkipFence(2));
    let options = CrashOptions { mutation, ..CrashOptions::default() };
    let filter = "u64/insert-empty".into();
    let request = Request { filter, ..Request::new(Campaign::Crashes(options)) };
    assert!(run(&[Subject::of::<Toy<{ toy::NONE }>>()], &request, &mut |_| {}).is_pass());
}

/// A superblock names the new length of a pool that has grown. If a crash can lose the length, the
/// file is cut short.
#[test]
fn a_length_that_is_not_synced() {
    let request = Request { filter: "grow".into(), ..Request::default() };
    let mut fates = Vec::new();
    run_crash_mutants(&Subject::named(&["pool".to_owned()]).unwrap(), &request, &mut |mutant| {
        if matches!(mutant.mutation, Mutation::NoSync(_)) {
            let violation = mutant.killed.as_ref().map(|(_, violation)| violation.what.clone());
            fates.push(violation);
        }
    });
    assert_eq!(fates, [Some("it does not open".to_string())]);
}
