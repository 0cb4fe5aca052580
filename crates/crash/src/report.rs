//! What the explorer tells: outcomes, and the trace of a violation.
//!
//! A trace is written in the notation of persist orders: `W` a store, `C` the store that decides,
//! `R` a relaxed hint, `N` a fill, `F` a flush of lines, `|` a fence. Where there are several threads, each line begins with the thread's number. A store that the crash image
//! lacks is marked `LOST`; where several images end in the same violation, the one with the fewest
//! losses is shown.

use crate::program::{Mode, Program};
use crate::refiner::Lost;
use crate::tape::{Event, Sites, StoreRole, Tape};
use core::fmt::{self, Write as _};
use std::collections::BTreeSet;

/// A crash image whose recovery is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What is wrong.
    pub what: String,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
    /// What was stored, flushed and fenced up to the crash, a line each, with what was lost.
    pub trace: String,
    /// Words lost, and the time of the crash: less is simpler.
    pub(crate) rank: (u32, u32),
}

impl Violation {
    /// Words stored that the crash image lacks.
    pub fn lost_words(&self) -> u32 {
        self.rank.0
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.what)?;
        writeln!(f, "  expected: {}", self.expected)?;
        writeln!(f, "  found:    {}", self.found)?;
        f.write_str(&self.trace)
    }
}

/// What the exploration of one scenario in one mode came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The design; `pool` for the pool by itself.
    pub design: String,
    /// The scenario: the kind of keys, then what is done.
    pub scenario: String,
    /// The mode.
    pub mode: Mode,
    /// Crashes one after the other: 1 for the operations, more for recoveries. A third crash is
    /// sampled: its images are those tried.
    pub depth: u32,
    /// Crash images that are reachable, all of them covered unless `incomplete`; saturating.
    pub images: u128,
    /// Recoveries that were run to cover them.
    pub recoveries: u64,
    /// Whether the budget ended first. Such an outcome is no pass.
    pub incomplete: bool,
    /// What was wrong, each kind once with its least trace.
    pub violations: Vec<Violation>,
    /// How many flushes and fences the operations under test made.
    pub sites: Sites,
    /// Threads of the program under test.
    pub threads: usize,
    /// Schedules that were played of it.
    pub schedules: u64,
}

/// Writes down what led to a crash image.
pub(crate) fn trace(
    tape: &Tape,
    program: &Program,
    operation: &dyn Fn(u32) -> String,
    crash: u32,
    lost: &Lost,
) -> String {
    let mut missing = BTreeSet::new();
    for &(item, words) in lost {
        let item = &program.items[item as usize];
        let first = item.unit * program.unit_words as u32;
        let places = (0..8).filter(|place| words & (1 << place) != 0);
        missing.extend(places.map(|place| (item.time, first + place)));
    }
    let mut text = String::new();
    for (time, entry) in (0..).zip(&tape.entries) {
        let is_setup = time < tape.begin;
        let is_lost = missing.range((time, 0)..=(time, u32::MAX)).next().is_some();
        if time > crash || (is_setup && !is_lost) {
            continue;
        }
        let lost = missing.range((time, 0)..=(time, u32::MAX)).map(|&(_, word)| word);
        if entry.thread > 0 {
            let _ = write!(text, "{}", entry.thread);
        }
        line(&mut text, operation, &entry.event, &lost.collect::<Vec<_>>(), is_setup);
    }
    text.push_str("  crash\n");
    text
}

fn line(
    text: &mut String,
    name: &dyn Fn(u32) -> String,
    event: &Event,
    lost: &[u32],
    is_setup: bool,
) {
    let start = text.len();
    let at = |word: u32| u64::from(word) * 8;
    let written = match event {
        Event::Store { word, old, new, role } => {
            let letter = match role {
                StoreRole::Data => 'W',
                StoreRole::Commit => 'C',
                StoreRole::Transient => 'R',
            };
            write!(text, "    {letter} {:#x}  {old:#x} -> {new:#x}", at(*word))
        }
        Event::Fill { first, new } => {
            write!(text, "    N {:#x}  {} words", at(*first), new.len())
        }
        Event::Flush { first, lines: 1 } => write!(text, "    F {:#x}", at(*first * 8)),
        Event::Flush { first, lines } => {
            write!(text, "    F {:#x}  {lines} lines", at(*first * 8))
        }
        Event::Fence => write!(text, "    |"),
        Event::Grow { bytes } => write!(text, "    grow to {bytes:#x} B"),
        Event::Invoke { operation } => {
            write!(text, "  begin {}", name(*operation))
        }
        Event::Return { operation } => {
            write!(text, "  acknowledge {}", name(*operation))
        }
    };
    debug_assert!(written.is_ok(), "a string takes all that is written to it");
    if !lost.is_empty() {
        let width = 44_usize.saturating_sub(text.len() - start);
        let _ = write!(text, "{:width$}LOST", " ");
        if let Event::Fill { new, .. } = event {
            let _ = write!(
                text,
                " {} of {} words, the first at {:#x}",
                lost.len(),
                new.len(),
                at(lost[0])
            );
        }
        if is_setup {
            text.push_str(" (before the operation, never made durable)");
        }
    }
    text.push('\n');
}
