//! The rule: when a measured number agrees with a published one.
//!
//! The rule compares ratios. `q` is the measured ratio over the paper's. For a relative change the
//! ratio is the change plus one, so 0.07 against a published 0.008 is `q` = 9.
//!
//! 1. A number agrees only if its row is *as described*: the structure, the size, the latency, the
//!    threads and the mix of the paper. A substitute and a row that is not run never agree.
//! 2. A *scaled* row differs from the paper in size alone. It is judged by the same rule, and is
//!    reported apart: [`Agreement::Weak`] is the most that it reaches.
//! 3. Counts: `q` is from 0.87 to 1.15. Plain counts of an operation may also differ by half a
//!    unit.
//! 4. Ratios of times: at least [`REPETITIONS_MIN`] paired repetitions, a 95 % interval on the
//!    paper's side of one, and `q` from 0.8 to 1.25. Where the paper's difference is under 5 %, the
//!    interval must lie within 10 % of one instead.
//! 5. A 99th percentile, and the greatest factor of a grid: as 4, with `q` from 0.67 to 1.5.
//! 6. Words are inequalities: the interval lies above, or below, the number.
//!
//! Figures of a device model and counts have no repetitions: they are the same in each run, and
//! their interval is a point.

use crate::interval::Interval;
use serde::{Deserialize, Serialize};

/// The way to check a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// Counts of flushes, fences or bytes: equal on every machine.
    Count,
    /// A ratio of times, all from one run or one model.
    Time,
    /// Counts against a closed form of the paper.
    Formula,
}

impl ClaimKind {
    /// Returns the name in `--json` and in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Time => "time",
            Self::Formula => "formula",
        }
    }
}

/// The meaning of a published number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// The relative change: the system's value over the baseline's, less one.
    Change,
    /// The factor of the system's value over the baseline's.
    Times,
    /// A relative change of a 99th percentile.
    P99,
    /// The greatest factor over the grid that the paper prints.
    UpTo,
    /// A plain count of an operation, such as 3 fences.
    Count,
    /// A value in a unit that is no count, such as bytes or GB/s.
    Value,
    /// Words: the measured value is above the number.
    Above,
    /// Words: the measured value is below the number.
    Below,
}

/// The likeness of a measurement to the paper's, from the greatest to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
pub enum Status {
    /// Structure, sizes, latency, threads and mix are those of the paper.
    #[serde(rename = "as described")]
    AsDescribed,
    /// Fewer records or operations than in the paper; all else is as described.
    #[serde(rename = "scaled")]
    Scaled,
    /// Another structure, configuration or device than the paper's.
    #[serde(rename = "substituted")]
    Substituted,
    /// No experiment measures the number.
    #[serde(rename = "not run")]
    NotRun,
}

impl Status {
    /// All statuses, in their order.
    pub const ALL: [Self; 4] = [Self::AsDescribed, Self::Scaled, Self::Substituted, Self::NotRun];

    /// Returns the name in `--json` and in the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AsDescribed => "as described",
            Self::Scaled => "scaled",
            Self::Substituted => "substituted",
            Self::NotRun => "not run",
        }
    }
}

/// The verdict on a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// The row is as described, and its number meets the rule.
    Yes,
    /// The row is scaled, and its number meets the rule at the size of the run.
    Weak,
    /// The number does not meet the rule, or the row is substituted or not run.
    No,
}

impl Agreement {
    /// Returns the word for the report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Weak => "weak",
            Self::No => "no",
        }
    }
}

/// The least number of paired repetitions with which a timed number can agree.
pub const REPETITIONS_MIN: usize = 10;
/// The range of `q` for counts and values.
pub const Q_COUNT: [f64; 2] = [0.87, 1.15];
/// The range of `q` for ratios of times.
pub const Q_TIME: [f64; 2] = [0.8, 1.25];
/// The range of `q` for 99th percentiles, and for the greatest factor of a grid.
pub const Q_WIDE: [f64; 2] = [0.67, 1.5];
/// A plain count may differ by this much, whatever its `q`.
pub const HALF_A_UNIT: f64 = 0.5;
/// A smaller difference from one in the paper is none.
pub const NO_DIFFERENCE: f64 = 0.05;
/// The interval of a ratio that the paper has as one lies within this much of one.
pub const FLAT: f64 = 0.1;

/// Returns `true` if `measured` meets the rule for the published number `paper`, whatever the
/// status of its row.
pub fn meets(kind: ClaimKind, relation: Relation, paper: f64, measured: &Interval) -> bool {
    let bounds = measured.low.zip(measured.high);
    let Some((low, high)) = bounds.filter(|_| measured.is_exact() || is_repeated(measured)) else {
        return false;
    };
    let all = [measured.value, low, high, paper];
    if !all.iter().all(|number| number.is_finite()) {
        return false;
    }
    // A change becomes a ratio.
    let base = if matches!(relation, Relation::Change | Relation::P99) { 1.0 } else { 0.0 };
    let [value, low, high, paper] = all.map(|number| number + base);
    let is_in = |[least, most]: [f64; 2]| (least..=most).contains(&(value / paper));
    let is_on_side = if paper > 1.0 { low > 1.0 } else { high < 1.0 };
    match relation {
        Relation::Above => low > paper,
        Relation::Below => high < paper,
        Relation::Count => is_in(Q_COUNT) || (value - paper).abs() <= HALF_A_UNIT,
        Relation::Value => is_in(Q_COUNT),
        Relation::Change | Relation::Times if kind != ClaimKind::Time => is_in(Q_COUNT),
        Relation::Change | Relation::Times if (paper - 1.0).abs() < NO_DIFFERENCE => {
            low >= 1.0 - FLAT && high <= 1.0 + FLAT
        }
        Relation::Change | Relation::Times => is_on_side && is_in(Q_TIME),
        Relation::P99 | Relation::UpTo => is_on_side && is_in(Q_WIDE),
    }
}

fn is_repeated(measured: &Interval) -> bool {
    measured.repetitions >= REPETITIONS_MIN
}

/// Returns the verdict on a row of `status` whose number meets the rule if `is_met`.
pub const fn agreement(status: Status, is_met: bool) -> Agreement {
    match status {
        Status::AsDescribed if is_met => Agreement::Yes,
        Status::Scaled if is_met => Agreement::Weak,
        _ => Agreement::No,
    }
}

#[cfg(test)]
mod tests;
