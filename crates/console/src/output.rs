//! Answers on standard output, as text or as JSON.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;
use std::io::{self, BufWriter, Stdout, Write};

/// Standard output, and the form of the answer.
#[derive(Debug)]
pub struct Output {
    stdout: BufWriter<Stdout>,
    /// The form of the answer: JSON if `true`, text if `false`. Set by `--json`.
    pub json: bool,
}

impl Output {
    /// Returns standard output for an answer in JSON if `json`, else in text.
    pub fn new(json: bool) -> Self {
        Self { stdout: BufWriter::with_capacity(64 << 10, io::stdout()), json }
    }

    /// Prints `object` as one line of JSON and flushes it, for a program that reads line by line.
    ///
    /// # Errors
    /// Standard output is closed, or its device is full.
    pub fn object(&mut self, object: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.stdout, object)?;
        self.stdout.write_all(b"\n")?;
        self.stdout.flush()
    }

    /// Prints a table, without spaces at the ends of its lines.
    ///
    /// # Errors
    /// Standard output is closed, or its device is full.
    pub fn table(&mut self, table: &Table) -> io::Result<()> {
        for line in table.lines() {
            writeln!(self.stdout, "{}", line.trim_end())?;
        }
        self.stdout.flush()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stdout.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}

/// Returns an empty table. `titles` are the column titles, or empty for a table without a header.
/// The columns of `numbers` are aligned to the right.
pub fn table(titles: &[&str], numbers: std::ops::Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if titles.is_empty() {
        table.set_constraints(numbers.clone().map(|_| comfy_table::ColumnConstraint::ContentWidth));
    } else {
        table.set_header(titles.iter().copied());
    }
    for index in numbers {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Returns `number` in decimal digits with a space between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// Returns `number` without its fraction, and 0 for a negative number.
#[expect(clippy::cast_sign_loss, reason = "`max` leaves no negative number")]
pub fn whole(number: f64) -> u64 {
    number.max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1 000");
        assert_eq!(grouped(12_345_678), "12 345 678");
    }
}
