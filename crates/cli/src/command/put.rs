//! `put`: sets a key to a value.

use crate::json;
use crate::session;
use bristlecone_console::exit::Answer;
use bristlecone_console::output::Output;
use serde_json::Map;
use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;

/// Set a key to a value. The write is durable when the command returns.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone put trees.pool sequoia '3266 years'
  bristlecone put trees.pool photo < photo.jpeg")]
pub(crate) struct Args {
    /// The store.
    pool: PathBuf,
    /// The key.
    key: OsString,
    /// The value [default: all of standard input].
    value: Option<OsString>,
    #[command(flatten)]
    open: session::OpenArgs,
}

/// Puts the pair.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let mut piped = Vec::new();
    let value = if let Some(value) = &args.value {
        session::bytes(value)
    } else {
        // The store refuses a value of one byte more than it takes: the rest need not be read.
        let most = bristlecone::VALUE_BYTES_MAX as u64 + 1;
        std::io::stdin().lock().take(most).read_to_end(&mut piped)?;
        &piped
    };
    let key = session::bytes(&args.key);
    session::with(&args.open.options(), &args.pool, |store| Ok(store.put(key, value)?))?;
    if output.json {
        let mut object = Map::new();
        json::put(&mut object, "key", key);
        object.insert("value_bytes".into(), value.len().into());
        output.object(&object)?;
    }
    Ok(Answer::Yes)
}
