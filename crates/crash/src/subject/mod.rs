//! The subjects of a campaign: the pool, the designs and the store, by name.

pub(crate) mod design;
pub(crate) mod keys;
pub(crate) mod store;
mod toy;

use crate::config::{POOL, STORE};
use bristlecone_registry::{DesignEntry, smallest_size, with_size};
use bristlecone_trees::names::{UnknownDesign, specs};
use bristlecone_trees::{Design, Spec, Text};
use core::fmt;
use design::{ResultVisibility, SubjectDesign};
use store::StoreDesign;
use toy::Toy;
use toy::layouts::{Cells, Directory, Items, Prefixed, Summed};

/// An object whose crash safety is tested.
#[derive(Clone)]
pub struct Subject {
    name: String,
    pub(crate) tested: Tested,
}

/// The code behind a subject.
#[derive(Clone, Copy)]
pub(crate) enum Tested {
    /// A pool without an index.
    Pool,
    /// A design, or the store in the role of one.
    Index {
        numbers: SubjectDesign<u64>,
        text: Option<SubjectDesign<Text>>,
        /// Set for the store, whose media faults are those of its own methods.
        is_store: bool,
    },
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Subject {
    /// Returns the subjects called `names`: designs at their smallest node size, [`POOL`] and
    /// [`STORE`]; all of them if there are no names.
    ///
    /// # Errors
    /// No design has one of these names.
    pub fn named(names: &[String]) -> Result<Vec<Self>, UnknownDesign> {
        if names.is_empty() {
            let mut all = vec![POOL];
            all.extend(specs().iter().map(|sizes| sizes[0].name));
            all.push(STORE);
            return all.into_iter().map(Self::one).collect();
        }
        names.iter().map(|name| Self::one(name)).collect()
    }

    /// Returns a design that need not be registered.
    pub fn of<D: Design>() -> Self {
        Self::index::<D>(ResultVisibility::Values, false)
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
        if let Tested::Index { text, .. } = &mut subject.tested {
            *text = None;
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
        match &self.tested {
            Tested::Pool => None,
            Tested::Index { numbers, .. } => Some(&numbers.form.spec),
        }
    }

    /// Returns the subject called `name`.
    ///
    /// # Errors
    /// No design has this name.
    pub(crate) fn one(name: &str) -> Result<Self, UnknownDesign> {
        match name {
            POOL => Ok(Self { name: POOL.into(), tested: Tested::Pool }),
            STORE => Ok(Self::index::<StoreDesign>(ResultVisibility::Presence, true)),
            name => Self::registered(smallest_size(name)?),
        }
    }

    fn registered(entry: &DesignEntry) -> Result<Self, UnknownDesign> {
        let spec = &entry.spec;
        let forms = &entry.simulated;
        let numbers = forms.numbers.ok_or_else(|| {
            UnknownDesign::new(spec.name, Some(spec.node_bytes)) // Every row has this form.
        })?;
        let visibility = ResultVisibility::Values;
        let tested = Tested::Index {
            numbers: SubjectDesign::new(numbers, visibility),
            text: forms.text.map(|text| SubjectDesign::new(text, visibility)),
            is_store: false,
        };
        Ok(Self { name: spec.name.into(), tested })
    }

    fn index<D: Design>(visibility: ResultVisibility, is_store: bool) -> Self {
        let numbers = SubjectDesign::of::<D>(visibility);
        let text = Some(SubjectDesign::of::<D>(visibility));
        Self { name: D::SPEC.name.into(), tested: Tested::Index { numbers, text, is_store } }
    }

    fn toy<L: toy::ToyLayout>() -> Self {
        let numbers = SubjectDesign::of::<Toy<L>>(ResultVisibility::Values);
        let tested = Tested::Index { numbers, text: None, is_store: false };
        Self { name: L::NAME.into(), tested }
    }
}
