//! Every layout by itself, against a vector.

use super::*;
use crate::leaf::isle::Isle;
use crate::leaf::isle::count_word::{Counters, InLine};
use bristlecone_pmem::{Mapped, Pool};
use proptest::prelude::*;

/// Runs `test` on a fresh node of layout `L`.
fn with_node<L: Layout>(test: impl FnOnce(View<'_, Mapped>)) {
    let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
    let block = pool.reserve(L::BYTES as u64).unwrap();
    let view = View::new(pool.medium(), pool.words(block, L::BYTES / 8).unwrap());
    pool.medium().fill(view.words(), &L::encode(3, 0x8000, &[]));
    test(view);
}

fn entry(key: u64) -> Entry {
    Entry::plain(key, !key)
}

fn find<L: Layout>(node: View<'_, Mapped>, key: u64) -> SearchResult {
    L::find(node, |entry| Ok(entry.key.cmp(&key))).unwrap()
}

/// The keys that the node says it has, in its own order.
fn keys<L: Layout>(node: View<'_, Mapped>) -> Vec<u64> {
    let places = L::slot_indices(node).unwrap();
    places.into_iter().map(|index| node.entry(L::ENTRIES, index).key).collect()
}

/// The content of a node that keeps order.
fn image<L: Ordered>(node: View<'_, Mapped>) -> Image {
    let count = L::count(node);
    let slots = (0..count).map(|rank| L::nth(node, rank).unwrap()).collect();
    Image { level: L::level(node).unwrap(), link: L::link(node), slots }
}

#[test]
fn halving_finds_every_border_and_looks_at_nothing_beyond() {
    for count in 0..=70 {
        for border in 0..=count {
            let mut looks = 0;
            let found = bisect(count, |number| {
                assert!(number < count);
                looks += 1;
                Ok(number < border)
            });
            assert_eq!(found.unwrap(), border, "of {count}");
            assert_eq!(looks, usize::BITS - count.leading_zeros(), "of {count}");
        }
    }
}

/// Inserts and removes keys as `picks` say, as long as there is room.
fn agrees_with_a_vector<L: Layout>(
    picks: &[u8],
    insert: impl Fn(View<'_, Mapped>, usize, Entry),
    remove: impl Fn(View<'_, Mapped>, SlotPos),
) {
    with_node::<L>(|node| {
        let mut model: Vec<u64> = Vec::new();
        for &pick in picks {
            let key = u64::from(pick % 128);
            match (find::<L>(node, key), model.binary_search(&key)) {
                (SearchResult::Found(at, found), Ok(rank)) => {
                    assert_eq!(found, entry(key));
                    assert!(!L::is_sorted(node) || at.rank == rank);
                    remove(node, at);
                    model.remove(rank);
                }
                (SearchResult::Absent(rank), Err(expected)) => {
                    assert!(!L::is_sorted(node) || rank == expected);
                    if model.len() < L::CAPACITY {
                        insert(node, rank, entry(key));
                        model.insert(expected, key);
                    }
                }
                (found, expected) => panic!("{key}: {found:?}, but {expected:?}"),
            }
            assert_eq!(L::count(node), model.len());
        }
        let mut found = keys::<L>(node);
        if !L::is_sorted(node) {
            found.sort_unstable();
        }
        assert_eq!(found, model);
        assert_eq!((L::level(node).unwrap(), L::link(node)), (3, 0x8000));
    });
}

/// By itself.
fn atomically<L: Atomic>(picks: &[u8]) {
    let insert = |node: View<'_, Mapped>, rank, entry| {
        let _ = L::insert(node, rank, entry);
    };
    agrees_with_a_vector::<L>(picks, insert, |node, at| {
        let _ = L::remove(node, at);
    });
}

/// A word at a time.
fn wordwise<L: Wordwise>(picks: &[u8]) {
    struct Plain<'m>(&'m Mapped);
    impl Writer for Plain<'_> {
        fn write_visible(&mut self, word: &PmWord, value: u64) {
            self.0.store(word, value);
        }
        fn write_hidden(&mut self, word: &PmWord, value: u64) {
            self.0.store(word, value);
        }
    }
    let insert = |node: View<'_, Mapped>, rank, entry| {
        L::insert(node, rank, entry, &mut Plain(node.medium()));
    };
    agrees_with_a_vector::<L>(picks, insert, |node, at| {
        L::remove(node, at, &mut Plain(node.medium()));
    });
}

