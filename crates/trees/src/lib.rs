//! Persistent-memory B+-trees: pieces, engines, designs.
//!
//! Above all stands [`PmIndex`]: every design implements it, and it is all that the store, the
//! explorer and the benchmarks see. A key reaches a design through the [`Key`] layer, so every
//! design serves integers and byte strings alike.

pub mod designs;
pub mod dynamic;
mod fingerprint;
pub mod hybrid;
pub mod index;
mod inner;
pub mod keepers;
pub mod key;
pub mod leaf;
pub mod node;
mod parallel;
pub mod planted;
pub mod registry;
mod rows;
mod sorting;
pub mod spec;
pub mod uniform;

pub use dynamic::DynDesign;
pub use index::{Census, Design, Order, PmIndex, TreeError, Upkeep};
pub use keepers::Keeper;
pub use key::{Key, Record, Text};
pub use spec::{Budget, Cost, Spec};
