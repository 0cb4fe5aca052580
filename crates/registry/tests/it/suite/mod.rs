//! The conformance suite: what every design is held to, whatever it is made of.
//!
//! Each module tests one obligation. It is a function of [`Subjects`], the compiled forms of a
//! design, so each is compiled once. The tests in `flaws.rs` test the suite itself: each module
//! rejects designs with a flaw that it must detect.
//!
//! | module | what it demands |
//! | --- | --- |
//! | [`model`] | the answers of a `BTreeMap`, for any operations, and a sound structure |
//! | [`visitors`] | that a scan holds no latch while it shows a pair |
//! | [`bulk`] | 20 000 keys, or 100 000, in and out again, and every block given back |
//! | [`loads`] | a bulk load into an empty index; or a refusal, of the designs that have none |
//! | [`reopen`] | nothing lost by a close or by a death, nothing leaked |
//! | [`budget`] | the lines and fences that the spec states, exactly |
//! | [`threads`], [`history`] | what several threads may see |
//! | [`maintainers`] | that maintainers do the deferred work, which is never deferred for ever |
//! | [`full`] | a full pool loses nothing, and removing makes room |
//! | [`hostile`] | damaged files: an error or a plausible answer, never a panic or a hang |

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

/// `true` in the nightly job's build, where no one waits for the tests: more cases of everything.
pub(crate) const IS_THOROUGH: bool = cfg!(feature = "all-sizes");

/// A design as almost every suite sees it.
pub(crate) type Subject<K> = ErasedDesign<Simulated, K>;

/// An index of it.
pub(crate) type Index<K> = dyn PmIndex<Simulated, K>;

/// A suite: panics if the design breaks its obligation.
pub(crate) type Suite = fn(&Subjects);

/// The compiled forms of the design under test.
pub(crate) struct Subjects {
    integers: Subject<u64>,
    texts: Option<Subject<Text>>,
    threaded: Option<ErasedDesign<Memory, u64>>,
}

impl Subjects {
    /// The forms of a row of the registry.
    pub(crate) fn registered(row: &DesignEntry) -> Self {
        let integers = row.simulated.numbers.expect("every row has integers");
        Self { integers, texts: row.simulated.text, threaded: row.memory.numbers }
    }

    /// The forms of a design that is not registered.
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

/// Integer keys against the model.
pub(crate) fn integer_model(subjects: &Subjects) {
    model::integers(&subjects.integers);
}

/// Byte-string keys against the model.
pub(crate) fn text_model(subjects: &Subjects) {
    model::texts(subjects.texts());
}

/// Scans whose visitors write.
pub(crate) fn visits(subjects: &Subjects) {
    visitors::run(&subjects.integers);
}

/// Many keys in, in three orders, and out again.
pub(crate) fn bulk(subjects: &Subjects) {
    bulk::run(&subjects.integers, subjects.texts());
}

/// Bulk loads.
pub(crate) fn loads(subjects: &Subjects) {
    loads::run(&subjects.integers, subjects.texts());
}

/// Closes and deaths.
pub(crate) fn reopen(subjects: &Subjects) {
    reopen::run(&subjects.integers, subjects.texts());
}

/// Lines and fences.
pub(crate) fn budget(subjects: &Subjects) {
    budget::run(&subjects.integers);
}

/// Several threads on their own keys, and on each other's.
pub(crate) fn threads(subjects: &Subjects) {
    threads::run(subjects.threaded());
}

/// Short histories of several threads, judged exactly.
pub(crate) fn histories(subjects: &Subjects) {
    history::run(subjects.threaded());
}

/// Maintainers that come and go, and one that stalls.
pub(crate) fn maintainers(subjects: &Subjects) {
    maintainers::run(&subjects.integers, subjects.threaded());
}

/// A pool that may not grow.
pub(crate) fn full(subjects: &Subjects) {
    full::run(&subjects.integers, subjects.texts());
}

/// Damaged files under integer keys.
pub(crate) fn hostile_integers(subjects: &Subjects) {
    hostile::integers(&subjects.integers);
}

/// Damaged files under byte-string keys.
pub(crate) fn hostile_texts(subjects: &Subjects) {
    hostile::texts(subjects.texts());
}
