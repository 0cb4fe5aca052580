//! Every design, compiled once for the simulated medium: the half of the registry that the explorer,
//! the counters and the device models run.
//!
//! It is a crate of its own so that the compiler can treat it by itself. Each access to a simulated
//! medium is an indirect call, so the trees gain little from the optimiser, and the workspace's
//! profiles ask for less of it here.
//!
//! [`FORMS`] has the rows of the list of designs in their order: each design at its default node size,
//! then at the others. Byte strings are compiled at the smallest node size, which the explorer takes.

mod variants;

pub use variants::{CCL_BATCHES, LS_VARIANTS, LsVariant};

use bristlecone_pmem::Simulated;
use bristlecone_trees::erased::Forms;
use bristlecone_trees::{Design, for_each_design};

/// Returns `true` if `D` has the node size of `Smallest`.
const fn is_smallest<D: Design, Smallest: Design>() -> bool {
    D::SPEC.node_bytes == Smallest::SPEC.node_bytes
}

macro_rules! table {
    ($($name:literal => $smallest:ty, [$($design:ty),* $(,)?]),* $(,)?) => {
        /// The forms of all designs at all node sizes, in the order of their list.
        pub static FORMS: &[Forms<Simulated>] =
            &[$($(Forms::of::<$design>(is_smallest::<$design, $smallest>()),)*)*];
    };
}

for_each_design!(table);
