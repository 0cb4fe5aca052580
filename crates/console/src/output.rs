//! Answers on standard output, as text or as JSON.

use serde_core::{Serialize, Serializer};
use serde_json::Value;
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

    /// Prints names and values in two columns, one pair a line; `align` aligns the values.
    ///
    /// # Errors
    /// Standard output is closed, or its device is full.
    pub fn pairs(&mut self, pairs: &[(&str, String)], align: Align) -> io::Result<()> {
        let width = |text: &str| text.chars().count();
        let names = pairs.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
        let values = pairs.iter().map(|(_, value)| width(value)).max().unwrap_or(0);
        for (name, value) in pairs {
            match align {
                Align::Left => writeln!(self.stdout, "{name:names$}  {value}")?,
                Align::Right => writeln!(self.stdout, "{name:names$}  {value:>values$}")?,
            }
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

/// A JSON object whose fields keep their order.
#[derive(Debug)]
pub struct Fields<'a>(pub &'a [(&'static str, Value)]);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// The alignment of the values of [`Output::pairs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words: each begins at the same column.
    Left,
    /// Numbers: each ends at the same column.
    Right,
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

/// Returns `number` and `noun`, in the plural unless the number is 1: `1 pair`, `2 000 pairs`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
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
    fn fields_keep_their_order() {
        let object = Fields(&[("lost", 0.into()), ("keys", 7.into()), ("domain", "adr".into())]);
        let text = serde_json::to_string(&object).unwrap();
        assert_eq!(text, r#"{"lost":0,"keys":7,"domain":"adr"}"#);
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1 000");
        assert_eq!(grouped(12_345_678), "12 345 678");
    }

    #[test]
    fn one_thing_is_counted_in_the_singular() {
        assert_eq!(counted(1, "pair"), "1 pair");
        assert_eq!(counted(0, "pair"), "0 pairs");
        assert_eq!(counted(3780, "pair"), "3 780 pairs");
    }
}
