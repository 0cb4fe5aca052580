//! Mutants in schedules of threads: a version that is compared with what was seen, and passes whatever
//! it finds; and flushes and fences that no crash of one thread misses.
//!
//! A check counts as one for each place that asks for it: helpers that ask for others are marked
//! `#[track_caller]`. What comes by a check is found by playing without any mutant first.

use super::{Drawn, Lister, Work, stage};
use crate::jobs::in_order;
use crate::kind::Both;
use crate::mutants::Mutant;
use crate::run::Request;
use crate::tape::{CallSite, Sabotage};
use bristlecone_trees::names::UnknownDesign;

/// Schedules of each piece without any mutant.
const LOOKS: u64 = 40;
/// Schedules of each piece with a mutant, which is left as soon as one gives it away.
const CONTROLS_SCHEDULE: u64 = 3000;
/// The same where the crashes of each schedule are explored.
const CRASHED: u64 = 150;
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
    let works = Lister { request, drawn }.list_both(Both::named(design)?);
    let places = places(&works, drawn);
    let drawn = Drawn { schedules: CONTROLS_SCHEDULE, ..drawn };
    let each = |&at: &CallSite| {
        let sabotage = Sabotage::NoCheck(at);
        let mut mutant = Mutant { design: design.into(), sabotage, tried: 0, killed: None };
        attempt(&works, drawn, &mut mutant);
        vec![mutant]
    };
    in_order(request.threads, &places, &each, on_mutant);
    Ok(())
}

/// Tries a mutant that is alive, of a design that is registered, where several threads meet.
///
/// # Errors
/// The design is not registered.
pub(crate) fn try_again(mutant: &mut Mutant, request: &Request) -> Result<(), UnknownDesign> {
    let drawn = Drawn { threads: PLAYERS, schedules: CRASHED, ..Drawn::default() };
    let works = Lister { request, drawn }.list_both(Both::named(&mutant.design)?);
    attempt(&works, drawn, mutant);
    Ok(())
}

/// The checks that the pieces come by, in the order of the code.
fn places(works: &[Work], drawn: Drawn) -> Vec<CallSite> {
    let _ = stage::take_checks();
    for work in works {
        work(drawn);
    }
    let mut places = stage::take_checks();
    places.sort_by_key(|at| (at.file(), at.line(), at.column()));
    places
}

/// Plays until something gives the mutant away.
fn attempt(works: &[Work], drawn: Drawn, mutant: &mut Mutant) {
    let drawn = Drawn { sabotage: Some(mutant.sabotage), ..drawn };
    for outcome in works.iter().flat_map(|work| work(drawn)) {
        mutant.tried += 1;
        if let Some(violation) = outcome.violations.into_iter().next() {
            mutant.killed = Some((outcome.scenario, violation));
            break;
        }
    }
}
