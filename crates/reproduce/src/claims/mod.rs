//! The claims of the papers: 34 claims with their numbers, read from `claims.toml` in this folder.

use serde::{Deserialize, Serialize};

/// A paper whose claims are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doc {
    /// The paper on WO-tree.
    Wo,
    /// The paper on wB+-Trees.
    Wb,
    /// The paper on CCL-BTree.
    Ccl,
    /// The paper on Isle-Tree.
    Isle,
    /// The report on the performance gap between DRAM and persistent memory.
    Gap,
}

impl Doc {
    /// All papers, in the order of the claims.
    pub const ALL: [Self; 5] = [Self::Wo, Self::Wb, Self::Ccl, Self::Isle, Self::Gap];

    /// Returns the short title of the paper, as the report prints it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Wo => "WO-tree",
            Self::Wb => "wB+-Trees",
            Self::Ccl => "CCL-BTree",
            Self::Isle => "Isle-Tree",
            Self::Gap => "DRAM/PM gap report",
        }
    }

    /// Returns the authors, the title, the venue and the year of the paper.
    pub const fn citation(self) -> &'static str {
        match self {
            Self::Wo => {
                "R.-X. Ma, F. Wu, B.-R. Dong, M. Zhang, W.-J. Li, C.-S. Xie: Write-Optimized B+ Tree Index Technology \
                 for Persistent Memory. Journal of Computer Science and Technology, 2021"
            }
            Self::Wb => {
                "S. Chen, Q. Jin: Persistent B+-Trees in Non-Volatile Main Memory. Proceedings of the VLDB Endowment \
                 8(7), 2015"
            }
            Self::Ccl => {
                "Z. Li, S. He, Z. Dang, P. Hong, X. Zhang, R. Wang, F. Wu: CCL-BTree: A Crash-Consistent Locality-Aware \
                 B+-Tree for Reducing XPBuffer-Induced Write Amplification in Persistent Memory. European Conference on \
                 Computer Systems (EuroSys '24), 2024"
            }
            Self::Isle => {
                "C. Wang, S. Chattopadhyay: Isle-Tree: A B+-Tree with Intra-Cache Line Sorted Leaves for Non-volatile \
                 Memory. The copy at hand names neither venue nor year"
            }
            Self::Gap => {
                "Y. Ni, S. Chen, Q. Lu, H. Litz, Z. Pang, E. L. Miller, J. Wu: Closing the Performance Gap between DRAM \
                 and PM for In-Memory Index Structures. Technical report UCSC-CRSS-20-01, also numbered \
                 UCSC-SSRC-20-01, University of California, Santa Cruz, 2020"
            }
        }
    }
}

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

/// The meaning of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// The relative change: the system's value over the baseline's, less one.
    Change,
    /// A factor. The measured one agrees if it lies on the same side of one.
    Times,
    /// A value. The measured one agrees within the tolerance of the claim.
    Within,
    /// A range. The measured value agrees if it lies inside.
    Between,
}

/// The degree to which a measured value agrees with the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// The direction agrees, and so does the size of the difference, within a factor of two. A
    /// value to be met is within the tolerance; a value for a range lies in it.
    Yes,
    /// The direction agrees; the size of the difference does not, or was not determined.
    Weak,
    /// The direction or the value does not agree, or nothing was measured.
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

/// A published value: a number, or a range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PaperValue {
    /// A number, in the unit that the claim names.
    Number(f64),
    /// The least and the greatest number.
    Range([f64; 2]),
}

/// A number of a claim: one comparison, with the published value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    /// The design that the system is compared with; empty if the number is absolute.
    #[serde(default)]
    pub baseline: String,
    /// The case, such as `4 threads`; empty if the claim has one case.
    #[serde(default)]
    pub case: String,
    /// The meaning of this number, if it differs from that of the claim.
    relation: Option<Relation>,
    paper: Option<f64>,
    range: Option<[f64; 2]>,
}

impl Number {
    /// Creates a number of `baseline` in `case`, with the meaning that its claim sets.
    pub fn to_meet(baseline: &str, case: String, paper: f64) -> Self {
        let baseline = baseline.to_owned();
        Self { baseline, case, relation: None, paper: Some(paper), range: None }
    }

