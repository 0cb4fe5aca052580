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
fn the_few_flushes_of_a_growing_pool_agree_with_zero() {
    let claims = all();
    let claim = claims.iter().find(|claim| claim.id == "gap-table2").unwrap();
    let number = &claim.numbers[0];
    assert_eq!(number.paper(), PaperValue::Number(0.0));
    assert!(claim.agrees(number, 0.000_032) && !claim.agrees(number, 0.06));
}
