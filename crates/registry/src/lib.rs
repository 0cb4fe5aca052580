//! Every design, compiled once.
//!
//! [`DESIGNS`] has a row for each design at each node size. A row holds up to five compiled forms
//! of its tree: on the memory of this machine ([`Memory`]) and on a simulated medium
//! ([`Simulated`]), with integers and with byte strings as keys; on memory also as the index of a
//! key-value store. The explorer, the laboratory and the conformance suite are plain code over this
//! table, so an edit of theirs compiles no tree.
//!
//! 1. Calls go through [`PmIndex`](bristlecone_trees::PmIndex), a trait object: one indirect call
//!    for an operation.
//! 2. A form costs seconds of compile time, so a row has the forms that are used: integers at the
//!    default node size, on memory and simulated; integers and byte strings at the smallest,
//!    simulated, which the explorer takes. A few designs have byte strings at their default size,
//!    and two are the index of a key-value store.
//! 3. The feature `all-sizes` adds integers at every other node size, byte strings at the default
//!    size of every design, and the index of a key-value store of every design. `cargo lab` has it.
//!    The feature `smallest-on-memory` is the conformance suite's: threads that meet in small nodes
//!    meet more often.
//! 4. A build with the environment variable `BRISTLECONE_DESIGNS=NAME,NAME` has these designs
//!    alone, so that a change of one of them soon runs in the laboratory.
//!
//! ```
//! use bristlecone_pmem::medium::Delay;
//! use bristlecone_pmem::{Mapped, Pool};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let row = bristlecone_registry::default_size("fptree")?;
//! let numbers = row.memory.numbers.expect("every row has integers on memory");
//! let pool = Arc::new(Pool::create(Delay::none(Mapped::anonymous(1 << 20)?.into()))?);
//! let index = (numbers.create)(pool, "numbers")?;
//! index.insert(1, 10)?;
//! assert_eq!(index.get(1)?, Some(10));
//! # Ok(())
//! # }
//! ```

pub use bristlecone_simulated::{
    CCL_ABLATIONS, CCL_BATCHES, CclAblation, LS_VARIANTS, LsVariant, is_built,
};
pub use bristlecone_trees::erased::{FormKey, Forms};

use bristlecone_pmem::medium::Delay;
use bristlecone_pmem::{FileMedium, Simulated};
use bristlecone_simulated::{has_text, is_listed};
use bristlecone_trees::names::UnknownDesign;
use bristlecone_trees::{Design, Spec, for_each_design};
use std::sync::LazyLock;

/// Memory of this machine, or a file with a journal, with the latencies that a benchmark adds.
pub type Memory = Delay<FileMedium>;

/// A design at one node size.
#[derive(Debug)]
pub struct DesignEntry {
    /// The description of the design at this node size.
    pub spec: Spec,
    /// The forms on memory of this machine.
    pub memory: Forms<Memory>,
    /// The forms on a simulated medium.
    pub simulated: Forms<Simulated>,
}

/// The designs that every build has as the index of a key-value store: those of the tests.
const SERVED: &str = "isle-tree,wb-tree";

/// Returns the forms of design `D` on memory.
const fn memory<D: Design, Default: Design, Smallest: Design>() -> Forms<Memory> {
    let bytes = D::SPEC.node_bytes;
    let is_default = bytes == Default::SPEC.node_bytes;
    let is_smallest = cfg!(feature = "smallest-on-memory") && bytes == Smallest::SPEC.node_bytes;
    let is_used = is_default || is_smallest || cfg!(feature = "all-sizes");
    let is_built = is_built(D::SPEC.name);
    let is_served = cfg!(feature = "all-sizes") || is_listed(SERVED, D::SPEC.name);
    let has_text = is_default && has_text(D::SPEC.name);
    Forms::of::<D>(is_built && is_used, is_built && has_text)
        .with_records::<D>(is_built && is_default && is_served)
}

macro_rules! table {
    ($($name:literal => $smallest:ty, [$default:ty $(, $design:ty)* $(,)?]),* $(,)?) => {
        static MEMORY: &[(Spec, Forms<Memory>)] = &[$(
            (<$default>::SPEC, memory::<$default, $default, $smallest>()),
            $((<$design>::SPEC, memory::<$design, $default, $smallest>()),)*
        )*];
    };
}

for_each_design!(table);

/// All designs in the order of their list: each at its default node size, then at the other sizes
/// of this build.
pub static DESIGNS: LazyLock<Vec<DesignEntry>> = LazyLock::new(|| {
    let rows = MEMORY.iter().zip(bristlecone_simulated::FORMS);
    let rows = rows.map(|(&(spec, memory), &simulated)| DesignEntry { spec, memory, simulated });
    rows.filter(|row| row.simulated.numbers.is_some()).collect()
});

/// Returns the rows of the design called `name`, the default node size first.
///
/// # Errors
/// No design has this name.
pub fn sizes(name: &str) -> Result<Vec<&'static DesignEntry>, UnknownDesign> {
    let rows: Vec<_> = DESIGNS.iter().filter(|row| row.spec.name == name).collect();
    if rows.is_empty() { Err(UnknownDesign::new(name, None)) } else { Ok(rows) }
}

/// Returns the row of the design called `name` with nodes of `node_bytes` bytes.
///
/// # Errors
/// No design has this name, or it has no nodes of this size.
pub fn with_size(name: &str, node_bytes: usize) -> Result<&'static DesignEntry, UnknownDesign> {
    let unknown = || UnknownDesign::new(name, Some(node_bytes));
    sizes(name)?.into_iter().find(|row| row.spec.node_bytes == node_bytes).ok_or_else(unknown)
}

/// Returns the row of the design called `name` at its default node size.
///
/// # Errors
/// No design has this name.
pub fn default_size(name: &str) -> Result<&'static DesignEntry, UnknownDesign> {
    Ok(sizes(name)?[0])
}

/// Returns the row of the design called `name` at its smallest node size, where nodes split and
/// merge most often.
///
/// # Errors
/// No design has this name.
pub fn smallest_size(name: &str) -> Result<&'static DesignEntry, UnknownDesign> {
    let rows = sizes(name)?;
    let least = rows.iter().copied().min_by_key(|row| row.spec.node_bytes);
    least.ok_or_else(|| UnknownDesign::new(name, None))
}
