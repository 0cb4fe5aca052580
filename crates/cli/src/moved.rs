//! Commands that this command had once and that `bristlecone-lab` has now.

use std::ffi::OsString;

/// The names of the commands that `bristlecone-lab` has.
const MOVED: [&str; 5] = ["designs", "bench", "reproduce", "advise", "crash"];

/// Returns the line that answers `arguments` if they name a command of `bristlecone-lab`, whatever
/// follows the name. Arguments are those of the command line without the program.
pub(crate) fn answer(arguments: impl Iterator<Item = OsString>) -> Option<String> {
    let is_option = |word: &OsString| word.as_encoded_bytes().starts_with(b"-");
    let mut words = arguments.filter(|word| !is_option(word)).skip_while(|word| word == "help");
    let word = words.next()?;
    let name = MOVED.into_iter().find(|name| word == *name)?;
    Some(format!(
        "{name} is a command of bristlecone-lab: `cargo lab {name} ..` in a checkout, or \
         `bristlecone-lab {name} ..`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_command_word_counts() {
        let answer = |line: &str| answer(line.split(' ').map(OsString::from));
        for line in ["bench", "--json bench --design all", "crash --help", "help designs"] {
            assert!(answer(line).unwrap().contains("cargo lab"), "{line}");
        }
        for line in ["", "--help", "demo", "put trees.pool bench 1", "benchmark"] {
            assert_eq!(answer(line), None, "{line}");
        }
    }
}
