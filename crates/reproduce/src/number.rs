//! Numbers for people: few digits beside a drawing, all that matter in a table.
//!
//! What cannot be drawn is missing, and it is missing in every chart and table alike.

/// Where numbers stop being worth drawing: sums and squares of smaller ones stay finite.
const LARGEST: f64 = 1e100;
/// What is nearer to nothing is nothing.
const SMALLEST: f64 = 1e-100;
/// Digits that a label beside a drawing needs.
const SIGNIFICANT_SHORT: i32 = 3;
/// Digits that a table shows at most.
const SIGNIFICANT_FULL: i32 = 6;
/// A number that a table does not print digit by digit.
const SCIENTIFIC: f64 = 1e15;
/// A nonzero number below this would show only zeros.
const FINE: f64 = 1e-4;
/// Where a label stops printing all digits.
const THOUSANDS: f64 = 10_000.0;
/// What stands for a minus sign.
const MINUS: &str = "\u{2212}";

/// The number, if it is one that can be drawn.
pub(crate) fn drawable(value: Option<f64>) -> Option<f64> {
    let value = value.filter(|value| value.abs() <= LARGEST)?;
    Some(if value.abs() < SMALLEST { 0.0 } else { value })
}

/// The unit in which numbers up to this size are short: its size and its letter.
fn unit(largest: f64) -> (f64, &'static str) {
    match largest.abs() {
        size if size < THOUSANDS => (1.0, ""),
        size if size < 1e6 => (1e3, "k"),
        size if size < 1e9 => (1e6, "M"),
        size if size < 1e12 => (1e9, "G"),
        _ => (1e12, "T"),
    }
}

/// Decimals that leave so many significant digits.
fn decimals(value: f64, significant: i32) -> usize {
    let before = if value.abs() < FINE { 1 } else { value.abs().log10().floor() as i32 + 1 };
    usize::try_from(significant - before).unwrap_or(0)
}

/// Digits after the point, without zeros at the end, with a true minus sign.
fn spelled(value: f64, decimals: usize) -> String {
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

/// A number in three significant digits, such as `12.3k`.
pub(crate) fn short(value: f64) -> String {
    if is_extreme(value) {
        return scientific(value);
    }
    let (size, letter) = unit(value);
    let scaled = value / size;
    format!("{}{letter}", spelled(scaled, decimals(scaled, SIGNIFICANT_SHORT)))
}

/// The number at a tick, all ticks of an axis in one unit.
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
    let text = spelled(value / size, decimals.into());
    if text == "0" { text } else { format!("{text}{letter}") }
}

/// A number in a table: spaces between thousands, up to six significant digits after the point.
pub(crate) fn full(value: f64) -> String {
    if is_extreme(value) {
        return scientific(value);
    }
    let text = spelled(value, decimals(value, SIGNIFICANT_FULL));
    let (digits, rest) = text.split_once('.').map_or((text.as_str(), None), |(d, r)| (d, Some(r)));
    let (sign, digits) = digits.strip_prefix(MINUS).map_or(("", digits), |digits| (MINUS, digits));
    let mut grouped = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(' ');
        }
        grouped.push(digit);
    }
    if let Some(rest) = rest {
        grouped.push('.');
        grouped.push_str(rest);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_three_digits() {
        let spelled = [0.0, 1.0, 12.345, 0.012_34, 9_999.0, 12_345.0, -2.5e6, 3e-7].map(short);
        let expected =
            ["0", "1", "12.3", "0.0123", "9999", "12.3k", "\u{2212}2.5M", "3.00e\u{2212}7"];
        assert_eq!(spelled, expected);
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
        let spelled = [300_000.0, 1_234.5, -7.0, 0.123_456_7, 2e18].map(full);
        assert_eq!(spelled, ["300 000", "1 234.5", "\u{2212}7", "0.123457", "2.00e18"]);
    }

    #[test]
    fn what_is_no_number_is_missing() {
        let odd = [None, Some(f64::NAN), Some(f64::INFINITY), Some(f64::MAX)];
        assert!(odd.iter().all(|&value| drawable(value).is_none()));
        assert_eq!(drawable(Some(5e-324)), Some(0.0));
    }
}
