//! A design under test with one kind of key, its type erased.

use bristlecone_pmem::Simulated;
use bristlecone_trees::{Design, ErasedDesign, Key, PmIndex};

/// An index of some design on a simulated medium.
pub(crate) type Index<K> = dyn PmIndex<Simulated, K>;

/// The part of the replaced value that an operation other than a get returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultVisibility {
    /// The former value, if any.
    Values,
    /// The presence of a value; an upsert returns nothing.
    Presence,
}

/// A design with one kind of key.
pub(crate) struct SubjectDesign<K: Key> {
    pub(crate) form: ErasedDesign<Simulated, K>,
    /// The part of results that the oracle may rely on where threads meet.
    pub(crate) visibility: ResultVisibility,
    /// `true` if its operations wait for the disk themselves, as the store's do. After those of any
    /// other design the explorer waits for all that was fenced.
    pub(crate) settles: bool,
}

impl<K: Key> SubjectDesign<K> {
    pub(crate) const fn of<D: Design>(visibility: ResultVisibility) -> Self {
        Self::new(ErasedDesign::of::<D>(), visibility)
    }

    pub(crate) const fn new(
        form: ErasedDesign<Simulated, K>,
        visibility: ResultVisibility,
    ) -> Self {
        Self { form, visibility, settles: false }
    }

    /// Returns `true` for a store in the role of a design: its values have any length.
    pub(crate) fn is_store(&self) -> bool {
        self.settles || self.visibility == ResultVisibility::Presence
    }

    /// Returns `true` if the design has batches.
    pub(crate) fn has_batches(&self) -> bool {
        self.settles
    }

    /// Returns this design as one whose operations wait for the disk themselves.
    pub(crate) const fn settling(self) -> Self {
        Self { settles: true, ..self }
    }
}

impl<K: Key> Clone for SubjectDesign<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Key> Copy for SubjectDesign<K> {}
