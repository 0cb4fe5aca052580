//! The papers' claims, measured again: the claims, the figures, the report.
//!
//! What is drawn knows nothing of what is measured: a [`figure::Chart`] goes from numbers to the
//! text of a drawing, a [`page::Page`] from charts, tables and words to one file of HTML that needs
//! no other file, no script and no network.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`claims`] | what the papers say: 34 claims and their numbers |
//! | [`mod@bench`] | counts, times and models of designs, at the scale of the run |
//! | [`papers`] | how each claim is measured |
//! | [`experiments`] | experiments on other designs, or on trees in a particular state |
//! | [`verdict`] | the paper's numbers beside those that were measured |
//! | [`devices`], [`cost`] | all designs on all devices, and the formula that explains it |
//! | [`advise`] | which design for a workload on a device, and why |
//! | [`figure`], [`page`], [`report`] | charts, the page, what is on it |

pub mod advise;
pub mod bench;
pub mod claims;
pub mod cost;
pub mod devices;
pub mod experiments;
pub mod figure;
#[cfg(test)]
mod markup;
mod number;
pub mod page;
pub mod papers;
pub mod report;
mod table;
mod text;
pub mod verdict;

pub use table::{Cell, Column, Mark, Table};
