//! `del`: deletes a key.

use crate::json;
use crate::session;
use bristlecone_console::exit::Answer;
use bristlecone_console::output::Output;
use serde_json::Map;
use std::ffi::OsString;
use std::path::PathBuf;

/// Delete a key. The exit code is 1 if the key is absent.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bristlecone del trees.pool sequoia")]
pub(crate) struct Args {
    /// The store.
    pool: PathBuf,
    /// The key.
    key: OsString,
    #[command(flatten)]
    open: session::OpenArgs,
}

/// Deletes the key.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let key = session::bytes(&args.key);
    let deleted = session::with(&args.open.options(), &args.pool, |store| Ok(store.delete(key)?))?;
    if output.json {
        let mut object = Map::new();
        json::put(&mut object, "key", key);
        object.insert("deleted".into(), deleted.into());
        output.object(&object)?;
    }
    Ok(Answer::from_bool(deleted))
}
