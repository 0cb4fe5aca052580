//! Node layouts, each with the order of stores that makes its changes atomic: layout and order are
//! one decision and are never separated.

pub mod sorted_shift;
