//! `designs`: the roster of designs with their costs and features.

use crate::table::{self, table};
use bristlecone_console::exit::Answer;
use bristlecone_console::output::Output;
use bristlecone_trees::names;
use bristlecone_trees::spec::{Cost, Spec};
use serde::Serialize;
use std::io::Write;

/// List the designs: source, node sizes, cost of each operation, features.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bristlecone-lab designs --json")]
pub(crate) struct Args {}

/// A design as a JSON object.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    source: &'static str,
    persistent: bool,
    node_bytes: usize,
    node_bytes_all: Vec<usize>,
    budget: Budget,
    features: &'static [&'static str],
}

/// The costs of operations that change no structure.
#[derive(Serialize)]
struct Budget {
    insert: Costs,
    update: Costs,
    remove: Costs,
}

#[derive(Serialize)]
struct Costs {
    lines: u32,
    fences: u32,
}

impl From<Cost> for Costs {
    fn from(cost: Cost) -> Self {
        Self { lines: cost.lines, fences: cost.fences }
    }
}

impl Row {
    /// Returns the row of a design. `sizes` has one entry for each node size, the default first.
    fn new(sizes: &[Spec]) -> Self {
        let spec = &sizes[0];
        let mut node_bytes_all: Vec<usize> = sizes.iter().map(|spec| spec.node_bytes).collect();
        node_bytes_all.sort_unstable();
        Self {
            name: spec.name,
            source: spec.source,
            persistent: spec.persistent,
            node_bytes: spec.node_bytes,
            node_bytes_all,
            budget: Budget {
                insert: spec.budget.insert.into(),
                update: spec.budget.update.into(),
                remove: spec.budget.remove.into(),
            },
            features: spec.features,
        }
    }
}

/// Prints the roster.
pub(crate) fn run(_: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let rows: Vec<Row> = names::specs().iter().map(|sizes| Row::new(sizes)).collect();
    if output.json {
        for row in &rows {
            output.object(row)?;
        }
        return Ok(Answer::Yes);
    }
    let titles = ["design", "node B", "insert", "update", "remove", "features", "source"];
    let mut roster = table(&titles, 1..5);
    for row in &rows {
        let cost = |cost: &Costs| {
            if row.persistent { format!("{}+{}", cost.lines, cost.fences) } else { "-".to_owned() }
        };
        roster.add_row([
            row.name.to_owned(),
            row.node_bytes.to_string(),
            cost(&row.budget.insert),
            cost(&row.budget.update),
            cost(&row.budget.remove),
            row.features.join(", "),
            row.source.to_owned(),
        ]);
    }
    table::print(&roster, output)?;
    writeln!(
        output,
        "\nA cost is lines flushed + fences of an operation that changes no structure."
    )?;
    output.flush()?;
    Ok(Answer::Yes)
}
