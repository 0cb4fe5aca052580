//! The persistence model: the images that a crash can leave.

pub(crate) mod contents;
pub(crate) mod history;
pub(crate) mod residue;
