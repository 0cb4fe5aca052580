use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const POOL_BYTES: u64 = 64 * CHUNK_BYTES;

proptest! {
    /// Blocks in use are aligned and never overlap. The free map and the marks both restore the
    /// heap.
    #[test]
    fn blocks_never_overlap(steps in prop::collection::vec((0u64..80_000, any::<u16>()), 1..300)) {
        let mut heap = Heap::new(POOL_BYTES, 1, ZoneMap::SINGLE);
        let mut held: BTreeMap<u64, u64> = BTreeMap::new();
        for (bytes, pick) in steps {
            let bytes = if pick % 8 == 0 { bytes } else { bytes % 1200 };
            if pick % 3 == 0 && !held.is_empty() {
                let (&offset, &bytes) = held.iter().nth(usize::from(pick) % held.len()).unwrap();
                heap.release(offset, bytes);
                held.remove(&offset);
            } else if let Some(offset) = heap.reserve(bytes, 0) {
                prop_assert!(offset >= CHUNK_BYTES && offset % 64 == 0);
                prop_assert!(offset + bytes <= POOL_BYTES);
                let before = held.range(..=offset).next_back();
                prop_assert!(before.is_none_or(|(o, b)| o + b.max(&1) <= offset));
                let after = held.range(offset..).next();
                prop_assert!(after.is_none_or(|(o, _)| offset + bytes <= *o));
                held.insert(offset, bytes);
            }
        }
        let decoded = Heap::decode(&heap.encode(), POOL_BYTES, ZoneMap::SINGLE);
        let decoded = decoded.expect("own free map");
        let mut marked = Heap::new(POOL_BYTES, 1, ZoneMap::SINGLE);
        for (&offset, &bytes) in &held {
            marked.mark(offset, bytes).expect("own blocks");
        }
        marked.finish_marking();
        for other in [decoded, marked] {
            prop_assert_eq!(other.usage(), heap.usage());
        }
        let usage = heap.usage();
        let used: u64 = held.values().map(|&bytes| reserved_bytes(bytes)).sum();
        prop_assert_eq!(usage.used_bytes, CHUNK_BYTES + used);
        prop_assert_eq!(usage.blocks, 1 + held.len() as u64);
        let free = usage.free_bytes + usage.free_page_bytes + usage.partial_bytes;
        prop_assert_eq!(usage.used_bytes + free + usage.rest_bytes, POOL_BYTES);
    }

    #[test]
    fn no_saved_map_makes_decode_panic(saved in prop::collection::vec(any::<u8>(), 72 * 4)) {
        if let Some(heap) = Heap::decode(&saved, 4 * CHUNK_BYTES, ZoneMap::SINGLE) {
            prop_assert_eq!(heap.encode().len(), 72 * 4);
        }
    }
}

#[test]
fn freed_small_blocks_become_one_large_block() {
    let mut heap = Heap::new(POOL_BYTES, 1, ZoneMap::SINGLE);
    let mut blocks = Vec::new();
    while let Some(offset) = heap.reserve(256, 0) {
        blocks.push(offset);
    }
    assert_eq!(blocks.len() as u64, 63 * CHUNK_BYTES / 256);
    assert!(heap.reserve(1, 0).is_none());
    for offset in blocks {
        heap.release(offset, 256);
    }
    assert_eq!(heap.reserve(63 * CHUNK_BYTES, 0), Some(CHUNK_BYTES));
}

#[test]
fn an_impossible_mark_is_refused() {
    let mut heap = Heap::new(POOL_BYTES, 1, ZoneMap::SINGLE);
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
    heap.mark(3 * CHUNK_BYTES - 1024, 20 << 10).expect("pages of two chunks");
    assert_eq!(heap.mark(3 * CHUNK_BYTES, 20 << 10).unwrap_err().what, overlap);
    assert_eq!(heap.mark(3 * CHUNK_BYTES, 64).unwrap_err().what, unfit);
    assert_eq!(heap.mark(4 * CHUNK_BYTES + 64, 20 << 10).unwrap_err().what, overlap);
}

