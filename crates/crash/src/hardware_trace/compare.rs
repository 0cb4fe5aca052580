//! The comparison of recorded and executed events.
//!
//! 1. Stores, flushes and fences are equal and in the same order: offset, value, line. A store is
//!    of one aligned word and goes through the cache.
//! 2. The words of a fill come in any order, each once. Then their lines are flushed, in any order,
//!    or all of the words bypassed the cache.
//! 3. No event is left over on either side.

use super::recorded::{RecordedEffect, ScriptEvent, words_of};
use crate::trace::StoreRole;
use core::fmt;
use std::collections::BTreeSet;

const LINE_WORDS: u32 = 8;
/// The number of events that are shown before a difference.
const SHOWN: usize = 4;

/// The effect of an instruction on the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutedEffect {
    /// A store of `bytes` bytes at an offset of the pool. A wider store is one event for each word.
    Store {
        /// The offset of the first byte.
        at: u64,
        /// The number of bytes that were stored at once.
        bytes: u32,
        /// The value of the aligned word of 8 B around it after the store.
        new: u64,
        /// Set for a store that bypasses the cache, which has no order before the next fence.
        streamed: bool,
    },
    /// The start of the write-back of a line.
    Flush {
        /// The number of the line, counted from the beginning of the pool.
        line: u32,
    },
    /// A fence of the thread.
    Fence,
    /// A word that differs at a fence, or at the end, although no instruction stored it.
    Unseen {
        /// The offset of the word.
        at: u64,
        /// The value that memory holds.
        new: u64,
    },
}

impl fmt::Display for ExecutedEffect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store { at, bytes, new, streamed } => {
                write!(f, "{} {at:#x}  {new:#x}", if *streamed { 'N' } else { 'W' })?;
                if *bytes == 8 && at.is_multiple_of(8) {
                    return Ok(());
                }
                write!(f, " (a store of {bytes} B)")
            }
            Self::Flush { line } => write!(f, "F {:#x}", u64::from(*line) * 64),
            Self::Fence => f.write_str("|"),
            Self::Unseen { at, new } => {
                write!(f, "{at:#x} holds {new:#x}, and no instruction has stored it")
            }
        }
    }
}

/// An effect, with the address of its instruction in the file of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutedEvent {
    /// The effect of the instruction.
    pub seen: ExecutedEffect,
    /// The offset of the instruction in the file of the program.
    pub place: u64,
}

/// The first difference between the two traces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The number of the operation in the script.
    pub operation: u32,
    /// The last events before the difference.
    pub before: Vec<String>,
    /// The next recorded event.
    pub recorded: String,
    /// The next executed event.
    pub executed: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.before {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "  recorded: {}", self.recorded)?;
        writeln!(f, "  executed: {}", self.executed)
    }
}

/// Returns the first difference, if there is one. The value of a word that `is_drawn` may differ,
/// because it is random.
pub(crate) fn compare(
    recorded: &[ScriptEvent],
    executed: &[ExecutedEvent],
    is_drawn: impl Fn(u32) -> bool,
) -> Option<Difference> {
    let mut rest = executed;
    for (index, entry) in recorded.iter().enumerate() {
        let matched = match &entry.effect {
            RecordedEffect::Fill { first, new } => filled(*first, new, rest),
            effect => single(effect, rest, &is_drawn),
        };
        match matched {
            Ok(count) => rest = &rest[count..],
            Err(after) => {
                let found = rest.get(after);
                return Some(difference(&recorded[..index], Some(entry), found));
            }
        }
    }
    rest.first().map(|left| difference(recorded, None, Some(left)))
}

/// Returns the number of events that match an event other than a fill.
///
/// # Errors
/// The number of the event that does not match.
fn single(
    effect: &RecordedEffect,
    rest: &[ExecutedEvent],
    is_drawn: impl Fn(u32) -> bool,
) -> Result<usize, usize> {
    let Some(next) = rest.first() else { return Err(0) };
    let is_right = match (effect, next.seen) {
        (RecordedEffect::Store { word, new, .. }, seen) => {
            let ExecutedEffect::Store { new: stored, .. } = seen else { return Err(0) };
            let new = if is_drawn(*word) { stored } else { *new };
            seen == ExecutedEffect::Store {
                at: u64::from(*word) * 8,
                bytes: 8,
                new,
                streamed: false,
            }
        }
        (RecordedEffect::Flush { line }, ExecutedEffect::Flush { line: found }) => found == *line,
        (RecordedEffect::Fence, ExecutedEffect::Fence) => true,
        _ => false,
    };
    if is_right { Ok(1) } else { Err(0) }
}

