//! Every crash image of every shift of a small node, recovered: in an image each line holds a
//! prefix of its stores.

use super::*;
use crate::leaf::Leaf;
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::{Domain, Mapped};
use core::ptr::NonNull;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

const NODE_BYTES: usize = 256;
const CAPACITY: usize = Small::<Mapped>::CAPACITY;
type Small<'p, M, F = FencedAfter> = ShiftNode<'p, M, F, NODE_BYTES>;

#[derive(Clone, Copy, Debug)]
enum Event {
    Store(u64, u64),
    Flush(u64),
    Fence,
}

/// A medium that records stores, flushes and fences. It can drop one flush, which injects a defect.
struct RecordingMedium {
    inner: Mapped,
    events: Mutex<Vec<Event>>,
    skip_flush: Option<usize>,
}

impl RecordingMedium {
    fn offset(&self, word: &PmWord) -> u64 {
        (core::ptr::from_ref(word) as usize - self.inner.base().as_ptr() as usize) as u64
    }
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: every method forwards to `inner`, which upholds the contract of `Medium`.
unsafe impl Medium for RecordingMedium {
    fn base(&self) -> NonNull<u8> {
        self.inner.base()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        self.inner.grow(bytes)
    }
    fn domain(&self) -> Domain {
        self.inner.domain()
    }
    fn load(&self, word: &PmWord) -> u64 {
        self.inner.load(word)
    }
    fn store(&self, word: &PmWord, value: u64) {
        self.events.lock().unwrap().push(Event::Store(self.offset(word), value));
        self.inner.store(word, value);
    }
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        self.inner.cas_transient(word, old, new)
    }
    fn fill(&self, target: &[PmWord], source: &[u8]) {
        self.inner.fill(target, source);
    }
    fn flush(&self, words: &[PmWord]) {
        let mut events = self.events.lock().unwrap();
        let lines: BTreeSet<u64> = words.iter().map(|word| self.offset(word) / 64).collect();
        for line in lines {
            let flushes = events.iter().filter(|e| matches!(e, Event::Flush(_))).count();
            // A dropped flush is recorded as a flush of line 0, which no test writes.
            events.push(Event::Flush(if self.skip_flush == Some(flushes) { 0 } else { line }));
        }
    }
    fn fence(&self) -> Fenced {
        self.events.lock().unwrap().push(Event::Fence);
        self.inner.fence()
    }
}

/// The stores of one line, and how many of them are flushed and fenced.
#[derive(Clone, Default)]
struct Line {
    stores: Vec<(u64, u64)>,
    flushed: usize,
    guaranteed: usize,
}

/// Calls `visit` with each crash image of `events`, as the words that changed. The flag is `true`
/// if a crash after the last event can leave the image.
fn for_each_crash_image(events: &[Event], visit: &mut dyn FnMut(&BTreeMap<u64, u64>, bool)) {
    let mut lines: BTreeMap<u64, Line> = BTreeMap::new();
    for event in events {
        match *event {
            Event::Store(at, value) => {
                lines.entry(at / 64).or_default().stores.push((at, value));
                for_each_prefix_choice(&lines, Some(at / 64), &mut |image| visit(image, false));
            }
            Event::Flush(line) => {
                let line = lines.entry(line).or_default();
                line.flushed = line.stores.len();
            }
            Event::Fence => lines.values_mut().for_each(|line| line.guaranteed = line.flushed),
        }
    }
    for_each_prefix_choice(&lines, None, &mut |image| visit(image, true));
}

/// Calls `visit` with each choice of a prefix of stores for each line. For the line `whole` only
/// the full prefix is chosen, so that no image is visited twice.
fn for_each_prefix_choice(
    lines: &BTreeMap<u64, Line>,
    whole: Option<u64>,
    visit: &mut dyn FnMut(&BTreeMap<u64, u64>),
) {
    let mut images = vec![BTreeMap::new()];
    for (&at, line) in lines {
        let least = if whole == Some(at) { line.stores.len() } else { line.guaranteed };
        let prefixes = least..=line.stores.len();
        images = prefixes
            .flat_map(|length| {
                images.iter().map(move |image: &BTreeMap<u64, u64>| {
                    let mut image = image.clone();
                    image.extend(line.stores[..length].iter().copied());
                    image
                })
            })
            .collect();
    }
    images.iter().for_each(visit);
}

fn node_in<F: ShiftForm>(pool: &Pool<RecordingMedium>, at: PmPtr) -> Small<'_, RecordingMedium, F> {
    Small::view(pool, at).unwrap()
}

