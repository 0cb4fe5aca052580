//! The trace of a violation as a text.
//!
//! The notation is that of persist orders: `W` a store, `C` a commit store, `R` a store to a latch
//! or a version, `N` a fill, `F` a flush of lines, `|` a fence. With several threads, each line
//! begins with the thread's number. A store that the crash image lacks is marked `LOST`. Of several
//! images with the same violation, the one with the fewest losses is shown.

use crate::medium::lazy_image::LostWords;
use crate::model::history::StoreHistory;
use crate::trace::{Event, StoreRole, Trace};
use core::fmt::Write as _;
use std::collections::BTreeSet;

/// Returns the events that led to a crash image, one a line.
pub(crate) fn trace_text(
    trace: &Trace,
    history: &StoreHistory,
    operation: &dyn Fn(u32) -> String,
    crash: u32,
    lost: &LostWords,
) -> String {
    let mut missing = BTreeSet::new();
    for &(item, words) in lost {
        let item = &history.items[item as usize];
        let first = item.unit * history.unit_words as u32;
        let places = (0..8).filter(|place| words & (1 << place) != 0);
        missing.extend(places.map(|place| (item.time, first + place)));
    }
    let mut text = String::new();
    for (time, entry) in (0..).zip(&trace.entries) {
        let is_setup = time < trace.begin;
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
        Event::Poison { first, words } => {
            write!(text, "    the block at {:#x}, {words} words, is free", at(*first))
        }
        Event::Grow { bytes } => write!(text, "    grow to {bytes:#x} B"),
        Event::SyncLength => write!(text, "    sync the length"),
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
