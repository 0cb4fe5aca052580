//! The style sheet of the page, with colours for light, dark and print.
//!
//! Tests check the colours of series in light and in dark: they differ for readers with each common
//! colour-vision deficiency, and their contrast to the background is enough for shapes.

/// The colours and fonts as custom properties, for light and for dark.
pub(super) const COLOURS: &str = "\
:root{--face:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto Sans\",Arial,sans-serif;\
--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;\
--ground:#fff;--panel:#fff;--ink:#1d2430;--dim:#5b6676;--rule:#d5dbe3;--link:#0b5cad;\
--good:#1f6f43;--good-ground:#e4f4ea;--bad:#a3211a;--bad-ground:#fdecea;--open-ground:#eef1f5;\
--heat:#1f78b4;\
--s1:#084eb0;--s2:#b53921;--s3:#00ab60;--s4:#70547b;\
--s5:#d27e07;--s6:#6d8ae7;--s7:#6f3c39;--s8:#8c8b95}\
@media screen and (prefers-color-scheme:dark){:root{\
--ground:#14181f;--panel:#191e27;--ink:#dde3ec;--dim:#9aa6b6;--rule:#353e4c;--link:#7cb8f5;\
--good:#7fd6a2;--good-ground:#173626;--bad:#ff9a91;--bad-ground:#44201d;--open-ground:#262d38;\
--heat:#3d97d8;\
--s1:#5689ee;--s2:#d48031;--s3:#29cd8a;--s4:#b48fcb;\
--s5:#ffcd49;--s6:#bce0f9;--s7:#cede7d;--s8:#8ca1a0}}";

/// The rules of the page, which use the custom properties.
pub(super) const STYLE: &str = "\
body{font:16px/1.55 var(--face);color:var(--ink);background:var(--ground);\
max-width:58rem;margin:2.5rem auto;padding:0 1rem}\
h1{font-size:1.8rem;line-height:1.2;margin:0 0 .4rem}\
h2{font-size:1.25rem;margin:2.6rem 0 .6rem;padding-bottom:.25rem;\
border-bottom:1px solid var(--rule)}\
a{color:var(--link)}.when{color:var(--dim);margin-top:0}\
p,li{max-width:44rem;overflow-wrap:anywhere}\
.finding{font-size:1.1rem;font-weight:500}\
nav h2{font-size:1rem;border:0;margin:1.6rem 0 .2rem}nav ol{margin:0;padding-left:1.6rem}\
nav li{margin:.25rem 0}.found{display:block;color:var(--dim);font-size:.9rem}\
figure{margin:1.2rem 0;padding:.5rem;border:1px solid var(--rule);border-radius:6px;\
background:var(--panel);overflow-x:auto}figure svg.chart{--ground:var(--panel)}\
details{margin-top:.4rem;padding:0 .5rem;font-size:.85rem}\
summary{color:var(--dim);cursor:pointer}\
.wide{overflow-x:auto;margin:.8rem 0}\
table{border-collapse:collapse;font-size:.85rem;min-width:50%}\
caption{text-align:left;color:var(--dim);padding-bottom:.3rem}\
th,td{text-align:left;vertical-align:top;padding:.25rem .7rem;border-bottom:1px solid var(--rule)}\
th{font-weight:600;vertical-align:bottom}\
.n{text-align:right;font-variant-numeric:tabular-nums}td.n{white-space:nowrap}\
td.good{color:var(--good);background:var(--good-ground);font-weight:600}\
td.bad{color:var(--bad);background:var(--bad-ground);font-weight:600}\
td.neutral{background:var(--open-ground)}\
td.good::before{content:\"\\2713\\a0\"}td.bad::before{content:\"\\2717\\a0\"}\
td.neutral::before{content:\"\\25cb\\a0\"}\
code{font:.85em/1.4 var(--mono)}\
.source{color:var(--dim);font-size:.85rem;border-left:3px solid var(--rule);padding-left:.7rem}\
.source span::before{content:\"\\2014\\a0\"}\
@media print{@page{margin:16mm}:root{--ink:#000;--dim:#333;--rule:#c4c4c4;--link:#000;\
--good:#000;--good-ground:#fff;--bad:#000;--bad-ground:#fff;--open-ground:#fff}\
body{font-size:10.5pt;max-width:none;margin:0;padding:0}a{text-decoration:none}\
p,li{orphans:3;widows:3}h2,.finding,caption,thead{break-after:avoid}\
.finding,figure,.wide,tr,.source{break-inside:avoid}.source{break-before:avoid}\
figure{border:0;padding:0}\
details{display:none}thead{display:table-header-group}}";

