//! What the explorer knows of a design: the design itself on the explorer's medium with a kind of key,
//! its type left behind, and what its operations tell.

use bristlecone_pmem::Simulated;
use bristlecone_trees::{Design, ErasedDesign, Key, PmIndex};

/// An index of some design.
pub(crate) type Index<K> = dyn PmIndex<Simulated, K>;

/// What operations other than a get tell of the value that they found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tells {
    /// Which it was.
    Values,
    /// Whether there was one; an upsert not even that.
    Presence,
}

/// A design with a kind of key.
pub(crate) struct Kind<K: Key> {
    /// The design.
    pub(crate) design: ErasedDesign<Simulated, K>,
    /// What its operations tell where threads meet.
    pub(crate) tells: Tells,
}

impl<K: Key> Kind<K> {
    /// The design `D` with these keys.
    pub(crate) fn of<D: Design>() -> Self {
        Self { design: ErasedDesign::of::<D>(), tells: Tells::Values }
    }

    /// The same, telling `tells`.
    pub(crate) fn telling(self, tells: Tells) -> Self {
        Self { tells, ..self }
    }
}

impl<K: Key> Clone for Kind<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Key> Copy for Kind<K> {}
