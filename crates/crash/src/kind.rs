//! What the explorer knows of a design: the design itself on the explorer's medium with a kind of key,
//! its type left behind, and what its operations tell.

use bristlecone_pmem::Simulated;
use bristlecone_registry::smallest_size;
use bristlecone_trees::names::UnknownDesign;
use bristlecone_trees::{Design, ErasedDesign, Key, PmIndex, Spec, Text};

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

/// A design with both kinds of key.
#[derive(Clone, Copy)]
pub(crate) struct Both {
    pub(crate) numbers: Kind<u64>,
    pub(crate) text: Kind<Text>,
}

impl Both {
    /// The design `D`, which need not be registered.
    pub(crate) fn of<D: Design>() -> Self {
        Self { numbers: Kind::of::<D>(), text: Kind::of::<D>() }
    }

    /// The registered design called `name`, at its smallest node size.
    ///
    /// # Errors
    /// No design has this name.
    pub(crate) fn named(name: &str) -> Result<Self, UnknownDesign> {
        let forms = &smallest_size(name)?.simulated;
        let (Some(numbers), Some(text)) = (forms.numbers, forms.text) else {
            return Err(UnknownDesign::new(name, None));
        };
        let tells = Tells::Values;
        Ok(Self { numbers: Kind { design: numbers, tells }, text: Kind { design: text, tells } })
    }

    /// The same, telling `tells`.
    pub(crate) fn telling(self, tells: Tells) -> Self {
        Self { numbers: self.numbers.telling(tells), text: self.text.telling(tells) }
    }

    pub(crate) fn spec(&self) -> &Spec {
        &self.numbers.design.spec
    }
}

impl<K: Key> Clone for Kind<K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Key> Copy for Kind<K> {}