#[cfg(test)]
mod tests {
    use super::COLOURS;

    type Colour = [f64; 3];

    /// The matrices that map a colour, in linear light, to its look for normal vision, protanopia,
    /// deuteranopia and tritanopia (Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009).
    const READERS: [[Colour; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ];
    /// The least distance of two series in CIELAB (1976); about 2 is just noticeable.
    const DISTANCE_MIN: f64 = 20.0;
    /// The least contrast of a shape to its background (WCAG 2.1, criterion 1.4.11).
    const CONTRAST_MIN: f64 = 3.0;

    /// Returns a colour of the style sheet by its name, in linear light.
    fn colour(style: &str, name: &str) -> Colour {
        let digits = style.split(&format!("--{name}:#")).nth(1).expect("is set");
        let digits = digits.split([';', '}']).next().unwrap_or_default();
        // In the short form, each digit stands for two.
        let digits: String = match digits.len() {
            3 => digits.chars().flat_map(|digit| [digit, digit]).collect(),
            _ => digits.into(),
        };
        let part = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("is a number");
        [0, 2, 4].map(|at| {
            let part = f64::from(part(at)) / 255.0;
            if part <= 0.040_45 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn product(rows: &[Colour; 3], colour: Colour) -> Colour {
        rows.map(|row| row.iter().zip(colour).map(|(factor, part)| factor * part).sum())
    }

    /// Returns the colour in CIELAB: lightness, red against green, yellow against blue.
    fn perceived(colour: Colour) -> Colour {
        const TO_XYZ: [Colour; 3] = [
            [0.4124 / 0.950_47, 0.3576 / 0.950_47, 0.1805 / 0.950_47],
            [0.2126, 0.7152, 0.0722],
            [0.0193 / 1.088_83, 0.1192 / 1.088_83, 0.9505 / 1.088_83],
        ];
        let [x, y, z] = product(&TO_XYZ, colour.map(|part| part.clamp(0.0, 1.0)))
            .map(|part| if part > 0.008_856 { part.cbrt() } else { 7.787 * part + 16.0 / 116.0 });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    fn luminance([red, green, blue]: Colour) -> f64 {
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    #[test]
    fn series_differ_for_every_kind_of_colour_vision() {
        let (light, dark) = COLOURS.split_once("@media").expect("has a dark side");
        for style in [light, dark] {
            let series = (1..=8).map(|number| colour(style, &format!("s{number}")));
            let series: Vec<Colour> = series.collect();
            let ground = luminance(colour(style, "panel")) + 0.05;
            for (index, &one) in series.iter().enumerate() {
                let own = luminance(one) + 0.05;
                let contrast = own.max(ground) / own.min(ground);
                assert!(contrast >= CONTRAST_MIN, "s{}: {contrast}", index + 1);
                for (other_index, &other) in series[..index].iter().enumerate() {
                    for (reader, cones) in READERS.iter().enumerate() {
                        let [one, other] = [one, other].map(|c| perceived(product(cones, c)));
                        let parts = one.iter().zip(other).map(|(a, b)| (a - b).powi(2));
                        let distance = parts.sum::<f64>().sqrt();
                        let pair = (other_index + 1, index + 1);
                        assert!(distance >= DISTANCE_MIN, "{pair:?} to {reader}: {distance}");
                    }
                }
            }
        }
    }
}