#[test]
fn a_block_of_20_kb_takes_little_more() {
    let mut heap = Heap::new(POOL_BYTES, 1, ZoneMap::SINGLE);
    let mut blocks = 0;
    while heap.reserve(20_040, 0).is_some() {
        blocks += 1;
    }
    assert!(blocks * 20_040 * 100 > 63 * CHUNK_BYTES * 96, "{blocks} blocks");
}

#[test]
fn a_freed_chunk_serves_every_size_at_once() {
    let mut heap = Heap::new(5 * CHUNK_BYTES, 1, ZoneMap::SINGLE);
    let blocks: Vec<_> = std::iter::from_fn(|| heap.reserve(8 << 10, 0)).collect();
    assert_eq!((blocks.len(), heap.usage().free_bytes), (16, 0));
    for &block in &blocks[4..8] {
        heap.release(block, 8 << 10);
    }
    assert_eq!(heap.usage().free_bytes, CHUNK_BYTES);
    assert_eq!(heap.reserve(100, 0), Some(blocks[4]));
}

#[test]
fn blocks_leave_the_sparsest_chunk() {
    let mut heap = Heap::new(POOL_BYTES, 1, ZoneMap::SINGLE);
    let blocks: Vec<_> = (0..4 * 256).map(|_| heap.reserve(128, 0).unwrap()).collect();
    assert!(heap.begin_evacuation().is_none(), "full chunks are not sparse");
    for (at, &block) in blocks.iter().enumerate() {
        let is_kept = if at / 256 == 2 { at % 50 == 0 } else { at % 3 == 0 };
        if !is_kept {
            heap.release(block, 128);
        }
    }
    let evacuation = heap.begin_evacuation().unwrap();
    assert_eq!((evacuation.block_bytes, evacuation.blocks.len()), (128, 5));
    let left = evacuation.blocks[0] / CHUNK_BYTES;
    for &block in &evacuation.blocks {
        assert_ne!(heap.reserve(128, 0).unwrap() / CHUNK_BYTES, left);
        heap.retire(block, 128, 1);
    }
    heap.end_evacuation(&evacuation);
    let (free, sparse) = (heap.usage().free_bytes, heap.counts.sparse_bytes);
    heap.drain();
    assert_eq!(heap.usage().free_bytes, free + CHUNK_BYTES);
    assert_eq!(heap.counts.sparse_bytes, sparse);
    // Blocks that cannot move are not tried again.
    while let Some(evacuation) = heap.begin_evacuation() {
        heap.end_evacuation(&evacuation);
    }
    assert_eq!(heap.counts.sparse_bytes, 0);
}

#[test]
fn a_full_heap_keeps_pages_for_its_free_map() {
    let mut heap = Heap::new(POOL_BYTES, 1, ZoneMap::SINGLE);
    heap.keep_pages();
    assert_eq!(heap.usage().kept_bytes, 7 << 10, "half more than 64 times 72 bytes");
    while heap.reserve(1, 0).or_else(|| heap.reserve(9 << 10, 0)).is_some() {}
    let usage = heap.usage();
    let at = heap.reserve_free_map().unwrap();
    let mut again = Heap::decode(&heap.encode(), POOL_BYTES, ZoneMap::SINGLE).unwrap();
    assert!(!again.release_free_map(at, 9 << 10), "a block of another size");
    assert!(again.release_free_map(at, heap.free_map_bytes()));
    again.keep_pages();
    assert_eq!((again.usage().blocks, again.usage().kept_bytes), (usage.blocks, 7 << 10));
}

#[test]
fn a_free_map_with_a_free_header_is_refused() {
    let saved = Heap::new(POOL_BYTES, 0, ZoneMap::SINGLE).encode();
    assert!(Heap::decode(&saved, POOL_BYTES, ZoneMap::SINGLE).is_none());
    assert!(
        Heap::decode(
            &Heap::new(POOL_BYTES, 1, ZoneMap::SINGLE).encode(),
            POOL_BYTES,
            ZoneMap::SINGLE
        )
        .is_some()
    );
}

