//! NUMA: the map from stripes of a pool to nodes, and the node on which a thread runs.
//!
//! 1. A [`Placement`] is volatile: the caller chooses one at each create and open, and the file
//!    does not contain it. So a pool can be opened under a placement other than the one that it was
//!    written under.
//! 2. The medium takes the placement and asks the system for the right nodes before the pages
//!    exist.
//! 3. Without a placement the pool never asks on which node a thread runs, and its heap is one
//!    zone.

mod current;
mod placement;

pub use current::{NodeOverride, current_node, override_node};
pub use placement::{NODES_MAX, Placement, PlacementError};

/// The bound of node numbers: every node has a number below it. No Linux kernel supports more
/// nodes.
pub const NODE_NUMBERS: u16 = 1024;
