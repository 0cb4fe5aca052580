//! Mutants of checks: a version that is compared with what was seen, and passes whatever it finds.
//!
//! A check counts as one for each place that asks for it: helpers that ask for others are marked
//! `#[track_caller]`. What comes by a check is found by playing without any mutant first.

use super::{Drawn, Lister, Work, stage};
use crate::jobs::in_order;
use crate::mutants::Mutant;
use crate::run::Request;
use crate::tape::{Place, Sabotage};
use bristlecone_trees::registry::{UnknownDesign, with_smallest};

/// Schedules of each piece without any mutant.
const LOOKS: u64 = 40;
/// Schedules of each piece with a mutant, which is left as soon as one gives it away.
const SCHEDULES: u64 = 3000;
/// Threads of a piece.
const PLAYERS: usize = 3;

/// Tries every check of a design that is registered.
///
/// # Errors
/// It is not.
pub(crate) fn mutate(
    design: &str,
    request: &Request,
    on_mutant: &mut dyn FnMut(&Mutant),
) -> Result<(), UnknownDesign> {
    let drawn = Drawn { threads: PLAYERS, schedules: LOOKS, crashes: false, ..Drawn::default() };
    let works = with_smallest(design, Lister { request, drawn })?;
    let places = places(&works, drawn);
    let each = |&at: &Place| vec![attempt(design, &works, drawn, at)];
    in_order(request.threads, &places, &each, on_mutant);
    Ok(())
}

/// The checks that the pieces come by, in the order of the code.
fn places(works: &[Work], drawn: Drawn) -> Vec<Place> {
    let _ = stage::take_checks();
    for work in works {
        work(drawn);
    }
    let mut places = stage::take_checks();
    places.sort_by_key(|at| (at.file(), at.line(), at.column()));
    places
}

/// Plays with the check at `at` passing always, until something gives it away.
fn attempt(design: &str, works: &[Work], drawn: Drawn, at: Place) -> Mutant {
    let sabotage = Sabotage::NoCheck(at);
    let drawn = Drawn { schedules: SCHEDULES, sabotage: Some(sabotage), ..drawn };
    let mut mutant = Mutant { design: design.into(), sabotage, tried: 0, killed: None };
    for outcome in works.iter().flat_map(|work| work(drawn)) {
        mutant.tried += 1;
        if let Some(violation) = outcome.violations.into_iter().next() {
            mutant.killed = Some((outcome.scenario, violation));
            break;
        }
    }
    mutant
}
