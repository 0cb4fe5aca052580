//! Defects that only several threads can meet: each must be caught with the right violation.

use crate::chain::{self, Chain};
use bristlecone_crash::{
    Campaign, Outcome, Request, STORE, ScheduleOptions, Subject, Summary, Violation, run,
};
use bristlecone_trees::Design;
use bristlecone_trees::designs::{BTreeLs, BTreeLsR, CclBTree, FpTree, FpTreeR};

/// Explores the scenarios of a version whose names contain `filter`.
fn explore_chain<const DEFECT: u8>(filter: &str, options: ScheduleOptions) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    explore::<Chain<DEFECT>>(filter, options, &mut |outcome| outcomes.push(outcome.clone()));
    outcomes
}

fn explore<D: Design>(filter: &str, options: ScheduleOptions, see: &mut dyn FnMut(&Outcome)) {
    explore_subject(Subject::of::<D>(), filter, options, see);
}

fn explore_subject(
    subject: Subject,
    filter: &str,
    options: ScheduleOptions,
    see: &mut dyn FnMut(&Outcome),
) -> Summary {
    let request = Request { filter: filter.into(), ..Request::new(Campaign::Schedules(options)) };
    run(&[subject], &request, see)
}

fn few(threads: usize) -> ScheduleOptions {
    ScheduleOptions { threads, schedules: 60, ..ScheduleOptions::default() }
}

/// As [`few`], for a defect that few schedules meet.
fn many(threads: usize) -> ScheduleOptions {
    ScheduleOptions { schedules: 600, ..few(threads) }
}

/// Returns the violations of a version.
fn caught<const DEFECT: u8>(filter: &str, options: ScheduleOptions) -> Vec<Violation> {
    let outcomes = explore_chain::<DEFECT>(filter, options);
    outcomes.into_iter().flat_map(|outcome| outcome.violations).collect()
}

#[track_caller]
fn find<'a>(violations: &'a [Violation], what: &str) -> &'a Violation {
    let found = violations.iter().find(|violation| violation.what.contains(what));
    found.unwrap_or_else(|| {
        let others: Vec<_> = violations.iter().map(|violation| &violation.what).collect();
        panic!("nothing says {what:?}, only {others:?}")
    })
}

#[test]
fn the_right_chain_passes_with_2_to_4_threads() {
    let outcomes = explore_chain::<{ chain::NONE }>("", few(0));
    for violation in outcomes.iter().flat_map(|outcome| &outcome.violations) {
        eprintln!("{violation}");
    }
    assert!(outcomes.iter().all(|outcome| outcome.violations.is_empty() && !outcome.incomplete));
    assert!(outcomes.iter().all(|outcome| outcome.schedules() == 61 && outcome.images() > 0));
    for name in ["u64/one-key@2", "text/few-keys@3", "u64/split-leaf@4", "text/split-leaf@2"] {
        assert!(outcomes.iter().any(|outcome| outcome.scenario == name), "{name} is not played");
    }
}

#[test]
fn beyond_a_number_of_recoveries_a_sample_of_crashes_has_one() {
    let explore = |recoveries| {
        let options = ScheduleOptions { recoveries, ..few(4) };
        explore_chain::<{ chain::NONE }>("u64/split-leaf", options).remove(0)
    };
    let (whole, bounded) = (explore(u64::MAX), explore(100));
    assert!(!whole.incomplete && bounded.incomplete && bounded.violations.is_empty());
    assert!((100..whole.recoveries()).contains(&bounded.recoveries()), "{bounded:?}");
}

#[test]
fn a_latch_released_before_the_flush_shows_readers_what_a_crash_loses() {
    let violations = caught::<{ chain::EARLY_RELEASE }>("u64/one-key", few(2));
    find(&violations, "acknowledged, or read, is lost");
    // One thread by itself sees no effect of it.
    let outcomes =
        explore_chain::<{ chain::EARLY_RELEASE }>("", ScheduleOptions { schedules: 0, ..few(2) });
    assert!(outcomes.iter().all(|outcome| outcome.violations.is_empty()));
}

#[test]
fn the_power_fails_when_the_other_thread_has_read_what_is_exposed() {
    let one = ScheduleOptions { schedules: 1, ..few(2) };
    let violations = caught::<{ chain::EARLY_RELEASE }>("u64/one-key", one);
    let violation = find(&violations, "what is recovered is no state that there was");
    assert!(violation.trace.contains("stops at its exposed point"), "{violation}");
}

#[test]
fn a_reader_that_does_not_validate() {
    let violations = caught::<{ chain::NO_VALIDATION }>("u64/split-leaf", many(3));
    // The state that it reads may be none that ever was, or one that a crash still undoes.
    let is_it = |violation: &Violation| {
        violation.what.contains("no order that explains it")
            || violation.what.contains("acknowledged, or read, is lost")
    };
    assert!(violations.iter().any(is_it), "{violations:?}");
}

#[test]
fn an_insert_into_a_leaf_that_was_split_meanwhile() {
    let violations = caught::<{ chain::STALE_LEAF }>("u64/split-leaf", few(4));
    assert!(!violations.is_empty());
    assert!(violations.iter().any(|violation| violation.found.contains("key above its leaf")
        || violation.what.contains("no order")));
}