#[test]
fn only_a_block_in_use_at_its_size_is_freed() {
    let mut heap = Heap::new(POOL_BYTES, 1, ZoneMap::SINGLE);
    let small = heap.reserve(256, 0).unwrap();
    let large = heap.reserve(3 * CHUNK_BYTES, 0).unwrap();
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
    let mut heap = Heap::new(POOL_BYTES, 1, ZoneMap::SINGLE);
    let block = heap.reserve(0, 0).unwrap();
    let mut marked = Heap::new(POOL_BYTES, 1, ZoneMap::SINGLE);
    marked.mark(block, 0).unwrap();
    marked.finish_marking();
    assert_eq!(marked.usage().used_bytes, heap.usage().used_bytes);
    assert!(heap.try_release(block, 0));
}

#[test]
fn only_a_block_in_use_at_its_size_is_one() {
    let mut heap = Heap::new(POOL_BYTES, 1, ZoneMap::SINGLE);
    let small = heap.reserve(256, 0).unwrap();
    let large = heap.reserve(100_000, 0).unwrap();
    assert!(heap.is_block(small, 256) && heap.is_block(small, 193) && !heap.is_block(small, 192));
    assert!(!heap.is_block(small, 257) && !heap.is_block(small + 64, 256));
    assert!(!heap.is_block(small + 256, 256), "free");
    assert!(heap.is_block(large, 100_000) && !heap.is_block(large, 200_000));
    assert!(!heap.is_block(large + CHUNK_BYTES, 100_000) && !heap.is_block(large, 256));
    assert!(!heap.is_block(POOL_BYTES, 64) && !heap.is_block(u64::MAX - 7, u64::MAX));
    heap.retire(small, 256, 1);
    assert!(!heap.is_block(small, 256));
}

#[test]
fn a_retired_block_waits_for_every_older_reader() {
    let mut heap = Heap::new(POOL_BYTES, 1, ZoneMap::SINGLE);
    let block = heap.reserve(256, 0).unwrap();
    heap.retire(block, 256, 7);
    assert_eq!(heap.release_retired(7), 0, "a reader may have pinned itself in epoch 7");
    assert_eq!(heap.release_retired(8), 1);
    assert_eq!(heap.reserve(256, 0), Some(block), "the lowest free block is reserved");
    heap.retire(block, 256, 9);
    heap.drain();
    assert_eq!((heap.waiting_blocks(), heap.usage().blocks), (0, 1));
}

#[test]
fn one_attempt_frees_a_bounded_part_of_a_backlog() {
    let mut heap = Heap::new(64 * POOL_BYTES, 1, ZoneMap::SINGLE);
    for bytes in [64, 16 << 10, 100 << 10] {
        let mut count = 0;
        while heap.usage().free_bytes > 8 << 20
            && count < 4096
            && let Some(block) = heap.reserve(bytes, 0)
        {
            heap.retire(block, bytes, 1);
            count += 1;
        }
        heap.retired.since = (0, 0); // As if other attempts had found a reader.
        while heap.waiting_blocks() > 0 {
            let before = heap.usage();
            let freed = heap.release_retired(2) as u64;
            let after = heap.usage();
            assert!((1..=FREED_BLOCKS_MAX as u64).contains(&freed));
            assert_eq!(before.blocks - after.blocks, freed);
            assert!(before.used_bytes - after.used_bytes < COLLECT_BYTES + reserved_bytes(bytes));
        }
    }
}

#[test]
fn a_backlog_shrinks_whatever_is_retired() {
    let mut heap = Heap::new(64 * POOL_BYTES, 1, ZoneMap::SINGLE);
    let bytes = 3 << 20;
    let blocks: Vec<_> = (0..8).map(|_| heap.reserve(bytes, 0).unwrap()).collect();
    for &block in &blocks {
        heap.retire(block, bytes, 1);
    }
    assert_eq!(heap.release_retired(1), 0);
    let mut waiting = heap.waiting_blocks();
    while waiting > 1 {
        let block = heap.reserve(bytes, 0).unwrap();
        assert!(heap.retire(block, bytes, 1), "a large block is due at once");
        heap.release_retired(2);
        assert!(heap.waiting_blocks() < waiting);
        waiting = heap.waiting_blocks();
    }
}

/// A model of a heap of several zones, computed from the blocks in use alone.
struct Model {
    zone_map: ZoneMap,
    held: BTreeMap<u64, u64>,
}

