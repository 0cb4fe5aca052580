//! Failure-atomic changes of several words.
//!
//! | log | what it does | who wants it |
//! | --- | --- | --- |
//! | [`RedoLog`] | redo: the new values are logged, then stored | splits, merges, pointer swaps |
//! | [`UndoLog`] | undo-redo: a word's old value is durable before it is stored in place | in-place changes |
//!
//! The pool has some of both; an index whose transactions are longer keeps [`UndoLogs`] in a block of
//! its own.
//!
//! Redo only, with the new values logged and committed together, *is* the sealed log: there is no
//! third.
//!
//! 1. Values are applied in the order in which they were given.
//! 2. Whoever changes logged words holds the latches of their nodes until the log is truncated. So
//!    a replay never overwrites a later change, and no two logs name one word at the same time.
//! 3. Numbers of transactions never repeat in a pool, so that lines of an old transaction cannot
//!    complete a new one. An open resumes above every number that it finds.
//! 4. Both logs rely on the stores to one line persisting in order.
//! 5. A thread that waits for a log slot may hold latches; one that holds a slot waits for none.

mod apply;
mod index_logs;
mod redo;
mod replay;
mod slots;
mod undo;

pub use index_logs::UndoLogs;
pub use redo::{Committed, PAIRS_MAX, RedoLog};
pub(crate) use replay::replay;
pub(crate) use slots::Slots;
#[cfg(all(test, loom))]
pub(crate) use slots::{give_back, take};
pub use undo::{RECORDS_MAX, Redoable, UndoLog};
