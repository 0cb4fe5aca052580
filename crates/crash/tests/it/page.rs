//! The page: the drawing of an injected violation, and the legend.

use crate::explore;
use crate::toy;
use bristlecone_crash::{
    CrashPage, Defect, Modes, Outcome, OutcomeCounts, PersistenceModel, Request, ScheduleCounts,
    run_as_printed,
};

fn page<const DEFECT: u8>() -> String {
    let (_, outcomes) = explore::<DEFECT>("u64/insert-empty", Modes::Auto);
    let mut page = CrashPage::default();
    for outcome in &outcomes {
        page.outcome(outcome);
    }
    page.mutant("toy", true);
    page.mutant("toy", false);
    if let Some(outcome) = outcomes.first() {
        let (scenario, violations) = ("u64/insert@2".into(), Vec::new());
        let counts = OutcomeCounts::Schedules(ScheduleCounts {
            mode: PersistenceModel::Px86,
            threads: 2,
            schedules: 12,
            images: outcome.images(),
            recoveries: outcome.recoveries(),
        });
        page.outcome(&Outcome { scenario, violations, counts, ..outcome.clone() });
    }
    page.html()
}

#[test]
fn a_violation_is_drawn_with_the_lost_store_marked() {
    let html = page::<{ toy::COMMIT_EARLY }>();
    let figures: Vec<&str> = html.split("<figure>").skip(1).collect();
    assert!(figures.len() >= 2, "one in each mode at least");
    let drawing = figures[0].split("</svg>").next().unwrap();
    assert!(html.contains("<h2>toy: it does not open</h2>"), "{html}");
    assert!(html.contains("Expected: ") && html.contains("second value"), "what was found");
    // The legend comes before the lanes.
    let events = &drawing[drawing.find("class=\"lane").unwrap()..];
    let count = |part: &str| events.matches(part).count();
    // Four stores of the record and one of the count; one of them is lost.
    let stores = count("class=\"event store\"") + count("class=\"event commit\"");
    // A lost store is a disc and the two lines of a cross.
    assert_eq!((stores, count("class=\"event lost\"")), (4, 3), "{drawing}");
    assert_eq!(count("class=\"event crash\""), 1, "{drawing}");
    assert!(events.contains("class=\"lane lost\""), "the lost store's lane is red: {drawing}");
    assert!(events.contains("begin insert") && events.contains("-&gt;"), "{drawing}");
}

#[test]
fn a_pass_says_so_and_holds_no_figure() {
    let html = page::<{ toy::NONE }>();
    assert!(html.contains("Pass: no promise is violated.") && !html.contains("<figure>"), "{html}");
    assert!(html.contains("1 of 2 mutants were killed. 12 schedules"), "{html}");
    assert!(html.contains("<td>u64/insert-empty</td>"), "{html}");
}

#[test]
fn the_legend_defines_every_letter_and_column() {
    let html = page::<{ toy::NONE }>();
    for term in ["crash image", "recovery", "px86", "word", "mutant", "C", "R", "N", "F", "|"] {
        assert!(html.contains(&format!("<tr><td>{term}</td>")), "{term}: {html}");
    }
    assert!(html.contains("<td>W 0x40 0x1 -&gt; 0x2</td>"), "{html}");
}

/// A lost acknowledgement is drawn up to the acknowledgement, with the stores that are missing.
#[test]
fn the_drawing_of_a_published_defect_is_not_empty_and_its_sentence_is_on_the_page() {
    let request = Request { filter: "u64/remove-back".into(), ..Request::default() };
    let mut page = CrashPage::default();
    let outcome = run_as_printed(&["fast-fair".into()], &request, &mut |result| {
        if result.defect == Defect::DeleteFlush {
            page.defect(result.defect, &result.outcome);
            let violation = result.caught().expect("the delete as printed loses data");
            assert_eq!(violation.what, "an acknowledged operation is lost");
            assert!(violation.trace.contains("acknowledge remove"), "{violation}");
            assert!(violation.lost_words() > 0, "{violation}");
        }
    });
    outcome.expect("the design exists");
    let html = page.html();
    let about = Defect::DeleteFlush.about();
    assert!(html.contains(about.what), "{html}");
    let drawing = html.split("<figure>").nth(1).expect("has a drawing");
    assert!(drawing.contains("class=\"event lost\""), "{drawing}");
}
