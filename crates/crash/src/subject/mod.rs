//! The subjects of a campaign: the pool, the designs, the store, and the key-value stores over two
//! designs, by name.

pub(crate) mod design;
pub(crate) mod keys;
mod kv;
pub(crate) mod store;
mod toy;

use crate::config::{POOL, STORE};
use bristlecone_pmem::Simulated;
use bristlecone_registry::{DesignEntry, is_built, smallest_size, with_size};
use bristlecone_trees::names::{UnknownDesign, specs};
use bristlecone_trees::{Design, ErasedDesign, Spec, Text};
use core::fmt;
use design::{ResultVisibility, SubjectDesign};
use kv::{KvDesign, KvSubject, OverIsleTree, OverWbTree};
use store::StoreDesign;
use toy::Toy;
use toy::layouts::{Cells, Directory, Items, Prefixed, Summed};

/// The designs whose layout has other code where its header takes two lines, with the first such
/// node size: fingerprints in a line of their own, or a slot array in two lines. Before it, where
/// the build has it, the first size with a second word of the bitmap. Of `cell-tree` the size that
/// the store takes.
const WIDE: [(&str, usize); 9] = [
    ("cell-tree", 1024),
    ("fptree", 1024),
    ("fptree-r", 1024),
    ("wb-tree", 2048),
    ("wb-tree", 1024),
    ("wb-tree-words", 2048),
    ("wb-tree-words", 1024),
    ("wo-tree", 1024),
    ("wo-tree-r", 1024),
];

/// Returns the form of a design whose header takes two lines, unless `node_bytes` is its size.
fn wide_form(name: &str, node_bytes: usize) -> Option<ErasedDesign<Simulated, u64>> {
    let wide = WIDE.iter().filter(|wide| wide.0 == name && wide.1 != node_bytes);
    wide.map(|&(_, bytes)| with_size(name, bytes)).find_map(Result::ok)?.simulated.numbers
}

/// An object whose crash safety is tested.
#[derive(Clone)]
pub struct Subject {
    name: String,
    /// The index, or `None` for a pool without one.
    pub(crate) index: Option<TestedIndex>,
}

/// A design, or the store in the role of one.
#[derive(Clone, Copy)]
pub(crate) struct TestedIndex {
    pub(crate) numbers: SubjectDesign<u64>,
    pub(crate) text: Option<SubjectDesign<Text>>,
    /// The design at a size of [`WIDE`], if it has one.
    pub(crate) wide: Option<SubjectDesign<u64>>,
    /// Set for the store, whose media faults are those of its own methods.
    pub(crate) is_store: bool,
}

/// The store, where this build has it. Keys of one kind are put and deleted, those of the other are
/// written by exchanges.
static STORE_INDEX: Option<TestedIndex> = if is_built(STORE) {
    let numbers = SubjectDesign::of::<StoreDesign<false>>(ResultVisibility::Presence);
    let text = SubjectDesign::of::<StoreDesign<true>>(ResultVisibility::Values);
    let (numbers, text) = (numbers.settling(), Some(text.settling()));
    Some(TestedIndex { numbers, text, wide: None, is_store: true })
} else {
    None
};

static OVER_ISLE_TREE: Option<TestedIndex> = kv::<OverIsleTree>();
static OVER_WB_TREE: Option<TestedIndex> = kv::<OverWbTree>();

