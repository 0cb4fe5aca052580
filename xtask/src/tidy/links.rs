//! Each link of a page into this repository leads to a file.

use super::Finding;
use std::path::{Path, PathBuf};

pub(super) fn check(root: &Path, files: &[PathBuf]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|kind| kind == "md")) {
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        let folder = root.join(file).parent().map(Path::to_path_buf).unwrap_or_default();
        for target in targets(&text) {
            if !folder.join(target).exists() {
                let name = file.display();
                findings
                    .push(Finding::error(format!("{name}: links to {target}, which is not there")));
            }
        }
    }
    findings
}

/// Yields the files that `text` links to, without the places in them.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| {
        let target = rest.split(')').next()?.split('#').next()?;
        let elsewhere = target.is_empty() || target.contains("://") || target.contains(' ');
        (!elsewhere).then_some(target)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_links_into_the_repository_are_followed() {
        let text = "[a](a.md) [b](b/c.md#here) [c](https://example.org/d) [d](#there) x](y z)";
        assert_eq!(targets(text).collect::<Vec<_>>(), ["a.md", "b/c.md"]);
    }
}
