//! The conformance suite: what every design is held to, whatever it is made of.
//!
//! Each module holds one obligation as a function generic over the design; [`Visitor`]s carry it to
//! the registry. A suite is itself tested: `flaws.rs` shows that each of them rejects designs that
//! break what it is there to see.
//!
//! | module | what it demands |
//! | --- | --- |
//! | [`model`] | the answers of a `BTreeMap`, for any sequence of operations, and a sound structure |
//! | [`visitors`] | that a scan holds no latch while it shows a pair |
//! | [`bulk`] | 100 000 keys in and out again, and every block given back |
//! | [`reopen`] | nothing lost by a close or by a death, nothing leaked |
//! | [`budget`] | the lines and fences that the spec states, exactly |
//! | [`threads`], [`history`] | what several threads may see |
//! | [`full`] | a full pool loses nothing, and removing makes room |
//! | [`hostile`] | damaged files: an error or a plausible answer, never a panic or a hang |

pub(crate) mod bounded;
pub(crate) mod budget;
pub(crate) mod bulk;
pub(crate) mod full;
pub(crate) mod history;
pub(crate) mod hostile;
pub(crate) mod keys;
pub(crate) mod model;
pub(crate) mod outlined;
pub(crate) mod reopen;
pub(crate) mod scratch;
pub(crate) mod threads;
pub(crate) mod visitors;

use bristlecone_trees::Design;
use bristlecone_trees::registry::Visitor;

/// The largest nodes that the suite is compiled for. Small ones split and merge most.
const NODE_BYTES_MAX: usize = 512;
/// The smallest node that is a whole tree by itself: the toy's.
const FLAT_BYTES: usize = 1 << 20;

macro_rules! visitors {
    ($($(#[$doc:meta])* $name:ident => $module:ident::$run:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        impl Visitor for $name {
            type Output = ();
            fn visit<D: Design>(self) {
                // What is never reached is never compiled: most sizes of most designs.
                if const { D::SPEC.node_bytes <= NODE_BYTES_MAX || D::SPEC.node_bytes >= FLAT_BYTES } {
                    $module::$run::<outlined::Outlined<D>>();
                } else {
                    panic!("nodes of {} B are not tested", D::SPEC.node_bytes);
                }
            }
        }
    )*};
}

visitors! {
    /// Integer keys against the model.
    IntegerModel => model::integers;
    /// Byte-string keys against the model.
    TextModel => model::texts;
    /// Scans whose visitors write.
    Visits => visitors::run;
    /// Many keys in, in three orders, and out again.
    Bulk => bulk::run;
    /// Closes and deaths.
    Reopen => reopen::run;
    /// Lines and fences.
    Budget => budget::run;
    /// Several threads on their own keys, and on each other's.
    Threads => threads::run;
    /// Short histories of several threads, judged exactly.
    Histories => history::run;
    /// A pool that may not grow.
    Full => full::run;
    /// Damaged files under integer keys.
    HostileIntegers => hostile::integers;
    /// Damaged files under byte-string keys.
    HostileTexts => hostile::texts;
}
