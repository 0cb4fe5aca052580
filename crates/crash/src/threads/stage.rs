//! Threads of a program under test as coroutines of one thread: which of them goes on is decided
//! at each access to shared memory, and only there.
//!
//! 1. A player runs until its turn ends: after as many accesses as the director gave it, or when
//!    it waits for another player, or when its part is played.
//! 2. Only one player runs at a time, all on the thread that made the troupe. What has no access to
//!    shared memory in it so happens at once.
//! 3. Nobody gives up a turn while it unwinds.
//! 4. A play that takes too many accesses is abandoned: every player unwinds to its beginning.

use super::director::Director;
use crate::tape::CallSite;
use bristlecone_pmem::medium::schedule::{self, SchedulerHooks};
use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicBool, Ordering};
use generator::{Generator, Gn};
use parking_lot::Mutex;
use std::sync::Arc;

/// Accesses after which a play counts as one that never ends.
const ACCESSES_MAX: u64 = 1 << 18;
/// Words of a player's stack.
const STACK_WORDS: usize = 1 << 15;

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It was as long as it was to be.
    Due,
    /// The player waits for another one.
    Waits,
    /// Its part is played.
    Done,
}

/// Carried by the unwinding of a player whose play is abandoned.
#[derive(Debug)]
pub(crate) struct Abandoned;

/// What a player does.
pub(crate) type Part = Box<dyn FnOnce() + Send>;

/// The turn that is being taken on this thread.
struct Turn {
    /// The player, counted from 1; 0 while none runs.
    player: Cell<u32>,
    is_abandoned: Cell<bool>,
}

/// The checks of versions that plays on this thread came by, and the one that passes always.
#[derive(Default)]
struct Checks {
    seen: Vec<CallSite>,
    overlooked: Option<CallSite>,
}

thread_local! {
    static CHECKS: RefCell<Checks> = const {
        RefCell::new(Checks { seen: Vec::new(), overlooked: None })
    };
    static TURN: Turn = const {
        Turn { player: Cell::new(0), is_abandoned: Cell::new(false) }
    };
}

/// The player that runs, counted from 1; 0 outside a play.
pub(crate) fn player() -> u32 {
    TURN.with(|turn| turn.player.get())
}

/// Ends the turn, at a yield point of the player that runs.
fn preempt() {
    if player() != 0 {
        give_up(Why::Due);
    }
}

/// Whether the check of a version at that place is to pass. Notes that there is such a check.
fn skip_validation(at: CallSite) -> bool {
    player() != 0
        && CHECKS.with_borrow_mut(|checks| {
            if !checks.seen.contains(&at) {
                checks.seen.push(at);
            }
            checks.overlooked == Some(at)
        })
}

/// From now on the check at that place passes always, in plays on this thread.
pub(crate) fn overlook(at: Option<CallSite>) {
    CHECKS.with_borrow_mut(|checks| checks.overlooked = at);
}

/// The places of checks that plays on this thread have come by since the last call.
pub(crate) fn take_checks() -> Vec<CallSite> {
    CHECKS.with_borrow_mut(|checks| core::mem::take(&mut checks.seen))
}

/// Lets another player go on. Whether there is a play at all.
fn spin_hint() -> bool {
    let is_played = player() != 0;
    if is_played {
        give_up(Why::Waits);
    }
    is_played
}

#[cold]
fn give_up(why: Why) {
    if std::thread::panicking() {
        return; // Invariant 3.
    }
    if !TURN.with(|turn| turn.is_abandoned.get()) {
        yield_turn(why);
    }
    if TURN.with(|turn| turn.is_abandoned.get()) {
        std::panic::resume_unwind(Box::new(Abandoned));
    }
}

fn yield_turn(why: Why) {
    #[expect(deprecated, reason = "a turn ends deep in a tree, where no scope is at hand")]
    generator::yield_with(why);
}

/// The parts that the players are to play next, and whether they are to go home.
#[derive(Default)]
struct Desk {
    parts: Mutex<Vec<Option<Part>>>,
    is_closed: AtomicBool,
}

impl Desk {
    /// Plays whatever parts there are for a player, until the desk is closed.
    fn work(&self, player: usize) -> Why {
        while !self.is_closed.load(Ordering::Relaxed) {
            let part = self.parts.lock().get_mut(player).and_then(Option::take);
            if let Some(part) = part {
                part();
            }
            yield_turn(Why::Done);
        }
        Why::Done
    }
}

/// Coroutines that are used again for each play.
pub(crate) struct Troupe {
    players: Vec<Generator<'static, (), Why>>,
    desk: Arc<Desk>,
}

/// What a play was like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Played {
    /// Accesses of all players together.
    pub(crate) accesses: u64,
    /// Whether it was abandoned.
    pub(crate) is_abandoned: bool,
}

impl Troupe {
    /// So many players.
    pub(crate) fn new(players: usize) -> Self {
        schedule::install(SchedulerHooks { preempt, spin_hint, skip_validation });
        let desk = Arc::new(Desk::default());
        let shared = Arc::clone(&desk);
        let players = (0..players).map(|number| {
            let desk = Arc::clone(&shared);
            Gn::<()>::new_opt(STACK_WORDS, move || desk.work(number))
        });
        let players = players.collect();
        Self { players, desk }
    }

    /// Plays the parts, one a player, in the order that `director` gives, until all are played or
    /// `is_over` says that no more is to be seen.
    pub(crate) fn play(
        &mut self,
        parts: Vec<Part>,
        director: &mut Director,
        is_over: impl Fn() -> bool,
    ) -> Played {
        let mut alive: Vec<usize> = (0..parts.len()).collect();
        *self.desk.parts.lock() = parts.into_iter().map(Some).collect();
        let mut accesses = 0;
        while !alive.is_empty() && accesses < ACCESSES_MAX && !is_over() {
            let (player, length) = director.next(&alive);
            let (why, used) = self.resume(player, length);
            accesses += used + 1;
            if why == Why::Done {
                alive.retain(|&other| other != player);
            }
            director.told(player, why, used + 1);
        }
        let is_abandoned = !alive.is_empty();
        TURN.with(|turn| turn.is_abandoned.set(true));
        for player in alive {
            while self.resume(player, 0).0 != Why::Done {}
        }
        TURN.with(|turn| turn.is_abandoned.set(false));
        Played { accesses, is_abandoned }
    }

    /// Lets a player take a turn of that length; why it ended, and after how many accesses.
    fn resume(&mut self, player: usize, length: u64) -> (Why, u64) {
        TURN.with(|turn| turn.player.set(player as u32 + 1));
        schedule::set_slice(length);
        let why = self.players[player].resume().unwrap_or(Why::Done);
        TURN.with(|turn| turn.player.set(0));
        let used = length - schedule::slice();
        schedule::set_slice(schedule::UNSCHEDULED);
        (why, used)
    }
}

impl Drop for Troupe {
    /// Players that were dropped in the middle of their loop would have to unwind.
    fn drop(&mut self) {
        self.desk.is_closed.store(true, Ordering::Relaxed);
        for player in &mut self.players {
            let _ = player.resume();
        }
    }
}
