//! The length of the documents.

use super::Finding;
use std::path::{Path, PathBuf};

/// Lines that the README may have.
const README_MAX: usize = 130;
/// Words that all documents together may have.
const WORDS_MAX: usize = 40_000;

/// The number of words of a document, by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Words {
    prose: usize,
    tables: usize,
    code: usize,
}

pub(super) fn check(root: &Path, files: &[PathBuf]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut all = Words::default();
    for file in files.iter().filter(|file| file.extension().is_some_and(|kind| kind == "md")) {
        let Ok(text) = std::fs::read_to_string(root.join(file)) else { continue };
        let lines = text.lines().count();
        if file == Path::new("README.md") && lines > README_MAX {
            let text = format!("README.md: {lines} lines; {README_MAX} at most");
            findings.push(Finding::error(text));
        }
        let words = words(&text);
        all.prose += words.prose;
        all.tables += words.tables;
        all.code += words.code;
    }
    findings.push(check_sum(all));
    findings
}

/// Returns the number of words of all documents, as an error if there are too many.
fn check_sum(all: Words) -> Finding {
    let Words { prose, tables, code } = all;
    let sum = prose + tables + code;
    let text = format!(
        "{sum} words in documents ({prose} in prose, {tables} in tables, {code} in code); \
         {WORDS_MAX} at most"
    );
    if sum > WORDS_MAX { Finding::error(text) } else { Finding::remark(text) }
}

/// Counts the words of a document: parts between spaces that have a letter or a digit.
fn words(text: &str) -> Words {
    let mut found = Words::default();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code ^= true;
            continue;
        }
        let is_word = |word: &&str| word.contains(|c: char| c.is_alphanumeric());
        let count = line.split_whitespace().filter(is_word).count();
        match (in_code, line.starts_with('|')) {
            (true, _) => found.code += count,
            (false, true) => found.tables += count,
            (false, false) => found.prose += count,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_words_than_allowed_are_an_error() {
        let sum = |prose| check_sum(Words { prose, ..Words::default() });
        assert!(!sum(WORDS_MAX).is_error);
        assert!(sum(WORDS_MAX + 1).is_error);
    }

    #[test]
    fn words_are_counted_where_they_stand() {
        let text = "# Two words\n\n| a | b |\n| --- | --- |\n\n```sh\ncargo test\n```\nOne - 2.\n";
        assert_eq!(words(text), Words { prose: 4, tables: 2, code: 2 });
    }
}
