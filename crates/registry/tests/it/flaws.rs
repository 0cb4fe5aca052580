//! Tests that the suite can fail: the toy passes all of it, and the suite that is meant to detect a
//! flaw of the toy does.

use crate::suite::{self, Subjects};
use crate::toy::Toy;

macro_rules! flaws {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $test:ident: $suite:ident says $says:literal;)*) => {
        $($(#[$doc])* pub(crate) const $name: u32 = $number;)*
        $(
            #[test]
            #[should_panic(expected = $says)]
            fn $test() {
                suite::$suite(&Subjects::of::<Toy<$name>>());
            }
        )*
    };
}

flaws! {
    /// An entry with the value 0 counts as absent.
    ZERO_IS_NONE = 1, zero_is_none: integer_model says "is not a map";
    /// A scan goes on after its visitor breaks.
    NEVER_BREAKS = 2, never_breaks: text_model says "is not a map";
    /// The tree statistics miss a key.
    MISCOUNTS = 3, miscounts: integer_model says "keys counted";
    /// A replaced node is not freed.
    LEAKS_NODES = 4, leaks_nodes: bulk says "blocks leak";
    /// The key of a removed entry is not freed.
    LEAKS_KEYS = 5, leaks_keys: text_model says "blocks leak";
    /// Some inserts are only in DRAM.
    FORGETS_AT_DEATH = 6, forgets_at_death: reopen says "keys after Crashed";
    /// Some inserts flush a line twice.
    FLUSHES_TWICE = 7, flushes_twice: budget says "most seen";
    /// The spec states less than inserts cost.
    BOASTS = 8, boasts: budget says "most seen";
    /// The spec states more than removes cost.
    UNDERSELLS = 9, undersells: budget says "most seen";
    /// A get fences, which no read needs.
    FLUSHES_READS = 10, flushes_reads: budget says "reading stored or flushed";
    /// A get may return the value before the last.
    READS_STALE = 11, reads_stale: threads says "no thread fails";
    /// An insert searches before it takes the lock.
    CHECKS_BEFORE_IT_LOCKS = 12, checks_before_it_locks: histories says "no order explains";
    /// A scan goes on from a number of keys, not from a key.
    SCANS_BY_RANK = 13, scans_by_rank: visits says "whose visitor writes";
    /// An insert into a full pool loses the pairs that it would have moved.
    LOSES_WHEN_FULL = 14, loses_when_full: full says "what was in a full pool";
    /// A remove reserves a block.
    REMOVES_NEED_ROOM = 15, removes_need_room: full says "no obstacle";
    /// Recovery asserts instead of checking.
    BELIEVES_ANYTHING = 16, believes_anything: hostile_texts says "panics, how often";
    /// Recovery follows links without a bound.
    WALKS_IN_RINGS = 17, walks_in_rings: hostile_integers says "hangs";
    /// A scan holds its lock while it shows a pair, so a visitor that writes waits for its own
    /// thread.
    SHOWS_UNDER_THE_LOCK = 18, shows_under_the_lock: visits says "hangs";
    /// Deferred work costs more than the design states.
    DEFERS_TOO_MUCH = 19, defers_too_much: budget says "maintenance Cost";
    /// Deferred work is done more often than the design states.
    DEFERS_TOO_OFTEN = 20, defers_too_often: budget says "beyond the budget";
    /// The index defers work but has no maintainer.
    HAS_NO_MAINTAINER = 21, has_no_maintainer: maintainers says "no thread fails";
    /// Maintenance removes a pair after the last maintainer has gone.
    LOSES_WHEN_TENDED = 22, loses_when_tended: maintainers says "the contents are not";
    /// The operations do the deferred work although a maintainer is registered.
    IGNORES_MAINTAINERS = 23, ignores_maintainers: maintainers says "though there is a maintainer";
    /// Deferred work accumulates for as long as a maintainer is registered.
    GATHERS_FOR_EVER = 24, gathers_for_ever: maintainers says "while a maintainer stalls";
    /// A maintenance step always reports more work.
    TENDS_FOR_EVER = 25, tends_for_ever: maintainers says "has no end";
    /// A bulk load omits the least pair.
    LOADS_TOO_FEW = 26, loads_too_few: loads says "keys after the load";
}

macro_rules! sound {
    ($($test:ident),* $(,)?) => {
        mod the_toy_passes {
            use super::*;
            $(
                #[test]
                fn $test() {
                    suite::$test(&Subjects::of::<Toy<0>>());
                }
            )*
        }
    };
}

sound! {
    integer_model,
    text_model,
    visits,
    bulk,
    loads,
    reopen,
    budget,
    threads,
    histories,
    maintainers,
    full,
    hostile_integers,
    hostile_texts,
}
