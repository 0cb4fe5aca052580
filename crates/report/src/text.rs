//! HTML escaping, and the layout of text: estimated widths, line breaks, ellipses.
//!
//! The reader's system chooses the font, so widths are estimates. They are those of a wide
//! sans-serif face, so text that fits by them fits in the default faces of common systems. They are
//! no upper bound for every face.

use core::fmt::{Arguments, Write as _};

/// The mark at the end of a shortened text.
const ELLIPSIS: char = '\u{2026}';
/// The estimated width of bold text, relative to regular text.
pub(crate) const BOLD: f64 = 1.12;

/// Returns `text` escaped for HTML and XML, in elements and in quoted attributes.
///
/// Characters that XML does not allow become U+FFFD.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(character),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other if other.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Returns the estimated width of a glyph, relative to the font size.
fn glyph(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | '\'' | '|' => 0.30,
        ' ' | '.' | ',' | ':' | ';' | '/' | '\\' | 'I' => 0.34,
        'f' | 't' | 'r' | '-' | '(' | ')' | '[' | ']' | '!' | '"' => 0.42,
        's' | 'c' | 'z' | '_' | '*' | '?' => 0.56,
        'm' | '%' | '@' | 'W' | ELLIPSIS => 1.0,
        'w' | '+' | '=' | '<' | '>' | '~' | '&' | '\u{2212}' | '\u{d7}' => 0.84,
        'M' | 'O' | 'Q' | 'G' | 'D' | 'H' | 'N' | 'U' => 0.87,
        'A'..='Z' => 0.72,
        character if character.is_ascii() => 0.65,
        _ => 1.0,
    }
}

/// Returns the estimated width of `text` in pixels, in a font of `size` pixels.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(glyph).sum::<f64>() * size
}

/// Returns `text`, shortened with an ellipsis if it is wider than `room` pixels.
pub(crate) fn shortened(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.into();
    }
    let mut used = glyph(ELLIPSIS) * size;
    let fits = text.chars().take_while(|&character| {
        used += glyph(character) * size;
        used <= room
    });
    let mut short: String = fits.collect();
    short.truncate(short.trim_end().len());
    short.push(ELLIPSIS);
    short
}

/// Breaks `text` after spaces and hyphens into at most `lines_max` lines of `room` pixels.
///
/// A line that is still too wide is shortened with an ellipsis.
pub(crate) fn wrapped(text: &str, size: f64, room: f64, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in text.split_inclusive([' ', '-', '\n']) {
        let longer = lines.last().map(|line| format!("{line}{part}"));
        match longer {
            Some(longer) if width(longer.trim_end(), size) <= room || lines.len() == lines_max => {
                lines.pop();
                lines.push(longer);
            }
            _ => lines.push(part.into()),
        }
    }
    lines.iter().map(|line| shortened(line.trim_end(), size, room)).collect()
}

/// Returns `true` if `text` fits in `lines_max` lines of `room` pixels without being shortened.
pub(crate) fn fits(text: &str, size: f64, room: f64, lines_max: usize) -> bool {
    wrapped(text, size, room, lines_max).iter().all(|line| !line.ends_with(ELLIPSIS))
}

pub(crate) fn append(text: &mut String, what: Arguments<'_>) {
    let written = text.write_fmt(what);
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(escaped("<a b=\"c\">&'"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;");
        assert_eq!(escaped("a\0b\u{1b}c\u{ffff}"), "a\u{fffd}b\u{fffd}c\u{fffd}");
    }

    #[test]
    fn a_shortened_text_fits_and_ends_with_an_ellipsis() {
        let name = "unsorted-bitmap-shadow";
        let short = shortened(name, 12.0, 60.0);
        assert!(width(&short, 12.0) <= 60.0 && short.ends_with(ELLIPSIS), "{short}");
        assert_eq!(shortened(name, 12.0, 600.0), name);
    }

    #[test]
    fn lines_break_at_spaces_and_hyphens() {
        let lines = wrapped("unsorted-bitmap shadow", 12.0, 80.0, 3);
        assert_eq!(lines, ["unsorted-", "bitmap", "shadow"]);
        assert!(fits("unsorted-bitmap shadow", 12.0, 80.0, 3));
        let cut = wrapped("unsorted-bitmap shadow", 12.0, 80.0, 2);
        assert_eq!(cut.len(), 2);
        assert!(cut[1].ends_with(ELLIPSIS), "{cut:?}");
        assert!(!fits("unsorted-bitmap shadow", 12.0, 80.0, 2));
        assert!(wrapped("", 12.0, 80.0, 2).is_empty());
    }
}
