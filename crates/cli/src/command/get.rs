//! `get`: prints the value of a key.

use crate::json;
use crate::session;
use bristlecone_console::exit::Answer;
use bristlecone_console::output::Output;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;

/// Print the value of a key, byte for byte. The exit code is 1 if the key is absent.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bristlecone get trees.pool sequoia")]
pub(crate) struct Args {
    /// The store.
    pool: PathBuf,
    /// The key.
    key: OsString,
    #[command(flatten)]
    open: session::OpenArgs,
}

/// Gets and prints the value.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let key = session::bytes(&args.key);
    let value = session::with(&args.open.options(), &args.pool, |store| Ok(store.get(key)?))?;
    if output.json {
        let mut object = Map::new();
        json::put(&mut object, "key", key);
        match &value {
            Some(value) => json::put(&mut object, "value", value),
            None => drop(object.insert("value".into(), Value::Null)),
        }
        output.object(&object)?;
    } else if let Some(value) = &value {
        output.write_all(value)?;
        if std::io::stdout().is_terminal() {
            output.write_all(b"\n")?;
        }
        output.flush()?;
    }
    Ok(Answer::from_bool(value.is_some()))
}
