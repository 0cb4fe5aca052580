//! Opens an index of some design from hostile bytes and uses it: every answer is an error or
//! plausible.

#[path = "image.rs"]
mod image;

use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::{Mapped, Pool};
use bristlecone_trees::designs::{BTreeLog, BTreeLs, BTreeLsR, CclBTree, FastFair, FpTree, WbTree};
use bristlecone_trees::erased::BoxedIndex;
use bristlecone_trees::{ErasedDesign, Order};
use core::ops::{Bound, ControlFlow};
use std::path::Path;
use std::sync::{Arc, OnceLock};

const KEYS: u64 = 150;
const ROOT: &str = "fuzzed";
/// The designs: each engine, with and without a log.
const DESIGNS: [ErasedDesign<Mapped, u64>; 7] = [
    ErasedDesign::of::<FpTree<256>>(),
    ErasedDesign::of::<WbTree<256>>(),
    ErasedDesign::of::<FastFair<256>>(),
    ErasedDesign::of::<BTreeLog<256>>(),
    ErasedDesign::of::<BTreeLs<256>>(),
    ErasedDesign::of::<BTreeLsR<256>>(),
    ErasedDesign::of::<CclBTree<2>>(),
];

/// The first byte of `data` selects the design, and its image after a close or after a kill. The
/// rest are changes of the image.
pub(crate) fn tree_image(data: &[u8]) {
    static IMAGES: OnceLock<Vec<[Vec<u8>; 2]>> = OnceLock::new();
    let Some((&kind, rest)) = data.split_first() else { return };
    let images = IMAGES.get_or_init(|| DESIGNS.iter().map(images).collect());
    let (number, is_closed) = (usize::from(kind / 2) % DESIGNS.len(), usize::from(kind % 2));
    let bytes = image::changed(&images[number][is_closed], rest);
    let folder = image::folder();
    let path = folder.path().join("fuzzed.pool");
    std::fs::write(&path, bytes).expect("room for a small file");
    let opened =
        Mapped::open(&path, &file_options()).ok().and_then(|medium| Pool::open(medium).ok());
    let Some((pool, opened)) = opened else { return };
    if let Ok(index) = (DESIGNS[number].open)(Arc::new(pool), ROOT, opened) {
        use_index(index);
    }
}

fn file_options() -> FileOptions {
    FileOptions { reserve_bytes: 16 << 20, ..FileOptions::default() }
}

/// Returns the image of an index after a kill and after a close.
fn images(design: &ErasedDesign<Mapped, u64>) -> [Vec<u8>; 2] {
    let folder = image::folder();
    let path = folder.path().join("sound.pool");
    let read = |path: &Path| std::fs::read(path).expect("the file of the pool");
    let medium = Mapped::create(&path, 512 << 10, &file_options()).expect("a new file");
    let pool = Arc::new(Pool::create(medium).expect("a new pool"));
    let index = (design.create)(pool, ROOT).expect("room");
    for key in 0..KEYS {
        index.insert(key * 7 + 1, key).expect("room");
    }
    for key in (0..KEYS).step_by(5) {
        index.remove(key * 7 + 1).expect("a sound index");
    }
    let killed = read(&path);
    close(index);
    [killed, read(&path)]
}

fn close(index: BoxedIndex<Mapped, u64>) {
    let pool = index.close().ok().and_then(Arc::into_inner);
    let _ = pool.map(Pool::close);
}

/// Reads, writes and closes. An error may come from any call.
fn use_index(index: BoxedIndex<Mapped, u64>) {
    let _ = index.check();
    for key in (0..KEYS).step_by(11) {
        let _ = index.get(key * 7 + 1);
    }
    let _ = index.multi_get(&[1, 8, 9, 15], &mut [None; 4]);
    for order in [Order::Ascending, Order::Descending] {
        let mut last: Option<u64> = None;
        let all = (Bound::Unbounded, Bound::Unbounded);
        let _ = index.scan(all, order, &mut |key, _| {
            let follows = last.is_none_or(|last| match order {
                Order::Ascending => last < key,
                Order::Descending => last > key,
            });
            assert!(follows, "a scan is in strict order: {key} after {last:?}");
            last = Some(key);
            ControlFlow::Continue(())
        });
    }
    for key in (0..KEYS).step_by(13) {
        let _ = index.upsert(key * 7 + 1, 1);
        let _ = index.remove((key + 1) * 7 + 1);
        let _ = index.insert(key * 7 + 2, 2);
        let _ = index.update((key + 2) * 7 + 1, 3);
    }
    let _ = index.run_maintenance_step();
    close(index);
}
