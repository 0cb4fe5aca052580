//! Every design of the registry has its page, with all that a page must have.

use super::Finding;
use bristlecone_trees::names;
use std::path::Path;

/// The headings of a page, in their order.
const HEADINGS: &[&str] = &[
    "Source",
    "Idea",
    "Composition",
    "Layout",
    "Persist orders",
    "Budget",
    "What bounds it",
    "Departures",
    "Errors in the paper",
];

pub(super) fn check(root: &Path) -> Vec<Finding> {
    let folder = root.join("docs/designs");
    let mut findings = Vec::new();
    for sizes in names::specs() {
        let name = sizes[0].name;
        match std::fs::read_to_string(folder.join(format!("{name}.md"))) {
            Ok(page) => findings.extend(check_page(name, &page)),
            Err(error) => {
                findings.push(Finding::error(format!("docs/designs/{name}.md: {error}")));
            }
        }
    }
    findings
}

fn check_page(name: &str, page: &str) -> Vec<Finding> {
    let headings: Vec<_> =
        page.lines().filter_map(|line| line.strip_prefix("## ")).map(str::trim).collect();
    if headings == HEADINGS {
        return Vec::new();
    }
    let expected = HEADINGS.join(", ");
    let found = headings.join(", ");
    let text = format!("docs/designs/{name}.md: headings are {found}; they should be {expected}");
    vec![Finding::error(text)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_all_headings_in_order() {
        let page = |headings: &[&str]| {
            headings
                .iter()
                .map(|heading| format!("## {heading}\n\ntext"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        assert!(check_page("x", &page(HEADINGS)).is_empty());
        assert_eq!(check_page("x", &page(&HEADINGS[1..])).len(), 1);
        assert_eq!(check_page("x", "").len(), 1);
    }
}
