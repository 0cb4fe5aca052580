//! Operations, the plan of a thread, and the values that operations write.

use core::fmt;

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpKind {
    /// A lookup of one key.
    Get,
    /// An insert of a new key.
    Insert,
    /// An update of a key that is present.
    Update,
    /// An upsert of a key that is present.
    Upsert,
    /// A lookup, then an update with a value that depends on the answer.
    ReadModifyWrite,
    /// A remove of a key that is present.
    Remove,
    /// A scan in ascending order.
    Scan,
}

impl OpKind {
    /// All kinds, in the order of the manual.
    pub const ALL: [Self; 7] = [
        Self::Get,
        Self::Insert,
        Self::Update,
        Self::Upsert,
        Self::ReadModifyWrite,
        Self::Remove,
        Self::Scan,
    ];

    /// Returns the name in a mix.
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

/// An operation of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// The token of the key, which [`Keys`](super::Keys) renders.
    pub token: u64,
    /// The kind of the operation.
    pub kind: OpKind,
    /// The number of pairs of a scan.
    pub length: u16,
}

/// An operation of a trace, and its expected answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replayed {
    /// A lookup of one key.
    Get {
        /// The token of the key.
        token: u64,
        /// The expected value, or `None` if the key is absent.
        value: Option<u64>,
    },
    /// An upsert of one key.
    Put {
        /// The token of the key.
        token: u64,
        /// The value that is written.
        value: u64,
    },
    /// A remove of one key.
    Delete {
        /// The token of the key.
        token: u64,
        /// `true` if the key is present.
        present: bool,
    },
    /// A scan in ascending order.
    Scan {
        /// The token of the first key.
        token: u64,
        /// The number of pairs to read, at most.
        length: u16,
        /// The expected number of pairs, or `None` if it depends on other threads.
        count: Option<u16>,
    },
}

impl Replayed {
    /// Returns the token of the key.
    pub fn token(&self) -> u64 {
        match *self {
            Self::Get { token, .. }
            | Self::Put { token, .. }
            | Self::Delete { token, .. }
            | Self::Scan { token, .. } => token,
        }
    }
}

/// The operations of one thread.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// Operations, one after the other.
    Each(Vec<Op>),
    /// Tokens of keys to look up, a batch at a time.
    Batches(Vec<u64>),
    /// Operations of a trace, one after the other.
    Replay(Vec<Replayed>),
}

/// The number of keys of a batch.
pub(crate) const BATCH: usize = 16;

impl Plan {
    /// Returns the number of operations; each key of a batch is one.
    pub(crate) fn ops(&self) -> u64 {
        match self {
            Self::Each(ops) => ops.len() as u64,
            Self::Batches(keys) => keys.len() as u64,
            Self::Replay(steps) => steps.len() as u64,
        }
    }

    /// Returns the tokens of the operations, in their order.
    pub(crate) fn tokens(&self) -> Vec<u64> {
        match self {
            Self::Each(ops) => ops.iter().map(|op| op.token).collect(),
            Self::Batches(keys) => keys.clone(),
            Self::Replay(steps) => steps.iter().map(Replayed::token).collect(),
        }
    }
}

/// Returns a value for the key of `token`. Every version names the token, except its low byte.
#[inline(always)]
pub(crate) fn value_of(token: u64, version: u8) -> u64 {
    !token & !0xFF | u64::from(version)
}

/// Returns `true` if `value` is a version of the value of `token`.
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
