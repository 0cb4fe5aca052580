//! `designs`: the roster of designs with their origins, costs and features.

use crate::table::{self, table};
use anyhow::Context;
use bristlecone_console::exit::Answer;
use bristlecone_console::output::Output;
use bristlecone_fidelity::StatusCounts;
use bristlecone_trees::names;
use bristlecone_trees::spec::{Cost, Spec};
use serde::Serialize;
use std::io::Write;

/// List the designs: origin, mechanisms of the paper, node sizes, cost of each operation, features.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  bristlecone-lab designs --json")]
pub(crate) struct Args {}

/// A design as a JSON object.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    source: &'static str,
    kind: &'static str,
    mechanisms: Mechanisms,
    persistent: bool,
    node_bytes: usize,
    node_bytes_all: Vec<usize>,
    budget: Budget,
    features: &'static [&'static str],
}

/// The mechanisms of the paper by status, as the page of the design states them.
#[derive(Serialize)]
struct Mechanisms {
    as_described: usize,
    repaired: usize,
    departed: usize,
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

impl From<StatusCounts> for Mechanisms {
    fn from(counts: StatusCounts) -> Self {
        let StatusCounts { as_described, repaired, departed } = counts;
        Self { as_described, repaired, departed }
    }
}

impl Mechanisms {
    /// Returns the cells of the table: the counts, or dashes where the page has no mechanism.
    fn cells(&self) -> [String; 3] {
        let counts = [self.as_described, self.repaired, self.departed];
        if counts == [0; 3] {
            [(); 3].map(|()| "-".to_owned())
        } else {
            counts.map(|n| n.to_string())
        }
    }
}

impl Row {
    /// Returns the row of a design. `sizes` has one entry for each node size, the default first.
    fn new(sizes: &[Spec]) -> anyhow::Result<Self> {
        let spec = &sizes[0];
        let page = bristlecone_fidelity::of(spec.name).with_context(|| spec.name)?;
        let section = page.with_context(|| format!("docs/designs/{}.md", spec.name))?;
        let mut node_bytes_all: Vec<usize> = sizes.iter().map(|spec| spec.node_bytes).collect();
        node_bytes_all.sort_unstable();
        Ok(Self {
            name: spec.name,
            source: spec.source,
            kind: section.kind.name(),
            mechanisms: section.counts().into(),
            persistent: spec.persistent,
            node_bytes: spec.node_bytes,
            node_bytes_all,
            budget: Budget {
                insert: spec.budget.insert.into(),
                update: spec.budget.update.into(),
                remove: spec.budget.remove.into(),
            },
            features: spec.features,
        })
    }
}

/// Prints the roster.
pub(crate) fn run(_: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    let rows: anyhow::Result<Vec<Row>> =
        names::specs().iter().map(|sizes| Row::new(sizes)).collect();
    let rows = rows?;
    if output.json {
        for row in &rows {
            output.object(row)?;
        }
        return Ok(Answer::Yes);
    }
    let titles = [
        "design",
        "kind",
        "described",
        "repaired",
        "departed",
        "node B",
        "insert",
        "update",
        "remove",
        "features",
        "source",
    ];
    let mut roster = table(&titles, 2..9);
    for row in &rows {
        let cost = |cost: &Costs| {
            if row.persistent { format!("{}+{}", cost.lines, cost.fences) } else { "-".to_owned() }
        };
        let [described, repaired, departed] = row.mechanisms.cells();
        roster.add_row([
            row.name.to_owned(),
            row.kind.to_owned(),
            described,
            repaired,
            departed,
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
        "\nOf the mechanisms of its paper, a design has some as described, some repaired at a stated \
         price,\nand departs from the others; docs/designs has a page for each design that lists \
         them.\nA cost is lines flushed + fences of an operation that changes no structure."
    )?;
    output.flush()?;
    Ok(Answer::Yes)
}