#[test]
fn a_flush_that_only_another_thread_fences() {
    let violations = caught::<{ chain::FENCE_OF_ANOTHER }>("u64/one-key", few(2));
    find(&violations, "acknowledged, or read, is lost");
}

#[test]
fn writers_that_wait_for_each_other() {
    let violations = caught::<{ chain::CIRCLE }>("u64/split-leaf", few(2));
    find(&violations, "wait for each other");
}

#[test]
fn inner_nodes_in_dram_are_split_merged_and_used_again() {
    let options =
        ScheduleOptions { threads: 3, schedules: 20, crashes: false, ..ScheduleOptions::default() };
    let mut found = Vec::new();
    explore::<FpTreeR<256>>("/inner-", options, &mut |outcome| {
        assert!(outcome.violations.is_empty() && !outcome.incomplete, "{:?}", outcome.violations);
        found.push(outcome.scenario.clone());
    });
    let pieces =
        ["inner-merge-split", "inner-merge-grow", "inner-split-merge", "inner-collapse-split"];
    let expected = ["u64", "text"].map(|keys| pieces.map(|piece| format!("{keys}/{piece}@3")));
    assert_eq!(found, expected.concat());
}

/// Explores the scenarios whose names contain `part`, crashes included. Returns their names.
fn passes<D: Design>(part: &str) -> Vec<String> {
    let options = ScheduleOptions { schedules: 20, ..few(4) };
    let mut explored = Vec::new();
    explore::<D>(part, options, &mut |outcome| {
        let violations = &outcome.violations;
        assert!(violations.is_empty() && !outcome.incomplete, "{violations:?}");
        assert!(outcome.images() > 0 && outcome.schedules() == 21, "{}", outcome.scenario);
        explored.push(outcome.scenario.clone());
    });
    explored.dedup();
    explored
}

#[test]
fn keepers_tend_beside_writers_and_readers() {
    let pieces = ["tend", "tend-beside"];
    let expected = ["u64", "text"].map(|keys| pieces.map(|piece| format!("{keys}/{piece}@4")));
    assert_eq!(passes::<BTreeLs<256>>("/tend"), expected.concat());
    assert_eq!(passes::<BTreeLsR<256>>("/tend"), expected.concat());
    assert_eq!(passes::<CclBTree<2>>("/tend"), expected.concat());
    assert!(passes::<FpTree<256>>("/tend").is_empty(), "it puts nothing off");
}

#[test]
fn a_log_grows_beside_those_who_append_to_it() {
    let expected = ["u64/log-grows@4", "text/log-grows@4"];
    assert_eq!(passes::<BTreeLs<256>>("log-grows"), expected);
    assert_eq!(passes::<BTreeLsR<256>>("log-grows"), expected);
    assert_eq!(passes::<CclBTree<2>>("log-grows"), expected);
}

#[test]
fn the_store_is_played_by_its_own_methods_and_explored_wholly() {
    let store = Subject::named(&[STORE.into()]).unwrap().remove(0);
    let mut explored = Vec::new();
    // Each word of a free slot that a recovery, a check or a scan read would double the recoveries.
    let options = ScheduleOptions { schedules: 20, recoveries: 5_000, ..few(2) };
    let summary = explore_subject(store, "", options, &mut |outcome| {
        for violation in &outcome.violations {
            eprintln!("{}: {violation}", outcome.scenario);
        }
        explored.push((outcome.scenario.clone(), outcome.schedules(), outcome.recoveries()));
    });
    assert!(summary.is_pass(), "{summary:?}");
    let met = |name: &str| {
        let found = explored.iter().find(|(scenario, ..)| scenario == name);
        found.is_some_and(|&(_, schedules, recoveries)| schedules == 21 && recoveries > 21)
    };
    for name in ["u64/one-key@2", "text/split-leaf@2", "u64/merge-leaf@2"] {
        assert!(met(name), "{name} is not played: {explored:?}");
    }
}

#[test]
fn a_seed_replays_what_it_found() {
    let found = explore_chain::<{ chain::NO_VALIDATION }>("u64/split-leaf", many(3));
    let violation = &found[0].violations[0];
    let seed = violation.trace.split("seed 0x").nth(1).and_then(|rest| rest.split(',').next());
    let seed = u64::from_str_radix(seed.expect("the trace names it"), 16).expect("a number");
    let again = ScheduleOptions { threads: 3, schedules: 1, seed, ..ScheduleOptions::default() };
    let again = explore_chain::<{ chain::NO_VALIDATION }>("u64/split-leaf", again);
    assert_eq!(again[0].violations[0], *violation);
}

/// A lookup once took the address of a prefetch from two states of a row, between which a writer
/// had given the leaf a shorter base.
#[test]
fn a_lookup_beside_an_update_of_its_leaf_does_not_panic() {
    let options = ScheduleOptions {
        threads: 4,
        schedules: 1,
        seed: 0xb21e,
        crashes: false,
        ..ScheduleOptions::default()
    };
    let mut explored = 0;
    explore::<BTreeLsR<256>>("u64/split-leaf", options, &mut |outcome| {
        explored += 1;
        assert!(outcome.violations.is_empty(), "{}", outcome.violations[0]);
    });
    assert!(explored > 0, "the piece is not there");
}
