//! Timelines: events from top to bottom, a lane for each unit of memory, a mark for each event.
//!
//! The crash explorer draws a violation so: the stores, flushes and fences up to a crash, and the
//! stores that the crash image lacks.

use super::canvas::{Anchor, Canvas, DESCENT, LEADING, MARGIN, SMALL, TEXT, TextStyle, no_data};
use super::event_mark::{EventMark, draw_mark};
use super::legend::{self, LegendEntry, Sample};
use super::plot;
use crate::table::{Cell, Column, Mark, Table};
use crate::text::width;

/// The height of a row, in pixels.
const ROW: f64 = 20.0;
/// The distance from one lane to the next, in pixels.
const LANE: f64 = 26.0;
/// The gap between the lanes and the texts of events, in pixels.
const BEFORE_TEXT: f64 = 14.0;
/// The width of a glyph of a monospaced font, relative to its size.
const MONO_GLYPH: f64 = 0.62;
/// The least width of the drawing, in pixels: its title and legend need as much.
const WIDTH_MIN: f64 = 560.0;

/// Events in the order in which they happened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The title, at the top left of the drawing.
    pub title: String,
    /// The text that a screen reader reads in place of the drawing.
    pub description: String,
    /// The label of the lanes, such as `offset of a line of 64 B`.
    pub lane: String,
    /// The events, from the first to the last.
    pub events: Vec<TimelineEvent>,
}

/// An event of a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimelineEvent {
    /// The text beside the event, in a monospaced font.
    pub text: String,
    /// The number of the lane, printed in hexadecimal; `None` if the event concerns no lane.
    pub lane: Option<u64>,
    /// The mark that shows the kind of event.
    pub mark: EventMark,
    /// `true` for a store that the crash image lacks: text and mark are red.
    pub is_lost: bool,
}

impl Timeline {
    /// Returns the drawing as an SVG element.
    pub fn svg(&self) -> String {
        if self.events.is_empty() {
            return no_data(&self.title, &self.description);
        }
        let lanes = self.lanes();
        let left = MARGIN + LANE / 2.0;
        let right = left + LANE * lanes.len().max(1) as f64;
        let texts = self.events.iter().map(|event| mono_width(&event.text, SMALL));
        let wide = right + BEFORE_TEXT + texts.fold(0.0, f64::max) + MARGIN;
        let mut canvas = Canvas::new(wide.max(WIDTH_MIN));
        let top = canvas.title(&self.title);
        let top = legend::draw(&mut canvas, top, &self.legend());
        let top = plot::value_label(&mut canvas, top, &self.lane);
        let names: Vec<String> = lanes.iter().map(|lane| format!("{lane:#x}")).collect();
        let head = names.iter().map(|name| mono_width(name, SMALL)).fold(0.0, f64::max);
        let (top, height) = (top + head, ROW * self.events.len() as f64);
        for (index, (lane, name)) in lanes.iter().zip(&names).enumerate() {
            let x = middle_of(left, index);
            let is_lost =
                self.events.iter().any(|event| event.is_lost && event.lane == Some(*lane));
            let style = TextStyle { turn: -90, ..mono(Anchor::Start, is_lost) };
            canvas.text(x + SMALL * (0.5 - DESCENT / 2.0), top - 4.0, style, name);
            let class = if is_lost { "lane lost" } else { "lane" };
            canvas.line((x, top), (x, top + height), class);
        }
        for (row, event) in self.events.iter().enumerate() {
            let y = top + ROW * (row as f64 + 0.5);
            let lane = event.lane.and_then(|lane| lanes.binary_search(&lane).ok());
            let x = lane.map(|index| middle_of(left, index));
            draw_mark(&mut canvas, event.mark, event.is_lost, (x, y), (left, right));
            let base = y + SMALL * (0.5 - DESCENT / 2.0);
            let style = mono(Anchor::Start, event.is_lost);
            canvas.text(right + BEFORE_TEXT, base, style, &event.text);
        }
        canvas.finish(top + height + MARGIN, &self.title, &self.description)
    }

    /// Returns the data of the drawing as a table.
    pub fn table(&self) -> Table {
        let header = ["event", "kind", &self.lane, "in the crash image"].map(Column::words);
        let row = |event: &TimelineEvent| {
            let lane = event.lane.map_or(String::new(), |lane| format!("{lane:#x}"));
            let lost = if event.is_lost { Cell::from("lost").marked(Mark::Bad) } else { "".into() };
            vec![event.text.as_str().into(), event.mark.name().into(), lane.into(), lost]
        };
        Table {
            caption: self.title.clone(),
            header: header.to_vec(),
            rows: self.events.iter().map(row).collect(),
        }
    }

    /// Returns the distinct lanes in ascending order.
    fn lanes(&self) -> Vec<u64> {
        let mut lanes: Vec<u64> = self.events.iter().filter_map(|event| event.lane).collect();
        lanes.sort_unstable();
        lanes.dedup();
        lanes
    }

    fn legend(&self) -> Vec<LegendEntry> {
        let occurs = |mark: &EventMark| {
            self.events.iter().any(|event| event.mark == *mark && !event.is_lost)
        };
        let marks = EventMark::DRAWN.into_iter().filter(occurs);
        let mut entries: Vec<LegendEntry> =
            marks.map(|mark| LegendEntry::new(Sample::Event(mark), mark.name())).collect();
        if self.events.iter().any(|event| event.is_lost) {
            entries.push(LegendEntry::new(Sample::Lost, "store that the crash image lacks"));
        }
        entries
    }
}

fn middle_of(left: f64, lane: usize) -> f64 {
    left + LANE * (lane as f64 + 0.5)
}

/// Returns an upper estimate: the glyphs of a monospaced font are equally wide, and the reader may
/// have none.
fn mono_width(text: &str, size: f64) -> f64 {
    (text.chars().count() as f64 * MONO_GLYPH * size).max(width(text, size))
}

fn mono(anchor: Anchor, is_lost: bool) -> TextStyle {
    let class = if is_lost { "code lost" } else { "code" };
    TextStyle { class, ..TextStyle::new(SMALL, anchor) }
}

const _: () = assert!(ROW > TEXT * LEADING, "texts of neighbouring rows do not touch");
