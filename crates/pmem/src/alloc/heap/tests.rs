use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const POOL_BYTES: u64 = 64 * CHUNK_BYTES;

proptest! {
    /// Blocks in use never overlap, are aligned, and the image and the marks both restore the heap.
    #[test]
    fn blocks_never_overlap(steps in prop::collection::vec((0u64..80_000, any::<u16>()), 1..300)) {
        let mut heap = Heap::new(POOL_BYTES, 1);
        let mut held: BTreeMap<u64, u64> = BTreeMap::new();
        for (bytes, pick) in steps {
            let bytes = if pick % 8 == 0 { bytes } else { bytes % 1200 };
            if pick % 3 == 0 && !held.is_empty() {
                let (&offset, &bytes) = held.iter().nth(usize::from(pick) % held.len()).unwrap();
                heap.release(offset, bytes);
                held.remove(&offset);
            } else if let Some(offset) = heap.reserve(bytes) {
                prop_assert!(offset >= CHUNK_BYTES && offset % 64 == 0);
                prop_assert!(offset + bytes <= POOL_BYTES);
                let before = held.range(..=offset).next_back();
                prop_assert!(before.is_none_or(|(o, b)| o + b.max(&1) <= offset));
                let after = held.range(offset..).next();
                prop_assert!(after.is_none_or(|(o, _)| offset + bytes <= *o));
                held.insert(offset, bytes);
            }
        }
        let decoded = Heap::decode(&heap.encode(), POOL_BYTES).expect("own image");
        let mut marked = Heap::new(POOL_BYTES, 1);
        for (&offset, &bytes) in &held {
            marked.mark(offset, bytes).expect("own blocks");
        }
        marked.finish_marking();
        for other in [decoded, marked] {
            prop_assert_eq!(other.usage().used_bytes, heap.usage().used_bytes);
            prop_assert_eq!(other.usage().blocks, heap.usage().blocks);
        }
    }

    #[test]
    fn no_image_makes_decode_panic(image in prop::collection::vec(any::<u8>(), 72 * 4)) {
        if let Some(heap) = Heap::decode(&image, 4 * CHUNK_BYTES) {
            prop_assert_eq!(heap.encode().len(), 72 * 4);
        }
    }
}

#[test]
fn everything_can_be_used_again_as_one_block() {
    let mut heap = Heap::new(POOL_BYTES, 1);
    let mut blocks = Vec::new();
    while let Some(offset) = heap.reserve(256) {
        blocks.push(offset);
    }
    assert_eq!(blocks.len() as u64, 63 * CHUNK_BYTES / 256);
    assert!(heap.reserve(1).is_none());
    for offset in blocks {
        heap.release(offset, 256);
    }
    assert_eq!(heap.reserve(63 * CHUNK_BYTES), Some(CHUNK_BYTES));
}

#[test]
fn a_mark_that_cannot_be_is_refused() {
    let mut heap = Heap::new(POOL_BYTES, 1);
    heap.mark(CHUNK_BYTES + 256, 256).expect("free");
    assert_eq!(heap.mark(CHUNK_BYTES + 256, 256).unwrap_err().what, "block is reached twice");
    let unfit = "block does not fit its chunk";
    assert_eq!(heap.mark(CHUNK_BYTES + 64, 64).unwrap_err().what, unfit);
    assert_eq!(heap.mark(2 * CHUNK_BYTES + 8, 256).unwrap_err().what, unfit);
    assert_eq!(heap.mark(0, 64).unwrap_err().what, unfit);
    let past = "block past the end of the pool";
    assert_eq!(heap.mark(POOL_BYTES, 64).unwrap_err().what, past);
    assert_eq!(heap.mark(u64::MAX - 7, u64::MAX).unwrap_err().what, past);
    let overlap = "large block overlaps another";
    assert_eq!(heap.mark(CHUNK_BYTES, 40 << 10).unwrap_err().what, overlap);
}

#[test]
fn an_image_that_gives_the_header_away_is_refused() {
    let image = Heap::new(POOL_BYTES, 0).encode();
    assert!(Heap::decode(&image, POOL_BYTES).is_none());
    assert!(Heap::decode(&Heap::new(POOL_BYTES, 1).encode(), POOL_BYTES).is_some());
}

#[test]
fn only_a_block_in_use_at_its_size_is_freed() {
    let mut heap = Heap::new(POOL_BYTES, 1);
    let small = heap.reserve(256).unwrap();
    let large = heap.reserve(3 * CHUNK_BYTES).unwrap();
    let wrong = [
        (small, 300),
        (small + 64, 256),
        (small + 256, 256),
        (small, 40 << 10),
        (large, 2 * CHUNK_BYTES),
        (large, u64::MAX),
        (large, 256),
        (large + 64, 3 * CHUNK_BYTES),
        (large + CHUNK_BYTES, 3 * CHUNK_BYTES),
        (POOL_BYTES, 256),
        (u64::MAX, 256),
    ];
    for (offset, bytes) in wrong {
        assert!(!heap.try_release(offset, bytes), "{offset:#x} {bytes}");
    }
    assert!(heap.try_release(small, 200) && !heap.try_release(small, 200));
    assert!(heap.try_release(large, 3 * CHUNK_BYTES));
    assert_eq!(heap.usage().blocks, 1);
}

#[test]
fn a_block_of_no_bytes_is_the_smallest_block() {
    let mut heap = Heap::new(POOL_BYTES, 1);
    let block = heap.reserve(0).unwrap();
    let mut marked = Heap::new(POOL_BYTES, 1);
    marked.mark(block, 0).unwrap();
    assert_eq!(marked.usage().used_bytes, heap.usage().used_bytes);
    assert!(heap.try_release(block, 0));
}

#[test]
fn only_a_block_in_use_at_its_size_is_one() {
    let mut heap = Heap::new(POOL_BYTES, 1);
    let small = heap.reserve(256).unwrap();
    let large = heap.reserve(100_000).unwrap();
    assert!(heap.is_block(small, 256) && heap.is_block(small, 193) && !heap.is_block(small, 192));
    assert!(!heap.is_block(small, 257) && !heap.is_block(small + 64, 256));
    assert!(!heap.is_block(small + 256, 256), "free");
    assert!(heap.is_block(large, 100_000) && !heap.is_block(large, 200_000));
    assert!(!heap.is_block(large + CHUNK_BYTES, 100_000) && !heap.is_block(large, 256));
    assert!(!heap.is_block(POOL_BYTES, 64) && !heap.is_block(u64::MAX - 7, u64::MAX));
    heap.retire(small, 256);
    assert!(!heap.is_block(small, 256));
}
