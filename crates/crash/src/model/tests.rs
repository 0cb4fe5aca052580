//! The model of a disk with a journal.

use super::history::{Step, StoreHistory};
use crate::config::PersistenceModel;
use crate::trace::{Awaited, Event, NEVER, POISON, StoreRole, Trace, TraceEntry};
use bristlecone_pmem::Defect;
use core::panic::Location;

fn history(events: &[(u32, Event)]) -> StoreHistory {
    broken(events, None)
}

/// Returns the history of a journal in which a rule is broken.
fn broken(events: &[(u32, Event)], defect: Option<Defect>) -> StoreHistory {
    let entry = |(thread, event): &(u32, Event)| {
        let (thread, at, event) = (*thread, Location::caller(), event.clone());
        TraceEntry { thread, at, event }
    };
    let entries = events.iter().map(entry).collect();
    StoreHistory::compile(
        &Trace { bytes: 256, entries, defect, ..Trace::default() },
        PersistenceModel::Disk,
    )
}

/// Returns the memory at each crash, of the words 0, 1 and 8, and the time at which each image
/// is ruled out.
fn images(history: &StoreHistory) -> Vec<([u64; 3], u32)> {
    let (mut memory, mut stored) = ([0; 32], 0);
    let mut images = Vec::new();
    for &(_, step) in &history.steps {
        match step {
            Step::Store(item) => {
                let item = &history.items[item as usize];
                for place in (0..8).filter(|place| item.mask & (1 << place) != 0) {
                    memory[item.unit as usize * 8 + place] = item.values[place];
                }
                stored += 1;
            }
            Step::Whole => {
                let image = [memory[0], memory[1], memory[8]];
                images.push((image, history.sealed_from(stored)));
            }
            Step::Seal { .. } | Step::Grow(_) => {}
        }
    }
    images
}

fn store(word: u32, new: u64) -> Event {
    Event::Store { word, old: 0, new, role: StoreRole::Data }
}

fn flush(first: u32) -> Event {
    Event::Flush { first, lines: 1 }
}

#[test]
fn only_flushed_lines_persist_as_they_were_at_their_fence_in_the_order_of_fences() {
    let events = [
        (0, Event::Invoke { operation: 0 }),
        (0, store(0, 1)),
        (0, flush(0)),
        (1, store(1, 2)), // flushed with the line of the other thread
        (1, store(8, 3)),
        (1, flush(1)),
        (1, Event::Fence), // the first copy, of thread 1
        (0, store(8, 4)),  // never flushed
        (0, Event::Fence),
        (0, flush(0)), // the same once more
        (0, Event::Fence),
        (0, Event::Await(Awaited::All)),
        (0, Event::Return { operation: 0 }),
    ];
    let found = images(&history(&events));
    assert_eq!(found, [([0, 0, 3], 11), ([1, 2, 3], NEVER)]);
}

#[test]
fn a_lookup_waits_for_the_newest_copy_of_its_lines_alone() {
    let rely = |first, lines| Event::Rely { first, lines };
    let events = |first, lines| {
        [
            (0, store(0, 1)),
            (0, flush(0)),
            (0, Event::Fence),
            (0, store(8, 2)),
            (0, flush(1)),
            (0, Event::Fence),
            (0, store(0, 3)),
            (0, flush(0)),
            (0, Event::Fence),
            (1, rely(first, lines)),
            (1, Event::Await(Awaited::Noted)),
            (1, Event::Await(Awaited::Noted)), // forgotten
        ]
    };
    // An image is ruled out once a copy that it lacks is guaranteed.
    let ruled_out = |events: &[(u32, Event)]| {
        images(&history(events)).iter().map(|&(_, until)| until).collect::<Vec<_>>()
    };
    assert_eq!(ruled_out(&events(1, 1)), [10, NEVER, NEVER]);
    assert_eq!(ruled_out(&events(0, 2)), [10, 10, NEVER]);
    assert_eq!(ruled_out(&events(2, 1)), [NEVER, NEVER, NEVER]);
}

#[test]
fn a_line_that_is_fenced_again_as_it_was_has_a_later_copy_for_its_readers() {
    let events = |first| {
        [
            (0, store(0, 1)),
            (0, flush(0)),
            (0, Event::Fence),
            (0, store(8, 2)),
            (0, flush(1)),
            (0, flush(0)), // the same once more, and a line without a store
            (0, flush(2)),
            (0, Event::Fence),
            (1, Event::Rely { first, lines: 1 }),
            (1, Event::Await(Awaited::Noted)),
        ]
    };
    for line in [0, 2] {
        let found = images(&history(&events(line)));
        assert_eq!(found, [([1, 0, 0], 9), ([1, 0, 2], NEVER)], "line {line}");
    }
}

#[test]
fn a_freed_block_is_overwritten_after_all_copies_so_far() {
    let events = [
        (0, store(8, 1)),
        (0, flush(1)),
        (0, Event::Fence),
        (0, Event::Poison { first: 0, words: 8 }),
        (0, Event::Await(Awaited::All)),
    ];
    let found = images(&history(&events));
    assert_eq!(found, [([0, 0, 1], 4), ([POISON, POISON, 1], NEVER)]);
}

#[test]
fn a_copy_before_its_number_undoes_a_store_that_another_thread_has_fenced() {
    let events = [
        (0, store(0, 1)),
        (0, flush(0)),
        (1, store(1, 2)),
        (1, flush(0)),
        (1, Event::Fence),
        (0, Event::Fence),
    ];
    let right = images(&history(&events));
    assert_eq!(right, [([1, 2, 0], NEVER)]);
    let wrong = images(&broken(&events, Some(Defect::CopyFirst)));
    assert_eq!(wrong.last(), Some(&([1, 0, 0], NEVER)));
}

#[test]
fn a_fill_is_copied_line_by_line() {
    let events = [(0, Event::Fill { first: 0, new: (1..=9).collect() }), (0, Event::Fence)];
    let found = images(&history(&events));
    assert_eq!(found, [([1, 2, 0], NEVER), ([1, 2, 9], NEVER)]);
}