    /// Returns the published value.
    pub fn paper(&self) -> PaperValue {
        match (self.range, self.paper) {
            (Some(range), _) => PaperValue::Range(range),
            (None, number) => PaperValue::Number(number.unwrap_or(f64::NAN)),
        }
    }
}

/// A claim of a paper, with all its numbers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The name on the command line, such as `wo-flush-insert`.
    pub id: String,
    /// The paper that makes the claim.
    pub doc: Doc,
    /// The figure, table or section of the paper.
    pub figure: String,
    /// The way to check the claim.
    pub kind: ClaimKind,
    /// The design, or the system, that the claim is about.
    pub system: String,
    relation: Relation,
    /// The greatest relative error at which a [`Relation::Within`] still agrees.
    #[serde(default)]
    tolerance: f64,
    /// The claim in words.
    pub says: String,
    /// The numbers, in the order of the paper.
    pub numbers: Vec<Number>,
}

/// A smaller relative difference counts as none: repeated runs on one machine differ by as much.
const NO_DIFFERENCE: f64 = 0.1;
/// Where the paper has 0, a smaller count agrees: the paper rounds, and a pool that grows flushes a
/// few lines in any design.
const ZERO_TOLERANCE: f64 = 0.05;
/// The factor within which the sizes of two differences count as the same.
pub(crate) const SIZE_FACTOR: f64 = 2.0;

impl Claim {
    /// Returns `true` if `measured` agrees with the published value: in sign, or within the
    /// tolerance.
    ///
    /// A range that lies on one side of one agrees with each value on that side. A range around one
    /// must contain the value.
    pub fn agrees(&self, number: &Number, measured: f64) -> bool {
        if !measured.is_finite() {
            return false;
        }
        let same_side = |paper: f64, middle: f64| {
            let (paper, measured) = (paper - middle, measured - middle);
            paper * measured > 0.0
                || (paper.abs() < NO_DIFFERENCE && measured.abs() < NO_DIFFERENCE)
        };
        match (number.relation.unwrap_or(self.relation), number.paper()) {
            (_, PaperValue::Range([low, _])) if low >= 1.0 => measured > 1.0,
            (_, PaperValue::Range([_, high])) if high <= 1.0 => measured < 1.0,
            (_, PaperValue::Range([low, high])) => (low..=high).contains(&measured),
            (Relation::Change, PaperValue::Number(paper)) => same_side(paper, 0.0),
            (Relation::Times, PaperValue::Number(paper)) => same_side(paper, 1.0),
            (Relation::Within | Relation::Between, PaperValue::Number(paper)) => {
                let least = if paper == 0.0 { ZERO_TOLERANCE } else { f64::EPSILON };
                (measured - paper).abs() <= self.tolerance * paper.abs() + least
            }
        }
    }
}

impl Claim {
    /// Returns how far `measured` agrees with the published value.
    pub fn agreement(&self, number: &Number, measured: f64) -> Agreement {
        if !self.agrees(number, measured) {
            return Agreement::No;
        }
        let same_size = |paper: f64, middle: f64| {
            let (paper, measured) = ((paper - middle).abs(), (measured - middle).abs());
            // Two differences that count as none are of the same size.
            (paper < NO_DIFFERENCE && measured < NO_DIFFERENCE)
                || (paper / SIZE_FACTOR..=paper * SIZE_FACTOR).contains(&measured)
        };
        let is_close = match (number.relation.unwrap_or(self.relation), number.paper()) {
            (_, PaperValue::Range([low, high])) => (low..=high).contains(&measured),
            (Relation::Change, PaperValue::Number(paper)) => same_size(paper, 0.0),
            (Relation::Times, PaperValue::Number(paper)) => same_size(paper, 1.0),
            (Relation::Within | Relation::Between, PaperValue::Number(_)) => true,
        };
        if is_close { Agreement::Yes } else { Agreement::Weak }
    }

    /// Returns the claim as a sentence, with a capital at its start and a full stop.
    pub fn sentence(&self) -> String {
        let mut letters = self.says.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).chain(['.']).collect()
    }
}

/// Returns all claims, in the order of the papers.
///
/// # Panics
/// Never: a test parses the same text.
pub fn all() -> Vec<Claim> {
    #[derive(Deserialize)]
    struct File {
        claim: Vec<Claim>,
    }
    let file: File = toml::from_str(include_str!("claims.toml")).expect("claims.toml is valid");
    file.claim
}

#[cfg(test)]
mod tests;