/// What is placed is not there before a node is settled, and is there afterwards.
fn takes_an_image<L: Ordered>() {
    with_node::<L>(|node| {
        let entries: Vec<_> = (1..=3).map(|key| entry(key * 10)).collect();
        node.medium().fill(node.words(), &L::encode(3, 0x8000, &entries));
        let mut next = image::<L>(node);
        let new = [next.insert(2, entry(25)), next.insert(4, entry(40))];
        next.slots.remove(0);
        next.link = 0xff00;
        L::write_free_slots(node, &new);
        assert_eq!(keys::<L>(node), [10, 20, 30]);
        L::apply(node, &next);
        assert_eq!(keys::<L>(node), [20, 25, 30, 40]);
        assert_eq!((L::level(node).unwrap(), L::link(node)), (3, 0xff00));
    });
}

/// A packed node whose entries go by every other one closes its gaps, and moves no more than it must.
#[test]
fn a_packed_node_closes_its_gaps() {
    type Leaf = Packed<256>;
    with_node::<Leaf>(|node| {
        let entries: Vec<_> = (1..=8).map(entry).collect();
        node.medium().fill(node.words(), &Leaf::encode(3, 0x8000, &entries));
        let slots = (0..8).filter(|index| index % 2 == 1);
        let slots = slots.map(|index| Slot { index, entry: entries[index] }).collect();
        let next = Image { level: 3, link: 0x8000, slots };
        let mut changes = Changes::new();
        Leaf::plan(node, &next, &mut changes);
        assert_eq!(changes.len(), 5, "two entries move, and the count changes");
        Leaf::apply(node, &next);
        assert_eq!(keys::<Leaf>(node), [6, 2, 8, 4]);
    });
}

proptest! {
    #[test]
    fn layouts_agree_with_a_vector(picks in prop::collection::vec(any::<u8>(), 0..400)) {
        atomically::<SlotBitmap<256>>(&picks);
        atomically::<SlotBitmap<512>>(&picks);
        atomically::<SlotBitmap<1024>>(&picks);
        atomically::<SlotLine<256>>(&picks);
        atomically::<SlotLine<512>>(&picks);
        atomically::<Bitmap<256>>(&picks);
        atomically::<Bitmap<1024>>(&picks);
        atomically::<SlotOnly>(&picks);
        atomically::<Isle<Counters, 256>>(&picks);
        atomically::<Isle<Counters, 2048>>(&picks);
        atomically::<Isle<InLine, 256>>(&picks);
        atomically::<Isle<InLine, 1024>>(&picks);
        wordwise::<Bitmap<256>>(&picks);
        wordwise::<Packed<256>>(&picks);
        wordwise::<Packed<1024>>(&picks);
        wordwise::<Sorted<256>>(&picks);
        wordwise::<Sorted<4096>>(&picks);
    }

    /// Whatever a node holds, no method that readers call panics.
    #[test]
    fn garbage_is_read_without_a_panic(words in prop::collection::vec(any::<u64>(), 64)) {
        fn read<L: Layout>(words: &[u64]) {
            with_node::<L>(|node| {
                for (index, &word) in words.iter().take(L::BYTES / 8).enumerate() {
                    node.store(index, word);
                }
                let _ = L::find(node, |entry| Ok(entry.key.cmp(&words[9])));
                let _ = (L::slot_indices(node), L::level(node), L::link(node), L::count(node));
            });
        }
        read::<SlotBitmap<512>>(&words);
        read::<Bitmap<512>>(&words);
        read::<Isle<Counters, 512>>(&words);
        read::<Isle<InLine, 512>>(&words);
        read::<SlotOnly>(&words);
        read::<Packed<512>>(&words);
        read::<Sorted<512>>(&words);
    }
}

