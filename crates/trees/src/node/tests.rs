//! Tests of each layout alone, against a sorted vector.

use super::*;
use crate::leaf::isle::Isle;
use crate::leaf::isle::count_word::{Counters, InLine};
use bristlecone_pmem::{Mapped, Pool};
use core::ops::Range;
use proptest::prelude::*;

/// Runs `test` on a fresh, empty node of layout `L`.
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

/// Returns the keys of the node, in the order of its slot indices.
fn keys<L: Layout>(node: View<'_, Mapped>) -> Vec<u64> {
    let places = L::slot_indices(node).unwrap();
    places.into_iter().map(|index| node.entry(L::ENTRIES, index).key).collect()
}

/// Returns the content of a node of a sorted layout.
fn image<L: Ordered>(node: View<'_, Mapped>) -> Image {
    let count = L::count(node);
    let slots = (0..count).map(|rank| L::nth(node, rank).unwrap()).collect();
    Image { level: L::level(node).unwrap(), link: L::link(node), slots }
}

#[test]
fn bisection_finds_every_border_and_stays_within_count() {
    for count in 0..=70 {
        for border in 0..=count {
            let mut probes = 0;
            let found = bisect(count, |number| {
                assert!(number < count);
                probes += 1;
                Ok(number < border)
            });
            assert_eq!(found.unwrap(), border, "of {count}");
            assert_eq!(probes, usize::BITS - count.leading_zeros(), "of {count}");
        }
    }
}

/// Toggles the keys in `picks`: removes a present key, inserts an absent one while a slot is free.
fn assert_agrees_with_a_vector<L: Layout>(
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

fn check_atomic<L: Atomic>(picks: &[u8]) {
    let insert = |node: View<'_, Mapped>, rank, entry| {
        let _ = L::insert(node, rank, entry);
    };
    assert_agrees_with_a_vector::<L>(picks, insert, |node, at| {
        let _ = L::remove(node, at);
    });
}

fn check_wordwise<L: Wordwise>(picks: &[u8]) {
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
        let (word, value) = L::insert(node, rank, entry, &mut Plain(node.medium()));
        node.medium().store(word, value);
    };
    assert_agrees_with_a_vector::<L>(picks, insert, |node, at| {
        let (word, value) = L::remove(node, at, &mut Plain(node.medium()));
        node.medium().store(word, value);
    });
}

/// Entries in free slots must be invisible until the image is applied, and visible after it.
fn applies_an_image<L: Ordered>() {
    with_node::<L>(|node| {
        let entries: Vec<_> = (1..=3).map(|key| entry(key * 10)).collect();
        node.medium().fill(node.words(), &L::encode(3, 0x8000, &entries));
        let mut next = image::<L>(node);
        let new = [next.insert(2, entry(25)), next.insert(4, entry(40))];
        next.slots.remove(0);
        next.link = 0xf800;
        L::write_free_slots(node, &new);
        assert_eq!(keys::<L>(node), [10, 20, 30]);
        L::apply(node, &next);
        assert_eq!(keys::<L>(node), [20, 25, 30, 40]);
        assert_eq!((L::level(node).unwrap(), L::link(node)), (3, 0xf800));
    });
}

/// In a packed node that loses every other entry, those behind the new count move into the gaps.
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
        assert_eq!(changes.len(), 5, "two entries of two words move, and the count changes");
        Leaf::apply(node, &next);
        assert_eq!(keys::<Leaf>(node), [6, 2, 8, 4]);
    });
}

