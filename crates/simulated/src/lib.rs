//! Every design, compiled once for the simulated medium: the half of the registry that the
//! explorer, the counters and the device models run.
//!
//! It is a crate of its own so that it compiles beside the other half.
//!
//! [`FORMS`] has a row for each design at each node size, in the order of their list. A form costs
//! seconds of compile time, so a row has the forms that are used: integers and byte strings at the
//! default node size, which the laboratory takes, and at the smallest, which the explorer takes.
//! The feature `all-sizes` adds integers at all other sizes.

mod variants;

pub use variants::{CCL_BATCHES, LS_VARIANTS, LsVariant};

use bristlecone_pmem::Simulated;
use bristlecone_trees::erased::Forms;
use bristlecone_trees::{Design, for_each_design};

/// Designs that one experiment or one scenario takes at a size that is neither their default nor
/// their smallest: the shift in a node of 16 lines, a slot array that spans two lines, and
/// fingerprints in a line of their own.
const EXTRA: [(&str, usize); 4] =
    [("fast-fair", 1024), ("wb-tree", 1024), ("fptree", 1024), ("fptree-r", 1024)];

const fn is_extra(name: &str, node_bytes: usize) -> bool {
    let mut row = 0;
    while row < EXTRA.len() {
        let (a, b) = (EXTRA[row].0.as_bytes(), name.as_bytes());
        let mut at = 0;
        while at < a.len() && at < b.len() && a[at] == b[at] {
            at += 1;
        }
        if at == a.len() && at == b.len() && EXTRA[row].1 == node_bytes {
            return true;
        }
        row += 1;
    }
    false
}

/// Returns the row of design `D`.
const fn row<D: Design, Default: Design, Smallest: Design>() -> Forms<Simulated> {
    let bytes = D::SPEC.node_bytes;
    let is_usual = bytes == Smallest::SPEC.node_bytes || bytes == Default::SPEC.node_bytes;
    let is_used = is_usual || is_extra(D::SPEC.name, bytes);
    Forms::of::<D>(is_used || cfg!(feature = "all-sizes"), is_usual)
}

macro_rules! table {
    ($($name:literal => $smallest:ty, [$default:ty $(, $design:ty)* $(,)?]),* $(,)?) => {
        /// The forms of all designs at all node sizes, in the order of their list.
        pub static FORMS: &[Forms<Simulated>] = &[$(
            row::<$default, $default, $smallest>(),
            $(row::<$design, $default, $smallest>(),)*
        )*];
    };
}

for_each_design!(table);
