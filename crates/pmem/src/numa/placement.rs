//! The map from stripes of a pool to NUMA nodes.
//!
//! 1. Stripe `i` belongs to node `nodes[i % nodes.len()]`. The index of a node in that list is the
//!    number of its zone.
//! 2. The nodes are distinct, so each zone is one node.

use super::{NODE_NUMBERS, current};
use crate::layout::{CHUNK_BYTES, POOL_BYTES_MAX};
use core::ops::Range;
use thiserror::Error;

/// The largest number of nodes in a placement.
pub const NODES_MAX: usize = 16;
/// The granularity of stripes that the medium binds, in bytes: the size of a huge page.
const BOUND_GRANULE_BYTES: u64 = 2 << 20;

/// A map from the stripes of a pool to NUMA nodes.
///
/// A thread gets blocks from stripes of its own node as long as there are any or the pool can grow,
/// and then from other nodes. A thread on a node that is not listed uses one listed node for good;
/// such threads are spread round-robin.
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

/// The reason why a placement is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// The list has no node, or more than [`NODES_MAX`].
    #[error("a placement has 1 to {NODES_MAX} nodes, not {found}")]
    Count {
        /// The number of listed nodes.
        found: usize,
    },
    /// The list names a node twice.
    #[error("node {node} is listed twice")]
    Twice {
        /// The number of that node.
        node: u16,
    },
    /// The list names a node that cannot exist: its number is [`NODE_NUMBERS`] or more.
    #[error("there is no NUMA node {node}: node numbers are below {NODE_NUMBERS}")]
    Number {
        /// The number that the list names.
        node: u16,
    },
    /// The stripe size is 0, no multiple of the granularity, or larger than any pool.
    #[error("a stripe has a multiple of {unit} bytes, up to {POOL_BYTES_MAX}, not {found}")]
    Stripe {
        /// The requested stripe size, in bytes.
        found: u64,
        /// The granularity of stripes, in bytes.
        unit: u64,
    },
}

impl Placement {
    /// Returns the placement that puts stripes of `stripe_bytes`, a multiple of 2 MiB, on `nodes`
    /// in turn. The medium asks the system for pages on these nodes. On DAX it does not, since the
    /// device decides where the memory is.
    ///
    /// # Errors
    /// The list of nodes or the stripe size is not possible; see [`PlacementError`].
    pub fn new(nodes: &[u16], stripe_bytes: u64) -> Result<Self, PlacementError> {
        Self::of(nodes, stripe_bytes, BOUND_GRANULE_BYTES, true)
    }

    /// Returns a placement for memory whose stripes of `stripe_bytes` already lie on `nodes` in
    /// turn. The medium asks the system for nothing. `stripe_bytes` is a multiple of
    /// [`CHUNK_BYTES`].
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

    /// Returns the nodes, in the order of their stripes.
    pub fn nodes(&self) -> &[u16] {
        &self.nodes[..usize::from(self.count)]
    }

    /// Returns the size of a stripe, in bytes.
    pub fn stripe_bytes(&self) -> u64 {
        self.stripe_bytes
    }

    /// Returns `true` if the medium asks the system for pages on these nodes.
    pub fn binds(&self) -> bool {
        self.binds
    }

    /// Returns the node that the byte at `offset` of a pool belongs to.
    pub fn node_of(&self, offset: u64) -> u16 {
        self.nodes()[(offset / self.stripe_bytes % u64::from(self.count)) as usize]
    }

    /// Returns the zone from which this thread reserves blocks: that of its node if the node is
    /// known and listed, else one chosen by thread number.
    pub(crate) fn current_zone(&self) -> usize {
        let node = current::current_node();
        let zone = self.nodes().iter().position(|&listed| Some(listed) == node);
        zone.unwrap_or_else(|| current::thread_number() % self.nodes().len())
    }

    /// Returns the size of one stripe on each node, in bytes.
    pub(crate) fn round_bytes(&self) -> u64 {
        self.stripe_bytes * u64::from(self.count)
    }

    /// Splits `range` into parts that lie on one node each, and returns them with their nodes.
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
    fn an_impossible_placement_is_refused() {
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
    fn stripes_alternate_between_the_nodes() {
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
    fn a_thread_of_an_unlisted_node_keeps_one_listed_node() {
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