proptest! {
    #[test]
    fn layouts_agree_with_a_vector(picks in prop::collection::vec(any::<u8>(), 0..400)) {
        check_atomic::<SlotBitmap<256>>(&picks);
        check_atomic::<SlotBitmap<512>>(&picks);
        check_atomic::<SlotBitmap<1024>>(&picks);
        check_atomic::<SlotBitmap<2048>>(&picks);
        check_atomic::<SlotLine<256>>(&picks);
        check_atomic::<SlotLine<512>>(&picks);
        check_atomic::<Bitmap<256>>(&picks);
        check_atomic::<Bitmap<64>>(&picks);
        check_atomic::<Bitmap<1024>>(&picks);
        check_atomic::<WideBitmap<128>>(&picks);
        check_atomic::<WideBitmap<256>>(&picks);
        check_atomic::<WideBitmap<2048>>(&picks);
        check_atomic::<WideBitmap<4096>>(&picks);
        check_atomic::<SlotOnly<128>>(&picks);
        check_atomic::<SlotOnly<64>>(&picks);
        check_atomic::<Isle<Counters, 256>>(&picks);
        check_atomic::<Isle<Counters, 2048>>(&picks);
        check_atomic::<Isle<InLine, 256>>(&picks);
        check_atomic::<Isle<InLine, 1024>>(&picks);
        check_wordwise::<Bitmap<256>>(&picks);
        check_wordwise::<WideBitmap<256>>(&picks);
        check_wordwise::<WideBitmap<4096>>(&picks);
        check_wordwise::<Packed<64>>(&picks);
        check_wordwise::<Packed<256>>(&picks);
        check_wordwise::<Packed<1024>>(&picks);
        check_wordwise::<Sorted<64>>(&picks);
        check_wordwise::<Sorted<256>>(&picks);
        check_wordwise::<LinearSorted<128>>(&picks);
        check_wordwise::<LinearSorted<256>>(&picks);
        check_wordwise::<Sorted<4096>>(&picks);
    }

    /// The methods that readers call must not panic, whatever words a node holds.
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
        read::<SlotBitmap<2048>>(&words);
        read::<Bitmap<512>>(&words);
        read::<WideBitmap<4096>>(&words);
        read::<Isle<Counters, 512>>(&words);
        read::<Isle<InLine, 512>>(&words);
        read::<SlotOnly<128>>(&words);
        read::<SlotOnly<64>>(&words);
        read::<Packed<512>>(&words);
        read::<Sorted<512>>(&words);
        read::<LinearSorted<512>>(&words);
    }
}

#[test]
fn capacities_are_those_of_the_pages() {
    assert_eq!([SlotBitmap::<256>::CAPACITY, SlotBitmap::<256>::ENTRIES.word(0) * 8], [14, 32]);
    assert_eq!([SlotBitmap::<512>::CAPACITY, SlotBitmap::<512>::ENTRIES.word(0) * 8], [29, 48]);
    assert_eq!([SlotBitmap::<1024>::CAPACITY, SlotBitmap::<1024>::ENTRIES.word(0) * 8], [58, 80]);
    assert_eq!([SlotBitmap::<2048>::CAPACITY, SlotBitmap::<2048>::ENTRIES.word(0) * 8], [119, 144]);
    assert_eq!([Bitmap::<64>::CAPACITY, Bitmap::<128>::CAPACITY], [3, 7]);
    assert_eq!([Bitmap::<256>::CAPACITY, Bitmap::<512>::CAPACITY], [15, 31]);
    assert_eq!([Bitmap::<1024>::CAPACITY, SlotOnly::<128>::CAPACITY], [59, 7]);
    assert_eq!([Isle::<Counters, 256>::PAIRS, Isle::<Counters, 512>::PAIRS], [12, 28]);
    assert_eq!([Isle::<Counters, 1024>::PAIRS, Isle::<Counters, 2048>::PAIRS], [60, 124]);
    assert_eq!([Sorted::<64>::CAPACITY, Sorted::<512>::CAPACITY], [3, 31]);
    assert_eq!([Sorted::<256>::CAPACITY, Sorted::<4096>::CAPACITY], [15, 255]);
    assert_eq!([LinearSorted::<128>::CAPACITY, LinearSorted::<512>::CAPACITY], [3, 15]);
    assert_eq!([WideBitmap::<128>::CAPACITY, WideBitmap::<256>::CAPACITY], [3, 7]);
    assert_eq!([WideBitmap::<2048>::CAPACITY, WideBitmap::<4096>::CAPACITY], [63, 127]);
}

/// An insert or a remove of a node with two words of bits changes one of them; damage in either is
/// found.
#[test]
fn a_long_bitmap_has_a_bit_for_each_entry() {
    type Leaf = WideBitmap<4096>;
    with_node::<Leaf>(|node| {
        let words = || [0, 2, 3].map(|word| node.load(word));
        let [header, ..] = words();
        for key in 0..127 {
            let _ = <Leaf as Atomic>::insert(node, 0, entry(key));
        }
        assert_eq!(words(), [header, u64::MAX, u64::MAX >> 1]);
        let SearchResult::Found(at, _) = find::<Leaf>(node, 100) else { panic!("100 is there") };
        let _ = <Leaf as Atomic>::remove(node, at);
        assert_eq!(words(), [header, u64::MAX, u64::MAX >> 1 & !(1 << 36)]);
        assert_eq!(keys::<Leaf>(node), (0..127).filter(|&key| key != 100).collect::<Vec<_>>());
        node.store(3, 1 << 63);
        assert!(Leaf::slot_indices(node).is_err());
        let entries: Vec<_> = (0..127).map(entry).collect();
        node.medium().fill(node.words(), &Leaf::encode(3, 0x8000, &entries));
        assert_eq!((words(), Leaf::count(node)), ([header, u64::MAX, u64::MAX >> 1], 127));
        let slots = (60..70).map(|index| Slot { index, entry: entries[index] }).collect();
        Leaf::apply(node, &Image { level: 3, link: 0xf000, slots });
        assert_eq!(keys::<Leaf>(node), (60..70).collect::<Vec<_>>());
    });
}

