//! btree-ls by what its report varies.

use bristlecone_lab::device::Profile;
use bristlecone_lab::workload::{Recipe, Workload};
use bristlecone_reproduce::experiments::log_tuning::{self, Choice};

fn recipes() -> [Recipe; 3] {
    [Workload::Update, Workload::Get, Workload::Insert].map(|workload| Recipe {
        workload,
        records: 8000,
        ops: 8000,
        ..Recipe::default()
    })
}

#[test]
fn every_choice_can_be_tried_and_no_other() {
    let profile = Profile::named("optane-100").unwrap();
    let report = Choice::REPORT;
    let logs = Choice::LOGS.map(|logs| Choice { logs, ..report });
    let recent = Choice::RECENT.map(|recent| Choice { recent, ..report });
    assert!(logs.contains(&report) && recent.contains(&report));
    for choice in [&logs[..], &recent, &[Choice::STANDARD]].concat() {
        let tried = log_tuning::models(choice, &recipes(), &profile, 1).unwrap();
        assert_eq!(tried.stats.keys, 16_000);
    }
    assert!(log_tuning::models(Choice { logs: 3, ..report }, &recipes(), &profile, 1).is_err());
}

/// Without log GC the garbage of all updates stays in the logs.
#[test]
fn log_gc_frees_space() {
    let profile = Profile::named("optane-100").unwrap();
    let off = Choice { logs: Choice::STANDARD.logs, ..Choice::REPORT };
    let bytes = [Choice::STANDARD, off].map(|choice| {
        let recipes = recipes().map(|recipe| Recipe { ops: 4 * recipe.ops, ..recipe });
        log_tuning::models(choice, &recipes[..1], &profile, 1).unwrap().stats.pm_bytes
    });
    assert!(bytes[0] < bytes[1], "{bytes:?} B with and without log GC");
}
