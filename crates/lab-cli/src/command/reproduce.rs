//! `reproduce`: measures the claims of the papers again.

use crate::command::page_file::PageFile;
use crate::table::{self, table};
use anyhow::Context as _;
use bristlecone_console::exit::{Answer, UsageError};
use bristlecone_console::output::Output;
use bristlecone_console::progress::Spinner;
use bristlecone_console::values;
use bristlecone_report::figure::Chart;
use bristlecone_report::page::picture;
use bristlecone_reproduce::claims::{self, Claim};
use bristlecone_reproduce::verdict::{SPREAD_MAX, Tally, Verdict, VerdictRow};
use bristlecone_reproduce::workbench::{RunScale, Workbench};
use bristlecone_reproduce::{devices, pages, papers};
use serde::Serialize;
use std::cell::Cell;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Measure the claims of the papers again, and compare: the paper's number, ours, agreement.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  bristlecone-lab reproduce --quick --report out/
  bristlecone-lab reproduce ccl-formula wo-flush-insert
  bristlecone-lab reproduce --json > claims.jsonl

Claims about node sizes, buffers and logs need a build with all node sizes: `cargo lab` makes and
runs one. Without CLAIM the command measures all claims and runs every design on every modelled
device: about 10 minutes with --quick on two idle processors, an hour or two without; longer beside
other work.
Counts are the same on every machine. Times are ratios of paired repetitions within one run.
Claims about devices are measured on models of them. Each number of the papers is a row, with a
status: as described, scaled, substituted, not run. Verdicts: `yes` if a row that is as described
meets the rule, `weak` if a scaled one does at its size, else `no`. With --quick there are too few
repetitions for a timed number to agree. The report has the rule.")]
pub(crate) struct Args {
    /// Names of claims [default: all].
    claim: Vec<String>,
    /// Use about a fifth of the records and operations.
    #[arg(long)]
    quick: bool,
    /// Folder for the report: an HTML page with all figures, the main ones as SVG files, and the
    /// numbers in JSON.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Seed of the keys and of the order of operations.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Most records of a timed or counted run [default: by --quick].
    #[arg(long, value_name = "N", value_parser = values::count)]
    ops_max: Option<u64>,
    /// Number of records of a modelled run [default: by --quick].
    #[arg(long, value_name = "N", value_parser = values::count)]
    modelled: Option<u64>,
}

impl Args {
    fn scale(&self) -> anyhow::Result<RunScale> {
        /// With fewer records the trees have too few levels for the papers' effects, and the
        /// modelled cache, of one byte for each record, has no set.
        const LEAST: u64 = 1024;
        let mut scale = if self.quick { RunScale::QUICK } else { RunScale::FULL };
        if self.ops_max.unwrap_or(LEAST).min(self.modelled.unwrap_or(LEAST)) < LEAST {
            return Err(UsageError(format!("--ops-max and --modelled are at least {LEAST}")).into());
        }
        scale.ops_max = self.ops_max.unwrap_or(scale.ops_max);
        scale.served_max = self.ops_max.unwrap_or(scale.served_max);
        if let Some(records) = self.modelled {
            scale.modelled_ops = scale.modelled_ops * records / scale.modelled_records;
            scale.modelled_records = records;
        }
        Ok(scale)
    }

    /// Returns the claims that the command line names, or all.
    fn claims(&self) -> anyhow::Result<Vec<Claim>> {
        let all = claims::all();
        let unknown = self.claim.iter().find(|name| !all.iter().any(|claim| claim.id == **name));
        if let Some(name) = unknown {
            let known: Vec<_> = all.iter().map(|claim| claim.id.as_str()).collect();
            let known = known.join(", ");
            return Err(
                UsageError(format!("unknown claim {name:?}; expected one of: {known}")).into()
            );
        }
        let is_asked = |claim: &Claim| self.claim.is_empty() || self.claim.contains(&claim.id);
        Ok(all.into_iter().filter(is_asked).collect())
    }
}

/// The name of the report's file with the numbers.
const ROWS: &str = "claims.jsonl";

