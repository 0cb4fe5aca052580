//! The persistence model: the images that a crash can leave.

pub(crate) mod contents;
pub(crate) mod history;
mod items;
mod journal;
pub(crate) mod residue;

#[cfg(test)]
mod tests;
