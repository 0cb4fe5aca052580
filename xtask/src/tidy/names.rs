//! One name for one thing: types with unique names, and words that the glossary replaces.

use super::Finding;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Names that several types may have: the arguments of each command, and the results of each crate.
const FREE: [&str; 2] = ["Args", "Result"];

/// The glossary.
const GLOSSARY: &str = "docs/GLOSSARY.md";

pub(super) fn check(root: &Path, files: &[PathBuf]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut sources = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|kind| kind == "rs")) {
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        sources.push((file.display().to_string(), text));
    }
    findings.extend(check_types(&sources));
    match std::fs::read_to_string(root.join(GLOSSARY)) {
        Ok(glossary) => findings.extend(check_words(&sources, &banned(&glossary))),
        Err(error) => findings.push(Finding::error(format!("{GLOSSARY}: {error}"))),
    }
    findings
}

/// Returns the crate of a source file outside tests, by its folder.
fn crate_of(file: &str) -> Option<&str> {
    let (name, path) = file.strip_prefix("crates/")?.split_once("/src/")?;
    let is_test = path.split('/').any(|part| part == "tests" || part == "tests.rs");
    (!is_test).then_some(name)
}

/// Returns the name of the type that a line declares, and `true` if the type is public.
fn declared(line: &str) -> Option<(&str, bool)> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let (rest, is_public) = match rest.strip_prefix('(') {
        Some(scoped) => (scoped.split_once(')')?.1, false),
        None => (rest, true),
    };
    let rest = rest.strip_prefix(' ')?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let kinds = ["struct ", "enum ", "trait ", "union ", "type "];
    let name = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    Some((name.split(|c: char| !c.is_alphanumeric() && c != '_').next()?, is_public))
}

fn check_types(sources: &[(String, String)]) -> Vec<Finding> {
    let mut public: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut scoped: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (file, text) in sources {
        let Some(owner) = crate_of(file) else { continue };
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text);
        // Associated types of a trait's implementations are indented like items of a trait.
        let lines = code.lines().filter(|line| !line.starts_with(' '));
        for (name, is_public) in lines.filter_map(declared) {
            if FREE.contains(&name) {
                continue;
            }
            if is_public {
                public.entry(name).or_default().push(file);
            }
            scoped.entry((owner, name)).or_default().push(file);
        }
    }
    let twice = |name: &str, files: &[&str]| {
        Finding::error(format!("{name} names {} types: {}", files.len(), files.join(", ")))
    };
    let of_all = public.iter().filter(|(_, files)| files.len() > 1);
    let of_one = scoped.iter().filter(|((_, name), files)| {
        files.len() > 1 && public.get(name).is_none_or(|files| files.len() < 2)
    });
    let all = of_all.map(|(name, files)| twice(name, files));
    all.chain(of_one.map(|((_, name), files)| twice(name, files))).collect()
}

/// Returns the identifiers in the third column of the glossary's tables.
fn banned(glossary: &str) -> Vec<String> {
    let rows = glossary.lines().filter(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(3)).filter(|cell| !cell.contains("---"));
    let words = cells.flat_map(|cell| cell.split(',')).map(|word| word.trim().replace('`', ""));
    words.filter(|word| !word.is_empty() && word != "instead of").collect()
}

fn check_words(sources: &[(String, String)], banned: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, text) in sources.iter().filter(|(file, _)| file.starts_with("crates/")) {
        let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if let Some(word) = banned.iter().find(|word| *word == stem) {
            findings.push(Finding::error(format!("{file}: the glossary replaces {word}")));
        }
        for (number, line) in (1..).zip(text.lines()) {
            let code = line.split("//").next().unwrap_or(line);
            let code = code.split('"').step_by(2);
            let mut words =
                code.flat_map(|code| code.split(|c: char| !c.is_alphanumeric() && c != '_'));
            if let Some(word) = words.find(|word| banned.iter().any(|banned| banned == word)) {
                let text = format!("{file}:{number}: the glossary replaces {word}");
                findings.push(Finding::error(text));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(file: &str, text: &str) -> (String, String) {
        (file.into(), text.into())
    }

    #[test]
    fn a_name_of_two_types_is_found() {
        let a = source("crates/a/src/x.rs", "pub struct Row;\npub(crate) struct Cell;\n");
        let b = source("crates/b/src/y.rs", "pub enum Row {}\npub(super) trait Cell {}\n");
        let findings = check_types(&[a.clone(), b]);
        assert_eq!(findings.len(), 1, "names that one crate sees may be another's too");
        let c = source("crates/a/src/z.rs", "pub(super) type Cell = u8;\npub struct Args;\n");
        assert_eq!(check_types(&[a.clone(), c]).len(), 1);
        let test = source("crates/a/src/x/tests.rs", "pub struct Row;\n");
        assert!(check_types(&[a, test]).is_empty());
    }

    #[test]
    fn a_word_that_the_glossary_replaces_is_found() {
        let table =
            "| term | meaning | instead of |\n| --- | --- | --- |\n| trace | x | `tape`, taped |\n";
        assert_eq!(banned(table), ["tape", "taped"]);
        let found = |text| check_words(&[source("crates/a/src/x.rs", text)], &banned(table)).len();
        assert_eq!(found("let tape = 1;\n"), 1);
        assert_eq!(found("let tapes = \"tape\"; // tape\n"), 0);
        assert_eq!(check_words(&[source("crates/a/src/tape.rs", "")], &banned(table)).len(), 1);
    }
}
