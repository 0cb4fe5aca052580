//! Every crash image of every shift of a small node: each line holds a prefix of its stores.

use super::*;
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::{Domain, Mapped};
use core::ptr::NonNull;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

const NODE_BYTES: usize = 256;
const CAPACITY: usize = ShiftNode::<Mapped, NODE_BYTES>::CAPACITY;
type Small<'p, M> = ShiftNode<'p, M, NODE_BYTES>;

#[derive(Clone, Copy, Debug)]
enum Event {
    Store(u64, u64),
    Flush(u64),
    Fence,
}

/// Notes stores, flushes and fences; flushes that are skipped are a way to be wrong.
struct Notes {
    inner: Mapped,
    events: Mutex<Vec<Event>>,
    skip_flush: Option<usize>,
}

impl Notes {
    fn offset(&self, word: &PmWord) -> u64 {
        (core::ptr::from_ref(word) as usize - self.inner.base().as_ptr() as usize) as u64
    }
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: everything is passed on to `inner`, which keeps the contract.
unsafe impl Medium for Notes {
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
            // A skipped flush is noted as one of a line that does not matter.
            events.push(Event::Flush(if self.skip_flush == Some(flushes) { 0 } else { line }));
        }
    }
    fn fence(&self) -> Fenced {
        self.events.lock().unwrap().push(Event::Fence);
        self.inner.fence()
    }
}

/// The stores of one line, and how many of them are guaranteed.
#[derive(Clone, Default)]
struct Line {
    stores: Vec<(u64, u64)>,
    flushed: usize,
    guaranteed: usize,
}

/// Calls `visit` with each image reachable by a crash during `events`, as the words that changed,
/// and whether a crash after the last event can leave it.
fn images(events: &[Event], visit: &mut dyn FnMut(&BTreeMap<u64, u64>, bool)) {
    let mut lines: BTreeMap<u64, Line> = BTreeMap::new();
    for event in events {
        match *event {
            Event::Store(at, value) => {
                lines.entry(at / 64).or_default().stores.push((at, value));
                product(&lines, Some(at / 64), &mut |image| visit(image, false));
            }
            Event::Flush(line) => {
                let line = lines.entry(line).or_default();
                line.flushed = line.stores.len();
            }
            Event::Fence => lines.values_mut().for_each(|line| line.guaranteed = line.flushed),
        }
    }
    product(&lines, None, &mut |image| visit(image, true));
}

/// All choices of a prefix for each line; that of `whole` is all of its stores.
fn product(
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

/// A pool of one node, the same block in every pool.
fn node_in(pool: &Pool<Notes>, at: PmPtr) -> Small<'_, Notes> {
    Small::view(pool, at).unwrap()
}

fn pool_with(entries: &[Entry], tail: &[Entry], skip_flush: Option<usize>) -> (Pool<Notes>, PmPtr) {
    let inner = Mapped::anonymous(1 << 20).unwrap();
    let notes = Notes { inner, events: Mutex::default(), skip_flush };
    let pool = Pool::create(notes).unwrap();
    let at = pool.reserve(NODE_BYTES as u64).unwrap();
    let header = NodeHeader { sibling: PmPtr::NULL, low: 0, level: 0 };
    let node = Small::create(&pool, at, header, entries).unwrap();
    // What former entries have left behind: it must never come back.
    for (index, &entry) in (entries.len() + 1..CAPACITY).zip(tail) {
        node.set_entry(index, entry);
    }
    pool.medium().events.lock().unwrap().clear();
    (pool, at)
}

fn contents<M: Medium>(node: &Small<'_, M>) -> Vec<(u64, u64)> {
    (0..node.count()).map(|i| (node.key(i), node.value(i))).collect()
}

/// Applies `image` to a pool like the first and repairs; a crash in the repair is repaired again.
fn recovered(
    base: &[(u64, u64)],
    image: &BTreeMap<u64, u64>,
    at: PmPtr,
    limit: Option<u64>,
    nested: bool,
) -> Vec<(u64, u64)> {
    let (pool, same) = pool_with(&[], &[], None);
    assert_eq!(at, same);
    let write = |words: &mut dyn Iterator<Item = (u64, u64)>| {
        for (offset, value) in words {
            let word = &pool.words(PmPtr::new(offset), 1).unwrap()[0];
            pool.medium().inner.store(word, value);
        }
    };
    write(&mut base.iter().copied());
    write(&mut image.iter().map(|(&offset, &value)| (offset, value)));
    let node = node_in(&pool, at);
    node.repair::<u64>(&pool, limit).unwrap();
    let result = contents(&node);
    if nested {
        let events = core::mem::take(&mut *pool.medium().events.lock().unwrap());
        let mut crashed = base.to_vec();
        crashed.extend(image.iter().map(|(&offset, &value)| (offset, value)));
        images(&events, &mut |image, _| {
            assert_eq!(recovered(&crashed, image, at, limit, false), result, "nested crash");
        });
    }
    result
}

