//! The page: the drawing of an injected violation.

use crate::explore;
use crate::toy;
use bristlecone_crash::{
    CrashPage, Modes, Outcome, OutcomeCounts, PersistenceModel, ScheduleCounts,
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
    let figure = figures[0].split("</figure>").next().unwrap();
    assert!(figure.contains("<b>it does not open</b>"), "{figure}");
    assert!(figure.contains("second value"), "what was found: {figure}");
    let count = |part: &str| figure.matches(part).count();
    // Four stores of the record and one of the count; one of them is lost.
    assert_eq!(count("<circle"), 5, "{figure}");
    assert_eq!(count("fill=\"none\" stroke=\"#b3261e\""), 1, "{figure}");
    assert_eq!(count("stroke-dasharray"), 1, "the crash: {figure}");
    // The lost store's line is red at its head too: the record's, not the count's.
    assert_eq!(count("<text class=\"lost\""), 2, "{figure}");
    assert!(figure.contains("begin insert") && figure.contains("-&gt;"), "{figure}");
}

#[test]
fn a_pass_says_so_and_holds_no_figure() {
    let html = page::<{ toy::NONE }>();
    assert!(html.contains("nothing is violated") && !html.contains("<figure>"), "{html}");
    assert!(html.contains("1 of 2 mutants killed") && html.contains("12 schedules"), "{html}");
    assert!(html.contains("<td>u64/insert-empty</td>"), "{html}");
}

#[test]
fn the_page_is_whole_by_itself() {
    let html = page::<{ toy::COMMIT_EARLY }>();
    for foreign in ["<script", "http:", "https:", "<link", "url("] {
        assert!(!html.contains(foreign), "{foreign}");
    }
    for tag in ["table", "tr", "td", "figure", "svg", "text", "h2", "code"] {
        let opened =
            html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}
