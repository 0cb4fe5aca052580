//! The style sheet of drawings, and the textures of bars.
//!
//! The page sets the colours: `--s1` to `--s8` for series, `--ink`, `--dim`, `--rule`, `--ground`,
//! `--heat`, `--good` and `--bad`. On a screen, a drawing that is too wide scrolls, because a
//! shrunk drawing would be unreadable. In print it is shrunk.

/// The style sheet of drawings, for the `style` element of a page.
pub const STYLE: &str = "\
svg.chart{display:block;height:auto}@media print{svg.chart{max-width:100%}}\
svg.chart text{fill:var(--ink);font-family:var(--face)}\
svg.chart .title{font-weight:600}svg.chart .strong{font-weight:700}svg.chart .dim{fill:var(--dim)}\
svg.chart .number{stroke:var(--ground);stroke-width:3;stroke-linejoin:round;paint-order:stroke}\
.c1{--c:var(--s1)}.c2{--c:var(--s2)}.c3{--c:var(--s3)}.c4{--c:var(--s4)}\
.c5{--c:var(--s5)}.c6{--c:var(--s6)}.c7{--c:var(--s7)}.c8{--c:var(--s8)}.any{--c:var(--dim)}\
.grid{stroke:var(--rule);stroke-width:1}.axis,.tick{stroke:var(--dim);stroke-width:1}\
.baseline{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:9 3 2 3}\
.bar{fill:var(--c)}\
.t2{fill:url(#texture-2)}.t3{fill:url(#texture-3)}.t4{fill:url(#texture-4)}\
.t5{fill:url(#texture-5)}.t6{fill:url(#texture-6)}.t7{fill:url(#texture-7)}\
.t8{fill:url(#texture-8)}\
.texture{stroke:var(--ground);stroke-width:1.4;fill:none;stroke-opacity:.75}\
.dots{fill:var(--ground);fill-opacity:.8}\
.curve{stroke:var(--c);stroke-width:2;fill:none;stroke-linejoin:round;stroke-linecap:round}\
.curve.measured{stroke-width:2.4}\
.curve.projected{stroke-dasharray:8 5}.curve.paper{stroke-dasharray:.1 5;stroke-width:2.4}\
.mark{fill:var(--c);stroke:var(--ground);stroke-width:1}\
.mark.hollow{fill:var(--ground);stroke:var(--c);stroke-width:1.8}\
.said{fill:var(--ground);stroke:var(--ink);stroke-width:1.7}\
.q0,.q1,.q2,.q3,.q4,.q5,.q6,.q7{fill:var(--heat)}\
.q0{fill-opacity:.05}.q1{fill-opacity:.13}.q2{fill-opacity:.21}.q3{fill-opacity:.29}\
.q4{fill-opacity:.38}.q5{fill-opacity:.47}.q6{fill-opacity:.57}.q7{fill-opacity:.68}\
.w0,.w1,.w2,.w3,.w4,.w5,.w6,.w7{fill:var(--heat)}\
.w0{fill-opacity:.16}.w1{fill-opacity:.28}.w2{fill-opacity:.4}.w3{fill-opacity:.52}\
.w4{fill-opacity:.64}.w5{fill-opacity:.76}.w6{fill-opacity:.88}.w7{fill-opacity:1}\
.winner{fill:none;stroke:var(--ink);stroke-width:1.6}\
.frame{fill:none;stroke:var(--rule);stroke-width:1}\
.zero{fill:var(--ground);stroke:var(--rule);stroke-width:1}\
.missing{fill:url(#texture-missing)}\
.lane{stroke:var(--rule);stroke-width:1}.lane.lost{stroke:var(--bad)}\
.event.store{fill:var(--dim)}.event.commit{fill:var(--good)}\
.event.transient{fill:var(--ground);stroke:var(--dim);stroke-width:1.5}\
.event.flush,.event.fence{fill:none;stroke:var(--s1);stroke-width:2}\
.event.lost{fill:none;stroke:var(--bad);stroke-width:2}\
.event.crash{stroke:var(--bad);stroke-width:3;stroke-dasharray:6 4}\
svg.chart text.lost{fill:var(--bad);font-weight:700}svg.chart .code{font-family:var(--mono);white-space:pre}\
.empty{fill:none;stroke:var(--rule);stroke-width:1.5;stroke-dasharray:5 4}";

/// The textures that [`STYLE`] refers to. A page has them once in its body.
pub const TEXTURES: &str = "\
<svg width=\"0\" height=\"0\" style=\"position:absolute\" aria-hidden=\"true\"><defs>\n\
<pattern id=\"texture-2\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" \
patternTransform=\"rotate(45)\"><path class=\"texture\" d=\"M3.5 0v7\"/></pattern>\n\
<pattern id=\"texture-3\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
<circle class=\"dots\" cx=\"3\" cy=\"3\" r=\"1.2\"/></pattern>\n\
<pattern id=\"texture-4\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" \
patternTransform=\"rotate(-45)\"><path class=\"texture\" d=\"M3.5 0v7\"/></pattern>\n\
<pattern id=\"texture-5\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
<path class=\"texture\" d=\"M0 3h6\"/></pattern>\n\
<pattern id=\"texture-6\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">\
<path class=\"texture\" d=\"M2.5 0v5\"/></pattern>\n\
<pattern id=\"texture-7\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\" \
patternTransform=\"rotate(45)\"><path class=\"texture\" d=\"M4 0v8M0 4h8\"/></pattern>\n\
<pattern id=\"texture-8\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\">\
<path class=\"texture\" d=\"M0 5l3.5 -3l3.5 3\"/></pattern>\n\
<pattern id=\"texture-missing\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
patternTransform=\"rotate(45)\"><path d=\"M3 0v6\" style=\"stroke:var(--rule)\"/></pattern>\n\
</defs></svg>\n";
