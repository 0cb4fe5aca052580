//! Erased designs: values that stand for a design, so that code over them names no design's type.
//!
//! Code that takes an [`ErasedDesign`] is compiled once for each medium and kind of key. It calls
//! an index through a trait object.

use crate::index::{Design, MaintenanceCost, PmIndex, TreeError};
use crate::key::{Key, Text};
use crate::kv::KvKey;
use crate::spec::Spec;
use bristlecone_pmem::pool::Opened;
use bristlecone_pmem::{Medium, Pool};
use core::fmt;
use std::sync::Arc;

/// An owned index of any design.
pub type BoxedIndex<M, K> = Box<dyn PmIndex<M, K>>;

/// The function [`PmIndex::create`] of a design.
pub type Create<M, K> = fn(Arc<Pool<M>>, &str) -> Result<BoxedIndex<M, K>, TreeError>;

/// The function [`PmIndex::open`] of a design.
pub type Open<M, K> = fn(Arc<Pool<M>>, &str, Opened) -> Result<BoxedIndex<M, K>, TreeError>;

/// A design at one node size, on one medium, with one kind of key.
///
/// ```
/// use bristlecone_pmem::{Mapped, Pool};
/// use bristlecone_trees::ErasedDesign;
/// use bristlecone_trees::designs::{FpTree, WbTree};
/// use std::sync::Arc;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let fptree = ErasedDesign::<Mapped, u64>::of::<FpTree<512>>();
/// for design in [fptree, ErasedDesign::of::<WbTree<512>>()] {
///     let pool = Arc::new(Pool::create(Mapped::anonymous(1 << 20)?)?);
///     let index = (design.create)(pool, "numbers")?;
///     index.insert(1, 10)?;
///     assert_eq!(index.get(1)?, Some(10), "{}", design.spec.name);
/// }
/// # Ok(())
/// # }
/// ```
pub struct ErasedDesign<M: Medium, K: Key> {
    /// The description of the design.
    pub spec: Spec,
    /// The cost of deferred work, which operations may pay beyond the budget.
    pub maintenance: Option<MaintenanceCost>,
    /// Creates an index of the design: [`PmIndex::create`].
    pub create: Create<M, K>,
    /// Opens an index of the design: [`PmIndex::open`].
    pub open: Open<M, K>,
}

impl<M: Medium, K: Key> ErasedDesign<M, K> {
    /// Erases the design `D`.
    pub const fn of<D: Design>() -> Self {
        Self {
            spec: D::SPEC,
            maintenance: D::MAINTENANCE,
            create: |pool, root| Ok(Box::new(D::Index::<M, K>::create(pool, root)?)),
            open: |pool, root, opened| Ok(Box::new(D::Index::<M, K>::open(pool, root, opened)?)),
        }
    }
}

impl<M: Medium, K: Key> fmt::Debug for ErasedDesign<M, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErasedDesign").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl<M: Medium, K: Key> Clone for ErasedDesign<M, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Medium, K: Key> Copy for ErasedDesign<M, K> {}

/// The compiled forms of a design on one kind of medium.
#[derive(Debug)]
pub struct Forms<M: Medium> {
    /// The form for integer keys, if it is compiled.
    pub numbers: Option<ErasedDesign<M, u64>>,
    /// The form for byte-string keys, if it is compiled.
    pub text: Option<ErasedDesign<M, Text>>,
    /// The form for the index of a [`KvStore`](crate::kv::KvStore), if it is compiled.
    pub records: Option<ErasedDesign<M, KvKey>>,
}

impl<M: Medium> Forms<M> {
    /// Compiles design `D` for integer keys if `with_numbers`, and for byte strings if `with_text`.
    pub const fn of<D: Design>(with_numbers: bool, with_text: bool) -> Self {
        let numbers = if with_numbers { Some(ErasedDesign::of::<D>()) } else { None };
        let text = if with_text { Some(ErasedDesign::of::<D>()) } else { None };
        Self { numbers, text, records: None }
    }

    /// Adds the form of design `D` for the index of a key-value store if `with_records`.
    #[must_use]
    pub const fn with_records<D: Design>(self, with_records: bool) -> Self {
        let records = if with_records { Some(ErasedDesign::of::<D>()) } else { None };
        Self { records, ..self }
    }
}

impl<M: Medium> Clone for Forms<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Medium> Copy for Forms<M> {}

/// A kind of key that designs are compiled for.
pub trait FormKey: Key {
    /// Returns the form of `forms` for this kind of key.
    fn form<M: Medium>(forms: &Forms<M>) -> Option<ErasedDesign<M, Self>>
    where
        Self: Sized;
}

impl FormKey for u64 {
    fn form<M: Medium>(forms: &Forms<M>) -> Option<ErasedDesign<M, Self>> {
        forms.numbers
    }
}

impl FormKey for Text {
    fn form<M: Medium>(forms: &Forms<M>) -> Option<ErasedDesign<M, Self>> {
        forms.text
    }
}
