//! Where memory is: which stripe of a pool belongs to which NUMA node, and on which node a thread runs.
//!
//! 1. A [`Placement`] is volatile: it is chosen at each create and open, and no byte of it is in the
//!    pool. A pool that was written under one opens under any other, or none.
//! 2. It goes with the medium, which puts its pages where the placement says before there are any.
//! 3. Without one nobody asks where a thread runs, and the pool is one zone.

mod current;
mod placement;

pub use current::{NodeOverride, current_node, override_node};
pub use placement::{NODES_MAX, Placement, PlacementError};

/// The bound of node numbers: no kernel is built for more nodes.
pub const NODE_NUMBERS: u16 = 1024;
