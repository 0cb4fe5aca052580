//! Operations, what a thread does of them, and the values that they write.

use core::fmt;

/// One operation's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// A lookup.
    Get,
    /// A new key.
    Insert,
    /// A new value of a key that is there.
    Update,
    /// The same, by the operation that would also add the key.
    Upsert,
    /// A lookup, then an update with what it gave.
    ReadModifyWrite,
    /// A removal.
    Remove,
    /// Pairs in their order, from a key on.
    Scan,
}

impl OpKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Get,
        Self::Insert,
        Self::Update,
        Self::Upsert,
        Self::ReadModifyWrite,
        Self::Remove,
        Self::Scan,
    ];

    /// The name in a mix.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Upsert => "upsert",
            Self::ReadModifyWrite => "rmw",
            Self::Remove => "delete",
            Self::Scan => "scan",
        }
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Of which key: what [`Keys`](super::Keys) makes it of.
    pub token: u64,
    /// What is done.
    pub kind: OpKind,
    /// Pairs to scan.
    pub length: u16,
}

/// One operation of a trace, and what it must answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// A lookup.
    Get {
        /// Of which key.
        token: u64,
        /// What is found.
        value: Option<u64>,
    },
    /// A key, new or with a new value.
    Put {
        /// Which key.
        token: u64,
        /// Its value.
        value: u64,
    },
    /// A removal.
    Delete {
        /// Of which key.
        token: u64,
        /// Whether it is there.
        present: bool,
    },
    /// Pairs in their order, from a key on.
    Scan {
        /// From which key.
        token: u64,
        /// Pairs to scan.
        length: u16,
        /// How many there are, where that can be known.
        count: Option<u16>,
    },
}

impl Replayed {
    /// The key that it is about.
    pub fn token(&self) -> u64 {
        match *self {
            Self::Get { token, .. }
            | Self::Put { token, .. }
            | Self::Delete { token, .. }
            | Self::Scan { token, .. } => token,
        }
    }
}

/// What one thread does.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// One operation after the other.
    Each(Vec<Op>),
    /// Lookups of these keys, a batch at a time.
    Batches(Vec<u64>),
    /// Operations of a trace, one after the other.
    Replay(Vec<Replayed>),
}

/// Keys of a batch.
pub(crate) const BATCH: usize = 16;

impl Plan {
    /// Operations in the plan; each key of a batch is one.
    pub(crate) fn ops(&self) -> u64 {
        match self {
            Self::Each(ops) => ops.len() as u64,
            Self::Batches(keys) => keys.len() as u64,
            Self::Replay(steps) => steps.len() as u64,
        }
    }

    /// The tokens of its operations, in their order.
    pub(crate) fn tokens(&self) -> Vec<u64> {
        match self {
            Self::Each(ops) => ops.iter().map(|op| op.token).collect(),
            Self::Batches(keys) => keys.clone(),
            Self::Replay(steps) => steps.iter().map(Replayed::token).collect(),
        }
    }
}

/// A value for the key of `token`: whose it is can be told from it, whatever the version.
#[inline(always)]
pub(crate) fn value_of(token: u64, version: u8) -> u64 {
    !token & !0xFF | u64::from(version)
}

/// Whether `value` is one of `token`'s.
#[inline(always)]
pub(crate) fn belongs(token: u64, value: u64) -> bool {
    (value ^ !token) & !0xFF == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_tell_whose_they_are() {
        for key in [0, 1, 255, 256, u64::MAX] {
            assert!(belongs(key, value_of(key, 0)) && belongs(key, value_of(key, 255)));
            assert!(!belongs(key, value_of(key ^ 0x100, 0)));
        }
    }
}