/// Returns the number of events that match a fill.
///
/// # Errors
/// The number of the event that does not match.
fn filled(first: u32, new: &[u64], rest: &[ExecutedEvent]) -> Result<usize, usize> {
    let range = words_of(first, new);
    let mut missing: BTreeSet<u32> = range.clone().collect();
    let past = matches!(
        rest.first(),
        Some(ExecutedEvent { seen: ExecutedEffect::Store { streamed: true, .. }, .. })
    );
    let mut taken = 0;
    while !missing.is_empty() {
        let next = rest.get(taken).map(|happened| happened.seen);
        let Some(ExecutedEffect::Store { at, bytes: 8, new: stored, streamed }) = next else {
            return Err(taken);
        };
        let word = (at / 8) as u32;
        let is_right = at.is_multiple_of(8)
            && missing.remove(&word)
            && new[(word - first) as usize] == stored
            && streamed == past;
        if !is_right {
            return Err(taken);
        }
        taken += 1;
    }
    if past || range.is_empty() {
        return Ok(taken);
    }
    let mut missing: BTreeSet<u32> = (first / LINE_WORDS..=(range.end - 1) / LINE_WORDS).collect();
    while !missing.is_empty() {
        match rest.get(taken).map(|happened| happened.seen) {
            Some(ExecutedEffect::Flush { line }) if missing.remove(&line) => taken += 1,
            _ => return Err(taken),
        }
    }
    Ok(taken)
}

fn difference(
    agreed: &[ScriptEvent],
    recorded: Option<&ScriptEvent>,
    executed: Option<&ExecutedEvent>,
) -> Difference {
    let nothing = || "nothing".to_owned();
    let operation = recorded.or(agreed.last()).map_or(0, |entry| entry.operation);
    let before = agreed[agreed.len().saturating_sub(SHOWN)..].iter().map(show).collect();
    Difference {
        operation,
        before,
        recorded: recorded.map_or_else(nothing, show),
        executed: executed.map_or_else(nothing, |happened| {
            format!("{}  at {:#x} of its file", happened.seen, happened.place)
        }),
    }
}

