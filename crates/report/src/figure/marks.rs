//! The looks of series: each has a colour, and a texture for bars or a shape for marks.

use super::canvas::{Area, Canvas, Px};
use core::f64::consts::{FRAC_PI_2, TAU};

/// The number of colours, of textures, and of shapes of marks.
pub(super) const VARIETY: usize = 8;
/// The radius of a mark, in pixels.
pub(super) const RADIUS: f64 = 4.5;
/// The radius of a mark on a projected curve, in pixels.
pub(super) const RADIUS_SMALL: f64 = 3.5;

/// Returns the class that sets the colour of a series.
pub(super) fn colour(series: usize) -> String {
    format!("c{}", series % VARIETY + 1)
}

/// Returns the index of the shape or texture of a series.
///
/// Each further round of colours shifts the shapes by one, so that the first 64 pairs of colour and
/// shape differ.
fn variety(series: usize) -> usize {
    (series + series / VARIETY) % VARIETY
}

/// Draws the bar of a series, or its sample in the legend.
pub(super) fn bar(canvas: &mut Canvas, area: Area, series: usize) {
    canvas.rect(area, &format!("bar {}", colour(series)));
    let texture = variety(series);
    if texture > 0 {
        canvas.rect(area, &format!("t{}", texture + 1));
    }
}

/// Draws the mark of a series at a point.
pub(super) fn mark(
    canvas: &mut Canvas,
    (x, y): (f64, f64),
    series: usize,
    radius: f64,
    class: &str,
) {
    let shape = outline(variety(series), x, y, radius);
    canvas.path(&shape, &format!("{class} {}", colour(series)));
}

/// Draws a hollow diamond: the mark of a published value.
pub(super) fn paper(canvas: &mut Canvas, (x, y): (f64, f64)) {
    let shape = polygon(4, x, y, RADIUS + 1.0, 1.0, 0.0);
    canvas.path(&shape, "said");
}

/// Draws a disc that has no colour of a series.
pub(super) fn disc(canvas: &mut Canvas, (x, y): (f64, f64), class: &str) {
    canvas.path(&outline(0, x, y, RADIUS), class);
}

/// Draws a triangle that points down and has no colour of a series.
pub(super) fn triangle(canvas: &mut Canvas, (x, y): (f64, f64), class: &str) {
    canvas.path(&outline(4, x, y, RADIUS), class);
}

fn outline(variety: usize, x: f64, y: f64, radius: f64) -> String {
    match variety {
        0 => {
            let (radius, diameter) = (Px(radius), Px(2.0 * radius));
            format!(
                "M{} {}a{radius} {radius} 0 1 0 {diameter} 0\
                 a{radius} {radius} 0 1 0 -{diameter} 0z",
                Px(x - radius.0),
                Px(y)
            )
        }
        1 => polygon(4, x, y, radius * 1.25, 1.0, TAU / 8.0),
        2 => polygon(3, x, y, radius * 1.25, 1.0, 0.0),
        3 => polygon(4, x, y, radius * 1.25, 1.0, 0.0),
        4 => polygon(3, x, y, radius * 1.25, 1.0, TAU / 2.0),
        5 => polygon(10, x, y, radius * 1.35, 0.45, 0.0),
        6 => polygon(8, x, y, radius * 1.5, 0.5, TAU / 8.0),
        _ => polygon(6, x, y, radius * 1.1, 1.0, 0.0),
    }
}

/// Returns a polygon whose first corner points up before it is turned by `turn`.
///
/// The radius of every second corner is multiplied by `drawn_in`, which makes stars.
fn polygon(corners: u8, x: f64, y: f64, radius: f64, drawn_in: f64, turn: f64) -> String {
    let mut shape = String::new();
    for corner in 0..corners {
        let angle = TAU * f64::from(corner) / f64::from(corners) + turn - FRAC_PI_2;
        let reach = if corner % 2 == 1 { radius * drawn_in } else { radius };
        let command = if corner == 0 { 'M' } else { 'L' };
        let (across, down) = (x + reach * angle.cos(), y + reach * angle.sin());
        crate::text::append(&mut shape, format_args!("{command}{} {}", Px(across), Px(down)));
    }
    shape.push('z');
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_four_series_differ() {
        let mut seen: Vec<_> = (0..VARIETY * VARIETY).map(|s| (colour(s), variety(s))).collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), VARIETY * VARIETY);
    }

    #[test]
    fn shapes_differ() {
        let mut shapes: Vec<_> = (0..VARIETY).map(|shape| outline(shape, 0.0, 0.0, 5.0)).collect();
        shapes.sort();
        shapes.dedup();
        assert_eq!(shapes.len(), VARIETY);
    }
}