fn pool_with<F: ShiftForm>(
    entries: &[Entry],
    tail: &[Entry],
    skip_flush: Option<usize>,
) -> (Pool<RecordingMedium>, PmPtr) {
    let inner = Mapped::anonymous(1 << 20).unwrap();
    let medium = RecordingMedium { inner, events: Mutex::default(), skip_flush };
    let pool = Pool::create(medium).unwrap();
    let at = pool.reserve(NODE_BYTES as u64).unwrap();
    let header = NodeHeader { sibling: PmPtr::NULL, low: 0, level: 0 };
    let node = Small::<_, F>::create(&pool, at, header, entries).unwrap();
    // Leftovers of former entries after the terminator, which must never become valid again.
    for (index, &entry) in (entries.len() + 1..Small::<Mapped, F>::CAPACITY).zip(tail) {
        node.set_entry(index, entry);
    }
    pool.medium().events.lock().unwrap().clear();
    (pool, at)
}

fn entries_of<M: Medium, F: ShiftForm>(node: &Small<'_, M, F>) -> Vec<(u64, u64)> {
    (0..node.count()).map(|i| (node.key(i), node.value(i))).collect()
}

/// Returns a fresh pool with `image` of the node at `at`, which held `base` before.
fn pool_of<F: ShiftForm>(
    base: &[(u64, u64)],
    image: &BTreeMap<u64, u64>,
    at: PmPtr,
) -> Pool<RecordingMedium> {
    let (pool, same) = pool_with::<F>(&[], &[], None);
    assert_eq!(at, same);
    let words = base.iter().copied().chain(image.iter().map(|(&offset, &value)| (offset, value)));
    for (offset, value) in words {
        let word = &pool.words(PmPtr::new(offset), 1).unwrap()[0];
        pool.medium().inner.store(word, value);
    }
    pool
}

/// Applies `image` to a fresh pool, mends the node and returns its entries. If `nested`, each crash
/// image of this must lead to the same entries.
fn recovered_entries<F: ShiftForm>(
    base: &[(u64, u64)],
    image: &BTreeMap<u64, u64>,
    at: PmPtr,
    limit: Option<u64>,
    nested: bool,
) -> Vec<(u64, u64)> {
    let pool = pool_of::<F>(base, image, at);
    let node = node_in::<F>(&pool, at);
    node.mend::<u64>(&pool, limit).unwrap();
    let result = entries_of(&node);
    if nested {
        let events = core::mem::take(&mut *pool.medium().events.lock().unwrap());
        let mut crashed = base.to_vec();
        crashed.extend(image.iter().map(|(&offset, &value)| (offset, value)));
        for_each_crash_image(&events, &mut |image, _| {
            assert_eq!(
                recovered_entries::<F>(&crashed, image, at, limit, false),
                result,
                "nested crash"
            );
        });
    }
    result
}

/// Returns the words of a node with their offsets.
fn words_of<F: ShiftForm>(
    pool: &Pool<RecordingMedium>,
    node: &Small<'_, RecordingMedium, F>,
) -> Vec<(u64, u64)> {
    let offsets = (node.at().offset()..).step_by(8);
    offsets.zip(node.words()).map(|(offset, word)| (offset, pool.medium().load(word))).collect()
}

