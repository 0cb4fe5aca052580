//! Mixes of kinds of operations, such as `get:30+insert:70`.

use super::error::WorkloadError;
use super::operation::OpKind;
use core::fmt;
use core::str::FromStr;
use rand::RngExt;
use rand::rngs::SmallRng;

/// The percentages of kinds of operations. Each kind occurs at most once; the sum is 100.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix(Vec<(OpKind, u32)>);

/// The sum of the percentages of a mix.
pub(super) const WHOLE: u32 = 100;

/// Draws a kind from `shares`, whose percentages sum to [`WHOLE`].
pub(super) fn draw(shares: &[(OpKind, u32)], rng: &mut SmallRng) -> OpKind {
    let mut left = rng.random_range(0..WHOLE);
    for &(kind, percent) in shares {
        if left < percent {
            return kind;
        }
        left -= percent;
    }
    unreachable!("the percentages of a mix sum to {WHOLE}")
}

impl Mix {
    /// Returns the kinds and their percentages.
    pub fn shares(&self) -> &[(OpKind, u32)] {
        &self.0
    }
}

impl FromStr for Mix {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let mut shares: Vec<(OpKind, u32)> = Vec::new();
        for part in text.split('+') {
            let (kind, percent) = share(part.trim()).ok_or_else(|| WorkloadError::Part {
                part: part.trim().to_owned(),
                known: OpKind::ALL.map(OpKind::name).join(", "),
            })?;
            if shares.iter().any(|&(other, _)| other == kind) {
                return Err(WorkloadError::Twice { kind: kind.name() });
            }
            shares.push((kind, percent));
        }
        let sum = shares.iter().map(|&(_, percent)| u64::from(percent)).sum();
        if sum != u64::from(WHOLE) {
            return Err(WorkloadError::Sum { sum });
        }
        Ok(Self(shares))
    }
}

/// Parses a part of a mix, `KIND:PERCENT`.
fn share(part: &str) -> Option<(OpKind, u32)> {
    let (name, percent) = part.split_once(':')?;
    let kind = OpKind::ALL.into_iter().find(|kind| kind.name() == name)?;
    let percent = percent.parse().ok().filter(|percent| (1..=WHOLE).contains(percent))?;
    Some((kind, percent))
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (kind, percent)) in self.0.iter().enumerate() {
            let plus = if index == 0 { "" } else { "+" };
            write!(f, "{plus}{kind}:{percent}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn a_mix_is_written_as_it_is_read() {
        for text in ["get:100", "get:30+insert:70", "scan:1+rmw:2+delete:3+upsert:4+update:90"] {
            assert_eq!(text.parse::<Mix>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn kinds_come_as_often_as_the_mix_says() {
        let mix: Mix = "get:30+insert:50+scan:20".parse().unwrap();
        let mut rng = SmallRng::seed_from_u64(1);
        let drawn: Vec<OpKind> = (0..100_000).map(|_| draw(mix.shares(), &mut rng)).collect();
        for &(kind, percent) in mix.shares() {
            let count = drawn.iter().filter(|&&other| other == kind).count();
            // The standard deviation is at most 158.
            assert!(count.abs_diff(percent as usize * 1000) < 1000, "{kind}: {count}");
        }
    }

    #[test]
    fn what_is_no_mix_is_refused_with_the_reason() {
        let refusal = |text: &str| text.parse::<Mix>().unwrap_err().to_string();
        for text in
            ["", "get", "get:", "get:0+insert:100", "get:101", "got:100", "get:100+", "get:-1"]
        {
            assert!(refusal(text).contains("KIND:PERCENT"), "{text}");
        }
        assert!(refusal("get:50+get:50").contains("twice"));
        assert!(refusal("get:50+insert:49").contains("sum to 99"));
        assert!(refusal("get:99999999999+insert:1").contains("KIND:PERCENT"));
    }
}
