//! The step of a measured loop: an operation, or a batch of lookups.

use crate::error::Result;
use crate::system::Session;
use crate::workload::{BATCH, KeyBuffer, Keys, Op, OpKind, Render, Replayed, belongs, value_of};

/// A step that can be timed by itself.
pub(crate) trait Step: Copy {
    /// Runs the step on `session` and returns the number of wrong answers.
    fn run<K: Render, S: Session<K>>(
        self,
        session: &mut S,
        keys: &Keys,
        scratch: &mut Scratch,
    ) -> Result<u64>;

    /// Returns the number of operations of the step.
    fn ops(self) -> u64;

    /// Returns the bytes that each operation changes for its caller, with keys of 8 B: key and
    /// value of a write, the key of a remove.
    fn user_bytes(self) -> u64;
}

/// Buffers for the keys of a batch.
#[derive(Default)]
pub(crate) struct Scratch([KeyBuffer; BATCH]);

impl Step for &Op {
    #[inline]
    fn run<K: Render, S: Session<K>>(
        self,
        session: &mut S,
        keys: &Keys,
        scratch: &mut Scratch,
    ) -> Result<u64> {
        let token = self.token;
        let key = K::render(keys, token, &mut scratch.0[0]);
        let right = match self.kind {
            OpKind::Get => session.get(key)?.is_some_and(|value| belongs(token, value)),
            OpKind::Insert => session.insert(key, value_of(token, 0))?,
            OpKind::Update => session.update(key, value_of(token, 1))?,
            OpKind::Upsert => session.upsert(key, value_of(token, 1)).map(|()| true)?,
            OpKind::ReadModifyWrite => match session.get(key)? {
                Some(value) => {
                    let next = value_of(token, (value as u8).wrapping_add(1));
                    belongs(token, value) && session.update(key, next)?
                }
                None => false,
            },
            OpKind::Remove => session.remove(key)?,
            OpKind::Scan => session.scan(key, usize::from(self.length))? > 0,
        };
        Ok(u64::from(!right))
    }

    fn ops(self) -> u64 {
        1
    }

    fn user_bytes(self) -> u64 {
        match self.kind {
            OpKind::Get | OpKind::Scan => 0,
            OpKind::Remove => 8,
            OpKind::Insert | OpKind::Update | OpKind::Upsert | OpKind::ReadModifyWrite => 16,
        }
    }
}

impl Step for &Replayed {
    #[inline]
    fn run<K: Render, S: Session<K>>(
        self,
        session: &mut S,
        keys: &Keys,
        scratch: &mut Scratch,
    ) -> Result<u64> {
        let key = K::render(keys, self.token(), &mut scratch.0[0]);
        let right = match *self {
            Replayed::Get { value, .. } => session.get(key)? == value,
            Replayed::Put { value, .. } => session.upsert(key, value).map(|()| true)?,
            Replayed::Delete { present, .. } => session.remove(key)? == present,
            Replayed::Scan { length, count, .. } => {
                let found = session.scan(key, usize::from(length))?;
                count.is_none_or(|count| found == usize::from(count))
            }
        };
        Ok(u64::from(!right))
    }

    fn ops(self) -> u64 {
        1
    }

    fn user_bytes(self) -> u64 {
        match self {
            Replayed::Get { .. } | Replayed::Scan { .. } => 0,
            Replayed::Delete { .. } => 8,
            Replayed::Put { .. } => 16,
        }
    }
}

/// Lookups of 1 to [`BATCH`] keys at once.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a>(pub(crate) &'a [u64]);

impl Step for Batch<'_> {
    #[inline]
    fn run<K: Render, S: Session<K>>(
        self,
        session: &mut S,
        keys: &Keys,
        scratch: &mut Scratch,
    ) -> Result<u64> {
        let (count, mut at) = (self.0.len(), 0);
        // The buffers behind the last key of the batch repeat it and are not looked up.
        let rendered = scratch.0.each_mut().map(|buffer| {
            let token = self.0[at.min(count - 1)];
            at += 1;
            K::render(keys, token, buffer)
        });
        let mut values = [None; BATCH];
        session.multi_get(&rendered[..count], &mut values[..count])?;
        let right =
            |(&token, value): (&u64, Option<u64>)| value.is_some_and(|value| belongs(token, value));
        Ok(self.0.iter().zip(values).filter(|&answer| !right(answer)).count() as u64)
    }

    fn ops(self) -> u64 {
        self.0.len() as u64
    }

    fn user_bytes(self) -> u64 {
        0
    }
}
