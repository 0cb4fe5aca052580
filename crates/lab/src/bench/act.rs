//! What a thread does at once: an operation, or a batch of them.

use super::subject::Actor;
use crate::error::Result;
use crate::workload::{BATCH, Buffer, Keys, Kind, Op, Render, Replayed, belongs, value_of};

/// Something that is done at once and can be timed by itself.
pub(crate) trait Act: Copy {
    /// Does it; how many of its answers were wrong.
    fn act<K: Render, A: Actor<K>>(
        self,
        actor: &mut A,
        keys: &Keys,
        scratch: &mut Scratch,
    ) -> Result<u64>;

    /// Operations that it is.
    fn ops(self) -> u64;

    /// Bytes that each of its operations changes for its caller, with keys of 8 B: a key and its
    /// value, or a key that goes.
    fn user_bytes(self) -> u64;
}

/// Room for the keys of a batch.
#[derive(Default)]
pub(crate) struct Scratch([Buffer; BATCH]);

impl Act for &Op {
    #[inline]
    fn act<K: Render, A: Actor<K>>(
        self,
        actor: &mut A,
        keys: &Keys,
        scratch: &mut Scratch,
    ) -> Result<u64> {
        let token = self.token;
        let key = K::render(keys, token, &mut scratch.0[0]);
        let right = match self.kind {
            Kind::Get => actor.get(key)?.is_some_and(|value| belongs(token, value)),
            Kind::Insert => actor.insert(key, value_of(token, 0))?,
            Kind::Update => actor.update(key, value_of(token, 1))?,
            Kind::Upsert => actor.upsert(key, value_of(token, 1)).map(|()| true)?,
            Kind::ReadModifyWrite => match actor.get(key)? {
                Some(value) => {
                    let next = value_of(token, (value as u8).wrapping_add(1));
                    belongs(token, value) && actor.update(key, next)?
                }
                None => false,
            },
            Kind::Remove => actor.remove(key)?,
            Kind::Scan => actor.scan(key, usize::from(self.length))? > 0,
        };
        Ok(u64::from(!right))
    }

    fn ops(self) -> u64 {
        1
    }

    fn user_bytes(self) -> u64 {
        match self.kind {
            Kind::Get | Kind::Scan => 0,
            Kind::Remove => 8,
            Kind::Insert | Kind::Update | Kind::Upsert | Kind::ReadModifyWrite => 16,
        }
    }
}

impl Act for &Replayed {
    #[inline]
    fn act<K: Render, A: Actor<K>>(
        self,
        actor: &mut A,
        keys: &Keys,
        scratch: &mut Scratch,
    ) -> Result<u64> {
        let key = K::render(keys, self.token(), &mut scratch.0[0]);
        let right = match *self {
            Replayed::Get { value, .. } => actor.get(key)? == value,
            Replayed::Put { value, .. } => actor.upsert(key, value).map(|()| true)?,
            Replayed::Delete { present, .. } => actor.remove(key)? == present,
            Replayed::Scan { length, count, .. } => {
                let found = actor.scan(key, usize::from(length))?;
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

/// Lookups at once, at most [`BATCH`] and at least one.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a>(pub(crate) &'a [u64]);

impl Act for Batch<'_> {
    #[inline]
    fn act<K: Render, A: Actor<K>>(
        self,
        actor: &mut A,
        keys: &Keys,
        scratch: &mut Scratch,
    ) -> Result<u64> {
        let (count, mut at) = (self.0.len(), 0);
        // A batch that is not full is filled up with its last key, which is not asked for.
        let rendered = scratch.0.each_mut().map(|buffer| {
            let token = self.0[at.min(count - 1)];
            at += 1;
            K::render(keys, token, buffer)
        });
        let mut values = [None; BATCH];
        actor.multi_get(&rendered[..count], &mut values[..count])?;
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
