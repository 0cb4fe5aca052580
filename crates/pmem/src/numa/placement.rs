//! Stripes of a pool, and the nodes that they belong to.
//!
//! 1. Stripe `i` belongs to node `nodes[i % nodes.len()]`. The node's place in that list is called its
//!    zone.
//! 2. Nodes are distinct, so a zone is a node.

use super::{NODE_NUMBERS, current};
use crate::layout::{CHUNK_BYTES, POOL_BYTES_MAX};
use core::ops::Range;
use thiserror::Error;

/// The most nodes of a placement.
pub const NODES_MAX: usize = 16;
/// What a stripe that is bound is a multiple of: the system then can use pages of that size.
const BOUND_UNIT_BYTES: u64 = 2 << 20;

/// Which NUMA node each stripe of a pool belongs to.
///
/// Threads get blocks of their own node's stripes while there are any, or the pool can grow by more;
/// then those of other nodes. A thread of a node that is not in the list gets those of one that is:
/// such threads take the nodes in turn, each for good.
///
/// ```
/// use bristlecone_pmem::numa::Placement;
///
/// let placement = Placement::new(&[0, 1], 2 << 20)?;
/// assert_eq!(placement.node_of(5 << 20), 0);
/// # Ok::<_, bristlecone_pmem::numa::PlacementError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    nodes: [u16; NODES_MAX],
    count: u8,
    binds: bool,
    stripe_bytes: u64,
}

/// Why there is no such placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// No node, or too many.
    #[error("a placement has 1 to {NODES_MAX} nodes, not {found}")]
    Count {
        /// Nodes that were listed.
        found: usize,
    },
    /// A node is listed twice.
    #[error("node {node} is listed twice")]
    Twice {
        /// Its number.
        node: u16,
    },
    /// No node has so high a number.
    #[error("there is no node {node}: their numbers are below {NODE_NUMBERS}")]
    Number {
        /// The number.
        node: u16,
    },
    /// Stripes of that size cannot be.
    #[error("a stripe is a multiple of {unit} bytes, and at most a pool: not {found} bytes")]
    Stripe {
        /// Bytes that were asked for.
        found: u64,
        /// What they have to be a multiple of.
        unit: u64,
    },
}

impl Placement {
    /// Stripes of `stripe_bytes`, a multiple of 2 MiB, on `nodes` in turn. The medium asks the system
    /// for pages of these nodes; on DAX there is nothing to ask, for a device is where it is.
    ///
    /// # Errors
    /// There are no such nodes, or stripes.
    pub fn new(nodes: &[u16], stripe_bytes: u64) -> Result<Self, PlacementError> {
        Self::of(nodes, stripe_bytes, BOUND_UNIT_BYTES, true)
    }

    /// Stripes that lie on `nodes` in turn already, whoever saw to that: the system is asked for
    /// nothing. `stripe_bytes` is a multiple of [`CHUNK_BYTES`].
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn as_it_lies(nodes: &[u16], stripe_bytes: u64) -> Result<Self, PlacementError> {
        Self::of(nodes, stripe_bytes, CHUNK_BYTES, false)
    }

    fn of(list: &[u16], stripe_bytes: u64, unit: u64, binds: bool) -> Result<Self, PlacementError> {
        if list.is_empty() || list.len() > NODES_MAX {
            return Err(PlacementError::Count { found: list.len() });
        }
        for (index, &node) in list.iter().enumerate() {
            if node >= NODE_NUMBERS {
                return Err(PlacementError::Number { node });
            }
            if list[..index].contains(&node) {
                return Err(PlacementError::Twice { node });
            }
        }
        let fits = (1..=POOL_BYTES_MAX).contains(&stripe_bytes);
        if !fits || !stripe_bytes.is_multiple_of(unit) {
            return Err(PlacementError::Stripe { found: stripe_bytes, unit });
        }
        let mut nodes = [0; NODES_MAX];
        nodes[..list.len()].copy_from_slice(list);
        Ok(Self { nodes, count: list.len() as u8, binds, stripe_bytes })
    }

    /// The nodes, in the order of their stripes.
    pub fn nodes(&self) -> &[u16] {
        &self.nodes[..usize::from(self.count)]
    }

