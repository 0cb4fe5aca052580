//! Every design of the registry has its page, with all that a page must have.

use super::Finding;
use bristlecone_fidelity::MechanismSection;
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
    "Mechanisms",
    "Errors in the paper",
];

/// Headings that a page may omit: the guide has a rule for that.
const OPTIONAL: &[&str] = &["Layout", "What bounds it", "Errors in the paper"];

/// The page that explains the form of the others.
const GUIDE: &str = "README";

pub(super) fn check(root: &Path) -> Vec<Finding> {
    let folder = root.join("docs/designs");
    let pages = match read_pages(&folder) {
        Ok(pages) => pages,
        Err(error) => return vec![Finding::error(format!("{}: {error}", folder.display()))],
    };
    let mut findings: Vec<Finding> =
        pages.iter().flat_map(|(name, page)| check_page(name, page)).collect();
    for sizes in names::specs() {
        let name = sizes[0].name;
        if !pages.iter().any(|(page, _)| page == name) {
            findings.push(Finding::error(format!("{name} has no page docs/designs/{name}.md")));
        }
    }
    findings
}

/// Returns the names and texts of all pages of designs.
fn read_pages(folder: &Path) -> std::io::Result<Vec<(String, String)>> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "md") && name != GUIDE {
            pages.push((name, std::fs::read_to_string(path)?));
        }
    }
    pages.sort();
    Ok(pages)
}

/// Returns the error of a page, in its headings or in the form of its mechanisms.
fn check_page(name: &str, page: &str) -> Vec<Finding> {
    let headings: Vec<_> =
        page.lines().filter_map(|line| line.strip_prefix("## ")).map(str::trim).collect();
    let is_due = |heading: &&&str| !OPTIONAL.contains(heading) || headings.contains(heading);
    let expected: Vec<_> = HEADINGS.iter().filter(is_due).copied().collect();
    let wrong = if headings != expected {
        let (found, expected) = (headings.join(", "), expected.join(", "));
        format!("headings are {found}; they should be {expected}")
    } else if let Err(error) = MechanismSection::parse(page) {
        error.to_string()
    } else {
        return Vec::new();
    };
    vec![Finding::error(format!("docs/designs/{name}.md: {wrong}"))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(headings: &[&str]) -> String {
        let sections = headings.iter().map(|heading| format!("## {heading}\n\nOurs. Text.\n"));
        sections.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_page_has_all_headings_in_order() {
        assert!(check_page("x", &page(HEADINGS)).is_empty());
        let shorter: Vec<_> =
            HEADINGS.iter().copied().filter(|name| !OPTIONAL.contains(name)).collect();
        assert!(check_page("x", &page(&shorter)).is_empty());
        assert_eq!(check_page("x", &page(&HEADINGS[1..])).len(), 1);
        assert_eq!(check_page("x", "").len(), 1);
    }

    #[test]
    fn the_form_of_the_mechanisms_is_checked() {
        let row = "| leaf | 4.1 | nearly | - | none |";
        let table = format!("{}\n|---|---|---|---|---|\n{row}", bristlecone_fidelity::HEADER);
        let text = page(HEADINGS);
        let text = text
            .replace("## Mechanisms\n\nOurs. Text.", &format!("## Mechanisms\n\nOurs.\n\n{table}"));
        let findings = check_page("x", &text);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].text.contains("\"nearly\" is no status"), "{}", findings[0].text);
        assert!(check_page("x", &text.replace("nearly", "as described")).is_empty());
    }
}
