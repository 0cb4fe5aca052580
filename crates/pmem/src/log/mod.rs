//! Logs: failure-atomic changes of several words.
//!
//! | log | method | use |
//! | --- | --- | --- |
//! | [`RedoLog`] | logs the new values, commits, then stores them | splits, merges, pointer swaps |
//! | [`UndoLog`] | logs the old value of a word, then stores the new one | changes in place |
//!
//! A pool has several of both in its header. An index with longer transactions keeps [`UndoLogs`]
//! in a block of its own.
//!
//! 1. Values are applied in the order in which the caller passed them.
//! 2. A thread that changes logged words holds the latches of their nodes until the log is
//!    truncated. So a replay never overwrites a later change, and no two logs contain the same word
//!    at once.
//! 3. Transaction numbers never repeat in a pool, so the lines of an old transaction cannot
//!    complete a new one. An open continues above every number that it finds.
//! 4. Both logs rely on the stores to one line persisting in program order.
//! 5. A thread that waits for a log slot may hold latches. A thread that holds a slot waits for no
//!    latch. So no deadlock is possible.

mod apply;
mod index_logs;
mod redo;
mod replay;
mod slots;
mod undo;

pub use index_logs::UndoLogs;
pub use redo::{Committed, PAIRS_MAX, RedoLog};
pub(crate) use replay::Replay;
pub(crate) use slots::{AGED_TXID, SlotState};
#[cfg(all(test, loom))]
pub(crate) use slots::{return_slot, take_slot};
pub use undo::{RECORDS_MAX, Redoable, UndoLog};
