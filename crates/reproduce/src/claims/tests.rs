use super::*;
use std::collections::HashSet;

#[test]
fn there_are_34_claims_and_each_number_has_one_value() {
    let claims = all();
    assert_eq!(claims.len(), 34);
    let ids: HashSet<_> = claims.iter().map(|claim| &claim.id).collect();
    assert_eq!(ids.len(), claims.len());
    for claim in &claims {
        let mut seen = HashSet::new();
        for number in &claim.numbers {
            assert!(number.paper.is_some() != number.range.is_some(), "{}: {number:?}", claim.id);
            assert!(seen.insert((&number.baseline, &number.case)), "{}: twice", claim.id);
            if let PaperValue::Range([low, high]) = number.paper() {
                assert!(low < high, "{}", claim.id);
            }
        }
    }
    for doc in Doc::ALL {
        assert!(claims.iter().any(|claim| claim.doc == doc));
    }
}

#[test]
fn the_published_value_agrees_and_its_opposite_does_not() {
    for claim in all() {
        for number in &claim.numbers {
            let (same, other) = match (number.relation.unwrap_or(claim.relation), number.paper()) {
                (_, PaperValue::Range([low, high])) => {
                    let other = if low >= 1.0 { 0.9 } else { high * 2.0 };
                    (f64::midpoint(low, high), other)
                }
                (Relation::Change, PaperValue::Number(paper)) => (paper, -paper.signum() * 0.5),
                (Relation::Times, PaperValue::Number(paper)) => {
                    (paper, if paper > 1.0 { 0.5 } else { 2.0 })
                }
                (_, PaperValue::Number(paper)) => (paper, paper * 3.0 + 1.0),
            };
            assert!(claim.agrees(number, same), "{} {number:?}", claim.id);
            assert!(!claim.agrees(number, other), "{} {number:?}", claim.id);
            assert!(!claim.agrees(number, f64::NAN), "a missing value agrees with nothing");
        }
    }
}

#[test]
fn two_negligible_differences_agree() {
    let claims = all();
    let claim = claims.iter().find(|claim| claim.id == "wo-time-search").unwrap();
    let number = &claim.numbers[0];
    assert!(claim.agrees(number, -0.05) && claim.agrees(number, 0.3));
    assert!(!claim.agrees(number, -0.3));
}

#[test]
fn a_smaller_effect_agrees_weakly() {
    let claims = all();
    let find = |id: &str| claims.iter().find(|claim| claim.id == id).unwrap();
    let claim = find("wo-flush-insert");
    let number = claim.numbers.iter().find(|number| number.baseline == "wb-tree").unwrap();
    assert_eq!(number.paper(), PaperValue::Number(-0.222));
    let agreement = |measured| claim.agreement(number, measured);
    assert_eq!(agreement(-0.029), Agreement::Weak);
    assert_eq!((agreement(-0.2), agreement(-0.6)), (Agreement::Yes, Agreement::Weak));
    assert_eq!(agreement(0.029), Agreement::No);
    // A range on one side of one: inside, on the same side, on the other.
    let claim = find("ccl-write-throughput");
    let agreement = |measured| claim.agreement(&claim.numbers[0], measured);
    let found = [2.0, 1.2, 0.9].map(agreement);
    assert_eq!(found, [Agreement::Yes, Agreement::Weak, Agreement::No]);
}

#[test]
fn a_claim_is_a_sentence() {
    for claim in all() {
        let sentence = claim.sentence();
        let first = sentence.chars().next().unwrap();
        assert!(!first.is_lowercase() && sentence.ends_with('.'), "{sentence}");
    }
}

#[test]
fn the_few_flushes_of_a_growing_pool_agree_with_zero() {
    let claims = all();
    let claim = claims.iter().find(|claim| claim.id == "gap-table2").unwrap();
    let number = &claim.numbers[0];
    assert_eq!(number.paper(), PaperValue::Number(0.0));
    assert!(claim.agrees(number, 0.000_032) && !claim.agrees(number, 0.06));
}
