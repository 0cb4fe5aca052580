//! Tries every published defect of the catalogue and prints a row each, as `docs/results` has it.
//!
//! ```text
//! cargo run --release -p bristlecone-crash --example catalogue
//! ```

#![expect(clippy::print_stdout, reason = "it is what this program is for")]

use bristlecone_crash::{Request, run_catalogue};
use std::process::ExitCode;

fn main() -> ExitCode {
    let (mut total, mut caught) = (0, 0);
    let outcome = run_catalogue(&[], &Request::default(), &mut |result| {
        let about = result.defect.about();
        let outcome = &result.outcome;
        let how = result.caught().map_or("not caught", |violation| violation.what.as_str());
        total += 1;
        caught += u32::from(result.caught().is_some());
        println!(
            "| {}: {} | {} | `{}` | `{}` {}, depth {}: {how} | {} |",
            about.name,
            about.what,
            about.published,
            about.design,
            outcome.scenario,
            outcome.mode().name(),
            outcome.depth(),
            outcome.recoveries(),
        );
    });
    if let Err(error) = outcome {
        eprintln!("{error}");
        return ExitCode::from(2);
    }
    println!("{caught} of {total} caught");
    ExitCode::from(u8::from(caught < total))
}
