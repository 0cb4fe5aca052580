//! The distance of each design from its paper: the section `Mechanisms` of its page, as data.
//!
//! The page in `docs/designs` is the only place that states a status. This crate holds the text of
//! the pages and reads it; `bristlecone-lab designs` prints the counts, and `cargo xtask tidy`
//! checks the form of every page.
//!
//! | module | contents |
//! | --- | --- |
//! | [`section`] | the parser of a section, and its parts: kind, mechanisms, statuses, counts |
//! | [`error`] | the ways in which a section departs from the form |

pub mod error;
pub mod section;

pub use error::FormError;
pub use section::{HEADER, Kind, Mechanism, MechanismSection, MechanismStatus, StatusCounts};

macro_rules! pages {
    ($($name:literal => $smallest:ty, [$($design:ty),* $(,)?]),* $(,)?) => {
        /// The names of the designs, in the order of their list, each with the text of its page.
        pub const PAGES: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../../docs/designs/", $name, ".md")))),*
        ];
    };
}

bristlecone_trees::for_each_design!(pages);

/// Returns the section `Mechanisms` of a design's page, or `None` if the list has no such design.
///
/// # Errors
/// The section departs from the form.
pub fn of(design: &str) -> Option<Result<MechanismSection<'static>, FormError>> {
    let (_, page) = PAGES.iter().find(|(name, _)| *name == design)?;
    Some(MechanismSection::parse(page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_design_has_a_page_whose_mechanisms_are_read() {
        for sizes in bristlecone_trees::names::specs() {
            let name = sizes[0].name;
            let section = of(name).unwrap_or_else(|| panic!("{name} has no page"));
            let section = section.unwrap_or_else(|error| panic!("{name}.md: {error}"));
            assert!(section.kind == Kind::Ours || !section.mechanisms.is_empty(), "{name}");
        }
        assert!(of("no such tree").is_none());
    }
}
