//! Tables with a header, as wide as the terminal.

use bristlecone_console::output::Output;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use std::io::{self, Write};

/// Returns an empty table with the column titles `titles`. The columns of `numbers` are aligned to
/// the right.
pub(crate) fn table(titles: &[&str], numbers: std::ops::Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(titles.iter().copied());
    for index in numbers {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Prints a table, without spaces at the ends of its lines.
pub(crate) fn print(table: &Table, output: &mut Output) -> io::Result<()> {
    for line in table.lines() {
        writeln!(output, "{}", line.trim_end())?;
    }
    output.flush()
}
