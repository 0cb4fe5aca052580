//! The modelled device, held to the figures from which its profiles are made.

mod bandwidth;
mod corpus;
mod data;
mod probes;
mod same;

use bristlecone_lab::device::{Device, Profile};
use bristlecone_pmem::{Mapped, Pool};
use std::sync::Arc;

/// A device over DRAM.
type Dram = Device<Mapped>;

/// Returns a pool of `bytes` bytes on a device of `profile`.
fn pool(profile: &Profile, bytes: u64) -> Arc<Pool<Dram>> {
    let dram = Mapped::anonymous(bytes).expect("there is memory");
    let device = Device::new(dram, profile.clone()).expect("the profile is sound");
    Arc::new(Pool::create(device).expect("there is room"))
}

/// Returns the built-in profile called `name`.
fn profile(name: &str) -> Profile {
    Profile::named(name).expect("it is built in")
}

/// Asserts that `found` differs from `expected` by at most the part `tolerance` of it.
#[track_caller]
fn assert_near(what: &str, found: f64, expected: f64, tolerance: f64) {
    let is_near = (found / expected - 1.0).abs() <= tolerance;
    assert!(is_near, "{what}: {found:.3}, and {expected:.3} is expected");
}
