//! What a design says of itself: its name, its source, its budget, its features.

use crate::key::Key;

/// Lines flushed and fences of one operation that changes no structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Lines flushed; where the position of the key decides, the most.
    pub lines: u32,
    /// Fences; where the position of the key decides, the most.
    pub fences: u32,
}

impl Cost {
    /// A cost of `lines` and `fences`.
    pub const fn new(lines: u32, fences: u32) -> Self {
        Self { lines, fences }
    }
}

/// What the operations of a design cost, splits and merges apart. Asserted by its tests, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Of an insert.
    pub insert: Cost,
    /// Of an update of a value of 8 B.
    pub update: Cost,
    /// Of a remove.
    pub remove: Cost,
}

/// The feature of designs that write a leaf anew for each change: an operation reserves a block then,
/// and lets one go.
pub const SHADOWING: &str = "shadowing";

/// The feature of designs whose inner nodes are in DRAM, and built anew by an open.
pub const SELECTIVE: &str = "selective-persistence";

/// The feature of designs whose leaves are rings: what an operation flushes depends on where in its
/// block the first entry is.
pub const CIRCULAR: &str = "circular";

/// The public description of a design.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Its name in the registry, on the command line and in every figure.
    pub name: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Whether it survives anything.
    pub persistent: bool,
    /// Bytes of a node.
    pub node_bytes: usize,
    /// What its operations cost at that node size.
    pub budget: Budget,
    /// Whether it relies on stores to one line persisting in order. If not, the explorer also runs
    /// it in the mode in which every word persists by itself.
    pub relies_on_line_order: bool,
    /// What it can do beyond the operations that every design has.
    pub features: &'static [&'static str],
}

impl Spec {
    /// The number under which a root of this design, at this node size and with keys of layer `K`,
    /// stands in a pool's table of roots.
    pub const fn kind<K: Key>(&self) -> u64 {
        let name = fnv(self.name.as_bytes(), 0xcbf2_9ce4_8422_2325);
        let size = fnv(&(self.node_bytes as u64).to_le_bytes(), name);
        fnv(K::NAME.as_bytes(), size)
    }
}

/// FNV-1a.
const fn fnv(bytes: &[u8], mut state: u64) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        state = (state ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    state
}
