//! Turns a panic, or a run that never ends, into a finding.

use crate::medium::lazy_image::access::StepsExhausted;
use crate::outcome::Finding;
use bristlecone_pmem::medium::schedule::{self, Conditions};
use core::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// The finding of a run that never ends.
pub(crate) const NEVER_ENDS: &str = "it does not end";

/// Calls `judge` and returns its result. A panic in it, or a run that never ends, is a finding.
pub(crate) fn guarded(judge: impl FnOnce() -> Result<(), Finding>) -> Result<(), Finding> {
    hook_panics();
    let was_quiet = IS_QUIET.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(judge));
    IS_QUIET.set(was_quiet);
    outcome.unwrap_or_else(|payload| {
        Err(if payload.is::<StepsExhausted>() {
            Finding::new(NEVER_ENDS, "an end", "millions of accesses without one")
        } else {
            Finding::new("panic", "no panic", MESSAGE.take())
        })
    })
}

/// The conditions of the runs on this thread, until it is dropped.
pub(crate) struct UnderConditions(Conditions);

impl UnderConditions {
    pub(crate) fn new(conditions: Conditions) -> Self {
        Self(schedule::set_conditions(conditions))
    }
}

impl Drop for UnderConditions {
    fn drop(&mut self) {
        schedule::set_conditions(self.0);
    }
}

/// Returns the message of the last panic under [`guarded`] on this thread.
pub(crate) fn panic_message() -> String {
    MESSAGE.take()
}

/// Keeps the messages of panics under [`guarded`] off the terminal. Other panics go to the former
/// hook.
fn hook_panics() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if IS_QUIET.get() {
                MESSAGE.set(info.to_string());
            } else {
                previous(info);
            }
        }));
    });
}
