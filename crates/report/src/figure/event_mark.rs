//! The marks of events in a timeline.

use super::canvas::Canvas;
use super::marks::{self, RADIUS};

/// The mark of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventMark {
    /// No mark, as for the begin and the end of an operation.
    #[default]
    None,
    /// A grey disc: a store of data.
    Store,
    /// A green disc: a commit store.
    Commit,
    /// A hollow disc: a store that recovery ignores, as to a latch.
    Transient,
    /// A triangle: a flush of a line.
    Flush,
    /// A line across all lanes: a fence.
    Fence,
    /// A dashed red line across all lanes: the crash.
    Crash,
}

impl EventMark {
    pub(super) const DRAWN: [Self; 6] =
        [Self::Store, Self::Commit, Self::Transient, Self::Flush, Self::Fence, Self::Crash];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Store => "store",
            Self::Commit => "commit store",
            Self::Transient => "store to a latch or version",
            Self::Flush => "flush",
            Self::Fence => "fence",
            Self::Crash => "crash",
        }
    }
}

/// Draws a mark at `y`: at `x` for an event of a lane, between `ends` for an event of all lanes.
pub(super) fn draw_mark(
    canvas: &mut Canvas,
    mark: EventMark,
    is_lost: bool,
    (x, y): (Option<f64>, f64),
    ends: (f64, f64),
) {
    let across = |canvas: &mut Canvas, class| canvas.line((ends.0, y), (ends.1, y), class);
    match (mark, x) {
        (EventMark::Fence, _) => across(canvas, "event fence"),
        (EventMark::Crash, _) => across(canvas, "event crash"),
        (EventMark::None, _) | (_, None) => {}
        (EventMark::Flush, Some(x)) => marks::triangle(canvas, (x, y), "event flush"),
        (_, Some(x)) if is_lost => {
            marks::disc(canvas, (x, y), "event lost");
            let reach = RADIUS - 1.0;
            canvas.line((x - reach, y - reach), (x + reach, y + reach), "event lost");
            canvas.line((x - reach, y + reach), (x + reach, y - reach), "event lost");
        }
        (EventMark::Store, Some(x)) => marks::disc(canvas, (x, y), "event store"),
        (EventMark::Commit, Some(x)) => marks::disc(canvas, (x, y), "event commit"),
        (EventMark::Transient, Some(x)) => marks::disc(canvas, (x, y), "event transient"),
    }
}
