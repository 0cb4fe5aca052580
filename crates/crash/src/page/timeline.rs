//! The timeline of a violation: the lines of its trace as events, with a lane for each line of
//! memory.

use bristlecone_report::figure::{EventMark, Timeline, TimelineEvent};

const LINE_BYTES: u64 = 64;

/// Returns the timeline of a trace, or `None` for a trace without events.
pub(super) fn timeline(title: String, trace: &str) -> Option<Timeline> {
    let events: Vec<_> = trace.lines().map(event).collect();
    let description = "The stores, flushes and fences up to the crash, from top to bottom. A store \
                       that the crash image lacks is marked as lost.";
    let lane = "offset of a line of 64 B in the pool".into();
    (!events.is_empty()).then(|| Timeline { title, description: description.into(), lane, events })
}

/// Returns the event of a line of the trace.
fn event(text: &str) -> TimelineEvent {
    // With several threads, the number of the thread comes first.
    let mut words = text.trim_start_matches(|c: char| c.is_ascii_digit()).split_whitespace();
    let mark = match words.next() {
        Some("W" | "N") => EventMark::Store,
        Some("C") => EventMark::Commit,
        Some("R") => EventMark::Transient,
        Some("F") => EventMark::Flush,
        Some("|") => EventMark::Fence,
        Some("crash") => EventMark::Crash,
        _ => EventMark::None,
    };
    let digits = words.next().and_then(|word| word.strip_prefix("0x"));
    let offset = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let lane = offset.filter(|_| mark != EventMark::None).map(|at| at / LINE_BYTES * LINE_BYTES);
    TimelineEvent { text: text.into(), lane, mark, is_lost: text.contains("LOST") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EventMark::{Crash, Fence, Flush, None, Store, Transient};

    #[test]
    fn lines_become_events() {
        let trace = "  begin remove 40\n2    R 0x10068  0x1 -> 0x2\n    W 0x10048  0x0 -> 0x7   LOST\n    N 0x10100  32 words\n    F 0x10040\n    |\n  acknowledge remove 40\n  crash\n";
        let events = timeline("a title".into(), trace).expect("has events").events;
        let marks: Vec<_> = events.iter().map(|event| event.mark).collect();
        assert_eq!(marks, [None, Transient, Store, Store, Flush, Fence, None, Crash]);
        let lanes: Vec<_> = events.iter().filter_map(|event| event.lane).collect();
        assert_eq!(lanes, [0x10040, 0x10040, 0x10100, 0x10040]);
        let lost: Vec<_> = events.iter().filter(|event| event.is_lost).collect();
        assert_eq!((lost.len(), lost[0].text.contains("0x10048")), (1, true));
    }

    #[test]
    fn a_trace_without_events_has_no_timeline() {
        assert_eq!(timeline("a title".into(), ""), Option::None);
    }
}
