//! The result of the demonstration, as text or as JSON.

use super::job::DemoResult;
use super::speed::Speed;
use bristlecone::Domain;
use bristlecone_console::output::{Align, Fields, Output, grouped, whole};
use std::io::{self, Write};

/// The result of the demonstration.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) outcome: DemoResult,
    pub(super) speed: Speed,
    /// The number by the store's budget, without splits.
    pub(super) lines_per_insert: f64,
    /// The number by the store's budget, without splits.
    pub(super) fences_per_insert: f64,
    pub(super) seconds: f64,
    pub(super) seed: u64,
    pub(super) threads: u64,
}

impl Report {
    /// Prints the report as one JSON object.
    pub(super) fn print_json(&self, output: &mut Output) -> io::Result<()> {
        let Self { outcome, speed, .. } = self;
        output.object(&Fields(&[
            ("keys", outcome.keys.into()),
            ("acknowledged", outcome.acknowledged.into()),
            ("kills", outcome.kills.into()),
            ("lost", outcome.verdict.lost.into()),
            ("ops_per_second", speed.puts.into()),
            ("lines_per_insert", self.lines_per_insert.into()),
            ("fences_per_insert", self.fences_per_insert.into()),
            ("reopen_ms_p99", outcome.reopen_ms_p99.into()),
            ("wrong", outcome.verdict.wrong.into()),
            ("gets_per_second", speed.gets.into()),
            ("seconds", self.seconds.into()),
            ("seed", self.seed.into()),
            ("domain", outcome.domain.name().into()),
        ]))
    }

    /// Prints the report as text.
    pub(super) fn print(&self, output: &mut Output) -> io::Result<()> {
        let Self { outcome, speed, seconds, seed, threads, .. } = self;
        let pairs = [
            ("keys (English words)", grouped(outcome.keys)),
            ("kills (SIGKILL while loading)", grouped(outcome.kills)),
            ("acknowledged writes", grouped(outcome.acknowledged)),
            ("lost writes", grouped(outcome.verdict.lost)),
            ("wrong pairs", grouped(outcome.verdict.wrong)),
            ("reopen after a kill, p99", format!("{:.1} ms", outcome.reopen_ms_p99)),
            ("inserts a second", grouped(whole(speed.puts))),
            ("gets a second", grouped(whole(speed.gets))),
            ("lines flushed an insert", format!("{:.2}", self.lines_per_insert)),
            ("fences an insert", format!("{:.2}", self.fences_per_insert)),
        ];
        output.pairs(&pairs, Align::Right)?;
        let domain = outcome.domain;
        writeln!(output, "\n{seconds:.1} s, {threads} threads, seed {seed}, domain {domain}.")?;
        let survives = &outcome.survives;
        writeln!(output, "In this domain an acknowledged write survives {survives}.")?;
        if !domain.covers(Domain::Adr) {
            writeln!(
                output,
                "Lines and fences are the budget of an insert on persistent memory, without splits."
            )?;
        }
        output.flush()
    }
}
