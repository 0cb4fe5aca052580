//! The experiments, held to the papers' formulas.

#[cfg(feature = "all-sizes")]
mod buffered_upserts;
mod filled_leaves;
mod inner_shift;
mod inserts;
#[cfg(feature = "all-sizes")]
mod log_tuning;
mod served;

use bristlecone_lab::device::Profile;

/// Returns a built-in profile.
fn profile(name: &str) -> Profile {
    Profile::named(name).expect("the profile is built in")
}

/// Asserts that `found` differs from `expected` by at most the part `tolerance` of it.
#[track_caller]
fn assert_near(what: &str, found: f64, expected: f64, tolerance: f64) {
    let is_near = (found / expected - 1.0).abs() <= tolerance;
    assert!(is_near, "{what}: {found:.3}, and {expected:.3} is expected");
}
