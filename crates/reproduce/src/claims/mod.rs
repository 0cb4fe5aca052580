//! What the papers say: 34 claims and their numbers, in `claims.toml` beside this file.

use serde::{Deserialize, Serialize};

/// A paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doc {
    /// WO-tree.
    Wo,
    /// wB+-Trees.
    Wb,
    /// CCL-BTree.
    Ccl,
    /// Isle-Tree.
    Isle,
    /// The report on the gap between DRAM and persistent memory.
    Gap,
}

impl Doc {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Wo, Self::Wb, Self::Ccl, Self::Isle, Self::Gap];

    /// What the paper is known as.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Wo => "WO-tree",
            Self::Wb => "wB+-Trees",
            Self::Ccl => "CCL-BTree",
            Self::Isle => "Isle-Tree",
            Self::Gap => "DRAM/PM gap report",
        }
    }
}

/// How a claim can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// By counting: the same on every machine.
    Count,
    /// By a ratio of times in one run.
    Time,
    /// By counting, against a closed form.
    Formula,
}

impl ClaimKind {
    /// The name that programs and people read.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Time => "time",
            Self::Formula => "formula",
        }
    }
}

/// What a number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// The system's value over the baseline's, less one.
    Change,
    /// A factor that is above one, or below.
    Times,
    /// A number that is to be met.
    Within,
    /// A number that is to lie in a range.
    Between,
}

/// What the paper has: a number, or a range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PaperValue {
    /// A number.
    Number(f64),
    /// The least and the greatest.
    Range([f64; 2]),
}

/// A number of a claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    /// What the system is compared with, if with anything.
    #[serde(default)]
    pub baseline: String,
    /// Which of several cases.
    #[serde(default)]
    pub case: String,
    /// What the number says, if not what the others of the claim say.
    relation: Option<Relation>,
    paper: Option<f64>,
    range: Option<[f64; 2]>,
}

impl Number {
    /// A number that is to be met, of `baseline` and in that case.
    pub fn to_meet(baseline: &str, case: String, paper: f64) -> Self {
        let baseline = baseline.to_owned();
        Self { baseline, case, relation: None, paper: Some(paper), range: None }
    }

    /// What the paper has.
    pub fn paper(&self) -> PaperValue {
        match (self.range, self.paper) {
            (Some(range), _) => PaperValue::Range(range),
            (None, number) => PaperValue::Number(number.unwrap_or(f64::NAN)),
        }
    }
}

/// A claim of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name on the command line.
    pub id: String,
    /// The paper.
    pub doc: Doc,
    /// Where in it.
    pub figure: String,
    /// How it can be checked.
    pub kind: ClaimKind,
    /// The system that it is about.
    pub system: String,
    /// What its numbers say.
    relation: Relation,
    /// How far a number that is to be met may be missed, as a part of it.
    #[serde(default)]
    tolerance: f64,
    /// What it says, in words.
    pub says: String,
    /// Its numbers.
    pub numbers: Vec<Number>,
}

/// Differences that are smaller than this part are none: two figures of one machine differ by as much.
const NEAR: f64 = 0.1;
/// Less than this is 0 where the paper has 0: it prints whole numbers, or one digit more, and a pool that grows
/// flushes now and then whatever is in it.
const NONE: f64 = 0.05;

impl Claim {
    /// Whether `measured` agrees with what the paper has: in sign, or within the tolerance. A range that is
    /// all on one side of one has a sign; another is to be met.
    pub fn agrees(&self, number: &Number, measured: f64) -> bool {
        if !measured.is_finite() {
            return false;
        }
        let same_side = |paper: f64, middle: f64| {
            let (paper, measured) = (paper - middle, measured - middle);
            paper * measured > 0.0 || (paper.abs() < NEAR && measured.abs() < NEAR)
        };
        match (number.relation.unwrap_or(self.relation), number.paper()) {
            (_, PaperValue::Range([low, _])) if low >= 1.0 => measured > 1.0,
            (_, PaperValue::Range([_, high])) if high <= 1.0 => measured < 1.0,
            (_, PaperValue::Range([low, high])) => (low..=high).contains(&measured),
            (Relation::Change, PaperValue::Number(paper)) => same_side(paper, 0.0),
            (Relation::Times, PaperValue::Number(paper)) => same_side(paper, 1.0),
            (Relation::Within | Relation::Between, PaperValue::Number(paper)) => {
                let least = if paper == 0.0 { NONE } else { f64::EPSILON };
                (measured - paper).abs() <= self.tolerance * paper.abs() + least
            }
        }
    }
}

/// All claims, in the order of the papers.
///
/// # Panics
/// Never: a test reads the same text.
pub fn all() -> Vec<Claim> {
    #[derive(Deserialize)]
    struct File {
        claim: Vec<Claim>,
    }
    let file: File = toml::from_str(include_str!("claims.toml")).expect("claims.toml is sound");
    file.claim
}

#[cfg(test)]
mod tests;
