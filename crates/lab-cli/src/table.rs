//! Tables with a header, as wide as the terminal.
//!
//! The first column and the columns of numbers are never broken: half a name or half a number is of
//! no use. Other columns are broken into lines where the terminal is too narrow. A terminal that is
//! still narrower, or that does not know its width, breaks the lines itself.

use bristlecone_console::output::Output;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};
use std::io::{self, Write};

/// The least width at which text is broken into lines, in characters.
const WIDTH_MIN: u16 = 40;
/// The least width of a column of text that is broken.
const TEXT_MIN: u16 = 16;

/// Returns an empty table with the column titles `titles`. The columns of `numbers` are aligned to
/// the right.
pub(crate) fn table(titles: &[&str], numbers: std::ops::Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(titles.iter().copied());
    for index in std::iter::once(0).chain(numbers.clone()) {
        if let Some(column) = table.column_mut(index) {
            column.set_constraint(ColumnConstraint::ContentWidth);
            if numbers.contains(&index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    table
}

/// Prints a table, without spaces at the ends of its lines.
pub(crate) fn print(table: &Table, output: &mut Output) -> io::Result<()> {
    for line in fitted(table).lines() {
        writeln!(output, "{}", line.trim_end())?;
    }
    output.flush()
}

/// Returns the table with the least widths of its columns set, where it knows its own width.
fn fitted(table: &Table) -> Table {
    let mut table = table.clone();
    let Some(width) = table.width() else { return table };
    if width < WIDTH_MIN {
        table.set_content_arrangement(ContentArrangement::Disabled);
        return table;
    }
    let widths = table.column_max_content_widths();
    for (column, width) in table.column_iter_mut().zip(widths) {
        if column.constraint().is_none() {
            column
                .set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width.min(TEXT_MIN))));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_whole_at_every_width() {
        let titles = ["design", "node B", "insert", "features", "source"];
        let mut shown = table(&titles, 1..3);
        let name = "unsorted-bitmap-shadow";
        let source = "Chen and Jin, Persistent B+-Trees in Non-Volatile Main Memory, VLDB 2015";
        shown.add_row([name, "1024", "123 456 789", "optimistic-latches, multi-get", source]);
        for width in [0, 1, 20, 40, 80, 120, 300] {
            let text = fitted(shown.clone().set_width(width)).to_string();
            assert!(text.contains(name) && text.contains("123 456 789"), "{width}:\n{text}");
            assert!(text.lines().count() < 12, "{width}:\n{text}");
        }
    }
}
