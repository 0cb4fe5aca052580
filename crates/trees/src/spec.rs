//! The description of a design: name, source, budget, features.

use crate::key::Key;

/// The cost of one operation that changes no structure: lines flushed, and fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The number of cache lines (64 B) flushed; the maximum, if it depends on the key's position.
    pub lines: u32,
    /// The number of fences; the maximum, if it depends on the key's position.
    pub fences: u32,
}

impl Cost {
    /// Returns a cost of `lines` flushed lines and `fences` fences.
    pub const fn new(lines: u32, fences: u32) -> Self {
        Self { lines, fences }
    }
}

/// The cost of each operation of a design that neither splits nor merges a node. The design's tests
/// assert that it is exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// The cost of inserting an absent key.
    pub insert: Cost,
    /// The cost of updating the value of 8 B of a present key.
    pub update: Cost,
    /// The cost of removing a present key.
    pub remove: Cost,
}

/// The feature of copy-on-write designs: each change writes a new leaf. An operation then reserves
/// one block and retires another.
pub const SHADOWING: &str = "shadowing";

/// The feature of designs whose recovery makes inner nodes in persistent memory agree with the
/// chain of leaves.
pub const PARENTS_MENDED: &str = "parents-mended";

/// The feature of designs that log the changes of leaves, in a line for each operation, and not
/// those of inner nodes.
pub const PARTIAL_LOGGING: &str = "partial-logging";

/// The feature of designs whose inner nodes are in DRAM and are rebuilt by an open.
pub const SELECTIVE: &str = "selective-persistence";

/// The feature of designs with leaves that keep a part of each key and whose range tells the rest.
pub const DENSE: &str = "dense-leaves";

/// The feature of designs in which the latch of a leaf is a lock in an array of its parent.
pub const LOCK_ARRAYS: &str = "lock-arrays";

/// The feature of designs whose leaves are rings: the lines that an operation flushes depend on the
/// position of the first entry in the ring.
pub const CIRCULAR: &str = "circular";

/// The feature of designs whose inner nodes lie in one array. All of them are rebuilt if a lowest
/// one is full. No operation frees one, so each lowest one keeps at least one leaf.
pub const INNER_ARRAY: &str = "inner-array";

/// The search of an inner node in DRAM for the child that covers a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeSearch {
    /// All separators at once with vector instructions; by halves where the processor has none.
    Vector,
    /// From the first separator to the first that is greater, one after the other.
    Linear,
}

/// The feature of designs that free a leaf with its last entry, and merge no leaves.
pub const EMPTY_LEAVES: &str = "empty-leaves-freed";

/// The public description of a design at one node size.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The name of the design in the registry, on the command line and in every figure.
    pub name: &'static str,
    /// The publication that the design comes from.
    pub source: &'static str,
    /// `true` if the index survives the end of its process; `false` for volatile designs.
    pub persistent: bool,
    /// The size of a node in bytes.
    pub node_bytes: usize,
    /// The cost of each operation at this node size.
    pub budget: Budget,
    /// `true` if the design relies on stores to one line persisting in program order. If `false`,
    /// the crash explorer also runs it in the mode in which every word persists by itself.
    pub relies_on_line_order: bool,
    /// The names of features beyond the operations of [`PmIndex`](crate::PmIndex).
    pub features: &'static [&'static str],
}

impl Spec {
    /// Returns the kind of this design's roots: a hash of its name, its node size and the name of
    /// the key layer `K`. The pool's root table stores it, so that no other design opens the index.
    pub const fn kind<K: Key>(&self) -> u64 {
        let name = fnv(self.name.as_bytes(), 0xcbf2_9ce4_8422_2325);
        let size = fnv(&(self.node_bytes as u64).to_le_bytes(), name);
        fnv(K::NAME.as_bytes(), size)
    }
}

/// Returns the FNV-1a hash of `bytes`, continued from `state`.
const fn fnv(bytes: &[u8], mut state: u64) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        state = (state ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    state
}
