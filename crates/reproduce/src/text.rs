//! Text in markup: how it is spelled, how wide it will be, and where it may be broken.
//!
//! The font is the reader's, so widths are estimates. They are those of a wide sans-serif face, so
//! that what fits here fits in the faces that systems have; they do not bound every face there is.

use core::fmt::{Arguments, Write as _};

/// What stands at the end of a text that was cut.
const ELLIPSIS: char = '\u{2026}';
/// Width of a bold face to that of a regular one, about.
pub(crate) const BOLD: f64 = 1.12;

/// Text, as HTML and XML have to spell it. Characters that XML cannot hold become U+FFFD.
pub(crate) fn escaped(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => spelled.push_str("&lt;"),
            '>' => spelled.push_str("&gt;"),
            '&' => spelled.push_str("&amp;"),
            '"' => spelled.push_str("&quot;"),
            '\'' => spelled.push_str("&#39;"),
            '\n' | '\t' => spelled.push(character),
            '\u{fffe}' | '\u{ffff}' => spelled.push('\u{fffd}'),
            other if other.is_control() => spelled.push('\u{fffd}'),
            other => spelled.push(other),
        }
    }
    spelled
}

/// Width of a glyph, as a part of the size of the font.
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

/// Width of a text in a font of that size, about.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(glyph).sum::<f64>() * size
}

/// The text, or as much of its beginning as fits, with an ellipsis.
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

/// The text in lines that fit, broken after spaces and hyphens; what is too much for the last line
/// is cut.
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

/// Whether the text fits in so many lines with nothing cut.
pub(crate) fn fits(text: &str, size: f64, room: f64, lines_max: usize) -> bool {
    wrapped(text, size, room, lines_max).iter().all(|line| !line.ends_with(ELLIPSIS))
}

/// Adds to a text.
pub(crate) fn put(text: &mut String, what: Arguments<'_>) {
    let written = text.write_fmt(what);
    debug_assert!(written.is_ok(), "a string takes all that is written to it");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_spelled_as_text() {
        assert_eq!(escaped("<a b=\"c\">&'"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;");
        assert_eq!(escaped("a\0b\u{1b}c\u{ffff}"), "a\u{fffd}b\u{fffd}c\u{fffd}");
    }

    #[test]
    fn what_is_cut_fits_and_says_so() {
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