    /// Bytes of a stripe.
    pub fn stripe_bytes(&self) -> u64 {
        self.stripe_bytes
    }

    /// Whether the medium asks the system for pages of the nodes.
    pub fn binds(&self) -> bool {
        self.binds
    }

    /// The node that the byte at `offset` of a pool belongs to.
    pub fn node_of(&self, offset: u64) -> u16 {
        self.nodes()[(offset / self.stripe_bytes % u64::from(self.count)) as usize]
    }

    /// The zone whose blocks this thread prefers: its node's; one in turn, if that is not in the list or
    /// nobody knows it.
    pub(crate) fn current_zone(&self) -> usize {
        let node = current::current_node();
        let zone = self.nodes().iter().position(|&listed| Some(listed) == node);
        zone.unwrap_or_else(|| current::thread_number() % self.nodes().len())
    }

    /// Bytes of one stripe of each node.
    pub(crate) fn round_bytes(&self) -> u64 {
        self.stripe_bytes * u64::from(self.count)
    }

    /// The parts of `range` that lie on one node each, and the node.
    pub(crate) fn parts(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, u16)> + '_ {
        let Range { start: mut at, end } = range;
        core::iter::from_fn(move || {
            let stripe_end = (at / self.stripe_bytes + 1) * self.stripe_bytes;
            let part = at..if self.count == 1 { end } else { stripe_end.min(end) };
            at = part.end;
            (!part.is_empty()).then(|| (part.clone(), self.node_of(part.start)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placement_that_cannot_be_is_refused() {
        let of = Placement::as_it_lies;
        assert_eq!(of(&[], CHUNK_BYTES), Err(PlacementError::Count { found: 0 }));
        let many: Vec<u16> = (0..17).collect();
        assert_eq!(of(&many, CHUNK_BYTES), Err(PlacementError::Count { found: 17 }));
        assert_eq!(of(&[3, 1, 3], CHUNK_BYTES), Err(PlacementError::Twice { node: 3 }));
        assert_eq!(of(&[1024], CHUNK_BYTES), Err(PlacementError::Number { node: 1024 }));
        for found in [0, 1, CHUNK_BYTES + 4096, u64::MAX, 1 << 47] {
            let refused = Err(PlacementError::Stripe { found, unit: CHUNK_BYTES });
            assert_eq!(of(&[0], found), refused);
        }
        let refused = PlacementError::Stripe { found: CHUNK_BYTES, unit: 2 << 20 };
        assert_eq!(Placement::new(&[0], CHUNK_BYTES), Err(refused));
        assert!(of(&many[..16], POOL_BYTES_MAX / CHUNK_BYTES * CHUNK_BYTES).is_ok());
    }

    #[test]
    fn stripes_take_the_nodes_in_turn() {
        let placement = Placement::as_it_lies(&[4, 2], CHUNK_BYTES).unwrap();
        let chunk = |i| i * CHUNK_BYTES;
        assert_eq!([0, 1, 2, 3].map(|i| placement.node_of(chunk(i))), [4, 2, 4, 2]);
        let parts: Vec<_> = placement.parts(chunk(1) - 8..chunk(2) + 16).collect();
        let expected = [(chunk(1) - 8..chunk(1), 4), (chunk(1)..chunk(2), 2)];
        assert_eq!(parts[..2], expected);
        assert_eq!(parts[2..], [(chunk(2)..chunk(2) + 16, 4)]);
        let one = Placement::as_it_lies(&[7], CHUNK_BYTES).unwrap();
        assert_eq!(one.parts(5..chunk(9)).collect::<Vec<_>>(), [(5..chunk(9), 7)]);
        assert_eq!(one.parts(5..5).count(), 0);
    }

    #[test]
    fn a_thread_of_a_node_that_is_not_listed_keeps_to_one_that_is() {
        let placement = Placement::as_it_lies(&[4, 2], CHUNK_BYTES).unwrap();
        let zone_on = |node| {
            let _on = current::override_node(node);
            [placement.current_zone(), placement.current_zone()]
        };
        assert_eq!([zone_on(4), zone_on(2)], [[0, 0], [1, 1]]);
        let elsewhere = zone_on(9);
        assert!(elsewhere[0] < 2 && elsewhere[0] == elsewhere[1]);
    }
}