/// Whether no crash during `change` shows anything but the node before or after it.
fn explore(
    entries: &[Entry],
    limit: Option<u64>,
    skip_flush: Option<usize>,
    change: &dyn Fn(&Small<'_, Notes>) -> Fenced,
) -> Result<u64, String> {
    let tail: Vec<_> = (0..CAPACITY as u64).map(|i| Entry::plain(3 + i, 77)).collect();
    let (pool, at) = pool_with(entries, &tail, skip_flush);
    let node = node_in(&pool, at);
    let base: Vec<_> = (at.offset()..).step_by(8).zip(node.words()).collect();
    let base: Vec<_> = base.iter().map(|(o, w)| (*o, pool.medium().load(w))).collect();
    let before = contents(&node);
    let _ = change(&node);
    let after: Vec<_> =
        contents(&node).into_iter().filter(|e| limit.is_none_or(|limit| e.0 < limit)).collect();
    let events = core::mem::take(&mut *pool.medium().events.lock().unwrap());
    let (mut count, mut bad) = (0, None);
    images(&events, &mut |image, at_end| {
        count += 1;
        let found = recovered(&base, image, at, limit, skip_flush.is_none());
        if found != after && (at_end || found != before) {
            bad = Some(format!("{before:?} -> {after:?}: found {found:?}"));
        }
    });
    bad.map_or(Ok(count), Err)
}

/// Entries with keys 10, 20, ..; the first is key 0 if `least`. All values are the same, which
/// equal neighbours must survive, but for one that is 0.
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
    let mut total = 0;
    for count in 0..CAPACITY {
        for index in 0..=count {
            for least in [false, true] {
                let key = if index == 0 && !least { 0 } else { 10 * index as u64 + 5 };
                if least && index == 0 && count > 0 {
                    continue;
                }
                let entry = Entry::plain(key, 5);
                total += explore(&filled(count, least), None, None, &|node| {
                    node.insert(index, count, entry)
                })
                .unwrap();
            }
        }
    }
    assert!(total > 1500, "only {total} images");
}

#[test]
fn no_crash_tears_a_remove_or_an_update() {
    let mut total = 0;
    for count in 1..=CAPACITY {
        for index in 0..count {
            for least in [false, true] {
                let entries = filled(count, least);
                total += explore(&entries, None, None, &|node| node.remove(index, count)).unwrap();
                total += explore(&entries, None, None, &|node| node.update(index, 6)).unwrap();
                total += explore(&entries, None, None, &|node| node.truncate(index)).unwrap();
            }
        }
    }
    assert!(total > 1500, "only {total} images");
}

#[test]
fn what_is_appended_does_not_count_before_the_sibling_is_unlinked() {
    for count in 0..CAPACITY {
        for more in 1..=(CAPACITY - count).min(6) {
            let entries = filled(count, false);
            let limit = 10 * (count as u64 + 1);
            let extra: Vec<_> = filled(count + more, false)[count..].to_vec();
            explore(&entries, Some(limit), None, &|node| node.append(count, &extra)).unwrap();
        }
    }
}

/// The exploration can fail: each flush of these changes is needed.
#[test]
fn a_skipped_flush_is_found() {
    let entries = filled(12, false);
    let entry = Entry::plain(5, 1);
    for skipped in 0..4 {
        let insert = explore(&entries, None, Some(skipped), &|node| node.insert(0, 12, entry));
        let remove = explore(&entries, None, Some(skipped), &|node| node.remove(0, 12));
        assert!(insert.is_err() && (skipped == 3 || remove.is_err()), "flush {skipped}");
    }
}

/// The delete as printed: it flushes a line when it has written its first entry, as the insert does.
fn remove_as_printed(node: &Small<'_, Notes>, index: usize, count: usize) -> Fenced {
    for target in index..count - 1 {
        let Entry { key, value, .. } = node.entry(target + 1);
        node.store(ENTRIES + ENTRY_WORDS * target, key);
        node.store(ENTRIES + ENTRY_WORDS * target + 1, value);
        if starts_line(target) {
            let _ = node.persist(ENTRIES + ENTRY_WORDS * target);
        }
    }
    node.end_at(count - 1);
    node.persist(ENTRIES + ENTRY_WORDS * (count - 1))
}

#[test]
fn the_delete_as_printed_is_found() {
    let bad = |index, count| {
        explore(&filled(count, false), None, None, &|node| remove_as_printed(node, index, count))
            .is_err()
    };
    // Entry 4 ends a line, and entry 5, its copy's source, is overwritten in the next one.
    assert!(bad(2, 8) && bad(0, 12));
    assert!(!bad(1, 4), "within one line the end of the array is flushed");
}

#[test]
fn words_in_the_wrong_order_are_found() {
    let swapped = |node: &Small<'_, Notes>| {
        node.end_at(9);
        for moved in (2..8).rev() {
            let Entry { key, value, .. } = node.entry(moved);
            node.store(ENTRIES + ENTRY_WORDS * (moved + 1), key);
            node.store(ENTRIES + ENTRY_WORDS * (moved + 1) + 1, value);
            if starts_line(moved + 1) {
                let _ = node.persist(ENTRIES + ENTRY_WORDS * (moved + 1));
            }
        }
        node.set_entry(2, Entry::plain(25, 9));
        node.persist(ENTRIES + ENTRY_WORDS * 2)
    };
    assert!(explore(&filled(8, false), None, None, &swapped).is_err());
}

#[test]
fn a_key_is_found_where_it_is() {
    for count in 0..=CAPACITY {
        let (pool, at) = pool_with(&filled(count, true), &[], None);
        let node = node_in(&pool, at);
        assert_eq!((node.count(), node.is_empty()), (count, count == 0));
        for key in 0..10 * (count as u64 + 2) {
            let keys: Vec<_> = (0..count).map(|i| node.key(i)).collect();
            let index = keys.partition_point(|&k| k < key);
            let equal = keys.get(index) == Some(&key);
            let expected = ShiftPos { index, equal, end: index == count };
            assert_eq!(node.search_forward::<u64>(&pool, key).unwrap(), expected);
            assert_eq!(node.search_halving::<u64>(&pool, key).unwrap(), expected);
        }
    }
}
