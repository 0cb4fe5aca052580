//! The ways in which a section departs from the form.

use thiserror::Error;

/// The place and the reason why a page's section `Mechanisms` departs from the form.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("line {line}: {flaw}")]
pub struct FormError {
    /// The line of the page, counted from 1; the heading's, or 0 if there is none, for what is
    /// missing.
    pub line: usize,
    /// The rule that the line breaks.
    pub flaw: Flaw,
}

/// A rule of the form that a page breaks.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flaw {
    /// The page has no section, or several.
    #[error("the page has not exactly one section `## Mechanisms`")]
    Sections,
    /// The section does not begin with the kind of the design.
    #[error("the section begins neither with `Published.` nor with `Ours.`")]
    Kind,
    /// The table has another header than the one given.
    #[error("the header of the table is not `{0}`, or no rule of five columns follows it")]
    Header(&'static str),
    /// The section has more than one table.
    #[error("the section has a second table")]
    SecondTable,
    /// The section of a published design has no row.
    #[error("a published design has no mechanism")]
    NoMechanism,
    /// The row has too many cells, too few, or an empty one.
    #[error("a row has five cells, none of them empty")]
    Cells,
    /// Two rows have one mechanism.
    #[error("the mechanism {0:?} has a row already")]
    Twice(String),
    /// The status is none of the four.
    #[error("{0:?} is no status; there are: as described, repaired, departed, absent")]
    Status(String),
    /// The row has no price, or a mechanism as described has one.
    #[error("the price of what is as described is `none`, any other is stated")]
    Price,
    /// The row does not say in which way the design differs.
    #[error("the cell `here` of what is not as described says what is here")]
    Here,
}
