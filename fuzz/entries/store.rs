//! Opens a store from hostile bytes and uses it: every answer is an error or plausible.

#[path = "image.rs"]
mod image;

use bristlecone::{Durability, Options, Store};
use std::sync::OnceLock;

const PAIRS: u32 = 120;

/// The files of a sound store: after a close, and after a kill.
struct Images {
    closed: Vec<u8>,
    killed: Vec<u8>,
}

/// The first byte of `data` selects the bytes of a file, or changes of a sound one.
pub(crate) fn store_image(data: &[u8]) {
    static IMAGES: OnceLock<Images> = OnceLock::new();
    let Some((&kind, rest)) = data.split_first() else { return };
    let images = IMAGES.get_or_init(images);
    let bytes = match kind % 3 {
        0 => rest.to_vec(),
        1 => image::changed(&images.closed, rest),
        _ => image::changed(&images.killed, rest),
    };
    let folder = image::folder();
    let path = folder.path().join("fuzzed.pool");
    std::fs::write(&path, bytes).expect("room for a small file");
    if let Ok(store) = options().open(&path) {
        use_store(store);
    }
}

fn options() -> Options {
    let options = Store::options().durability(Durability::Process);
    options.initial_bytes(256 << 10).max_bytes(4 << 20).reserve_bytes(16 << 20)
}

fn key(number: u32) -> String {
    // Short keys lie in a leaf, longer ones in a record.
    if number.is_multiple_of(3) {
        format!("{number:04}")
    } else {
        format!("a longer key {number:06}")
    }
}

fn images() -> Images {
    let folder = image::folder();
    let path = folder.path().join("sound.pool");
    let store = options().create(&path).expect("a new store");
    for number in 0..PAIRS {
        let value = vec![number as u8; (number % 40) as usize];
        store.put(key(number), value).expect("room");
    }
    for number in (0..PAIRS).step_by(7) {
        store.delete(key(number)).expect("a sound store");
    }
    let killed = std::fs::read(&path).expect("the file of the store");
    store.close().expect("a sound store");
    Images { closed: std::fs::read(&path).expect("the file of the store"), killed }
}

/// Reads, writes and closes. An error may come from any call.
fn use_store(mut store: Store) {
    let _ = store.check();
    let _ = store.stats();
    for number in (0..PAIRS).step_by(11) {
        let _ = store.get(key(number));
        let _ = store.contains(key(number));
    }
    let _ = store.multi_get(&[key(1), key(2), key(3)]);
    let mut last = None;
    for pair in store.iter().take(4 * PAIRS as usize).map_while(Result::ok) {
        assert!(last.as_ref().is_none_or(|last| *last < pair.0), "a scan is in strict order");
        last = Some(pair.0);
    }
    let mut last = None;
    for pair in store.scan("a"..).rev().take(4 * PAIRS as usize).map_while(Result::ok) {
        assert!(last.as_ref().is_none_or(|last| *last > pair.0), "a scan is in strict order");
        last = Some(pair.0);
    }
    for number in (0..PAIRS).step_by(17) {
        let _ = store.put(key(number), "another value");
        let _ = store.delete(key(number + 1));
        let _ = store.insert(key(PAIRS + number), "new");
        let _ = store.update(key(number + 2), vec![7; 300]);
    }
    let _ = store.len();
    let _ = store.close();
}
