//! Plans as the text of a trace.

use crate::workload::operation::{Kind, Op, Plan, Replayed, value_of};
use crate::workload::recipe::Recipe;
use std::io::{self, Write};

/// Writes what `recipe` loads, then the operations of `plans`, those of the threads in turn.
pub(in crate::workload) fn write(
    recipe: &Recipe,
    plans: &[Plan],
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(
        out,
        "# {}, {} records, seed {}",
        recipe.workload.name(),
        recipe.records,
        recipe.seed
    )?;
    for index in 0..recipe.records {
        let (token, value) = recipe.record(index);
        writeln!(out, "load {} {value}", text(recipe, token))?;
    }
    let longest = plans.iter().map(Plan::ops).max().unwrap_or(0) as usize;
    for at in 0..longest {
        for plan in plans {
            match plan {
                Plan::Each(ops) => ops.get(at).map_or(Ok(()), |op| operation(recipe, op, out))?,
                Plan::Batches(tokens) => {
                    if let Some(&token) = tokens.get(at) {
                        writeln!(out, "get {}", text(recipe, token))?;
                    }
                }
                Plan::Replay(steps) => {
                    steps.get(at).map_or(Ok(()), |step| replayed(recipe, *step, out))?;
                }
            }
        }
    }
    Ok(())
}

fn operation(recipe: &Recipe, op: &Op, out: &mut impl Write) -> io::Result<()> {
    let key = text(recipe, op.token);
    let (first, next) = (value_of(op.token, 0), value_of(op.token, 1));
    match op.kind {
        Kind::Get => writeln!(out, "get {key}"),
        Kind::Insert => writeln!(out, "put {key} {first}"),
        Kind::Update | Kind::Upsert => writeln!(out, "put {key} {next}"),
        Kind::ReadModifyWrite => writeln!(out, "get {key}\nput {key} {next}"),
        Kind::Remove => writeln!(out, "del {key}"),
        Kind::Scan => writeln!(out, "scan {key} {}", op.length),
    }
}

fn replayed(recipe: &Recipe, step: Replayed, out: &mut impl Write) -> io::Result<()> {
    let key = text(recipe, step.token());
    match step {
        Replayed::Get { .. } => writeln!(out, "get {key}"),
        Replayed::Put { value, .. } => writeln!(out, "put {key} {value}"),
        Replayed::Delete { .. } => writeln!(out, "del {key}"),
        Replayed::Scan { length, .. } => writeln!(out, "scan {key} {length}"),
    }
}

/// The key of `token` as a word.
fn text(recipe: &Recipe, token: u64) -> String {
    use core::fmt::Write;
    recipe.keys().with_printed(token, |bytes| {
        let mut word = String::with_capacity(bytes.len());
        for &byte in bytes {
            match byte {
                b'!'..=b'~' if byte != b'%' => word.push(char::from(byte)),
                _ => write!(word, "%{byte:02X}").expect("a string takes whatever is written"),
            }
        }
        word
    })
}
