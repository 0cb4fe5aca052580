//! The numbers of images with each finding, and their table.

use super::judge::Finding;
use bristlecone_console::output::{Output, grouped};
use core::fmt::Write as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The numbers of images with each finding.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) images: u64,
    pub(super) refused: u64,
    pub(super) damaged: u64,
    pub(super) right: u64,
    pub(super) wrong: u64,
    pub(super) hung: u64,
    pub(super) crashed: u64,
    /// The number of refusals with each error.
    pub(super) refusals: BTreeMap<String, u64>,
}

impl Tally {
    /// Counts an image.
    pub(super) fn add(&mut self, finding: Finding) {
        self.images += 1;
        *match finding {
            Finding::Refused(name) => {
                *self.refusals.entry(name).or_default() += 1;
                &mut self.refused
            }
            Finding::Damaged => &mut self.damaged,
            Finding::Right => &mut self.right,
            Finding::Wrong => &mut self.wrong,
            Finding::Hung => &mut self.hung,
            Finding::Crashed => &mut self.crashed,
        } += 1;
    }

    /// Returns the numbers in the order of [`COLUMNS`].
    pub(super) fn numbers(&self) -> [u64; 7] {
        let Self { images, refused, damaged, right, wrong, hung, crashed, .. } = *self;
        [images, refused, right, damaged, wrong, hung, crashed]
    }

    /// Returns `true` if every image was refused or answered right.
    pub(super) fn is_right(&self) -> bool {
        self.wrong + self.hung + self.crashed == 0
    }

    /// Returns the numbers as JSON.
    pub(super) fn json(&self) -> Value {
        let mut object: serde_json::Map<String, Value> =
            COLUMNS.iter().zip(self.numbers()).map(|(&name, n)| (name.into(), n.into())).collect();
        object.insert("refusals".into(), json!(self.refusals));
        object.into()
    }
}

/// The names of the numbers.
pub(super) const COLUMNS: [&str; 7] =
    ["images", "refused", "right", "damaged", "wrong", "hung", "crashed"];

/// Prints a row for each tally. `title` stands above their names.
pub(super) fn print_table(
    title: &str,
    tallies: &[(&str, &Tally)],
    output: &mut Output,
) -> io::Result<()> {
    let mut rows = vec![line(title, COLUMNS.map(str::to_owned))];
    rows.extend(tallies.iter().map(|(name, tally)| line(name, tally.numbers().map(grouped))));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..8).map(width).collect();
    for row in &rows {
        let mut text = format!("{:1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(text, "  {cell:>width$}");
        }
        writeln!(output, "{text}")?;
    }
    Ok(())
}

fn line(name: &str, cells: [String; 7]) -> [String; 8] {
    let mut cells = [name.to_owned()].into_iter().chain(cells);
    core::array::from_fn(|_| cells.next().unwrap_or_default())
}
