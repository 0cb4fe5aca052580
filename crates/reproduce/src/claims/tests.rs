use super::*;
use crate::interval::Interval;
use crate::rule::meets;
use std::collections::HashSet;

#[test]
fn each_claim_has_a_status_and_what_is_not_as_described_has_a_reason() {
    let claims = all();
    let ids: HashSet<_> = claims.iter().map(|claim| &claim.id).collect();
    assert_eq!(ids.len(), claims.len());
    for claim in &claims {
        let mut seen = HashSet::new();
        for number in &claim.numbers {
            let name = (&number.baseline, &number.case);
            assert!(seen.insert(name), "{} {name:?}: twice", claim.id);
            assert!(number.paper.is_finite(), "{} {name:?}", claim.id);
            let is_good = claim.status_of(number) == Status::AsDescribed;
            assert_eq!(is_good, claim.reason_of(number).is_empty(), "{} {name:?}", claim.id);
        }
        assert!(!claim.numbers.is_empty() || claim.id == "wb-table3", "{}", claim.id);
    }
    for doc in Doc::ALL {
        assert!(claims.iter().any(|claim| claim.doc == doc));
    }
    for status in Status::ALL {
        let has = |claim: &Claim| claim.numbers.iter().any(|n| claim.status_of(n) == status);
        assert!(claims.iter().any(has), "{status:?}");
    }
}

#[test]
fn the_published_value_meets_the_rule_and_its_opposite_does_not() {
    for claim in all() {
        for number in &claim.numbers {
            let relation = claim.relation_of(number);
            let paper = number.paper;
            let (same, other) = match relation {
                Relation::Above => (paper * 1.1, paper * 0.9),
                Relation::Below => (paper * 0.9, paper * 1.1),
                Relation::Change | Relation::P99 => (paper, -paper.signum() * 0.5),
                Relation::Times | Relation::UpTo => (paper, if paper > 1.0 { 0.5 } else { 2.0 }),
                Relation::Count | Relation::Value => (paper, paper * 3.0 + 1.0),
            };
            let meets = |value| meets(claim.kind, relation, paper, &Interval::exact(value));
            assert!(meets(same), "{} {number:?}", claim.id);
            assert!(!meets(other), "{} {number:?}", claim.id);
            assert!(!meets(f64::NAN), "a missing value agrees with nothing");
        }
    }
}

#[test]
fn a_claim_is_a_sentence() {
    for claim in all() {
        let sentence = claim.sentence();
        let first = sentence.chars().next().unwrap();
        assert!(!first.is_lowercase() && sentence.ends_with('.'), "{sentence}");
    }
}
