//! Pools that earlier builds wrote: each opens for ever, or is refused by name.
//!
//! The files are in `tests/images`, without the zeros at their ends. Those of this version
//! come from
//!
//! ```text
//! BRISTLECONE_WRITE_IMAGES=1 cargo test -p bristlecone --test it images
//! ```
//!
//! which a change of the format runs once, with a new version in the names.

use crate::image::restart;
use crate::{Place, place};
use bristlecone::{Durability, Error, Options, Store};
use bristlecone_pmem::pool::{FORMAT_VERSION, POOL_BYTES_MIN};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// The size of the pools in the images. Those of version 1 have half of it.
const IMAGE_BYTES: u64 = 2 * POOL_BYTES_MIN;

fn options() -> Options {
    Store::options().initial_bytes(IMAGE_BYTES).reserve_bytes(1 << 30)
}

/// Returns the changes that made the images: short pairs, records, a long value, and some pairs
/// that are deleted again.
fn changes() -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let mut changes = Vec::new();
    for number in 0..60_u32 {
        changes.push((number.to_be_bytes().to_vec(), Some(number.to_le_bytes().to_vec())));
        let name = format!("a key with a beginning that many share, number {number:03}");
        changes.push((name.into_bytes(), Some(format!("value {number}").repeat(7).into_bytes())));
    }
    changes.push((b"long".to_vec(), Some((0..20_000_u32).map(|at| (at % 251) as u8).collect())));
    changes.push((Vec::new(), Some(Vec::new())));
    for number in (0..60_u32).step_by(5) {
        changes.push((number.to_be_bytes().to_vec(), None));
    }
    changes
}

fn pairs() -> Pairs {
    let mut pairs = Pairs::new();
    for (key, value) in changes() {
        match value {
            Some(value) => drop(pairs.insert(key, value)),
            None => drop(pairs.remove(&key)),
        }
    }
    pairs
}

fn image_path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/images").join(name)
}

/// Copies the image to a place of its own, with the zeros at its end.
fn unpacked(name: &str) -> Place {
    let place = place();
    let mut bytes = fs::read(image_path(name)).unwrap();
    bytes.resize(IMAGE_BYTES as usize, 0);
    fs::write(&place.path, bytes).unwrap();
    place
}

/// Writes the images of this version, if the environment asks for them.
fn write_images() {
    if std::env::var_os("BRISTLECONE_WRITE_IMAGES").is_none() {
        return;
    }
    for is_closed in [true, false] {
        let place = place();
        let options = options().durability(Durability::Process);
        let store = options.max_bytes(IMAGE_BYTES).create(&place.path).unwrap();
        for (key, value) in changes() {
            match value {
                Some(value) => store.put(key, value).unwrap(),
                None => assert!(store.delete(key).unwrap()),
            }
        }
        if is_closed {
            store.close().unwrap();
        } else {
            drop(store);
        }
        let mut bytes = fs::read(&place.path).unwrap();
        assert_eq!(bytes.len() as u64, IMAGE_BYTES);
        restart(&mut bytes); // The images name no boot of a real machine.
        let used = bytes.iter().rposition(|&byte| byte != 0).unwrap();
        bytes.truncate(used + 1);
        let state = if is_closed { "closed" } else { "open" };
        fs::write(image_path(&format!("version-{FORMAT_VERSION}-{state}.image")), bytes).unwrap();
    }
}

fn check(store: &mut Store) {
    let found: Pairs = store.iter().collect::<Result<_, _>>().unwrap();
    assert!(found == pairs());
    for (key, value) in pairs() {
        assert_eq!(store.get(key).unwrap().unwrap(), value);
    }
    let report = store.check().unwrap();
    assert_eq!((report.keys, report.unreachable_blocks), (pairs().len() as u64, 0));
    store.put("later", "written by this build").unwrap();
}

#[test]
fn pools_of_version_3_open() {
    write_images();
    let place = unpacked("version-3-closed.image");
    let mut store = options().open(&place.path).unwrap();
    assert!(!store.was_recovered());
    check(&mut store);

    // No machine runs in the boot that left the other one open.
    let place = unpacked("version-3-open.image");
    let error = options().open(&place.path).unwrap_err();
    assert!(matches!(error, Error::MayBeTorn { .. }), "{error}");
    let mut store = options().open_torn(true).open(&place.path).unwrap();
    assert!(store.was_recovered());
    check(&mut store);
}

#[test]
fn pools_of_older_versions_are_refused_with_the_way_to_move_their_pairs() {
    for (version, state) in [(1, "closed"), (1, "open"), (2, "closed"), (2, "open")] {
        let name = format!("version-{version}-{state}.image");
        let place = unpacked(&name);
        let before = fs::read(&place.path).unwrap();
        let opens = [options(), options().open_torn(true)];
        for error in opens.map(|options| options.open_or_create(&place.path).unwrap_err()) {
            let said = error.to_string();
            assert!(
                matches!(&error, Error::OldVersion { at: 8, found, supported: 3, .. } if *found == version),
                "{name}: {said}"
            );
            assert!(said.contains("bristlecone dump") && said.contains("bristlecone load"));
        }
        assert!(before == fs::read(&place.path).unwrap(), "a refusal changes nothing");
    }
}