#[test]
fn a_node_applies_an_image() {
    applies_an_image::<SlotBitmap<256>>();
    applies_an_image::<SlotBitmap<1024>>();
    applies_an_image::<SlotBitmap<2048>>();
    applies_an_image::<SlotOnly<128>>();
    applies_an_image::<Sorted<256>>();
}

/// Returns the content of a leaf, in key order.
fn sorted_image<L: Layout>(node: View<'_, Mapped>) -> Image {
    let slot = |index| Slot { index, entry: node.entry(L::ENTRIES, index) };
    let mut slots: Vec<_> = L::slot_indices(node).unwrap().into_iter().map(slot).collect();
    slots.sort_by_key(|slot| slot.entry.key);
    L::check_order(node, &slots).unwrap();
    Image { level: L::level(node).unwrap(), link: L::link(node), slots }
}

/// Removes the greater half of a leaf whose lines are in mixed order, as a split does. Then adds
/// entries above all others, as a merge does.
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
        next.link = 0xfc00;
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
        assert!(changes.is_empty(), "the node has the content already");
        assert_eq!(sorted_image::<L>(node), next);
        assert!(!L::needs_repair(node));
        for key in left {
            let SearchResult::Found(at, found) = find::<L>(node, key) else {
                panic!("{key} is not there")
            };
            assert_eq!(found, entry(key));
            let _ = L::remove(node, at);
        }
        assert_eq!((L::count(node), L::link(node)), (0, 0xfc00));
        for key in (0..L::CAPACITY as u64).rev() {
            add(key);
        }
    });
}

/// A search compares as few entries as bisection does, although its halves begin at whole words of
/// the slot array.
#[test]
fn a_search_by_slots_halves_them() {
    fn check<L: Ordered>() {
        with_node::<L>(|node| {
            for count in 0..=L::CAPACITY {
                let entries: Vec<_> = (0..count as u64).map(entry).collect();
                node.medium().fill(node.words(), &L::encode(3, 0x8000, &entries));
                for border in 0..=count {
                    let mut probes = 0;
                    let found = L::partition(node, |entry| {
                        probes += 1;
                        Ok(entry.key < border as u64)
                    });
                    assert_eq!(found.unwrap(), border, "of {count}");
                    let most = usize::BITS - L::CAPACITY.leading_zeros();
                    assert!(probes <= most, "{probes} comparisons among {count}");
                }
            }
        });
    }
    check::<SlotBitmap<256>>();
    check::<SlotBitmap<512>>();
    check::<SlotBitmap<1024>>();
    check::<SlotBitmap<2048>>();
    check::<SlotOnly<128>>();
}

#[test]
fn an_isle_leaf_splits_and_merges() {
    an_isle_splits_and_merges::<Isle<Counters, 256>>();
    an_isle_splits_and_merges::<Isle<Counters, 512>>();
    an_isle_splits_and_merges::<Isle<InLine, 256>>();
    an_isle_splits_and_merges::<Isle<InLine, 512>>();
}

/// Of two positions with one key the right one is valid. A line out of order is damage, and so is a
/// key after a vacancy.
#[test]
fn an_isle_leaf_tells_an_interrupted_insert_from_damage() {
    type Leaf = Isle<Counters, 256>;
    with_node::<Leaf>(|node| {
        let entries: Vec<_> = [10, 20, 30].map(entry).to_vec();
        node.medium().fill(node.words(), &Leaf::encode(3, 0x8000, &entries));
        // An interrupted insert of 15: 30 has moved, and 20 has moved except for its key word.
        node.store_entry(Leaf::ENTRIES, 3, entry(30));
        node.store(Leaf::ENTRIES.word(2) + 1, entry(20).value);
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
        node.store(Leaf::ENTRIES.word(0), 25);
        let places = Leaf::slot_indices(node).unwrap();
        let slot = |index| Slot { index, entry: node.entry(Leaf::ENTRIES, index) };
        let mut slots: Vec<_> = places.into_iter().map(slot).collect();
        slots.sort_by_key(|slot| slot.entry.key);
        let disorder = Leaf::check_order(node, &slots).unwrap_err();
        assert_eq!(disorder.what, "keys of an isle line out of order");
        node.store(Leaf::ENTRIES.word(6), 99);
        assert_eq!(Leaf::slot_indices(node).unwrap_err().what, "key after the end of an isle line");
    });
}