#[test]
fn capacities_are_those_of_the_pages() {
    assert_eq!([SlotBitmap::<256>::CAPACITY, SlotBitmap::<256>::ENTRIES * 8], [13, 48]);
    assert_eq!([SlotBitmap::<512>::CAPACITY, SlotBitmap::<512>::ENTRIES * 8], [28, 64]);
    assert_eq!([SlotBitmap::<1024>::CAPACITY, SlotBitmap::<1024>::ENTRIES * 8], [58, 96]);
    assert_eq!([Bitmap::<256>::CAPACITY, Bitmap::<512>::CAPACITY], [14, 30]);
    assert_eq!([Bitmap::<1024>::CAPACITY, SlotOnly::CAPACITY], [62, 7]);
    assert_eq!([Isle::<Counters, 256>::PAIRS, Isle::<Counters, 512>::PAIRS], [12, 28]);
    assert_eq!([Isle::<Counters, 1024>::PAIRS, Isle::<Counters, 2048>::PAIRS], [60, 124]);
    assert_eq!([Sorted::<256>::CAPACITY, Sorted::<4096>::CAPACITY], [14, 254]);
}

#[test]
fn a_node_takes_an_image() {
    takes_an_image::<SlotBitmap<256>>();
    takes_an_image::<SlotBitmap<1024>>();
    takes_an_image::<SlotOnly>();
    takes_an_image::<Sorted<256>>();
}

/// The content of a leaf, in key order.
fn sorted_image<L: Layout>(node: View<'_, Mapped>) -> Image {
    let slot = |index| Slot { index, entry: node.entry(L::ENTRIES, index) };
    let mut slots: Vec<_> = L::slot_indices(node).unwrap().into_iter().map(slot).collect();
    slots.sort_by_key(|slot| slot.entry.key);
    L::check_order(node, &slots).unwrap();
    Image { level: L::level(node).unwrap(), link: L::link(node), slots }
}

/// A leaf of lines in a mixed order loses its upper half, as in a split, and takes in what is above all
/// that it has, as in a merge.
fn an_isle_splits_and_merges<L: Atomic>() {
    with_node::<L>(|node| {
        let add = |key| {
            let SearchResult::Absent(rank) = find::<L>(node, key) else { panic!("{key} is there") };
            let _ = L::insert(node, rank, entry(key));
        };
        let mixed: Vec<u64> = (0..L::CAPACITY as u64).map(|i| i * 7 % 31).collect();
        mixed.iter().copied().for_each(add);
        let mut left: Vec<_> = mixed.iter().copied().filter(|&key| key < 15).collect();
        left.sort_unstable();
        let mut next = sorted_image::<L>(node);
        next.slots.truncate(left.len());
        next.link = 0xff00;
        L::apply(node, &next);
        assert_eq!(sorted_image::<L>(node), next);
        assert!(!L::needs_repair(node) && L::count(node) == left.len());
        for key in 40..45 {
            next.insert(next.slots.len(), entry(key));
            left.push(key);
        }
        L::apply(node, &next);
        let mut changes = Changes::new();
        L::plan(node, &next, &mut changes);
        assert!(changes.is_empty(), "nothing is left to do");
        assert_eq!(sorted_image::<L>(node), next);
        assert!(!L::needs_repair(node));
        for key in left {
            let SearchResult::Found(at, found) = find::<L>(node, key) else {
                panic!("{key} is not there")
            };
            assert_eq!(found, entry(key));
            let _ = L::remove(node, at);
        }
        assert_eq!((L::count(node), L::link(node)), (0, 0xff00));
        for key in (0..L::CAPACITY as u64).rev() {
            add(key);
        }
    });
}

#[test]
fn an_isle_leaf_splits_and_merges() {
    an_isle_splits_and_merges::<Isle<Counters, 256>>();
    an_isle_splits_and_merges::<Isle<Counters, 512>>();
    an_isle_splits_and_merges::<Isle<InLine, 256>>();
    an_isle_splits_and_merges::<Isle<InLine, 512>>();
}