/// Returns the number of crash images of `change`, or an error if one of them recovers to a content
/// that is neither the old nor the new one.
fn explore<F: ShiftForm>(
    entries: &[Entry],
    limit: Option<u64>,
    skip_flush: Option<usize>,
    change: &dyn Fn(&Small<'_, RecordingMedium, F>) -> Fenced,
) -> Result<u64, String> {
    let tail: Vec<_> = (0..CAPACITY as u64).map(|i| Entry::plain(3 + i, 77)).collect();
    let (pool, at) = pool_with::<F>(entries, &tail, skip_flush);
    let node = node_in::<F>(&pool, at);
    let base = words_of(&pool, &node);
    let before = entries_of(&node);
    let _ = change(&node);
    let after: Vec<_> =
        entries_of(&node).into_iter().filter(|e| limit.is_none_or(|limit| e.0 < limit)).collect();
    let events = core::mem::take(&mut *pool.medium().events.lock().unwrap());
    let (mut count, mut bad) = (0, None);
    for_each_crash_image(&events, &mut |image, at_end| {
        count += 1;
        let found = recovered_entries::<F>(&base, image, at, limit, skip_flush.is_none());
        if found != after && (at_end || found != before) {
            bad = Some(format!("{before:?} -> {after:?}: found {found:?}"));
        }
    });
    bad.map_or(Ok(count), Err)
}

/// Returns entries with keys 10, 20, ..; the first key is 0 if `least`. All values but one are
/// equal, because equal values of neighbours must survive.
fn filled(count: usize, least: bool) -> Vec<Entry> {
    (0..count as u64)
        .map(|i| {
            let key = if i == 0 && least { 0 } else { 10 * (i + 1) };
            Entry::plain(key, if i == 2 { 0 } else { 5 })
        })
        .collect()
}

#[test]
fn no_crash_tears_an_insert() {
    assert!(torn_inserts::<FencedAfter>() > 1500);
    assert!(torn_inserts::<Wide<FencedAfter>>() > 200);
}

/// Explores every insert, and returns the number of crash images.
fn torn_inserts<F: ShiftForm>() -> u64 {
    let mut total = 0;
    for count in 0..Small::<Mapped, F>::CAPACITY {
        for index in 0..=count {
            for least in [false, true] {
                let key = if index == 0 && !least { 0 } else { 10 * index as u64 + 5 };
                if least && index == 0 && count > 0 {
                    continue;
                }
                let entry = Entry::plain(key, 5);
                total += explore::<F>(&filled(count, least), None, None, &|node| {
                    node.insert(index, count, entry)
                })
                .unwrap();
            }
        }
    }
    total
}

#[test]
fn no_crash_tears_a_remove_or_an_update() {
    assert!(torn_removes_and_updates::<FencedAfter>() > 1500);
    assert!(torn_removes_and_updates::<Wide<FencedAfter>>() > 200);
}

/// Explores every remove, update and truncation, and returns the number of crash images.
fn torn_removes_and_updates<F: ShiftForm>() -> u64 {
    let mut total = 0;
    for count in 1..=Small::<Mapped, F>::CAPACITY {
        for index in 0..count {
            for least in [false, true] {
                let entries = filled(count, least);
                let of = |change: &dyn Fn(&Small<'_, RecordingMedium, F>) -> Fenced| {
                    explore(&entries, None, None, change).unwrap()
                };
                total += of(&|node| node.remove(index, count));
                total += of(&|node| node.update(index, 6));
                total += of(&|node| node.truncate(index));
            }
        }
    }
    total
}

#[test]
fn appended_entries_stay_hidden_until_the_sibling_is_unlinked() {
    torn_appends::<FencedAfter>();
    torn_appends::<Wide<FencedAfter>>();
}

/// Until a writer mends a node, readers meet what a crash of a merge has left there: nothing, or
/// the sibling's entries in their order.
#[test]
fn a_crash_shows_appended_entries_all_or_none() {
    fn check<F: ShiftForm>() {
        let capacity = Small::<Mapped, F>::CAPACITY;
        let tail: Vec<_> = (0..CAPACITY as u64).map(|i| Entry::plain(3 + i, 77)).collect();
        for count in 0..capacity {
            for more in 1..=capacity - count {
                let entries = filled(count, false);
                let extra: Vec<_> = filled(count + more, false)[count..].to_vec();
                let (pool, at) = pool_with::<F>(&entries, &tail, None);
                let node = node_in::<F>(&pool, at);
                let base = words_of(&pool, &node);
                let before = entries_of(&node);
                let _ = node.append(count, &extra);
                let after = entries_of(&node);
                assert_eq!(after.len(), count + more);
                let events = core::mem::take(&mut *pool.medium().events.lock().unwrap());
                for_each_crash_image(&events, &mut |image, at_end| {
                    let pool = pool_of::<F>(&base, image, at);
                    let found = entries_of(&node_in::<F>(&pool, at));
                    assert!(found == after || !at_end && found == before, "{count}: {found:?}");
                });
            }
        }
    }
    check::<FencedAfter>();
    check::<Wide<FencedAfter>>();
}

#[test]
fn a_full_node_can_append_nothing() {
    fn check<F: ShiftForm>() {
        let full = filled(Small::<Mapped, F>::CAPACITY, false);
        explore::<F>(&full, None, None, &|node| node.append(full.len(), &[])).unwrap();
    }
    check::<FencedAfter>();
    check::<Wide<FencedAfter>>();
}

fn torn_appends<F: ShiftForm>() {
    let capacity = Small::<Mapped, F>::CAPACITY;
    for count in 0..capacity {
        for more in 1..=(capacity - count).min(6) {
            let entries = filled(count, false);
            let limit = 10 * (count as u64 + 1);
            let extra: Vec<_> = filled(count + more, false)[count..].to_vec();
            explore::<F>(&entries, Some(limit), None, &|node| node.append(count, &extra)).unwrap();
        }
    }
}

/// The exploration detects defects: each flush of these changes is needed.
#[test]
fn a_skipped_flush_is_detected() {
    let entries = filled(12, false);
    let entry = Entry::plain(5, 1);
    for skipped in 0..4 {
        let insert = explore::<FencedAfter>(&entries, None, Some(skipped), &|node| {
            node.insert(0, 12, entry)
        });
        let remove =
            explore::<FencedAfter>(&entries, None, Some(skipped), &|node| node.remove(0, 12));
        assert!(insert.is_err() && (skipped == 3 || remove.is_err()), "flush {skipped}");
    }
}

/// Removes an entry as the paper's listing does: it flushes a line after the line's first entry, as
/// in the insert, and not after its last.
fn remove_of_the_paper(node: &Small<'_, RecordingMedium>, index: usize, count: usize) -> Fenced {
    for target in index..count - 1 {
        let Entry { key, value, .. } = node.entry(target + 1);
        node.store(Small::<RecordingMedium>::key_word(target), key);
        node.store(Small::<RecordingMedium>::key_word(target) + 1, value);
        if Small::<RecordingMedium>::starts_line(target) {
            let _ = node.persist(Small::<RecordingMedium>::key_word(target));
        }
    }
    node.set_terminator(count - 1);
    node.persist(Small::<RecordingMedium>::key_word(count - 1))
}

#[test]
fn the_delete_as_printed_is_found() {
    let is_detected = |index, count| {
        explore(&filled(count, false), None, None, &|node| remove_of_the_paper(node, index, count))
            .is_err()
    };
    // Entry 4 is the last of its line. The flush of that line comes before entry 4 is stored, while
    // its source, entry 5, is overwritten in the next line.
    assert!(is_detected(2, 8) && is_detected(0, 12));
    assert!(!is_detected(1, 4), "within one line the end of the array is flushed");
}

#[test]
fn a_key_stored_before_its_value_is_detected() {
    let swapped = |node: &Small<'_, RecordingMedium>| {
        node.set_terminator(9);
        for moved in (2..8).rev() {
            let Entry { key, value, .. } = node.entry(moved);
            node.store(Small::<RecordingMedium>::key_word(moved + 1), key);
            node.store(Small::<RecordingMedium>::key_word(moved + 1) + 1, value);
            if Small::<RecordingMedium>::starts_line(moved + 1) {
                let _ = node.persist(Small::<RecordingMedium>::key_word(moved + 1));
            }
        }
        node.set_entry(2, Entry::plain(25, 9));
        node.persist(Small::<RecordingMedium>::key_word(2))
    };
    assert!(explore(&filled(8, false), None, None, &swapped).is_err());
}

