//! The trace of a violation as a text.
//!
//! The notation is that of persist orders: `W` a store, `C` a commit store, `R` a store to a latch
//! or a version, `N` a fill, `F` a flush of lines, `|` a fence. With several threads, each line
//! begins with the thread's number. A store that the crash image lacks is marked `LOST`. Of several
//! images with the same violation, the one with the fewest losses is shown.

use crate::medium::lazy_image::LostWords;
use crate::model::history::{SUPERBLOCK_BYTES, StoreHistory};
use crate::trace::{Awaited, Event, StoreRole, Trace, TraceEntry};
use bristlecone_pmem::line::LINE_WORDS;
use core::fmt::Write as _;
use std::collections::BTreeSet;

/// The number of older stores of the setup that a trace shows.
const OLDER_MAX: usize = 12;
/// The number of stores to a superblock after the crash that a trace of a growth shows.
const SUPERBLOCK_STORES_MAX: usize = 8;

/// A crash image: the time of its newest store, the time at which it is ruled out, and the words
/// that it lacks.
#[derive(Clone, Copy)]
pub(crate) struct CrashImage<'a> {
    pub(crate) crash: u32,
    pub(crate) until: u32,
    pub(crate) lost: &'a LostWords,
}

/// Returns the events that led to a crash image, one a line: of the setup, the last stores to lines
/// that the image lacks words of; then the operations under test. Accesses to the superblocks are
/// left out unless the image lacks one, or the pool has grown. After the crash come the
/// acknowledgements that the image contradicts: those up to the time at which it is ruled out. If
/// the pool has grown, the next stores to a superblock come there, too: they name the new length.
pub(crate) fn trace_text(
    trace: &Trace,
    history: &StoreHistory,
    operation: &dyn Fn(u32) -> String,
    image: CrashImage<'_>,
) -> String {
    let CrashImage { crash, until, lost } = image;
    let mut missing = BTreeSet::new();
    for &(item, words) in lost {
        let item = &history.items[item as usize];
        let first = item.unit * history.unit_words as u32;
        let places = (0..8).filter(|place| words & (1 << place) != 0);
        missing.extend(places.map(|place| (item.time, first + place)));
    }
    let is_in_superblock = |word: u32| u64::from(word) * 8 < SUPERBLOCK_BYTES;
    let tested = (0..).zip(&trace.entries).skip(trace.begin as usize);
    let mut until_crash = tested.take_while(|&(time, _)| time <= crash);
    let has_grown = until_crash.any(|(_, entry)| matches!(entry.event, Event::Grow { .. }));
    let shows_superblocks = has_grown || missing.iter().any(|&(_, word)| is_in_superblock(word));
    let lines: BTreeSet<_> = missing.iter().map(|&(_, word)| word / LINE_WORDS as u32).collect();
    let older = (0..trace.begin).zip(&trace.entries).rev();
    let older = older.filter(|(_, entry)| {
        let words = entry.event.stored().unwrap_or(0..0);
        let mut of_lines = words.map(|word| word / LINE_WORDS as u32);
        of_lines.any(|line| lines.contains(&line))
    });
    let older: BTreeSet<_> = older.take(OLDER_MAX).map(|(time, _)| time).collect();
    let mut text = String::new();
    for (time, entry) in (0..).zip(&trace.entries) {
        let is_setup = time < trace.begin;
        let is_lost = missing.range((time, 0)..=(time, u32::MAX)).next().is_some();
        if time > crash || (is_setup && !is_lost && !older.contains(&time)) {
            continue;
        }
        let first = match &entry.event {
            Event::Store { word, .. } => Some(*word),
            Event::Fill { first, .. } => Some(*first),
            Event::Flush { first, .. } => Some(first * LINE_WORDS as u32),
            _ => None,
        };
        if !shows_superblocks && first.is_some_and(is_in_superblock)
            || !history.has_journal && entry.event.is_of_journal()
        {
            continue;
        }
        let lost = missing.range((time, 0)..=(time, u32::MAX)).map(|&(_, word)| word);
        if entry.thread > 0 {
            let _ = write!(text, "{}", entry.thread);
        }
        line(&mut text, operation, &entry.event, &lost.collect::<Vec<_>>(), is_setup);
    }
    text.push_str("  crash\n");
    let later = trace.entries.iter().enumerate().skip((crash as usize).saturating_add(1));
    for (_, entry) in later.take_while(|&(time, _)| (time as u32) < until) {
        if let Event::Return { operation: number } = &entry.event {
            let _ = writeln!(text, "  the image is still possible after");
            let _ = writeln!(text, "  acknowledge {}", operation(*number));
        }
    }
    if has_grown {
        superblock_stores_after(&mut text, trace, operation, crash);
    }
    text
}

/// Adds the first stores to the superblocks that come after the crash, one a line.
fn superblock_stores_after(
    text: &mut String,
    trace: &Trace,
    operation: &dyn Fn(u32) -> String,
    crash: u32,
) {
    let later = trace.entries.iter().skip((crash as usize).saturating_add(1));
    let is_stored = |entry: &&TraceEntry| {
        let words = entry.event.stored();
        words.is_some_and(|words| u64::from(words.start) * 8 < SUPERBLOCK_BYTES)
    };
    let stores: Vec<_> = later.filter(is_stored).take(SUPERBLOCK_STORES_MAX).collect();
    if !stores.is_empty() {
        text.push_str("  stored to the superblocks only later:\n");
    }
    for entry in stores {
        if entry.thread > 0 {
            let _ = write!(text, "{}", entry.thread);
        }
        line(text, operation, &entry.event, &[], false);
    }
}

/// Returns the events of the last operation that was invoked, one a line, for a failure without a
/// crash.
pub(crate) fn failure_text(trace: &Trace, operation: &dyn Fn(u32) -> String) -> String {
    let tested = &trace.entries[(trace.begin as usize).min(trace.entries.len())..];
    let is_invoked = |entry: &TraceEntry| matches!(entry.event, Event::Invoke { .. });
    let last = tested.iter().rposition(is_invoked).unwrap_or(0);
    let mut text = String::new();
    for entry in tested[last..].iter().filter(|entry| !entry.event.is_of_journal()) {
        line(&mut text, operation, &entry.event, &[], false);
    }
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
        Event::Poison { first, words } => {
            write!(text, "    the block at {:#x}, {words} words, is free", at(*first))
        }
        Event::Grow { bytes } => write!(text, "    grow to {bytes:#x} B"),
        Event::SyncLength => write!(text, "    sync the length"),
        Event::Renew { first, lines } => {
            write!(text, "    copy {:#x} again, {lines} lines", at(*first * 8))
        }
        Event::Rely { first, lines } => {
            write!(text, "    rely on {:#x}, {lines} lines", at(*first * 8))
        }
        Event::Await(Awaited::All) => write!(text, "    wait for all copies"),
        Event::Await(Awaited::Noted) => write!(text, "    wait for the copies relied on"),
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
