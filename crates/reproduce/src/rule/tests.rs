use super::*;
use ClaimKind::{Count as Counts, Formula, Time};
use Relation::{Above, Below, Change, Count, P99, Times, UpTo, Value};

/// Returns an interval of `repetitions` repetitions.
fn timed([low, value, high]: [f64; 3], repetitions: usize) -> Interval {
    Interval { value, low: Some(low), high: Some(high), repetitions }
}

#[test]
fn each_clause_has_a_number_that_meets_it_and_one_that_does_not() {
    let exact = Interval::exact;
    let ten = |ends| timed(ends, 10);
    let cases = [
        // Counts: within 15 %, by the ratio and not by the difference.
        (Counts, Change, -0.222, exact(-0.2), true, "q is 1.03"),
        (Counts, Change, -0.222, exact(-0.1), false, "q is 1.157"),
        (Counts, Change, -0.992, exact(-0.93), false, "0.07 is nine times 0.008"),
        (Counts, Times, 2.092, exact(1.83), true, "q is 0.875"),
        (Counts, Times, 2.092, exact(1.81), false, "q is 0.865"),
        // Plain counts: half a unit helps small ones; values have no unit.
        (Formula, Count, 2.0, exact(2.5), true, "half a unit"),
        (Formula, Count, 2.33, exact(3.0), false, "0.67 units, q is 1.29"),
        (Formula, Count, 248.0, exact(242.0), true, "q is 0.98"),
        (Counts, Count, 0.0, exact(0.000_032), true, "a few flushes of a growing pool"),
        (Counts, Count, 0.0, exact(0.6), false, "more than half a unit"),
        (Formula, Value, 2.8, exact(2.9), true, "q is 1.04"),
        (Formula, Value, 2.8, exact(3.28), false, "half a GB/s is no unit"),
        // Ratios of times: side, size, repetitions.
        (Time, Times, 1.5, ten([1.3, 1.4, 1.5]), true, "side and size"),
        (Time, Times, 1.5, ten([0.99, 1.4, 2.0]), false, "the interval has one"),
        (Time, Times, 1.5, ten([1.1, 1.19, 1.3]), false, "q is 0.79"),
        (Time, Times, 1.5, ten([1.7, 1.9, 2.1]), false, "q is 1.27"),
        (Time, Times, 1.5, timed([1.3, 1.4, 1.5], 9), false, "nine repetitions"),
        (Time, Times, 0.63, ten([0.6, 0.67, 0.7]), true, "below one"),
        (Time, Times, 0.63, ten([0.6, 0.67, 1.01]), false, "one is in the interval"),
        (Time, Change, -0.71, ten([-0.7, -0.69, -0.6]), true, "q is 1.07"),
        (Time, Change, -0.71, ten([-0.65, -0.6, -0.55]), false, "q is 1.38"),
        // The model of a device has no repetitions.
        (Time, Times, 1.5, exact(1.4), true, "a model"),
        (Time, Times, 1.5, exact(0.99), false, "a model on the other side"),
        // Under 5 % in the paper: no difference here.
        (Time, Change, 0.0274, ten([-0.04, 0.01, 0.06]), true, "within 10 % of one"),
        (Time, Change, 0.0274, ten([-0.11, 0.01, 0.06]), false, "less than 0.9"),
        (Time, Times, 1.0, ten([0.95, 1.0, 1.11]), false, "more than 1.1"),
        // 99th percentiles and maxima.
        (Time, P99, -0.331, ten([-0.4, -0.3, -0.1]), true, "q is 1.05"),
        (Time, P99, -0.331, ten([-0.4, -0.3, 0.1]), false, "one is in the interval"),
        (Time, P99, -0.331, ten([-0.7, -0.6, -0.5]), false, "q is 0.6"),
        (Time, UpTo, 8.8, ten([5.8, 6.0, 6.2]), true, "q is 0.68"),
        (Time, UpTo, 8.8, ten([4.9, 5.0, 5.1]), false, "q is 0.57"),
        (Time, UpTo, 8.8, ten([20.0, 21.2, 22.0]), false, "q is 2.4"),
        // Words.
        (Time, Above, 1.0, ten([1.01, 1.2, 1.4]), true, "above"),
        (Time, Above, 1.0, ten([0.99, 1.2, 1.4]), false, "not at 95 %"),
        (Time, Below, 1.0, ten([0.5, 0.7, 0.9]), true, "below"),
        (Time, Below, 1.0, ten([0.5, 0.7, 1.1]), false, "not at 95 %"),
        (Counts, Above, 1.0, exact(1.0), false, "equal is not above"),
        // Nothing was measured.
        (Counts, Times, 2.0, exact(f64::NAN), false, "no number"),
        (Time, Times, 1.5, Interval::of_ratios(&[1.5]), false, "one repetition"),
    ];
    for (kind, relation, paper, measured, expected, why) in cases {
        let found = meets(kind, relation, paper, &measured);
        assert_eq!(found, expected, "{relation:?} {paper} against {measured:?}: {why}");
    }
}

#[test]
fn only_what_is_as_described_agrees() {
    let found = Status::ALL.map(|status| agreement(status, true));
    assert_eq!(found, [Agreement::Yes, Agreement::Weak, Agreement::No, Agreement::No]);
    assert!(Status::ALL.iter().all(|&status| agreement(status, false) == Agreement::No));
}

#[test]
fn the_ends_of_q_are_reciprocal() {
    for [low, high] in [Q_COUNT, Q_TIME, Q_WIDE] {
        assert!((low * high - 1.0).abs() < 0.006, "{low} {high}");
    }
}
