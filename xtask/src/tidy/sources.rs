//! Lengths of files and functions, files that nothing includes, stray text.
//!
//! Sources are formatted by rustfmt, so a function ends at the first line that is its own
//! indentation and a brace.

use super::Finding;
use std::path::{Path, PathBuf};

const FILE_LINES_SOFT: usize = 400;
const FILE_LINES_HARD: usize = 800;
const FUNCTION_LINES_HARD: usize = 70;
/// Places outside the repository that its text must not name. They are put together here, so that
/// this file does not name them either.
const STRAY: [&str; 2] = [concat!("/wo", "rk"), concat!("../sha", "red")];

pub(super) fn check(root: &Path, files: &[PathBuf]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut sources = Vec::new();
    for file in files {
        // A file that is no text has no lines to check.
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        let name = file.display().to_string();
        findings.extend(check_stray(&name, &text));
        if file.ends_with("Cargo.toml")
            && text.contains("[package]")
            && !text.contains("[lints]\nworkspace = true")
            && !text.contains("\n[workspace]\n")
        {
            findings.push(Finding::error(format!("{name}: the workspace's lints are not taken")));
        }
        if file.extension().is_some_and(|extension| extension == "rs") {
            findings.extend(check_lengths(&name, &text));
            if !text.is_ascii() {
                findings.push(Finding::error(format!("{name}: sources are ASCII")));
            }
            sources.push((file.clone(), text));
        }
    }
    findings.extend(check_dead(&sources));
    findings
}

fn check_stray(name: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for stray in STRAY {
            let found = line.match_indices(stray).any(|(at, _)| {
                !line[at + stray.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '-')
            });
            if found {
                let text =
                    format!("{name}:{number}: speaks of {stray}, which is not of the project");
                findings.push(Finding::error(text));
            }
        }
    }
    findings
}

fn check_lengths(name: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = text.lines().count();
    if lines > FILE_LINES_HARD {
        findings.push(Finding::error(format!("{name}: {lines} lines; {FILE_LINES_HARD} at most")));
    } else if lines > FILE_LINES_SOFT {
        findings.push(Finding::remark(format!("{name}: {lines} lines; better {FILE_LINES_SOFT}")));
    }
    for (function, first, length) in functions(text) {
        if length > FUNCTION_LINES_HARD {
            let at = format!("{name}:{first}: fn {function}");
            let text = format!("{at} has {length} lines; {FUNCTION_LINES_HARD} at most");
            findings.push(Finding::error(text));
        }
    }
    findings
}

/// Returns name, first line and number of lines of each function with a body of several lines.
fn functions(text: &str) -> Vec<(&str, usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let Some(name) = function_name(code) else { continue };
        let indent = &line[..line.len() - code.len()];
        let rest = &lines[index..];
        // A signature without a body ends with a semicolon, at the same depth.
        let ends = |line: &&str| {
            let at_depth = line.strip_prefix(indent).filter(|line| !line.starts_with(' '));
            at_depth.is_some_and(|line| line == "}" || line.ends_with(';'))
        };
        if let Some(end) = rest.iter().position(ends).filter(|&end| rest[end].ends_with('}')) {
            found.push((name, index + 1, end + 1));
        }
    }
    found
}

/// Returns the name of the function that begins on this line.
fn function_name(code: &str) -> Option<&str> {
    const BEFORE: [&str; 8] =
        ["pub ", "pub(crate) ", "pub(super) ", "const ", "async ", "unsafe ", "extern \"C\" ", ""];
    let mut code = code;
    while let Some(rest) =
        BEFORE.iter().filter(|word| !word.is_empty()).find_map(|word| code.strip_prefix(word))
    {
        code = rest;
    }
    let name = code.strip_prefix("fn ")?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// Returns the modules that no `mod` line of their crate names.
fn check_dead(sources: &[(PathBuf, String)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, _) in sources {
        let stem = match file.file_stem().and_then(|stem| stem.to_str()) {
            Some("lib" | "main" | "build") | None => continue,
            Some("mod") => file.parent().and_then(Path::file_name).and_then(|name| name.to_str()),
            stem => stem,
        };
        let folder = |path: &Path| path.components().take(2).collect::<PathBuf>();
        // Cargo finds these by itself.
        let is_target = file.parent().is_some_and(|parent| {
            ["tests", "benches", "examples", "bin", "fuzz_targets"]
                .iter()
                .any(|target| parent.ends_with(target))
        });
        // The entry points of the fuzzer are modules of its targets and of tests, by their paths.
        let is_entry = file.starts_with("fuzz/entries");
        let Some(stem) = stem.filter(|_| !is_target && !is_entry) else { continue };
        let line = format!("mod {stem};");
        let own = folder(file);
        let named = sources
            .iter()
            .filter(|(other, _)| folder(other) == own)
            .any(|(_, text)| text.lines().any(|code| code.trim_end().ends_with(&line)));
        if !named {
            findings.push(Finding::error(format!("{}: no module includes it", file.display())));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(findings: &[Finding]) -> usize {
        findings.iter().filter(|finding| finding.is_error).count()
    }

    #[test]
    fn long_functions_and_files_are_found() {
        let body = "        x();\n".repeat(69);
        let long = format!(
            "impl A {{\n    pub const fn f() {{\n{body}    }}\n    fn g(&self) -> u8;\n}}\n"
        );
        assert_eq!(functions(&long), [("f", 2, 71)]);
        assert_eq!(errors(&check_lengths("a.rs", &long)), 1);
        let short = long.replacen("        x();\n", "", 1);
        assert_eq!(errors(&check_lengths("a.rs", &short)), 0);
        assert_eq!(errors(&check_lengths("a.rs", &"// x\n".repeat(801))), 1);
        let soft = check_lengths("a.rs", &"// x\n".repeat(401));
        assert_eq!((soft.len(), errors(&soft)), (1, 0));
    }

    #[test]
    fn stray_text_is_found() {
        let stray = format!("see {}/main\n", STRAY[0]);
        assert_eq!(check_stray("a.md", &stray).len(), 1);
        assert_eq!(check_stray("a.md", &format!("in {}/x.md", STRAY[1])).len(), 1);
        assert!(check_stray("a.md", "a/workload, /workspace and ../sharedness\n").is_empty());
    }

    #[test]
    fn dead_modules_are_found() {
        let source = |path: &str, text: &str| (PathBuf::from(path), text.to_string());
        let mut sources = vec![
            source("crates/a/src/lib.rs", "mod x;\npub mod y;\n"),
            source("crates/a/src/x.rs", ""),
            source("crates/a/src/y/mod.rs", ""),
            source("crates/a/tests/alone.rs", ""),
        ];
        assert!(check_dead(&sources).is_empty());
        sources.push(source("crates/b/src/x.rs", ""));
        assert_eq!(check_dead(&sources).len(), 1);
    }
}
