//! The passes that answer one question each.

use crate::profile;
use bristlecone_lab::LabError;
use bristlecone_lab::bench::{
    Bench, Delays, Flushing, batches, count_all, model, models, specs, splits,
};
use bristlecone_lab::system::{design, parse};
use bristlecone_lab::workload::{Recipe, Workload};
use bristlecone_pmem::Domain;
use bristlecone_pmem::journal::Durability;
use bristlecone_trees::names::UnknownDesign;
use core::time::Duration;

fn recipe(workload: Workload) -> Recipe {
    Recipe { workload, records: 3000, ops: 600, ..Recipe::default() }
}

#[test]
fn models_of_several_workloads_agree_with_models_of_each() {
    let target = design("fptree", None).unwrap();
    let device = profile("optane-100");
    let workloads = [Workload::Get, Workload::Update, Workload::Insert, Workload::Delete];
    let recipes = workloads.map(recipe);
    let all = models(&target, &recipes, &device, 1).unwrap();
    assert_eq!(all.len(), recipes.len());
    for (recipe, found) in recipes.iter().zip(&all) {
        let alone = model(&target, recipe, &device, 1).unwrap().unwrap();
        let near = found.report.lines_per_op - alone.report.lines_per_op;
        assert!(near.abs() < 0.2, "{}: {near}", recipe.workload.name());
        assert_eq!(found.report.ops, alone.report.ops);
        let written: f64 = found.wear_map.iter().sum();
        assert_eq!(written > 0.0, recipe.workload != Workload::Get, "{}", recipe.workload.name());
    }
    assert!(models(&target, &[], &device, 1).unwrap().is_empty());
}

#[test]
fn every_design_is_modelled_at_every_size_of_the_build_and_no_other() {
    let device = profile("optane-100");
    for spec in specs().iter().flatten() {
        let target = match design(spec.name, Some(spec.node_bytes)) {
            // Without the feature `all-sizes` a build lacks some; the registry's tests say which.
            Err(LabError::Design(
                UnknownDesign::NotBuilt { .. } | UnknownDesign::DesignNotBuilt { .. },
            )) => continue,
            target => target.unwrap(),
        };
        let found = model(&target, &recipe(Workload::Insert), &device, 1).unwrap().unwrap();
        assert_eq!(found.report.ops, 600, "{} of {} B", spec.name, spec.node_bytes);
        assert_eq!(found.report.fences_per_op > 0.0, spec.persistent && spec.name != "btree-gf");
    }
    assert!(design("fptree", Some(64)).is_err());
}

#[test]
fn splits_are_told_from_other_inserts_by_what_they_flush() {
    let delays = Delays { flush: Duration::from_nanos(300), fence: Duration::ZERO };
    for name in ["fptree", "fast-fair", "wb-tree", "circ-tree"] {
        let found = splits(&design(name, None).unwrap(), &recipe(Workload::Get), delays).unwrap();
        // A leaf of about thirty slots splits after fifteen to thirty inserts; inner nodes split
        // seldom.
        let every = found.inserts as f64 / found.splits as f64;
        assert!((8.0..60.0).contains(&every), "{name}: a split every {every} inserts");
        assert!(found.time_share > 0.0 && found.time_share < 1.0, "{name}: {found:?}");
        assert!(found.split_lines > found.other_lines, "{name}: {found:?}");
    }
    let peer = parse(&["btreemap".to_owned()], None).unwrap().remove(0);
    assert!(matches!(splits(&peer, &recipe(Workload::Get), delays), Err(LabError::Asked(_))));
}

#[test]
fn batches_have_a_speed_for_each_size_and_no_size_that_there_is_not() {
    let bench = Bench {
        pool: None,
        domain: Domain::Volatile,
        delays: Delays::default(),
        placement: None,
        flushing: Flushing::default(),
        durability: Durability::DEFAULT,
    };
    let target = design("btree", None).unwrap();
    let recipe = recipe(Workload::Get);
    let speeds = batches(&target, &recipe, &[1, 3, 16], &bench).unwrap();
    assert!(speeds.len() == 3 && speeds.iter().all(|turns| turns.len() == 10));
    assert!(speeds.iter().flatten().all(|&speed| speed > 0.0));
    for wrong in [0, 17] {
        assert!(batches(&target, &recipe, &[wrong], &bench).is_err());
    }
}

#[test]
fn counting_all_is_of_as_many_operations_as_are_asked_for() {
    let target = design("fptree", None).unwrap();
    let none = Recipe { records: 0, ops: 40, ..recipe(Workload::Insert) };
    // All keys fit one leaf, so each insert costs exactly its budget.
    let budget = specs().into_iter().flatten().find(|spec| spec.name == "fptree").unwrap().budget;
    let found = count_all(&target, &Recipe { ops: 20, ..none }).unwrap();
    assert!((found.lines - f64::from(budget.insert.lines)).abs() < 1e-9, "{found:?}");
    assert!((found.fences - f64::from(budget.insert.fences)).abs() < 1e-9, "{found:?}");
}
