//! The choice of `btree-ls` that the registry makes, to the last bit.
//!
//! It is a process of its own: which block is used again depends on what is freed by then, and
//! pools of one process put that off together.

#![cfg(feature = "all-sizes")]

use bristlecone_lab::bench::models;
use bristlecone_lab::device::Profile;
use bristlecone_lab::system::design;
use bristlecone_lab::workload::{Recipe, Workload};
use bristlecone_reproduce::experiments::log_tuning::{self, Choice};

#[test]
fn the_registrys_choice_is_the_registrys_tree() {
    let recipes = [Workload::Update, Workload::Get, Workload::Insert].map(|workload| Recipe {
        workload,
        records: 8000,
        ops: 8000,
        ..Recipe::default()
    });
    let profile = Profile::named("optane-100").unwrap();
    let tried = log_tuning::models(Choice::STANDARD, &recipes, &profile, 1).unwrap();
    let listed = models(&design("btree-ls", None).unwrap(), &recipes, &profile, 1).unwrap();
    for (tried, listed) in tried.models.iter().zip(&listed) {
        assert_eq!(tried.report, listed.report);
    }
    assert_eq!(tried.stats.keys, 16_000);
}
