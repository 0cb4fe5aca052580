//! The commands that the documents print.

use crate::run;
use bristlecone_console::testing::documented;

/// The parser judges all arguments before it comes to `--help`.
#[test]
fn the_commands_of_the_documents_parse() {
    let commands = documented("cargo run --release -- ");
    assert!(commands.len() >= 5, "{commands:?}");
    for (document, mut arguments) in commands {
        arguments.push("--help".into());
        let done = run(&arguments, b"");
        assert_eq!(done.code, Some(0), "{document}: {arguments:?}: {}", done.complaint);
    }
}
