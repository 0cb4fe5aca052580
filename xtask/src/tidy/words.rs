//! The width of lines, and the words that comments avoid.
//!
//! The counts have bounds above zero, because a good sentence may begin with such a word.

use super::Finding;
use std::path::{Path, PathBuf};

/// The columns of a line of comment, prose or configuration.
const WIDTH: usize = 100;
/// The columns of a row of a table.
const ROW_WIDTH: usize = 200;
/// The number of doc lines without a subject that the workspace may have.
const HEADLESS_MAX: usize = 30;
/// The number of doc comments of one to three words that the workspace may have.
const SHORT_MAX: usize = 200;

/// Words with which a doc line without a subject begins.
const HEADLESS: [&str; 8] =
    ["What", "Whether", "Its", "Their", "Those", "Which", "How", "The same"];
/// Words for persons, which threads and callers are not.
const PERSONS: [&str; 4] = ["whoever", "nobody", "anybody", "somebody"];

/// A flaw of a line of comment or prose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    Headless,
    Person,
    Short,
    Wide,
}

pub(super) fn check(root: &Path, files: &[PathBuf]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut counted =
        [(Flaw::Headless, HEADLESS_MAX, Vec::new()), (Flaw::Short, SHORT_MAX, Vec::new())];
    for file in files {
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        let name = file.display();
        let kind = file.extension().and_then(|kind| kind.to_str());
        let flaws = match kind {
            Some("rs") => flaws(&text),
            Some("md") => wide_prose(&text),
            Some("toml") => wide_lines(&text),
            _ => continue,
        };
        for (line, flaw) in flaws {
            let at = format!("{name}:{line}");
            match counted.iter_mut().find(|(counted, ..)| *counted == flaw) {
                Some((_, _, places)) => places.push(at),
                None => findings.push(Finding::error(format!("{at}: {}", what(flaw)))),
            }
        }
    }
    for (flaw, most, places) in counted {
        let text = format!("{} x {}; {most} at most", places.len(), what(flaw));
        if places.len() > most {
            let first = places.iter().take(20).cloned().collect::<Vec<_>>().join(", ");
            findings.push(Finding::error(format!("{text}: {first}")));
        } else {
            findings.push(Finding::remark(text));
        }
    }
    findings
}

fn what(flaw: Flaw) -> &'static str {
    match flaw {
        Flaw::Headless => "a doc line without a subject",
        Flaw::Person => "a thread or a caller is called a person",
        Flaw::Short => "a doc comment of one to three words",
        Flaw::Wide => "too wide",
    }
}

/// Returns the flaws of the comments of a source file, by line.
fn flaws(text: &str) -> Vec<(usize, Flaw)> {
    let mut found = Vec::new();
    let mut block: Vec<&str> = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let Some(comment) = code.strip_prefix("//") else { continue };
        let number = index + 1;
        if line.chars().count() > WIDTH && !line.contains("://") {
            found.push((number, Flaw::Wide));
        }
        let words = || comment.split(|c: char| !c.is_ascii_alphabetic());
        if words().any(|word| PERSONS.contains(&word.to_ascii_lowercase().as_str())) {
            found.push((number, Flaw::Person));
        }
        let Some(doc) = comment.strip_prefix(['/', '!']) else { continue };
        let doc = doc.trim();
        let begins = |head: &&str| {
            doc.strip_prefix(*head)
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
        };
        if HEADLESS.iter().any(begins) {
            found.push((number, Flaw::Headless));
        }
        block.extend(doc.split_whitespace());
        let goes_on = lines.get(index + 1).is_some_and(|next| is_doc(next));
        if !goes_on {
            if (1..=3).contains(&block.len()) {
                found.push((number, Flaw::Short));
            }
            block.clear();
        }
    }
    found
}

fn is_doc(line: &str) -> bool {
    let code = line.trim_start();
    code.starts_with("///") || code.starts_with("//!")
}

/// Returns the lines of Markdown that are too wide, except for code blocks and addresses.
fn wide_prose(text: &str) -> Vec<(usize, Flaw)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (number, line) in (1..).zip(text.lines()) {
        in_code ^= line.trim_start().starts_with("```");
        let most = if line.starts_with('|') { ROW_WIDTH } else { WIDTH };
        if !in_code && line.chars().count() > most && !line.contains("://") {
            found.push((number, Flaw::Wide));
        }
    }
    found
}

fn wide_lines(text: &str) -> Vec<(usize, Flaw)> {
    let wide = |line: &str| line.chars().count() > WIDTH && !line.contains("://");
    (1..).zip(text.lines()).filter(|(_, line)| wide(line)).map(|(n, _)| (n, Flaw::Wide)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flaws_of_comments_are_found() {
        let text = "/// What it is.\nstruct A;\n\n/// The pages.\nstruct B;\n// Nobody waits.\n";
        let found = [(1, Flaw::Headless), (1, Flaw::Short), (4, Flaw::Short), (6, Flaw::Person)];
        assert_eq!(flaws(text), found);
        assert!(flaws("/// Whatever the number of pages is.\nfn f() {}\n").is_empty());
        assert!(flaws("/// Returns the number\n/// of pages.\nfn f() {}\n").is_empty());
        let wide = format!("// {}\n", "x".repeat(98));
        assert_eq!(flaws(&wide), [(1, Flaw::Wide)]);
        assert!(flaws(&wide[1..]).is_empty(), "code is the formatter's");
    }

    #[test]
    fn wide_lines_of_prose_are_found() {
        let wide = "x".repeat(101);
        assert_eq!(wide_prose(&format!("{wide}\n```\n{wide}\n```\n| {wide} |\n")).len(), 1);
        assert!(wide_prose(&format!("https://{wide}\n")).is_empty());
        assert_eq!(wide_prose(&format!("|{wide}{wide}|\n")).len(), 1);
    }
}
