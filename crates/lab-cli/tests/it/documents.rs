//! The commands that the documents print.

use crate::run;
use bristlecone_console::testing::documented;

/// Files that a user makes or fetches before the command that reads them.
const FILES: [&str; 3] = ["words", "my-keys.txt", "mine.trace"];

/// The parser judges all arguments before it comes to `--help`.
#[test]
fn the_commands_of_the_documents_parse() {
    let mut commands = documented("cargo lab ");
    for (document, arguments) in documented("cargo run --release -p bristlecone-lab-cli") {
        let own = arguments.iter().position(|word| word == "--").unwrap();
        commands.push((document, arguments[own + 1..].to_vec()));
    }
    commands.retain(|(_, arguments)| !arguments.iter().any(|word| FILES.contains(&&word[..])));
    assert!(commands.len() >= 35, "{commands:?}");
    for (document, mut arguments) in commands {
        arguments.push("--help".into());
        let done = run(&arguments, b"");
        assert_eq!(done.code, Some(0), "{document}: {arguments:?}: {}", done.complaint);
    }
}