/// Returns the key-value store over a design, where it is built. Its keys are strings in either
/// kind of key, so one kind shows all.
const fn kv<S: KvSubject>() -> Option<TestedIndex> {
    if is_built(S::NAME) {
        let numbers = SubjectDesign::of::<KvDesign<S>>(ResultVisibility::Presence);
        Some(TestedIndex { numbers, text: None, wide: None, is_store: false })
    } else {
        None
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Subject {
    /// Returns the subjects called `names`: designs at their smallest node size, [`POOL`],
    /// [`STORE`] and key-value stores over a design; all that this build has if there are no
    /// names.
    ///
    /// # Errors
    /// No design has one of these names.
    pub fn named(names: &[String]) -> Result<Vec<Self>, UnknownDesign> {
        if names.is_empty() {
            let mut all = vec![POOL];
            all.extend(specs().iter().map(|sizes| sizes[0].name).filter(|name| is_built(name)));
            all.extend([STORE, OverIsleTree::NAME, OverWbTree::NAME]);
            return all.into_iter().map(Self::one).collect();
        }
        names.iter().map(|name| Self::one(name)).collect()
    }

    /// Returns a design that need not be registered.
    pub fn of<D: Design>() -> Self {
        let numbers = SubjectDesign::of::<D>(ResultVisibility::Values);
        let text = Some(SubjectDesign::of::<D>(ResultVisibility::Values));
        let index = Some(TestedIndex { numbers, text, wide: None, is_store: false });
        Self { name: D::SPEC.name.into(), index }
    }

    /// Returns the name of the design, or [`POOL`] or [`STORE`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the design called `name` with nodes of `node_bytes` bytes, with integer keys alone.
    ///
    /// # Errors
    /// No design has this name and size.
    pub(crate) fn at_size(name: &str, node_bytes: usize) -> Result<Self, UnknownDesign> {
        let mut subject = Self::registered(with_size(name, node_bytes)?)?;
        if let Some(index) = &mut subject.index {
            (index.text, index.wide) = (None, None);
        }
        Ok(subject)
    }

    /// Returns the toys of the catalogue, with integer keys alone.
    pub(crate) fn toys() -> Vec<Self> {
        vec![
            Self::toy::<Items>(),
            Self::toy::<Prefixed>(),
            Self::toy::<Directory>(),
            Self::toy::<Summed>(),
            Self::toy::<Cells>(),
        ]
    }

    /// Returns the description of the design, or `None` for a pool.
    pub(crate) fn spec(&self) -> Option<&Spec> {
        self.index.as_ref().map(|index| &index.numbers.form.spec)
    }

    /// Returns the subject called `name`.
    ///
    /// # Errors
    /// No design has this name.
    pub(crate) fn one(name: &str) -> Result<Self, UnknownDesign> {
        match name {
            POOL => Ok(Self { name: POOL.into(), index: None }),
            STORE => Self::built(STORE, STORE_INDEX.as_ref()),
            OverIsleTree::NAME => Self::built(name, OVER_ISLE_TREE.as_ref()),
            OverWbTree::NAME => Self::built(name, OVER_WB_TREE.as_ref()),
            name => Self::registered(smallest_size(name)?),
        }
    }

    /// Returns the subject called `name`, if this build has its index.
    fn built(name: &str, index: Option<&TestedIndex>) -> Result<Self, UnknownDesign> {
        match index {
            Some(&index) => Ok(Self { name: name.into(), index: Some(index) }),
            None => Err(UnknownDesign::DesignNotBuilt { name: name.into() }),
        }
    }

    fn registered(entry: &DesignEntry) -> Result<Self, UnknownDesign> {
        let spec = &entry.spec;
        let forms = &entry.simulated;
        let numbers = forms.numbers.ok_or_else(|| {
            UnknownDesign::new(spec.name, Some(spec.node_bytes)) // Every row has this form.
        })?;
        let visibility = ResultVisibility::Values;
        let index = TestedIndex {
            numbers: SubjectDesign::new(numbers, visibility),
            text: forms.text.map(|text| SubjectDesign::new(text, visibility)),
            wide: wide_form(spec.name, spec.node_bytes)
                .map(|numbers| SubjectDesign::new(numbers, visibility)),
            is_store: false,
        };
        Ok(Self { name: spec.name.into(), index: Some(index) })
    }

    fn toy<L: toy::ToyLayout>() -> Self {
        let numbers = SubjectDesign::of::<Toy<L>>(ResultVisibility::Values);
        let index = Some(TestedIndex { numbers, text: None, wide: None, is_store: false });
        Self { name: L::NAME.into(), index }
    }
}
