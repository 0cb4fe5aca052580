//! Number formats: three significant digits in a chart, six in a table.
//!
//! A value that is not finite, or whose magnitude is over 1e100, counts as missing. Charts and
//! tables treat missing values alike.

/// The largest magnitude that is drawn. Sums and squares of such numbers stay finite.
const LARGEST: f64 = 1e100;
/// A number of a smaller magnitude counts as zero.
const SMALLEST: f64 = 1e-100;
const SIGNIFICANT_SHORT: i32 = 3;
const SIGNIFICANT_FULL: i32 = 6;
/// The magnitude from which on numbers are printed with an exponent.
const SCIENTIFIC: f64 = 1e15;
/// A nonzero number below this would print as zeros alone, so it gets an exponent too.
const FINE: f64 = 1e-4;
/// The number from which on a label uses a unit letter such as `k`.
const THOUSANDS: f64 = 10_000.0;
/// The typographic minus sign, as wide as a digit.
const MINUS: &str = "\u{2212}";

/// Returns the number if it can be drawn; `None` means missing.
pub(crate) fn drawable(value: Option<f64>) -> Option<f64> {
    let value = value.filter(|value| value.abs() <= LARGEST)?;
    Some(if value.abs() < SMALLEST { 0.0 } else { value })
}

/// Returns the unit, size and letter, in which numbers up to `largest` have few digits.
fn unit(largest: f64) -> (f64, &'static str) {
    match largest.abs() {
        size if size < THOUSANDS => (1.0, ""),
        size if size < 1e6 => (1e3, "k"),
        size if size < 1e9 => (1e6, "M"),
        size if size < 1e12 => (1e9, "G"),
        _ => (1e12, "T"),
    }
}

fn decimals(value: f64, significant: i32) -> usize {
    let before = if value.abs() < FINE { 1 } else { value.abs().log10().floor() as i32 + 1 };
    usize::try_from(significant - before).unwrap_or(0)
}

/// Prints `value` with at most `decimals` digits after the point, without trailing zeros.
fn fixed(value: f64, decimals: usize) -> String {
    let mut text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    match text.strip_prefix('-') {
        Some("0") => "0".into(),
        Some(digits) => format!("{MINUS}{digits}"),
        None => text,
    }
}

fn scientific(value: f64) -> String {
    format!("{value:.2e}").replace('-', MINUS)
}

fn is_extreme(value: f64) -> bool {
    value.abs() >= SCIENTIFIC || (value != 0.0 && value.abs() < FINE)
}

/// Returns `value` in three significant digits with a unit letter, such as `12.3k`.
pub fn short(value: f64) -> String {
    if is_extreme(value) {
        return scientific(value);
    }
    let (size, letter) = unit(value);
    let scaled = value / size;
    format!("{}{letter}", fixed(scaled, decimals(scaled, SIGNIFICANT_SHORT)))
}

/// Returns the label of a tick at `value`. All ticks of an axis share the unit of `largest`.
pub(crate) fn tick(value: f64, step: f64, largest: f64) -> String {
    const DECIMALS_MAX: u8 = 9;
    if is_extreme(largest) || is_extreme(step) {
        return if value == 0.0 { "0".into() } else { scientific(value) };
    }
    let (size, letter) = unit(largest);
    let whole = |decimals: &u8| {
        let steps = step / size * 10f64.powi(i32::from(*decimals));
        (steps - steps.round()).abs() < 1e-6 * steps
    };
    let decimals = (0..DECIMALS_MAX).find(whole).unwrap_or(DECIMALS_MAX);
    let text = fixed(value / size, decimals.into());
    if text == "0" { text } else { format!("{text}{letter}") }
}

/// Returns `value` as a table prints it: thousands apart, at most six significant digits if it is
/// not whole, such as `300 000` or `1 234.5`.
pub fn full(value: f64) -> String {
    if is_extreme(value) {
        return scientific(value);
    }
    let text = fixed(value, decimals(value, SIGNIFICANT_FULL));
    let (digits, rest) = text.split_once('.').map_or((text.as_str(), None), |(d, r)| (d, Some(r)));
    let (sign, digits) = digits.strip_prefix(MINUS).map_or(("", digits), |digits| (MINUS, digits));
    let mut grouped = format!("{sign}{}", thousands_apart(digits));
    if let Some(rest) = rest {
        grouped.push('.');
        grouped.push_str(rest);
    }
    grouped
}

/// Returns `number` with a space between thousands, such as `1 234 567`, or with an exponent from
/// 1e12 on.
pub fn count(number: u128) -> String {
    const EXPONENT_FROM: u128 = 1_000_000_000_000;
    if number >= EXPONENT_FROM {
        return scientific(number as f64);
    }
    thousands_apart(&number.to_string())
}

fn thousands_apart(digits: &str) -> String {
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_three_digits() {
        let printed = [0.0, 1.0, 12.345, 0.012_34, 9_999.0, 12_345.0, -2.5e6, 3e-7].map(short);
        let expected =
            ["0", "1", "12.3", "0.0123", "9999", "12.3k", "\u{2212}2.5M", "3.00e\u{2212}7"];
        assert_eq!(printed, expected);
    }

    #[test]
    fn ticks_share_a_unit() {
        let ticks = [0.0, 2_500.0, 12_500.0].map(|value| tick(value, 2_500.0, 12_500.0));
        assert_eq!(ticks, ["0", "2.5k", "12.5k"]);
        assert_eq!(tick(0.25, 0.25, 1.0), "0.25");
        assert_eq!(tick(-0.0, 0.1, 1.0), "0");
        assert_eq!(tick(1e20, 1e20, 5e20), "1.00e20");
    }

    #[test]
    fn tables_print_all_digits_of_counts() {
        let printed = [300_000.0, 1_234.5, -7.0, 0.123_456_7, 2e18].map(full);
        assert_eq!(printed, ["300 000", "1 234.5", "\u{2212}7", "0.123457", "2.00e18"]);
    }

    #[test]
    fn values_that_are_not_finite_are_missing() {
        let odd = [None, Some(f64::NAN), Some(f64::INFINITY), Some(f64::MAX)];
        assert!(odd.iter().all(|&value| drawable(value).is_none()));
        assert_eq!(drawable(Some(5e-324)), Some(0.0));
    }

    #[test]
    fn counts_are_exact_up_to_a_million_millions() {
        let printed = [0, 999, 1_000, 1_234_567, 2_990_000_000_000].map(count);
        assert_eq!(printed, ["0", "999", "1 000", "1 234 567", "2.99e12"]);
    }
}
