//! Settling: a batch of writes is merged into a leaf with one commit.

use super::layout::{self, CAPACITY, LeafView};
use crate::fingerprint;
use crate::key::Key;
use crate::leaf_table::EntryChange;
use bristlecone_pmem::{Corrupt, Defect, Medium, Pool};

/// What else changes together with the entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct With {
    /// Another leaf to the right.
    pub(super) next: Option<u64>,
    /// A stamp that makes all that was logged of the leaf so far void.
    pub(super) stamp: Option<u64>,
    /// Whether a record was planted that must be durable before its entry is valid.
    pub(super) is_stored: bool,
}

/// Merges `changes`, each of another key, into a leaf that is latched and has room for them. Durable at
/// return.
///
/// ```text
/// W values of keys that are there, entries of new keys   crash before C: a value that is logged is
/// F their lines but the first |                           logged again from there; at most one is not,
/// R fingerprints                                          the operation's own, of one word
/// C state                           8 B                   all of the rest at once
/// W stamp                           same line, after C    crash before it: the log says the same again
/// F first line |                    -> durable            budget: lines of entries but the first, + 1;
///                                                         2 fences (1 where only one line changes)
/// ```
///
/// A slot that this empties is not used again by it: before C its entry still counts.
///
/// # Errors
/// A key is damaged, or there is no room after all. Nothing counts then that was not logged.
pub(super) fn settle<K: Key, M: Medium>(
    pool: &Pool<M>,
    leaf: &LeafView<'_>,
    changes: &[EntryChange],
    with: With,
) -> Result<(), Corrupt> {
    let medium = pool.medium();
    let before = leaf.valid(medium);
    let (mut used, mut valid, mut dirty) = (before, before, 0u32);
    for change in changes {
        let key = K::read_entry(pool, change.entry)?;
        let found = leaf.find::<K, M>(pool, K::borrow(&key))?;
        match found {
            Some((slot, _)) if change.is_removed => valid &= !(1 << slot),
            None if change.is_removed => {}
            Some((slot, entry)) => {
                if entry.value != change.entry.value {
                    medium.store(leaf.entry_words(slot)[1], change.entry.value);
                    dirty |= 1 << layout::line_of(slot);
                }
            }
            None => {
                let slot = used.trailing_ones() as usize;
                if slot >= CAPACITY {
                    return Err(no_room(leaf));
                }
                let [key_word, value_word] = leaf.entry_words(slot);
                medium.store(key_word, change.entry.key);
                medium.store(value_word, change.entry.value);
                leaf.set_print(medium, slot, fingerprint::of(K::hash(K::borrow(&key))));
                used |= 1 << slot;
                valid |= 1 << slot;
                dirty |= 1 << layout::line_of(slot);
            }
        }
    }
    let stamps_first = M::INJECTS_DEFECTS && medium.injects(Defect::StampFirst);
    if let Some(stamp) = with.stamp.filter(|_| stamps_first) {
        medium.store(&leaf.words[layout::STAMP], stamp);
    }
    let commits = valid != before || with.next.is_some() || with.stamp.is_some();
    for line in (1..4).filter(|line| dirty & 1 << line != 0) {
        medium.flush(leaf.line(line));
    }
    let needs_fence = dirty & !1 != 0 || with.is_stored;
    let fenced = needs_fence.then(|| medium.fence());
    if commits {
        let next = with.next.unwrap_or_else(|| leaf.next(medium).offset());
        let (word, state) = (&leaf.words[layout::STATE], layout::state(valid, next));
        match fenced {
            Some(fenced) => medium.commit(word, state, fenced),
            None => medium.store(word, state), // All that it makes valid lies in its own line.
        }
    }
    if let Some(stamp) = with.stamp {
        medium.store(&leaf.words[layout::STAMP], stamp);
    }
    if commits || dirty & 1 != 0 {
        let _ = medium.persist(leaf.line(0));
    }
    Ok(())
}

#[cold]
fn no_room(leaf: &LeafView<'_>) -> Corrupt {
    let (at, what) = (leaf.at.offset(), "a leaf has no room for what its buffer or its log holds");
    Corrupt { at, what, expected: CAPACITY as u64, found: CAPACITY as u64 + 1 }
}