/// Recovery repairs equal keys before any other access. In a cleanly closed pool only damage can
/// leave them. Writing the node again must not drop a third pair, which is valid.
#[test]
fn applying_an_image_to_an_isle_with_equal_keys_keeps_the_other_pairs() {
    type Leaf = Isle<Counters, 256>;
    with_node::<Leaf>(|node| {
        let entries: Vec<_> = [10, 20, 30].map(entry).to_vec();
        node.medium().fill(node.words(), &Leaf::encode(3, 0x8000, &entries));
        node.store(Leaf::ENTRIES.word(0), 20);
        let image = sorted_image::<Leaf>(node);
        assert_eq!(image.slots.iter().map(|slot| slot.index).collect::<Vec<_>>(), [1, 2]);
        Leaf::apply(node, &image);
        assert_eq!(Leaf::slot_indices(node).unwrap(), [0, 1]);
        assert_eq!(keys::<Leaf>(node), [20, 30]);
        assert!(!Leaf::needs_repair(node));
    });
}

#[test]
fn an_invalid_slot_array_is_passed_over_and_rebuilt() {
    rebuilds_slots::<SlotBitmap<1024>>(2..10, 50);
    rebuilds_slots::<SlotBitmap<2048>>(3..18, 100);
}

/// Inserts `count` descending keys, at most 100, and damages the slot array, which lies in `words`.
fn rebuilds_slots<L: Ordered + Atomic>(words: Range<usize>, count: u64) {
    with_node::<L>(|node| {
        for key in 0..count {
            let _ = L::insert(node, 0, entry(100 - key));
        }
        let sound = image::<L>(node);
        node.store(0, node.load(0) & !1);
        for word in words {
            node.store(word, 0x0102_0304_0506_0708);
        }
        assert!(L::needs_repair(node) && !L::is_sorted(node));
        assert!(L::partition(node, |_| Ok(true)).is_err());
        assert_eq!(find::<L>(node, 0), SearchResult::Absent(0));
        let SearchResult::Found(at, found) = find::<L>(node, 60) else { panic!() };
        assert_eq!((at.rank as u64, found), (60 - (101 - count), entry(60)));
        let mut found = keys::<L>(node);
        found.sort_unstable();
        assert_eq!(found, (101 - count..=100).collect::<Vec<_>>());
        L::repair(node, &sound);
        assert!(!L::needs_repair(node));
        assert_eq!(image::<L>(node), sound);
    });
}

/// A bit beyond the last entry is damage, in the second word of a bitmap too.
#[test]
fn a_bit_beyond_the_last_entry_is_damage() {
    type Node = SlotBitmap<2048>;
    with_node::<Node>(|node| {
        for key in 0..119 {
            let _ = Node::insert(node, key as usize, entry(key));
        }
        assert_eq!((node.load(2), keys::<Node>(node).len()), (u64::MAX >> 3, 119));
        node.store(2, node.load(2) | 1 << 61);
        let what = "bitmap of a node with bits beyond the last entry";
        assert_eq!(Node::slot_indices(node).unwrap_err().what, what);
    });
}

#[test]
fn slots_that_contradict_the_bitmap_are_damage() {
    with_node::<SlotBitmap<512>>(|node| {
        for key in 0..4 {
            let _ = SlotBitmap::<512>::insert(node, key as usize, entry(key));
        }
        let sound = node.load(2);
        for (slots, what) in [
            (sound + 1, "number of slots"),
            (sound & !0xff00 | 0x0700, "slot that names no valid entry"),
            (sound & !0xff00 | 0x0100, "slot that names no valid entry"), // Index 1 in two slots.
        ] {
            node.store(2, slots);
            assert_eq!(SlotBitmap::<512>::slot_indices(node).unwrap_err().what, what);
        }
    });
}
