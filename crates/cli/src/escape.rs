//! Bytes in text: a tab, a newline and a backslash become `\t`, `\n` and `\\`, every other byte
//! stays. So a field holds no raw tab, a line no raw newline, and any bytes survive the round trip.

use std::io::{self, Write};

/// The most bytes of text that one byte is spelled with.
pub const BYTES_MAX: usize = 2;

/// Writes `bytes`, escaped.
///
/// # Errors
/// The output is closed, or its device is full.
pub fn write(out: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while let Some(at) = bytes.iter().position(|&byte| letter(byte).is_some()) {
        let (plain, rest) = bytes.split_at(at);
        out.write_all(plain)?;
        out.write_all(&[b'\\', letter(rest[0]).unwrap_or(b'\\')])?;
        bytes = &rest[1..];
    }
    out.write_all(bytes)
}

/// Returns the letter that stands for `byte` behind a backslash, or `None` if it needs no escape.
fn letter(byte: u8) -> Option<u8> {
    match byte {
        b'\t' => Some(b't'),
        b'\n' => Some(b'n'),
        b'\\' => Some(b'\\'),
        _ => None,
    }
}

/// Returns the bytes that `text` spells, or `None` if a backslash precedes another byte than `t`,
/// `n` or a backslash.
pub fn read(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(&byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next()? {
                b't' => b'\t',
                b'n' => b'\n',
                b'\\' => b'\\',
                _ => return None,
            },
            plain => plain,
        });
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        write(&mut text, bytes).unwrap();
        text
    }

    #[test]
    fn the_three_bytes_are_spelled_with_two_characters() {
        assert_eq!(spelled(b"a\tb\nc\\d"), br"a\tb\nc\\d");
        assert_eq!(spelled(b""), b"");
        assert_eq!(spelled(b"\r\0\xff"), b"\r\0\xff");
    }

    #[test]
    fn any_bytes_survive_the_round_trip() {
        let all: Vec<u8> = (0..=255).chain(*b"\\t\\n\\\\\t\n\\").collect();
        let text = spelled(&all);
        assert!(!text.contains(&b'\t') && !text.contains(&b'\n'));
        assert_eq!(read(&text), Some(all));
    }

    #[test]
    fn an_unknown_escape_is_refused() {
        assert_eq!(read(br"a\x"), None);
        assert_eq!(read(br"a\"), None);
    }
}