/// Of two places with one key the right one counts, a line out of order is damage, and so is a key
/// behind a vacancy.
#[test]
fn an_isle_leaf_says_what_a_crash_left_and_what_is_damage() {
    type Leaf = Isle<Counters, 256>;
    with_node::<Leaf>(|node| {
        let entries: Vec<_> = [10, 20, 30].map(entry).to_vec();
        node.medium().fill(node.words(), &Leaf::encode(3, 0x8000, &entries));
        // An insert of 15 that a crash cut off: 30 has moved, 20 is about to.
        node.store_entry(Leaf::ENTRIES, 3, entry(30));
        node.store(Leaf::ENTRIES + 5, entry(20).value);
        assert!(Leaf::needs_repair(node));
        let image = sorted_image::<Leaf>(node);
        assert_eq!(keys::<Leaf>(node), [10, 20, 30]);
        Leaf::repair(node, &image);
        assert!(!Leaf::needs_repair(node));
        assert_eq!(Leaf::slot_indices(node).unwrap(), [0, 1, 2]);
        for key in [10, 20, 30] {
            assert!(
                matches!(find::<Leaf>(node, key), SearchResult::Found(_, found) if found == entry(key))
            );
        }
        node.store(Leaf::ENTRIES, 25);
        let places = Leaf::slot_indices(node).unwrap();
        let slot = |index| Slot { index, entry: node.entry(Leaf::ENTRIES, index) };
        let mut slots: Vec<_> = places.into_iter().map(slot).collect();
        slots.sort_by_key(|slot| slot.entry.key);
        let disorder = Leaf::check_order(node, &slots).unwrap_err();
        assert_eq!(disorder.what, "keys of an isle line out of order");
        node.store(Leaf::ENTRIES + 8 + 4, 99);
        assert_eq!(Leaf::slot_indices(node).unwrap_err().what, "key after the end of an isle line");
    });
}

/// After a crash it would have been repaired before anything else; a pool that was closed can only hold it by
/// damage, and a pair that counts must not go for it.
#[test]
fn two_pairs_with_one_key_do_not_cost_an_isle_leaf_a_third_when_it_is_written_again() {
    type Leaf = Isle<Counters, 256>;
    with_node::<Leaf>(|node| {
        let entries: Vec<_> = [10, 20, 30].map(entry).to_vec();
        node.medium().fill(node.words(), &Leaf::encode(3, 0x8000, &entries));
        node.store(Leaf::ENTRIES, 20);
        let image = sorted_image::<Leaf>(node);
        assert_eq!(image.slots.iter().map(|slot| slot.index).collect::<Vec<_>>(), [1, 2]);
        Leaf::apply(node, &image);
        assert_eq!(Leaf::slot_indices(node).unwrap(), [0, 1]);
        assert_eq!(keys::<Leaf>(node), [20, 30]);
        assert!(!Leaf::needs_repair(node));
    });
}

#[test]
fn a_slot_array_that_is_not_valid_is_refused_and_made_again() {
    with_node::<SlotBitmap<1024>>(|node| {
        for key in 0..50 {
            let _ = SlotBitmap::<1024>::insert(node, 0, entry(100 - key));
        }
        let sound = image::<SlotBitmap<1024>>(node);
        node.store(0, node.load(0) & !1);
        for word in 4..12 {
            node.store(word, 0x0102_0304_0506_0708);
        }
        assert!(SlotBitmap::<1024>::needs_repair(node) && !SlotBitmap::<1024>::is_sorted(node));
        assert!(SlotBitmap::<1024>::find(node, |e| Ok(e.key.cmp(&60))).is_err());
        let mut found = keys::<SlotBitmap<1024>>(node);
        found.sort_unstable();
        assert_eq!(found, (51..=100).collect::<Vec<_>>());
        SlotBitmap::<1024>::repair(node, &sound);
        assert!(!SlotBitmap::<1024>::needs_repair(node));
        assert_eq!(image::<SlotBitmap<1024>>(node), sound);
    });
}

#[test]
fn slots_that_contradict_the_bitmap_are_damage() {
    with_node::<SlotBitmap<512>>(|node| {
        for key in 0..4 {
            let _ = SlotBitmap::<512>::insert(node, key as usize, entry(key));
        }
        let sound = node.load(4);
        for (slots, what) in [
            (sound + 1, "number of slots"),
            (sound & !0xff00 | 0x0700, "slot without entry"),
            (sound & !0xff00 | 0x0100, "slot without entry"), // Index 1 in two slots.
        ] {
            node.store(4, slots);
            assert_eq!(SlotBitmap::<512>::slot_indices(node).unwrap_err().what, what);
        }
    });
}