#[test]
fn both_searches_agree_with_a_sorted_vector() {
    for count in 0..=CAPACITY {
        let (pool, at) = pool_with::<FencedAfter>(&filled(count, true), &[], None);
        let node = node_in::<FencedAfter>(&pool, at);
        assert_eq!((node.count(), node.is_empty()), (count, count == 0));
        for key in 0..10 * (count as u64 + 2) {
            let keys: Vec<_> = (0..count).map(|i| node.key(i)).collect();
            let index = keys.partition_point(|&k| k < key);
            let equal = keys.get(index) == Some(&key);
            let expected = ShiftPos { index, equal, end: index == count };
            assert_eq!(node.search_linear::<u64>(&pool, key).unwrap(), expected);
            assert_eq!(node.search_binary::<u64>(&pool, key).unwrap(), expected);
        }
    }
}

/// As a leaf of a hybrid index, a node with an entry twice answers with the right one. Recovery
/// checks it and stores nothing; the first writer mends it.
#[test]
fn a_leaf_ignores_the_left_one_of_two_equal_entries_until_it_is_mended() {
    type Narrow = SortedShift<NODE_BYTES, FencedAfter>;
    let mut entries = filled(4, false);
    entries.insert(1, Entry::plain(20, 99));
    let (pool, at) = pool_with::<FencedAfter>(&entries, &[], None);
    let node = node_in::<FencedAfter>(&pool, at);
    let words = node.words();
    Narrow::repair::<u64, _>(&pool, at.offset(), words).unwrap();
    for key in [10, 20, 30, 40] {
        let (slot, value) = Narrow::find::<u64, _>(&pool, words, key).unwrap().unwrap();
        assert_eq!((node.key(slot), value.word), (key, node.value(slot)));
        assert_ne!(value.word, 99);
    }
    let mut found = Vec::new();
    Narrow::collect(pool.medium(), words, &mut found);
    let found: Vec<_> = found.iter().map(|tagged| (tagged.entry.key, tagged.entry.value)).collect();
    assert!(pool.medium().events.lock().unwrap().is_empty(), "nothing is stored yet");
    Narrow::mend(&pool, words);
    assert_eq!(found, entries_of(&node));
    assert_eq!(node.count(), 4);
}