impl Model {
    fn is_empty(&self, chunk: u64) -> bool {
        let end = (chunk + 1) * CHUNK_BYTES;
        let last = self.held.range(..end).next_back();
        chunk > 0 && last.is_none_or(|(at, bytes)| at + reserved_bytes(*bytes) <= end - CHUNK_BYTES)
    }

    /// Returns `true` if a chunk has space for one more block of the size that it already has.
    fn has_space(&self, chunk: u64, bytes: u64) -> bool {
        let size = reserved_bytes(bytes);
        let begin = chunk * CHUNK_BYTES;
        let mut within = self.held.range(begin..begin + CHUNK_BYTES).peekable();
        within.peek().is_some_and(|(_, first)| reserved_bytes(**first) == size)
            && size <= SMALL_MAX_BYTES
            && (within.count() as u64) < CHUNK_BYTES / size
    }

    fn chunks(zones: impl Fn(usize) -> bool, zone_map: ZoneMap) -> impl Iterator<Item = u64> {
        (0..POOL_BYTES / CHUNK_BYTES).filter(move |&chunk| zones(zone_map.zone_of(chunk as u32)))
    }

    /// Returns `true` if the chunks of the zones that `zones` accepts have space for `bytes`.
    fn fits(&self, bytes: u64, zones: impl Fn(usize) -> bool) -> bool {
        let (zone_map, zones) = (self.zone_map, &zones);
        if bytes <= SMALL_MAX_BYTES {
            return Self::chunks(zones, zone_map)
                .any(|chunk| self.is_empty(chunk) || self.has_space(chunk, bytes));
        }
        let Pages { count, alignment } = Pages::of(bytes);
        let mut free = vec![false; (POOL_BYTES / PAGE_BYTES) as usize];
        for chunk in Self::chunks(zones, zone_map).filter(|&chunk| !self.is_small(chunk)) {
            free[(chunk * CHUNK_PAGES) as usize..][..CHUNK_PAGES as usize].fill(true);
        }
        free[..CHUNK_PAGES as usize].fill(false);
        for (at, bytes) in self.held.iter().filter(|(_, bytes)| **bytes > SMALL_MAX_BYTES) {
            free[(at / PAGE_BYTES) as usize..][..bytes.div_ceil(PAGE_BYTES) as usize].fill(false);
        }
        free.windows(count as usize)
            .step_by(alignment as usize)
            .any(|pages| pages.iter().all(|&is_free| is_free))
    }

    /// Returns `true` if a chunk has blocks of one size.
    fn is_small(&self, chunk: u64) -> bool {
        let begin = chunk * CHUNK_BYTES;
        let mut within = self.held.range(begin..begin + CHUNK_BYTES);
        within.any(|(_, &bytes)| bytes <= SMALL_MAX_BYTES)
    }
}

fn zone_maps() -> impl Strategy<Value = ZoneMap> {
    (1usize..=4, 1u32..=9).prop_map(|(zones, chunks)| ZoneMap::new(zones, chunks))
}

