//! Every design, compiled once for the simulated medium: the half of the registry that the
//! explorer, the counters and the device models run.
//!
//! It is a crate of its own so that it compiles beside the other half.
//!
//! [`FORMS`] has a row for each design at each node size, in the order of their list. A form costs
//! seconds of compile time, so a row has the forms that are used: integers at the default node
//! size, which the laboratory takes, and integers and byte strings at the smallest, which the
//! explorer takes. The feature `all-sizes` adds integers at all other sizes, byte strings at the
//! default one, and two designs. A build with the environment variable
//! `BRISTLECONE_DESIGNS=NAME,NAME` has the named designs alone.

mod listed;
mod variants;

pub use listed::is_listed;
pub use variants::{CCL_ABLATIONS, CCL_BATCHES, CclAblation, LS_VARIANTS, LsVariant};

use bristlecone_pmem::Simulated;
use bristlecone_trees::erased::Forms;
use bristlecone_trees::{Design, for_each_design};

/// Designs that only claims of a paper need: the feature `all-sizes` has them.
const OF_CLAIMS: &str = "fast-fair-wide,wb-tree-words";

/// Returns whether this build has the design, or the store, called `name`.
pub const fn is_built(name: &str) -> bool {
    let is_named = match option_env!("BRISTLECONE_DESIGNS") {
        Some(list) => is_listed(list, name),
        None => true,
    };
    is_named && (cfg!(feature = "all-sizes") || !is_listed(OF_CLAIMS, name))
}

/// Designs that one experiment or one scenario takes at a size that is neither their default nor
/// their smallest: the shift in a node of 16 lines, a slot array that spans two lines, and
/// fingerprints in a line of their own.
const EXTRA: [(&str, usize); 4] =
    [("fast-fair", 1024), ("wb-tree", 1024), ("fptree", 1024), ("fptree-r", 1024)];

/// Designs that every build has with byte strings at their default size: those of the tests.
const WITH_TEXT: &str = "bristlecone,fptree,wb-tree";

/// Returns whether this build has the design called `name` with byte strings at its default node
/// size.
pub const fn has_text(name: &str) -> bool {
    cfg!(feature = "all-sizes") || is_listed(WITH_TEXT, name)
}

const fn is_extra(name: &str, node_bytes: usize) -> bool {
    let mut row = 0;
    while row < EXTRA.len() {
        if EXTRA[row].1 == node_bytes && is_listed(EXTRA[row].0, name) {
            return true;
        }
        row += 1;
    }
    false
}

/// Returns the row of design `D`.
const fn row<D: Design, Default: Design, Smallest: Design>() -> Forms<Simulated> {
    let bytes = D::SPEC.node_bytes;
    let is_smallest = bytes == Smallest::SPEC.node_bytes;
    let is_default = bytes == Default::SPEC.node_bytes;
    let is_used = is_default || is_smallest || is_extra(D::SPEC.name, bytes);
    let is_used = is_used || cfg!(feature = "all-sizes");
    let has_text = is_smallest || (is_default && has_text(D::SPEC.name));
    let is_built = is_built(D::SPEC.name);
    Forms::of::<D>(is_built && is_used, is_built && has_text)
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
