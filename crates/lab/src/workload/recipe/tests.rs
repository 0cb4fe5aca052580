//! Plans, followed by threads that know nothing of each other.

use super::*;
use std::collections::{HashMap, HashSet};

const MIXES: [&str; 7] = [
    "insert:50+delete:50",
    "get:50+delete:50",
    "get:10+insert:20+update:10+upsert:10+rmw:10+delete:20+scan:20",
    "delete:1+get:99",
    "scan:100",
    "delete:100",
    "upsert:100",
];

const DISTS: [Dist; 5] =
    [Dist::Uniform, Dist::Zipfian, Dist::Latest, Dist::Sequential, Dist::HOTSPOT];

fn recipe(workload: Workload) -> Recipe {
    let (records, threads) = (3000, 3);
    let ops = workload.ops(4001, records);
    Recipe { dist: workload.dist(), workload, records, ops, threads, seed: 9, ..Recipe::default() }
}

fn operations(recipe: &Recipe) -> Vec<Vec<Op>> {
    let each = |plan| match plan {
        Plan::Each(ops) => ops,
        other => panic!("{other:?}"),
    };
    recipe.plans().unwrap().into_iter().map(each).collect()
}

/// Follows the plans of `recipe` in any order of the threads at once: what another thread deletes
/// at any time is not there, and what it inserts is not there either.
#[track_caller]
fn every_operation_finds_its_key(recipe: &Recipe) {
    let plans = operations(recipe);
    assert_eq!(plans.iter().map(Vec::len).sum::<usize>() as u64, recipe.planned());
    let loaded: HashSet<u64> = (0..recipe.records).map(|index| recipe.token(index)).collect();
    assert_eq!(loaded.len() as u64, recipe.records);
    let of = |kind| plans.iter().flatten().filter(move |op| op.kind == kind).map(|op| op.token);
    let removed: HashSet<u64> = of(OpKind::Remove).collect();
    let inserted: HashSet<u64> = of(OpKind::Insert).collect();
    assert_eq!(removed.len(), of(OpKind::Remove).count(), "each is deleted once");
    assert_eq!(inserted.len(), of(OpKind::Insert).count(), "each is inserted once");
    assert!(removed.is_subset(&loaded) && inserted.is_disjoint(&loaded));
    let thread_ops = recipe.planned() / recipe.threads + 1;
    for ops in &plans {
        let mut own = HashSet::new();
        for &Op { token, kind, length } in ops {
            assert!((1..=100).contains(&length));
            let stays = loaded.contains(&token) && !removed.contains(&token);
            match kind {
                OpKind::Insert => assert!(own.insert(token)),
                OpKind::Remove => {}
                _ => assert!(stays || own.contains(&token), "{kind} of what may be gone"),
            }
        }
        assert!(own.len() as u64 <= recipe.workload.inserts_max(thread_ops), "{recipe:?}");
    }
}

#[test]
fn operations_of_all_workloads_find_their_keys() {
    let batched = |workload: &Workload| *workload == Workload::Multiget;
    for workload in Workload::named().filter(|workload| !batched(workload)) {
        every_operation_finds_its_key(&recipe(workload));
    }
}

#[test]
fn operations_of_mixes_find_their_keys_under_every_distribution() {
    for mix in MIXES {
        for dist in DISTS {
            let workload: Workload = mix.parse().unwrap();
            let ops = if mix == "delete:100" { 3000 } else { 4001 };
            let recipe = Recipe { dist, ops, ..recipe(workload) };
            every_operation_finds_its_key(&recipe);
            every_operation_finds_its_key(&Recipe { threads: 1, ..recipe.clone() });
            let ops = recipe.ops - 300;
            every_operation_finds_its_key(&Recipe { ops, warm_up: 100, ..recipe });
        }
    }
}

#[test]
fn more_deletes_than_records_are_refused() {
    let plans = |mix: &str, ops| {
        Recipe { ops, ..recipe(mix.parse().unwrap()) }.plans().map_err(|error| error.to_string())
    };
    assert!(plans("delete:100", 3000).is_ok());
    assert!(plans("delete:100", 3001).unwrap_err().contains("3001 of 3000"));
    assert!(plans("get:10+delete:90", 3000).is_ok());
    assert!(plans("get:10+delete:90", 4000).unwrap_err().contains("--records"));
    let empty = Recipe { records: 0, ..recipe(Workload::Get) };
    assert!(empty.plans().unwrap_err().to_string().contains("--records"));
}

#[test]
fn all_records_may_be_deleted_where_nothing_else_needs_one() {
    let all = Recipe { records: 1, ops: 1, threads: 1, ..recipe("delete:100".parse().unwrap()) };
    assert_eq!(operations(&all)[0][0].token, all.token(0));
}

#[test]
fn mixes_are_those_that_are_published() {
    let published = [
        (Workload::A, 50, OpKind::Update),
        (Workload::B, 5, OpKind::Update),
        (Workload::D, 5, OpKind::Insert),
        (Workload::E, 5, OpKind::Insert),
        (Workload::F, 50, OpKind::ReadModifyWrite),
    ];
    for (workload, percent, kind) in published {
        let all: Vec<Op> = operations(&recipe(workload.clone())).concat();
        let count = all.iter().filter(|op| op.kind == kind).count();
        let share = count as f64 * 100.0 / all.len() as f64;
        assert!((share - f64::from(percent)).abs() < 4.0, "{workload:?}: {share} %");
    }
    assert!(operations(&recipe(Workload::C)).concat().iter().all(|op| op.kind == OpKind::Get));
}

#[test]
fn latest_reads_prefer_what_the_thread_has_just_inserted() {
    let recipe = recipe(Workload::D);
    let newest: HashMap<u64, u64> = (0..3000).map(|i| (recipe.token(i), i)).collect();
    for ops in operations(&recipe) {
        let reads = ops.iter().filter(|op| op.kind == OpKind::Get);
        let recent = reads.clone().filter(|op| newest.get(&op.token).is_none_or(|&i| i >= 2700));
        assert!(recent.count() * 2 > reads.count(), "most reads are of the newest tenth");
    }
}

#[test]
fn a_batch_plan_has_as_many_keys_as_operations() {
    let plans = recipe(Workload::Multiget).plans().unwrap();
    assert_eq!(plans.iter().map(Plan::ops).sum::<u64>(), 4001);
}
