//! Plans as the text of a trace.

use crate::workload::operation::{Op, OpKind, Plan, Replayed, value_of};
use crate::workload::recipe::Recipe;
use std::io::{self, Write};

impl Recipe {
    /// Writes the records that this recipe loads, then the operations of `plans`, as a trace.
    /// `plans` are those of this recipe. The operations of the threads take turns.
    ///
    /// # Errors
    /// Writing to `out` failed.
    pub fn write_trace(&self, plans: &[Plan], out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "# {}, {} records, seed {}", self.workload.name(), self.records, self.seed)?;
        for index in 0..self.records {
            let (token, value) = self.record(index);
            writeln!(out, "load {} {value}", text(self, token))?;
        }
        let longest = plans.iter().map(Plan::ops).max().unwrap_or(0) as usize;
        for at in 0..longest {
            for plan in plans {
                write_op(self, plan, at, out)?;
            }
        }
        Ok(())
    }
}

/// Writes operation `at` of `plan`, if there is one.
fn write_op(recipe: &Recipe, plan: &Plan, at: usize, out: &mut impl Write) -> io::Result<()> {
    match plan {
        Plan::Each(ops) => ops.get(at).map_or(Ok(()), |op| operation(recipe, op, out)),
        Plan::Batches(tokens) => {
            tokens.get(at).map_or(Ok(()), |&token| writeln!(out, "get {}", text(recipe, token)))
        }
        Plan::Replay(steps) => steps.get(at).map_or(Ok(()), |step| replayed(recipe, *step, out)),
    }
}

fn operation(recipe: &Recipe, op: &Op, out: &mut impl Write) -> io::Result<()> {
    let key = text(recipe, op.token);
    let (first, next) = (value_of(op.token, 0), value_of(op.token, 1));
    match op.kind {
        OpKind::Get => writeln!(out, "get {key}"),
        OpKind::Insert => writeln!(out, "put {key} {first}"),
        OpKind::Update | OpKind::Upsert => writeln!(out, "put {key} {next}"),
        OpKind::ReadModifyWrite => writeln!(out, "get {key}\nput {key} {next}"),
        OpKind::Remove => writeln!(out, "del {key}"),
        OpKind::Scan => writeln!(out, "scan {key} {}", op.length),
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

/// Returns the key of `token` as a word, with `%` escapes.
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