/// Measures the claims and writes the report.
pub(crate) fn run(args: &Args, output: &mut Output) -> anyhow::Result<Answer> {
    if args.claim.is_empty() && !cfg!(feature = "all-sizes") {
        let what = "not all claims can be measured: this build lacks node sizes; `cargo lab` \
                    builds and runs `bristlecone-lab` with all of them";
        return Err(UsageError(what.into()).into());
    }
    let claims = args.claims()?;
    // Before the measurements, so that a folder which cannot be written costs no run.
    let file = args.report.as_deref().map(PageFile::open).transpose()?;
    let spinner = Spinner::new();
    let done = Cell::new(None);
    let watch = |what: &str| match done.get() {
        Some((number, total)) => spinner.say(&format!("{number} of {total}: {what}")),
        None => spinner.say(what),
    };
    let mut bench = Workbench::new(args.scale()?, args.seed, &watch);
    let is_all = args.claim.is_empty();
    // Many claims use the models.
    let entries = if is_all { devices::compare(&mut bench)? } else { Vec::new() };
    if let Some(folder) = &args.report {
        write(folder, "devices.jsonl", &lines(&entries)?)?;
    }
    let mut verdicts = Vec::new();
    let total = claims.len();
    for claim in claims {
        done.set(Some((verdicts.len() + 1, total)));
        let found = papers::measure(&mut bench, &claim)?;
        let verdict = Verdict::new(claim, found);
        if output.json {
            verdict.rows.iter().try_for_each(|row| output.object(row))?;
        }
        let number = verdicts.len() + 1;
        spinner.note(&format!("{number} of {total}, {}: {}", verdict.claim.id, verdict.sentence()));
        if let Some(warning) = verdict.warning() {
            spinner.note(&format!("warning: {warning}"));
        }
        verdicts.push(verdict);
        if let Some(folder) = &args.report {
            // After each claim, so that a run that is ended early leaves what it has measured.
            write(folder, ROWS, &lines(rows(&verdicts))?)?;
        }
    }
    let page = match &args.report {
        Some(_) => Some(pages::page(&mut bench, &verdicts, &entries, [machine(), today()])?),
        None => None,
    };
    drop(bench);
    spinner.end();
    if !output.json {
        print(&verdicts, output)?;
    }
    if let Some(((folder, page), file)) = args.report.as_ref().zip(page).zip(file) {
        let path = file.write(&page.html())?;
        let claims = Chart::from(pages::by_paper(&verdicts));
        write(folder, "claims.svg", &picture(&claims))?;
        for workload in devices::WORKLOADS.iter().filter(|_| is_all) {
            let chart = Chart::from(devices::heat(&entries, workload));
            write(folder, &format!("devices-{}.svg", workload.name()), &picture(&chart))?;
        }
        if !output.json {
            writeln!(output, "report: {}", path.display())?;
        }
    }
    Ok(Answer::Yes)
}

fn rows(verdicts: &[Verdict]) -> impl Iterator<Item = &VerdictRow> {
    verdicts.iter().flat_map(|verdict| &verdict.rows)
}

/// Returns the objects in JSON, one a line.
fn lines<T: Serialize>(objects: impl IntoIterator<Item = T>) -> serde_json::Result<String> {
    objects.into_iter().map(|object| Ok(serde_json::to_string(&object)? + "\n")).collect()
}

/// Writes a file of the report and returns its path.
fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    let path = folder.join(name);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, text))
        .with_context(|| format!("{}", path.display()))?;
    Ok(path)
}

fn print(verdicts: &[Verdict], output: &mut Output) -> anyhow::Result<()> {
    let titles = [
        "claim",
        "system",
        "compared with",
        "case",
        "status",
        "paper",
        "measured",
        "95 % interval",
        "agrees",
        "note",
    ];
    let mut shown = table(&titles, 5..8);
    for row in rows(verdicts) {
        let VerdictRow { claim, system, baseline, case, measured, agreement, note, .. } = row;
        let ends = row.low.zip(row.high).filter(|_| row.repetitions > 1);
        shown.add_row([
            claim.clone(),
            system.clone(),
            baseline.clone(),
            case.clone(),
            row.status.name().to_owned(),
            pages::published(row),
            measured.map_or("-".into(), |measured| format!("{measured:.3}")),
            ends.map_or(String::new(), |(low, high)| format!("{low:.3} to {high:.3}")),
            agreement.name().to_owned(),
            note.clone(),
        ]);
    }
    table::print(&shown, output)?;
    writeln!(output, "{}", Tally::of(rows(verdicts)).sentence())?;
    let unsteady = verdicts.iter().filter(|verdict| verdict.warning().is_some()).count();
    if unsteady > 0 {
        writeln!(
            output,
            "warning: in {unsteady} claims repetitions of the same run differ by more than {:.0} %",
            SPREAD_MAX * 100.0
        )?;
    }
    Ok(())
}

/// Returns the processors of this machine: number, model, architecture.
fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    format!("{cpus} x {model}, {}", std::env::consts::ARCH)
}

/// Returns the date in UTC.
fn today() -> String {
    const SECONDS_OF_DAY: u64 = 86_400;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let (year, month, day) = civil(now / SECONDS_OF_DAY);
    format!("{year}-{month:02}-{day:02}")
}

/// Returns year, month and day, `days` days after 1970-01-01.
fn civil(days: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in months {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_453), (2025, 12, 31));
    }
}
