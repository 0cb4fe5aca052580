//! Charts as SVG, tables, and reports that are one HTML file.
//!
//! This crate only draws: it measures nothing, reads no file and depends on no other crate. Equal
//! input gives equal text, byte for byte.
//!
//! | module | contents |
//! | --- | --- |
//! | [`figure`] | bar charts, line charts, matrices, strips and timelines |
//! | [`table`] | tables of text and numbers, with marked cells |
//! | [`page`] | the HTML writer: sections, contents, style sheet |
//! | [`number`], [`mod@text`] | how numbers are printed; HTML escaping |
//!
//! A page needs no other file, no script and no network. It has a light and a dark style, and one
//! for print.

pub mod figure;
#[cfg(test)]
mod markup;
pub mod number;
pub mod page;
pub mod table;
pub mod text;