/// Returns a recorded event in the notation of traces.
fn show(entry: &ScriptEvent) -> String {
    let what = match &entry.effect {
        RecordedEffect::Store { word, new, role } => {
            let letter = match role {
                StoreRole::Data => 'W',
                StoreRole::Commit => 'C',
                StoreRole::Transient => 'R',
            };
            format!("{letter} {:#x}  {new:#x}", u64::from(*word) * 8)
        }
        RecordedEffect::Fill { first, new } => {
            format!("N {:#x}  {} words", u64::from(*first) * 8, new.len())
        }
        RecordedEffect::Flush { line } => format!("F {:#x}", u64::from(*line) * 64),
        RecordedEffect::Fence => "|".to_owned(),
    };
    let file = entry.at.file();
    let start = file.rfind("crates/").map_or(0, |start| start + "crates/".len());
    format!("{what}  {}:{}", &file[start..], entry.at.line())
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::panic::Location;

    fn effect(list: &[RecordedEffect]) -> Vec<ScriptEvent> {
        let at = Location::caller();
        list.iter().map(|effect| ScriptEvent { effect: effect.clone(), at, operation: 3 }).collect()
    }

    fn seen(list: &[ExecutedEffect]) -> Vec<ExecutedEvent> {
        list.iter().map(|&seen| ExecutedEvent { seen, place: 0 }).collect()
    }

    fn store(word: u32, new: u64) -> RecordedEffect {
        RecordedEffect::Store { word, new, role: StoreRole::Data }
    }

    fn stored(word: u64, new: u64) -> ExecutedEffect {
        ExecutedEffect::Store { at: word * 8, bytes: 8, new, streamed: false }
    }

    fn streamed(word: u64, new: u64) -> ExecutedEffect {
        ExecutedEffect::Store { at: word * 8, bytes: 8, new, streamed: true }
    }

    fn agree(recorded: &[RecordedEffect], executed: &[ExecutedEffect]) -> bool {
        compare(&effect(recorded), &seen(executed), |_| false).is_none()
    }

    #[test]
    fn the_same_events_agree_and_every_departure_does_not() {
        let recorded = [store(1, 5), RecordedEffect::Flush { line: 0 }, RecordedEffect::Fence];
        let executed = [stored(1, 5), ExecutedEffect::Flush { line: 0 }, ExecutedEffect::Fence];
        assert!(agree(&recorded, &executed));
        for missing in 0..3 {
            let mut fewer = executed.to_vec();
            let event = fewer.remove(missing);
            assert!(!agree(&recorded, &fewer), "one is missing");
            let mut more = executed.to_vec();
            more.insert(missing, event);
            assert!(!agree(&recorded, &more), "one is there twice");
            more[missing..].fill(ExecutedEffect::Unseen { at: 8, new: 1 });
            assert!(!agree(&recorded, &more));
        }
        let wrong = [
            stored(2, 5),
            stored(1, 6),
            streamed(1, 5),
            ExecutedEffect::Store { at: 8, bytes: 16, new: 5, streamed: false },
            ExecutedEffect::Store { at: 8, bytes: 1, new: 5, streamed: false },
            ExecutedEffect::Unseen { at: 8, new: 5 },
        ];
        for first in wrong {
            assert!(!agree(&recorded, &[first, executed[1], executed[2]]), "{first}");
        }
        assert!(!agree(
            &recorded,
            &[executed[0], ExecutedEffect::Flush { line: 1 }, ExecutedEffect::Fence]
        ));
        assert!(!agree(&recorded, &[executed[0], executed[2], executed[1]]));
    }

    #[test]
    fn a_fill_has_no_order_among_its_words_and_flushes_its_lines_once() {
        let recorded = [
            RecordedEffect::Fill { first: 7, new: vec![1, 2, 3] },
            store(7, 9),
            RecordedEffect::Fence,
        ];
        let [a, b, c] = [stored(7, 1), stored(8, 2), stored(9, 3)];
        let [low, high] = [0, 1].map(|line| ExecutedEffect::Flush { line });
        let rest = [stored(7, 9), ExecutedEffect::Fence];
        let with = |fill: &[ExecutedEffect]| agree(&recorded, &[fill, &rest[..]].concat());
        assert!(with(&[a, b, c, low, high]));
        assert!(with(&[c, a, b, high, low]));
        assert!(with(&[streamed(8, 2), streamed(9, 3), streamed(7, 1)]));
        assert!(!with(&[a, b, c, low]), "a line is not flushed");
        assert!(!with(&[a, b, low, c, high]), "a word comes after the flush");
        assert!(!with(&[a, a, c, low, high]), "a word is missing");
        assert!(!with(&[a, b, stored(9, 4), low, high]), "a value is wrong");
        assert!(!with(&[streamed(7, 1), b, c]), "some are in the cache");
        assert!(!agree(&recorded, &[rest[0], a, b, c, low, high, rest[1]]), "a store comes early");
    }

    #[test]
    fn words_that_are_drawn_may_differ_in_value_alone() {
        let recorded = effect(&[store(2, 5), store(3, 6)]);
        let is_drawn = |word| word == 2;
        assert_eq!(compare(&recorded, &seen(&[stored(2, 7), stored(3, 6)]), is_drawn), None);
        assert!(compare(&recorded, &seen(&[stored(2, 5), stored(3, 7)]), is_drawn).is_some());
        assert!(compare(&recorded, &seen(&[streamed(2, 7), stored(3, 6)]), is_drawn).is_some());
    }

    #[test]
    fn a_difference_names_the_operation_and_both_sides() {
        let recorded = effect(&[store(1, 5), RecordedEffect::Fence]);
        let found = compare(&recorded, &seen(&[stored(1, 5)]), |_| false).unwrap();
        assert_eq!((found.operation, found.executed.as_str()), (3, "nothing"));
        assert!(found.recorded.starts_with('|') && found.before.len() == 1, "{found}");
        let more = seen(&[stored(1, 5), ExecutedEffect::Fence, stored(4, 1)]);
        let found = compare(&recorded, &more, |_| false).unwrap();
        assert_eq!(found.recorded, "nothing");
        assert!(found.executed.starts_with("W 0x20  0x1"), "{found}");
    }
}
