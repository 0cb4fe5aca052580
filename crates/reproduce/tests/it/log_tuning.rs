//! btree-ls-r by what its report leaves open.

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
    let standard = Choice::STANDARD;
    let logs = Choice::LOGS.map(|logs| Choice { logs, ..standard });
    let shares = Choice::LIVE_PERCENTS.map(|live_percent| Choice { live_percent, ..standard });
    let chains = Choice::DELTAS.map(|deltas| Choice { deltas, ..standard });
    for choices in [&logs[..], &shares, &chains] {
        assert!(choices.contains(&standard));
        for &choice in choices {
            assert_eq!(
                log_tuning::models(choice, &recipes(), &profile, 1).unwrap().stats.keys,
                16_000
            );
        }
    }
    assert!(log_tuning::models(Choice { logs: 3, ..standard }, &recipes(), &profile, 1).is_err());
}

/// The more garbage a log may hold, the more room it takes; and the less is copied, if it is not
/// still growing, as a log that is mostly garbage would be here.
#[test]
fn garbage_costs_room_and_saves_writes() {
    let profile = Profile::named("optane-100").unwrap();
    let mut found = Vec::new();
    for live_percent in [50, 75, 90] {
        let choice = Choice { live_percent, ..Choice::STANDARD };
        let tried = log_tuning::models(choice, &recipes(), &profile, 1).unwrap();
        found.push((tried.stats.pm_bytes, tried.models[0].report.lines_per_op));
    }
    assert!(found.windows(2).all(|two| two[0].0 > two[1].0 && two[0].1 < two[1].1), "{found:?}");
}
