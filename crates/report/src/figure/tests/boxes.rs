//! Bounding boxes of drawn elements, computed from the SVG with the glyph estimate of the layout,
//! and the checks that every drawing must pass.

use crate::figure::STYLE;
use crate::markup::{Element, parsed};
use crate::text::{BOLD, width};

/// The error of a box, in pixels, that rounding to a tenth of a pixel can cause.
const SLACK: f64 = 0.3;

type Corners = [(f64, f64); 4];

/// Returns the corners of the box of a text.
fn corners(text: &Element) -> Corners {
    let size = text.number("font-size");
    let bold = if text.has_class("title") || text.has_class("strong") { BOLD } else { 1.0 };
    let wide = width(&text.text, size) * bold;
    let (x, y) = (text.number("x"), text.number("y"));
    let before = match text.get("text-anchor") {
        "middle" => wide / 2.0,
        "end" => wide,
        _ => 0.0,
    };
    let turned = text.get("transform").strip_prefix("rotate(");
    let degrees = turned.and_then(|turn| turn.split(' ').next()?.parse::<f64>().ok());
    let (sine, cosine) = degrees.unwrap_or(0.0).to_radians().sin_cos();
    // Capitals and digits rise 0.75 of the size above the baseline; descenders fall 0.25 below it.
    let (left, right) = (-before, wide - before);
    let (top, bottom) = (-0.75 * size, 0.25 * size);
    [(left, top), (right, top), (right, bottom), (left, bottom)].map(|(across, down)| {
        (x + across * cosine - down * sine, y + across * sine + down * cosine)
    })
}

/// Returns `true` if two boxes overlap, by the separating-axis test.
fn overlap(one: &Corners, other: &Corners) -> bool {
    let sides = [one, other].into_iter().flat_map(|area| [(area[0], area[1]), (area[1], area[2])]);
    sides.into_iter().all(|((x, y), (to_x, to_y))| {
        let (across, down) = (to_x - x, to_y - y);
        let length = across.hypot(down).max(f64::MIN_POSITIVE);
        let reach = |area: &Corners| {
            let along = area.map(|(x, y)| (x * across + y * down) / length);
            (along.into_iter().reduce(f64::min), along.into_iter().reduce(f64::max))
        };
        let ((low, high), (other_low, other_high)) = (reach(one), reach(other));
        low < other_high.map(|end| end - SLACK) && other_low < high.map(|end| end - SLACK)
    })
}

pub(super) fn rectangle(element: &Element) -> Corners {
    let (x, y) = (element.number("x"), element.number("y"));
    let (right, bottom) = (x + element.number("width"), y + element.number("height"));
    [(x, y), (right, y), (right, bottom), (x, bottom)]
}

/// Returns a box of one pixel at each corner of a path.
pub(super) fn places(path: &Element) -> Vec<Corners> {
    let parts = path.get("d").split(['M', 'L', 'z', 'a']);
    let pairs = parts.filter_map(|part| {
        let mut numbers = part.split(' ').map(str::parse::<f64>);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    });
    pairs.map(|(x, y)| [(x, y), (x + 1.0, y), (x + 1.0, y + 1.0), (x, y + 1.0)]).collect()
}

/// Checks a drawing, and returns its elements.
pub(super) fn check(svg: &str) -> Element {
    let root = parsed(svg).unwrap_or_else(|wrong| panic!("{wrong} in {svg}"));
    let drawing = &root.children[0];
    assert_eq!((root.children.len(), drawing.get("role")), (1, "img"));
    assert_eq!(drawing.children[0].name, "title");
    assert_eq!(drawing.children[1].name, "desc");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert!(!svg.replace("&#39;", "").contains('#'), "a colour of its own: {svg}");
    let (right, bottom) = (drawing.number("width"), drawing.number("height"));
    let texts = drawing.all("text");
    let boxes: Vec<Corners> = texts.iter().map(|text| corners(text)).collect();
    for (text, corners) in texts.iter().zip(&boxes) {
        let is_within =
            |&(x, y): &(f64, f64)| (0.0..=right).contains(&x) && (0.0..=bottom).contains(&y);
        assert!(corners.iter().all(is_within), "{text:?} at {corners:?} leaves {right}x{bottom}");
    }
    for (index, (text, area)) in texts.iter().zip(&boxes).enumerate() {
        let other = boxes[..index].iter().position(|other| overlap(area, other));
        assert!(other.is_none(), "{text:?} lies on {:?}", other.map(|other| texts[other]));
    }
    let bars = drawing.all("rect").into_iter().filter(|rect| rect.has_class("bar")).map(rectangle);
    let paths = drawing.all("path").into_iter();
    let curves = paths.filter(|path| ["curve", "mark", "said"].iter().any(|c| path.has_class(c)));
    for data in bars.chain(curves.flat_map(places)) {
        let hidden = boxes.iter().position(|area| overlap(area, &data));
        assert!(hidden.is_none(), "{:?} hides data at {data:?}", hidden.map(|index| texts[index]));
    }
    for class in classes(drawing) {
        assert!(STYLE.contains(&format!(".{class}")), "nothing styles {class}");
    }
    root
}

fn classes(element: &Element) -> Vec<String> {
    let own = element.get("class").split_whitespace().map(String::from);
    own.chain(element.children.iter().flat_map(classes)).collect()
}
