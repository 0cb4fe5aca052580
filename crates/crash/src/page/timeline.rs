//! The timeline of a violation. Time runs down, and each line of memory has a column. Lost stores
//! are red, and a line across marks the crash.

use super::escape::escaped;
use core::fmt::{self, Write as _};

const ROW: usize = 20;
const COLUMN: usize = 34;
const TOP: usize = 58;
const LEFT: usize = 16;
/// The approximate width of a character of the text beside the drawing.
const CHARACTER: usize = 8;
const LINE_BYTES: u64 = 64;

/// A row of the drawing: one line of the trace.
struct Row<'a> {
    /// The line of the trace.
    text: &'a str,
    /// The letter of the event: `W`, `C`, `R`, `N`, `F` or `|`; a space for other lines.
    letter: char,
    /// The offset of the first line of memory.
    line: Option<u64>,
    lost: bool,
}

impl<'a> Row<'a> {
    fn new(text: &'a str) -> Self {
        // With several threads, the number of the thread comes first.
        let mut words = text.trim_start_matches(|c: char| c.is_ascii_digit()).split_whitespace();
        let first = words.next().unwrap_or_default();
        let letter = match first.chars().next() {
            Some(letter) if first.len() == 1 && "WCRNF|".contains(letter) => letter,
            _ => ' ',
        };
        let digits = words.next().and_then(|word| word.strip_prefix("0x"));
        let at = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let line = at.filter(|_| letter != ' ').map(|at| at / LINE_BYTES * LINE_BYTES);
        Self { text, letter, line, lost: text.contains("LOST") }
    }
}

/// Draws the trace of a violation. Draws nothing for an empty trace.
pub(super) fn draw(page: &mut String, trace: &str) -> fmt::Result {
    let rows: Vec<_> = trace.lines().map(Row::new).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let mut lines: Vec<u64> = rows.iter().filter_map(|row| row.line).collect();
    lines.sort_unstable();
    lines.dedup();
    let drawn = LEFT + COLUMN * lines.len();
    let longest = rows.iter().map(|row| row.text.len()).max().unwrap_or(0);
    let (width, height) = (drawn + 24 + longest * CHARACTER, TOP + ROW * (rows.len() + 1));
    writeln!(
        page,
        "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"stores, flushes and fences up to the crash\">"
    )?;
    for (number, line) in lines.iter().enumerate() {
        let x = LEFT + COLUMN * number + COLUMN / 2;
        let lost = rows.iter().any(|row| row.lost && row.line == Some(*line));
        let (class, stroke) = if lost { ("lost", "#b3261e") } else { ("dim", "#a9b4c2") };
        writeln!(
            page,
            "<text class=\"{class}\" x=\"{x}\" y=\"{}\" transform=\"rotate(-45 {x} {0})\">{line:#x}\
             </text><line x1=\"{x}\" y1=\"{TOP}\" x2=\"{x}\" y2=\"{height}\" stroke=\"{stroke}\"/>",
            TOP - 8
        )?;
    }
    for (number, row) in rows.iter().enumerate() {
        let y = TOP + ROW * number + ROW / 2 + 2;
        let x = row.line.and_then(|line| lines.binary_search(&line).ok());
        mark(page, row, x.map(|column| LEFT + COLUMN * column + COLUMN / 2), y, drawn)?;
        let class = match row.letter {
            _ if row.lost => "lost",
            'F' | '|' => "dim",
            _ => "",
        };
        let (x, y) = (drawn + 16, y + 4);
        writeln!(
            page,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" xml:space=\"preserve\">{}</text>",
            escaped(row.text)
        )?;
    }
    page.push_str("</svg>\n");
    Ok(())
}

/// Draws the mark of a row: a disc for a store, hollow if it is lost; a triangle for a flush; a
/// line across for a fence and for the crash.
fn mark(page: &mut String, row: &Row<'_>, x: Option<usize>, y: usize, drawn: usize) -> fmt::Result {
    match (row.letter, x) {
        ('|', _) => {
            writeln!(
                page,
                "<path d=\"M{LEFT} {y}H{drawn}\" stroke=\"#3465a4\" stroke-width=\"2\"/>"
            )
        }
        ('F', Some(x)) => {
            writeln!(page, "<path d=\"M{} {}h12l-6 9z\" fill=\"#3465a4\"/>", x - 6, y - 4)
        }
        (_, Some(x)) if row.lost => writeln!(
            page,
            "<circle cx=\"{x}\" cy=\"{y}\" r=\"6\" fill=\"none\" stroke=\"#b3261e\" \
             stroke-width=\"2\"/><path d=\"M{} {}l8 8m0 -8l-8 8\" stroke=\"#b3261e\" \
             stroke-width=\"2\"/>",
            x - 4,
            y - 4
        ),
        (letter, Some(x)) => {
            let fill = match letter {
                'C' => "#2e7d4f",
                'R' => "#a9b4c2",
                _ => "#57606a",
            };
            writeln!(page, "<circle cx=\"{x}\" cy=\"{y}\" r=\"6\" fill=\"{fill}\"/>")
        }
        _ if row.text.trim() == "crash" => writeln!(
            page,
            "<path d=\"M{LEFT} {y}H{drawn}\" stroke=\"#b3261e\" stroke-width=\"3\" \
             stroke-dasharray=\"6 4\"/>"
        ),
        _ => Ok(()),
    }
}