proptest! {
    /// Blocks come from the own zone while it has space, then from others. A reservation fails only
    /// if none of the zones that it may use has space. The blocks stay valid under another
    /// placement.
    #[test]
    fn zones_are_kept_while_they_have_space(
        (zone_map, later) in (zone_maps(), zone_maps()),
        prefers in any::<bool>(),
        steps in prop::collection::vec((0u64..200_000, any::<u16>(), 0usize..4), 1..300),
    ) {
        let mut heap = Heap::new(POOL_BYTES, 1, zone_map);
        heap.prefer_growth(prefers);
        let mut model = Model { zone_map, held: BTreeMap::new() };
        for (bytes, pick, zone) in steps {
            let bytes = if pick % 16 == 0 { bytes } else { 600 + bytes % 15_000 };
            let zone = zone % zone_map.zones();
            let held = &mut model.held;
            if pick % 4 == 0 && !held.is_empty() {
                let (&offset, &bytes) = held.iter().nth(usize::from(pick) % held.len()).unwrap();
                heap.release(offset, bytes);
                held.remove(&offset);
                continue;
            }
            let is_long = bytes > u64::from(zone_map.stripe_chunks()) * CHUNK_BYTES;
            let is_near = prefers && !is_long;
            let own = model.fits(bytes, |of| of == zone);
            let any = model.fits(bytes, |_| true);
            let Some(offset) = heap.reserve(bytes, zone) else {
                let has_missed_space = if is_near { own } else { any };
                prop_assert!(!has_missed_space);
                continue;
            };
            let chunk = offset / CHUNK_BYTES;
            if is_near {
                prop_assert_eq!(zone_map.zone_of(chunk as u32), zone);
            }
            let mut own_chunks = Model::chunks(|of| of == zone, zone_map);
            let beside = own_chunks.any(|at| model.has_space(at, bytes));
            prop_assert!(!beside || zone_map.zone_of(chunk as u32) == zone);
            let is_large = bytes > SMALL_MAX_BYTES;
            prop_assert!(is_large || model.is_empty(chunk) || model.has_space(chunk, bytes));
            let after = model.held.range(offset..).next();
            prop_assert!(after.is_none_or(|(at, _)| offset + reserved_bytes(bytes) <= *at));
            let before = model.held.range(..=offset).next_back();
            prop_assert!(before.is_none_or(|(at, held)| at + reserved_bytes(*held) <= offset));
            model.held.insert(offset, bytes);
        }
        let decoded = Heap::decode(&heap.encode(), POOL_BYTES, later).expect("own free map");
        let mut marked = Heap::new(POOL_BYTES, 1, later);
        for (&offset, &bytes) in &model.held {
            marked.mark(offset, bytes).expect("own blocks");
        }
        marked.finish_marking();
        model.zone_map = later;
        for mut other in [decoded, marked] {
            prop_assert_eq!(other.usage().used_bytes, heap.usage().used_bytes);
            prop_assert_eq!(other.usage().free_bytes, heap.usage().free_bytes);
            prop_assert_eq!(other.encode().len(), heap.encode().len());
            for zone in 0..later.zones() {
                let offset = other.reserve(640, zone);
                let is_own = |offset| later.zone_of((offset / CHUNK_BYTES) as u32) == zone;
                prop_assert_eq!(offset.is_some_and(is_own), model.fits(640, |of| of == zone));
            }
        }
    }

    /// A heap of one zone reserves the same addresses for every preference.
    #[test]
    fn one_zone_ignores_the_preference(
        steps in prop::collection::vec((1u64..60_000, any::<u16>()), 1..200),
    ) {
        let zone_maps = [ZoneMap::SINGLE, ZoneMap::new(1, 3)];
        let mut heaps = zone_maps.map(|zone_map| Heap::new(POOL_BYTES, 1, zone_map));
        heaps[1].prefer_growth(false);
        let mut held = Vec::new();
        for (bytes, pick) in steps {
            if pick % 3 == 0 && !held.is_empty() {
                let (offset, bytes) = held.swap_remove(usize::from(pick) % held.len());
                for heap in &mut heaps {
                    heap.release(offset, bytes);
                }
                continue;
            }
            let near = heaps[0].reserve(bytes, 0);
            prop_assert_eq!(heaps[1].reserve(bytes, 0), near);
            held.extend(near.map(|offset| (offset, bytes)));
        }
        prop_assert_eq!(heaps[0].encode(), heaps[1].encode());
    }
}

/// A superblock may claim any size. Memory for each of these chunks would be 50 GB.
#[test]
fn a_heap_costs_what_it_uses_whatever_size_it_has() {
    const CLAIMED: u64 = 16 << 40;
    let mut heap = Heap::new(CLAIMED, 1, ZoneMap::SINGLE);
    let far = CLAIMED - CHUNK_BYTES;
    for offset in [CHUNK_BYTES, CHUNK_BYTES + 64, far] {
        heap.mark(offset, 64).unwrap();
    }
    assert!(heap.mark(far, 64).is_err() && heap.mark(CLAIMED, 64).is_err());
    heap.finish_marking();
    assert_eq!(heap.usage().blocks, 4, "the header counts as a block");
    assert!(heap.reserve(20 << 20, 0).is_some());
    assert!(heap.is_block(far, 64));
    heap.release(far, 64);
    heap.extend(2 * CLAIMED);
    assert_eq!(heap.pool_bytes(), 2 * CLAIMED);
}
