use super::super::storage::Storage;
use super::*;
use crate::medium::{FileOptions, Mapped, Medium};
use std::path::Path;

const STRIPE_BYTES: u64 = 2 << 20;
/// A node that no machine that runs the tests has.
const MISSING_NODE: u16 = NODE_NUMBERS - 1;

/// Returns `true`, and prints the reason, if the system does not support NUMA placement at all.
fn is_refused<T>(made: &Result<T, MediumError>) -> bool {
    use io::ErrorKind::{PermissionDenied, Unsupported};
    let Err(MediumError::Node { node: 0, source }) = made else { return false };
    assert!(matches!(source.kind(), PermissionDenied | Unsupported), "{source}");
    eprintln!("skipped: this system has no NUMA placement: {source}");
    true
}

/// Returns the memory policy that the system shows for the mapping of `medium`, if it shows any.
fn policy(medium: &Mapped) -> Option<String> {
    let start = format!("{:x}", medium.base().as_ptr() as usize);
    let maps = std::fs::read_to_string("/proc/self/numa_maps").ok()?;
    let line =
        maps.lines().find(|line| line.split(' ').next().is_some_and(|at| at.ends_with(&start)));
    Some(line?.split(' ').nth(1)?.to_owned())
}

fn options(node: u16) -> FileOptions {
    let placement = Placement::new(&[node], STRIPE_BYTES).unwrap();
    FileOptions { placement: Some(placement), reserve_bytes: 1 << 30, ..FileOptions::default() }
}

#[test]
fn memory_is_placed_on_an_existing_node_and_a_missing_node_is_an_error() {
    let on = |nodes: &[u16]| {
        let placement = Placement::new(nodes, STRIPE_BYTES).unwrap();
        Mapped::anonymous_on(5 << 20, placement)
    };
    let made = on(&[0]);
    if is_refused(&made) {
        return;
    }
    let medium = made.unwrap();
    medium.grow(9 << 20).unwrap();
    assert!(policy(&medium).is_none_or(|policy| policy == "prefer:0"));
    for nodes in [&[MISSING_NODE][..], &[0, MISSING_NODE]] {
        let refused = on(nodes).unwrap_err();
        assert!(matches!(refused, MediumError::Node { node: MISSING_NODE, .. }), "{refused}");
    }
    let unbound = Placement::as_it_lies(&[MISSING_NODE], STRIPE_BYTES).unwrap();
    Mapped::anonymous_on(5 << 20, unbound).expect("the medium asks the system for nothing");
}

#[test]
fn growth_to_a_missing_node_is_an_error() {
    let placement = Placement::new(&[0, MISSING_NODE], STRIPE_BYTES).unwrap();
    let made = Mapped::anonymous_on(STRIPE_BYTES, placement);
    if is_refused(&made) {
        return;
    }
    let medium = made.unwrap();
    let refused = medium.grow(2 * STRIPE_BYTES).unwrap_err();
    assert!(matches!(refused, MediumError::Node { node: MISSING_NODE, .. }), "{refused}");
    assert_eq!(medium.len(), STRIPE_BYTES);
}

#[test]
fn a_file_in_shared_memory_keeps_its_policy() {
    let Ok(dir) = tempfile::tempdir_in("/dev/shm") else {
        eprintln!("skipped: there is no shared memory here");
        return;
    };
    let path = dir.path().join("p");
    let made = Mapped::create(&path, 3 << 20, &options(0));
    if is_refused(&made) {
        return;
    }
    let medium = made.unwrap();
    assert!(policy(&medium).is_none_or(|policy| policy == "prefer:0"));
    medium.grow(8 << 20).unwrap();
    drop(medium);
    Mapped::open(&path, &options(0)).unwrap();
    let refused = Mapped::open(&path, &options(MISSING_NODE)).unwrap_err();
    assert!(matches!(refused, MediumError::Node { node: MISSING_NODE, .. }), "{refused}");
    let other = dir.path().join("q");
    Mapped::create(&other, 3 << 20, &options(MISSING_NODE)).unwrap_err();
    assert!(!other.exists(), "no file is left behind");
}

#[test]
fn a_file_in_the_page_cache_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    if is_shared_memory(dir.path()) {
        eprintln!("skipped: temporary files are in shared memory here");
        return;
    }
    let path = dir.path().join("p");
    let refused = Mapped::create(&path, 3 << 20, &options(0)).unwrap_err();
    let MediumError::Node { node: 0, source } = refused else { panic!("{refused}") };
    assert_eq!(source.kind(), io::ErrorKind::Unsupported);
    assert!(!path.exists(), "no file is left behind");
    let unbound = Placement::as_it_lies(&[0, MISSING_NODE], STRIPE_BYTES).unwrap();
    let options = FileOptions { placement: Some(unbound), ..options(0) };
    let medium = Mapped::create(&path, 3 << 20, &options).unwrap();
    assert_eq!(medium.placement(), Some(unbound));
}

fn is_shared_memory(path: &Path) -> bool {
    let folder = std::fs::File::open(path).unwrap();
    matches!(Storage::of_system(&folder), Ok(Storage::Memory(_)))
}
