//! The JSON object of an outcome, with the same fields for every mode of `crash` but `--faults` and
//! `--witness`.

use bristlecone_crash::{MutationScore, Outcome};
use serde::Serialize;

/// An outcome as a JSON object.
#[derive(Serialize)]
pub(super) struct Row<'a> {
    design: &'a str,
    scenario: &'a str,
    mode: &'static str,
    depth: u32,
    images: u128,
    recoveries: u64,
    incomplete: bool,
    violations: usize,
    traces: Vec<String>,
    threads: usize,
    schedules: u64,
    mutants: Mutants,
    catalogue: Catalogue,
}

/// The numbers of published defects that were injected; zeros outside `--catalogue` and
/// `--as-printed`.
#[derive(Clone, Copy, Default, Serialize)]
pub(super) struct Catalogue {
    pub(super) total: u64,
    pub(super) caught: u64,
}

/// The numbers of mutants; zeros outside `--mutants`.
#[derive(Serialize)]
struct Mutants {
    total: u64,
    killed: u64,
    survived: u64,
}

impl From<MutationScore> for Mutants {
    fn from(score: MutationScore) -> Self {
        let MutationScore { total, killed, survived } = score;
        Self { total, killed, survived }
    }
}

impl<'a> Row<'a> {
    /// Returns the row of an outcome without mutants and without injected defects.
    pub(super) fn new(outcome: &'a Outcome) -> Self {
        Self {
            design: &outcome.subject,
            scenario: &outcome.scenario,
            mode: outcome.mode().name(),
            depth: outcome.depth(),
            images: outcome.images(),
            recoveries: outcome.recoveries(),
            incomplete: outcome.incomplete,
            violations: outcome.violations.len(),
            traces: outcome.violations.iter().map(ToString::to_string).collect(),
            threads: outcome.threads(),
            schedules: outcome.schedules(),
            mutants: MutationScore::default().into(),
            catalogue: Catalogue::default(),
        }
    }

    /// Returns the row of an outcome of published defects, `counts.total` of them.
    pub(super) fn of_defects(outcome: &'a Outcome, counts: Catalogue) -> Self {
        Self { catalogue: counts, ..Self::new(outcome) }
    }

    /// Returns the row with other counts: the number of crash images and that of recoveries.
    pub(super) fn with_totals(self, images: u128, recoveries: u64) -> Self {
        Self { images, recoveries, ..self }
    }

    /// Returns the row without its number of violations: a defect injected on purpose violates no
    /// promise. The traces stay.
    pub(super) fn without_violations(self) -> Self {
        Self { violations: 0, ..self }
    }

    /// Returns the row of a design's mutants. The traces name the survivors.
    pub(super) fn of_mutants(
        design: &'a str,
        mode: &'static str,
        depth: u32,
        score: MutationScore,
        survivors: Vec<String>,
    ) -> Self {
        Self {
            design,
            scenario: "mutants",
            mode,
            depth,
            images: 0,
            recoveries: 0,
            incomplete: false,
            violations: 0,
            traces: survivors,
            threads: 1,
            schedules: 1,
            mutants: score.into(),
            catalogue: Catalogue::default(),
        }
    }
}
