//! The conformance suite: the obligations of every design.
//!
//! Each module tests one obligation. It is a function of [`Subjects`], the compiled forms of a
//! design, so each is compiled once. The tests in `flaws.rs` test the suite itself: each module
//! rejects designs with a flaw that it must detect.
//!
//! | module | obligation |
//! | --- | --- |
//! | [`model`] | the answers of a `BTreeMap`, for any operations, and a sound structure |
//! | [`visitors`] | a scan holds no latch while it shows a pair |
//! | [`bulk`] | many keys are inserted and removed, and every block is given back |
//! | [`loads`] | a bulk load into an empty index; or a refusal, of the designs that have none |
//! | [`reopen`] | a close or a crash loses and leaks nothing |
//! | [`budget`] | the lines and fences that the spec states, exactly |
//! | [`threads`], [`history`] | the answers to several threads |
//! | [`maintainers`] | maintainers do the deferred work, which is never deferred for ever |
//! | [`full`] | a full pool loses nothing, and removes make room |
//! | [`hostile`] | damaged files: an error or a plausible answer, never a panic or an endless run |

pub(crate) mod bounded;
pub(crate) mod budget;
pub(crate) mod bulk;
pub(crate) mod full;
pub(crate) mod history;
pub(crate) mod hostile;
pub(crate) mod keys;
pub(crate) mod loads;
pub(crate) mod maintainers;
pub(crate) mod model;
pub(crate) mod reopen;
pub(crate) mod scratch;
pub(crate) mod threads;
pub(crate) mod visitors;

use bristlecone_pmem::Simulated;
use bristlecone_registry::{DesignEntry, Memory};
use bristlecone_trees::{Design, ErasedDesign, PmIndex, Text};

/// `true` in the build of the nightly job, which tests more cases of everything.
pub(crate) const IS_THOROUGH: bool = cfg!(feature = "all-sizes");

/// The form of a design that almost every suite takes.
pub(crate) type Subject<K> = ErasedDesign<Simulated, K>;

/// An index of a [`Subject`].
pub(crate) type Index<K> = dyn PmIndex<Simulated, K>;

/// A suite. It panics if the design breaks its obligation.
pub(crate) type Suite = fn(&Subjects);

/// The compiled forms of the design under test.
pub(crate) struct Subjects {
    integers: Subject<u64>,
    texts: Option<Subject<Text>>,
    threaded: Option<ErasedDesign<Memory, u64>>,
}

impl Subjects {
    /// Returns the forms of a row of the registry.
    pub(crate) fn registered(row: &DesignEntry) -> Self {
        let integers = row.simulated.numbers.expect("every row has integers");
        Self { integers, texts: row.simulated.text, threaded: row.memory.numbers }
    }

    /// Returns the forms of a design that is not registered.
    pub(crate) fn of<D: Design>() -> Self {
        Self {
            integers: ErasedDesign::of::<D>(),
            texts: Some(ErasedDesign::of::<D>()),
            threaded: Some(ErasedDesign::of::<D>()),
        }
    }

    fn threaded(&self) -> &ErasedDesign<Memory, u64> {
        self.threaded.as_ref().expect("the smallest node size has integers on memory")
    }

    fn texts(&self) -> &Subject<Text> {
        self.texts.as_ref().expect("the smallest node size has byte strings")
    }
}

/// Compares integer keys with the model.
pub(crate) fn integer_model(subjects: &Subjects) {
    model::integers(&subjects.integers);
}

/// Compares byte-string keys with the model.
pub(crate) fn text_model(subjects: &Subjects) {
    model::texts(subjects.texts());
}

/// Tests scans whose visitors write.
pub(crate) fn visits(subjects: &Subjects) {
    visitors::run(&subjects.integers);
}

/// Inserts many keys in three orders, and removes them.
pub(crate) fn bulk(subjects: &Subjects) {
    bulk::run(&subjects.integers, subjects.texts());
}

/// Tests bulk loads.
pub(crate) fn loads(subjects: &Subjects) {
    loads::run(&subjects.integers, subjects.texts());
}

/// Tests closes and crashes.
pub(crate) fn reopen(subjects: &Subjects) {
    reopen::run(&subjects.integers, subjects.texts());
}

/// Counts lines and fences.
pub(crate) fn budget(subjects: &Subjects) {
    budget::run(&subjects.integers);
}

/// Runs several threads on their own keys, and on each other's.
pub(crate) fn threads(subjects: &Subjects) {
    threads::run(subjects.threaded());
}

/// Decides short histories of several threads exactly.
pub(crate) fn histories(subjects: &Subjects) {
    history::run(subjects.threaded());
}

/// Tests maintainers that come and go, and one that does nothing.
pub(crate) fn maintainers(subjects: &Subjects) {
    maintainers::run(&subjects.integers, subjects.threaded());
}

/// Tests a pool that may not grow.
pub(crate) fn full(subjects: &Subjects) {
    full::run(&subjects.integers, subjects.texts());
}

/// Tests damaged files with integer keys.
pub(crate) fn hostile_integers(subjects: &Subjects) {
    hostile::integers(&subjects.integers);
}

/// Tests damaged files with byte-string keys.
pub(crate) fn hostile_texts(subjects: &Subjects) {
    hostile::texts(subjects.texts());
}
