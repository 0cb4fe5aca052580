//! The formats of bulk data that the command `bristlecone` loads and dumps.
//!
//! They are a library for tests and fuzz targets; the command itself is in `main.rs`.

pub mod escape;
pub mod format;
pub mod json;
