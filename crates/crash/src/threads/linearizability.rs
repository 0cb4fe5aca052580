//! The oracle for results of threads, and for the states that a crash can leave (durable
//! linearizability).
//!
//! 1. Operations on different keys do not restrict each other (linearizability is local), so each
//!    key is judged by itself.
//! 2. At a moment, the operations acknowledged before it have happened, with the answers that they
//!    returned. Those invoked before it and not acknowledged have happened or not, with any answer.
//!    The others have not happened.
//! 3. An operation precedes another if it was acknowledged before the other was invoked.
//! 4. A value is right for a key if some order of the operations explains it and every answer. So
//!    no crash may undo a value after a read of it was acknowledged.

use crate::scenario::index::session::Op;
use crate::trace::call::Call;
use bristlecone_trees::Key;

/// The effect of an operation on its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyOperation {
    Insert(u64),
    Update(u64),
    Upsert(u64),
    Remove,
    Get,
}

impl KeyOperation {
    /// Returns the key of an operation on one key, and its effect on it.
    pub(super) fn of<K: Key>(op: &Op<K>) -> Option<(&K::Owned, Self)> {
        match op {
            Op::Insert(key, value) => Some((key, Self::Insert(*value))),
            Op::Update(key, value) | Op::Updates(key, value, _) => {
                Some((key, Self::Update(*value)))
            }
            Op::Upsert(key, value) => Some((key, Self::Upsert(*value))),
            Op::Remove(key) => Some((key, Self::Remove)),
            Op::Get(key) => Some((key, Self::Get)),
            Op::WithMaintainer(op) => Self::of(op),
            Op::CreatePool
            | Op::Create
            | Op::Close
            | Op::Crash
            | Op::Open
            | Op::Reclaim
            | Op::Occupy
            | Op::Scan(_)
            | Op::MultiGet(_)
            | Op::RunMaintenance
            | Op::CutShort(..)
            | Op::CutLate(..)
            | Op::Commit(_)
            | Op::Load(_) => None,
        }
    }

    /// Returns the value of the key after the operation.
    fn after(self, found: Option<u64>) -> Option<u64> {
        match self {
            Self::Insert(value) => found.or(Some(value)),
            Self::Update(value) => found.map(|_| value),
            Self::Upsert(value) => Some(value),
            Self::Remove => None,
            Self::Get => found,
        }
    }
}

/// The operations on one key, with their calls.
pub(crate) type KeyHistory = Vec<(KeyOperation, Call)>;

/// A moment: operations acknowledged before `returned` have happened, and operations invoked before
/// `invoked` may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) returned: u32,
    pub(crate) invoked: u32,
}

/// Returns `true` if a key that held `first` may hold `last` at `moment`.
pub(crate) fn explains(
    history: &[(KeyOperation, Call)],
    first: Option<u64>,
    last: Option<u64>,
    moment: Moment,
) -> bool {
    debug_assert!(history.len() <= 32);
    let must = history.iter().enumerate().filter(|(_, (_, call))| call.returned < moment.returned);
    let must: u32 = must.map(|(number, _)| 1 << number).sum();
    let mut tried = Vec::new();
    search(history, moment, must, 0, first, last, &mut tried)
}

/// Returns `true` if some order of the operations that are not `done` leads from `value` to `last`.
fn search(
    history: &[(KeyOperation, Call)],
    moment: Moment,
    must: u32,
    done: u32,
    value: Option<u64>,
    last: Option<u64>,
    tried: &mut Vec<(u32, Option<u64>)>,
) -> bool {
    if done & must == must && value == last {
        return true;
    }
    if tried.contains(&(done, value)) {
        return false;
    }
    tried.push((done, value));
    let waits = |call: &Call| {
        let before = |(number, (_, other)): (usize, &(KeyOperation, Call))| {
            done & (1 << number) == 0 && other.returned < call.invoked
        };
        history.iter().enumerate().any(before)
    };
    history.iter().enumerate().any(|(number, (act, call))| {
        let bit = 1 << number;
        let is_free = done & bit == 0 && call.invoked < moment.invoked && !waits(call);
        // I2: an unacknowledged operation may have any answer.
        let answers = must & bit == 0 || call.answer.fits(value);
        is_free
            && answers
            && search(history, moment, must, done | bit, act.after(value), last, tried)
    })
}

