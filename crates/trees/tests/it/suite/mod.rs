//! The conformance suite: what every design is held to, whatever it is made of.
//!
//! Each module holds one obligation as a function of a design whose type is left behind, so each is
//! compiled once; [`Visitor`]s carry it to the registry. A suite is itself tested: `flaws.rs` shows that each of them rejects designs that
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
//! | [`keepers`] | that what is put off is left to maintainers, and never for ever |
//! | [`full`] | a full pool loses nothing, and removing makes room |
//! | [`hostile`] | damaged files: an error or a plausible answer, never a panic or a hang |

pub(crate) mod bounded;
pub(crate) mod budget;
pub(crate) mod bulk;
pub(crate) mod full;
pub(crate) mod history;
pub(crate) mod hostile;
pub(crate) mod keys;
pub(crate) mod maintainers;
pub(crate) mod model;
pub(crate) mod reopen;
pub(crate) mod scratch;
pub(crate) mod threads;
pub(crate) mod visitors;

use bounded::Bounded;
use bristlecone_trees::names::Visitor;
use bristlecone_trees::{Design, ErasedDesign, PmIndex};

/// A design as almost every suite sees it.
pub(crate) type Subject<K> = ErasedDesign<Bounded, K>;

/// An index of it.
pub(crate) type Index<K> = dyn PmIndex<Bounded, K>;

macro_rules! visitors {
    ($($(#[$doc:meta])* $name:ident => $module:ident::$run:ident($($subject:ident),*);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $name;

        impl Visitor for $name {
            type Output = ();
            fn visit<D: Design>(self) {
                $(let $subject = ErasedDesign::of::<D>();)*
                $module::$run($(&$subject),*);
            }
        }
    )*};
}

visitors! {
    /// Integer keys against the model.
    IntegerModel => model::integers(integers);
    /// Byte-string keys against the model.
    TextModel => model::texts(texts);
    /// Scans whose visitors write.
    Visits => visitors::run(integers);
    /// Many keys in, in three orders, and out again.
    Bulk => bulk::run(integers, texts);
    /// Closes and deaths.
    Reopen => reopen::run(integers, texts);
    /// Lines and fences.
    Budget => budget::run(integers);
    /// Several threads on their own keys, and on each other's.
    Threads => threads::run(integers);
    /// Short histories of several threads, judged exactly.
    Histories => history::run(integers);
    /// Maintainers that come and go, and one that stalls.
    Maintainers => maintainers::run(integers, threaded);
    /// A pool that may not grow.
    Full => full::run(integers, texts);
    /// Damaged files under integer keys.
    HostileIntegers => hostile::integers(integers);
    /// Damaged files under byte-string keys.
    HostileTexts => hostile::texts(texts);
}
