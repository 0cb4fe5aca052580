//! `torture`: several threads load a store, the process is killed, and all of the store is compared
//! with what was acknowledged; thousands of times.
//!
//! 1. The steps of a thread follow from the seed, and each thread has keys of its own. So the
//!    parent process knows every step without a message.
//! 2. A thread begins a step after it has acknowledged the one before. So at a kill at most one
//!    step of each thread is open: it may have taken effect or not.
//! 3. An acknowledgement is one word in a pipe, written after the operation has returned. The
//!    parent still reads what is in the pipe when the child dies.

mod args;
mod child;
mod image;
mod journal_cut;
mod judge;
mod ledger;
mod parent;
mod power_cut;
mod prefix;
mod steps;
mod tally;

pub(crate) use args::Args;

use crate::session::Promise;
use anyhow::Context;
use bristlecone_console::exit::{Answer, UsageError};
use bristlecone_console::leftovers::Folder;
use bristlecone_console::output::Output;

/// Kills and verifies; with `--victim` or `--judge`, runs as one of the child processes.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    if let (Some(cycle), Some(pool), Some(seed)) = (args.victim, &args.pool, args.seed) {
        let keys = args.keys.max(args.threads);
        let load = steps::Load { seed, cycle, keys, threads: args.threads };
        child::run(pool, load, args.durability, args.snapshot.as_deref(), args.steps)?;
        return Ok(Answer::Yes);
    }
    if let (Some(state), Some(pool)) = (&args.judge, &args.pool) {
        if args.prefix {
            judge::run_prefix(pool, state, args.durability)?;
        } else {
            judge::run(pool, state, &args::options(args.durability).open_torn(args.open_torn))?;
        }
        return Ok(Answer::Yes);
    }
    let folder = Folder::create("torture", args.folder.as_deref());
    let folder = folder.context("make a temporary folder")?;
    match (args.power_cut, args.durability) {
        (Some(images), Promise::Process) => power_cut::run(args, images, folder.path(), output),
        (Some(_), _) if args.open_torn => {
            let reason = "no image of a store with a journal may be torn";
            Err(UsageError(format!("--open-torn needs --durability process: {reason}")).into())
        }
        (Some(images), promise) => journal_cut::run(args, images, promise, folder.path(), output),
        (None, _) => parent::run(args, folder.path(), output),
    }
}
