//! The claims of the papers with all their numbers, read from `claims.toml` in this folder.

use crate::rule::{ClaimKind, Relation, Status};
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
    /// The published number, in the unit that the claim names.
    pub paper: f64,
    /// The meaning of this number, if it differs from that of the claim.
    pub relation: Option<Relation>,
    /// The status of this number, if it differs from that of the claim.
    pub status: Option<Status>,
    /// The reason for the status, if it differs from that of the claim.
    pub reason: Option<String>,
}

impl Number {
    /// Creates a number of `baseline` in `case`, with the relation of its claim.
    pub fn to_meet(baseline: &str, case: String, paper: f64, status: Status, reason: &str) -> Self {
        let (status, reason) = (Some(status), Some(reason.to_owned()));
        Self { baseline: baseline.to_owned(), case, paper, relation: None, status, reason }
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
    /// The meaning of the numbers.
    pub relation: Relation,
    /// The likeness of the measurement to the paper's.
    pub status: Status,
    /// The reason why the status is no better; empty if the claim is as described.
    pub reason: String,
    /// The claim in words.
    pub says: String,
    /// The numbers, in the order of the paper.
    pub numbers: Vec<Number>,
}

impl Claim {
    /// Returns the meaning of `number`.
    pub fn relation_of(&self, number: &Number) -> Relation {
        number.relation.unwrap_or(self.relation)
    }

    /// Returns the status of `number`.
    pub fn status_of(&self, number: &Number) -> Status {
        number.status.unwrap_or(self.status)
    }

    /// Returns the reason for the status of `number`.
    pub fn reason_of<'c>(&'c self, number: &'c Number) -> &'c str {
        number.reason.as_deref().unwrap_or(&self.reason)
    }

    /// Returns this claim with the numbers of which `is_kept` is true.
    #[must_use]
    pub fn with_numbers(&self, is_kept: impl Fn(&Number) -> bool) -> Self {
        let mut claim = self.clone();
        claim.numbers.retain(is_kept);
        claim
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