/// Returns the moments at which a crash can have left an image whose newest store is at `since` and
/// which is ruled out at `until`. They are those that can forbid a value which the others allow: an
/// acknowledgement requires more, an invocation less.
pub(crate) fn moments(calls: &[Call], since: u32, until: u32) -> impl Iterator<Item = Moment> {
    let later = calls.iter().map(|call| call.returned);
    let later = later.filter(move |&returned| since < returned && returned < until);
    let first = Moment { returned: since, invoked: since };
    core::iter::once(first).chain(later.map(|at| Moment { returned: at + 1, invoked: at }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::NEVER;
    use crate::trace::call::Answer;

    fn call(
        act: KeyOperation,
        invoked: u32,
        returned: u32,
        answer: Option<u64>,
    ) -> (KeyOperation, Call) {
        (
            act,
            Call { thread: 0, place: 0, part: 0, invoked, returned, answer: Answer::Value(answer) },
        )
    }

    const END: Moment = Moment { returned: NEVER, invoked: NEVER };

    fn at(time: u32) -> Moment {
        Moment { returned: time, invoked: time }
    }

    #[test]
    fn what_is_acknowledged_has_happened_and_what_is_invoked_may_have() {
        let history = [call(KeyOperation::Insert(7), 10, 20, None)];
        assert!(explains(&history, None, None, at(5)) && !explains(&history, None, Some(7), at(5)));
        assert!(
            explains(&history, None, None, at(15)) && explains(&history, None, Some(7), at(15))
        );
        assert!(
            !explains(&history, None, None, at(25)) && explains(&history, None, Some(7), at(25))
        );
        assert!(!explains(&history, None, Some(8), at(15)));
    }

    #[test]
    fn who_has_read_a_value_keeps_it() {
        // The insert is not acknowledged, but its value has been read.
        let history = [
            call(KeyOperation::Insert(7), 10, NEVER, None),
            call(KeyOperation::Get, 12, 20, Some(7)),
        ];
        assert!(explains(&history, None, None, at(15)));
        assert!(
            !explains(&history, None, None, at(25)) && explains(&history, None, Some(7), at(25))
        );
        // A read that found the key absent forbids nothing.
        let history =
            [call(KeyOperation::Insert(7), 10, NEVER, None), call(KeyOperation::Get, 12, 20, None)];
        assert!(
            explains(&history, None, None, at(25)) && explains(&history, None, Some(7), at(25))
        );
    }

    #[test]
    fn answers_and_times_fix_the_order() {
        // Two concurrent updates, and a read after both: either may be last, as the read shows.
        let history = |read| {
            [
                call(KeyOperation::Update(2), 10, 30, Some(if read == 2 { 3 } else { 1 })),
                call(KeyOperation::Update(3), 11, 31, Some(if read == 3 { 2 } else { 1 })),
                call(KeyOperation::Get, 40, 50, Some(read)),
            ]
        };
        assert!(explains(&history(2), Some(1), Some(2), END));
        assert!(explains(&history(3), Some(1), Some(3), END));
        assert!(!explains(&history(3), Some(1), Some(2), END));
        // A read that began after both were acknowledged cannot return the value before.
        let mut stale = history(3);
        stale[2].1.answer = Answer::Value(Some(1));
        assert!(!explains(&stale, Some(1), Some(3), END));
        // A concurrent read can.
        stale[2].1.invoked = 12;
        assert!(explains(&stale, Some(1), Some(3), END));
        // Both found the key absent: one of them was wrong.
        let twice = [
            call(KeyOperation::Insert(2), 10, 30, None),
            call(KeyOperation::Insert(3), 11, 31, None),
        ];
        assert!(!explains(&twice, None, Some(2), END) && !explains(&twice, None, Some(3), END));
    }

    #[test]
    fn an_answer_demands_no_more_than_it_tells() {
        let history = |answer| {
            [(KeyOperation::Remove, Call { answer, ..call(KeyOperation::Remove, 10, 20, None).1 })]
        };
        for (answer, present, absent) in [
            (Answer::Silence, true, true),
            (Answer::Presence(true), true, false),
            (Answer::Presence(false), false, true),
            (Answer::Value(Some(5)), true, false),
            (Answer::Value(Some(6)), false, false),
            (Answer::Value(None), false, true),
        ] {
            assert_eq!(explains(&history(answer), Some(5), None, END), present, "{answer:?}");
            assert_eq!(explains(&history(answer), None, None, END), absent, "{answer:?}");
        }
    }

    #[test]
    fn an_image_that_stays_possible_is_held_to_every_acknowledgement_meanwhile() {
        let calls: Vec<_> = [(10, 20), (15, 30), (25, 60)]
            .map(|(invoked, returned)| call(KeyOperation::Get, invoked, returned, None).1)
            .into();
        let found: Vec<_> = moments(&calls, 18, 40).collect();
        let expected = [(18, 18), (21, 20), (31, 30)];
        assert_eq!(found, expected.map(|(returned, invoked)| Moment { returned, invoked }));
    }
}
