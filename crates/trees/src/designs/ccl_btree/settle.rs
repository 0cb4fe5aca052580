//! Settling: merges a batch of writes into a leaf with one commit.

use super::layout::{self, CAPACITY, LeafView};
use crate::fingerprint;
use crate::key::Key;
use crate::leaf_table::EntryChange;
use bristlecone_pmem::{Corrupt, Defect, Medium, Pool};

/// The changes that commit together with the entries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SettleOptions {
    /// The new right neighbour, a leaf that takes over the `moved` entries.
    pub(super) next: Option<u64>,
    /// The entries that the new right neighbour contains, as a bit mask. They become invalid.
    pub(super) moved: u64,
    /// The new stamp, which makes all earlier log entries of the leaf invalid.
    pub(super) stamp: Option<u64>,
    /// The new right neighbour, the one of a right neighbour that is unlinked.
    pub(super) unlink: Option<u64>,
    /// `true` if a key record or a leaf was written that must be durable before the state is.
    pub(super) has_written: bool,
}

/// Merges `changes`, each of a different key, into a latched leaf that has space for them. Durable
/// on return.
///
/// ```text
/// W values of existing keys, entries of new keys
/// F their lines but the first |        crash before C: the log restores each logged value; at most
/// R fingerprints                       one is not logged, the operation's own word
/// C state                     8 B      all changes at once
/// W stamp                              same line, after C; crash before it: the log repeats the
///                                      changes
/// C state: next of the unlinked leaf   only to unlink; same line, after the stamp
/// F first line |                       -> durable
///                                      budget: lines of entries but the first, + 1; 2 fences (1 if
///                                      only one line changes)
/// ```
///
/// A slot freed by this call is not reused in it, because its entry is valid until C.
///
/// # Errors
/// A key is damaged, or the leaf has too little space. Only logged changes are then valid.
pub(super) fn settle<K: Key, M: Medium>(
    pool: &Pool<M>,
    leaf: &LeafView<'_>,
    changes: &[EntryChange],
    options: SettleOptions,
) -> Result<(), Corrupt> {
    let medium = pool.medium();
    let before = leaf.valid(medium);
    let (mut used, mut valid, mut dirty) = (before, before & !options.moved, 0u32);
    for change in changes {
        let key = K::read_entry(pool, change.entry)?;
        let found = leaf.find::<K, M>(pool, K::borrow(&key))?;
        match found {
            Some((slot, _)) if change.is_removed => valid &= !(1 << slot),
            None if change.is_removed => {}
            Some((slot, _)) => {
                medium.store(leaf.entry_words(slot)[1], change.entry.value);
                dirty |= 1 << layout::line_of(slot);
            }
            None => {
                let slot = used.trailing_ones() as usize;
                if slot >= CAPACITY {
                    return Err(no_space(leaf));
                }
                let [key_word, value_word] = leaf.entry_words(slot);
                medium.store(key_word, change.entry.key);
                medium.store(value_word, change.entry.value);
                leaf.set_fingerprint(medium, slot, fingerprint::of(K::hash(K::borrow(&key))));
                used |= 1 << slot;
                valid |= 1 << slot;
                dirty |= 1 << layout::line_of(slot);
            }
        }
    }
    let stamps_first = M::INJECTS_DEFECTS && medium.injects(Defect::StampFirst);
    if let Some(stamp) = options.stamp.filter(|_| stamps_first) {
        medium.store(&leaf.words[layout::STAMP], stamp);
    }
    let commits = valid != before || options.next.is_some() || options.stamp.is_some();
    for line in (1..4).filter(|line| dirty & 1 << line != 0) {
        medium.flush(leaf.line(line));
    }
    let needs_fence = dirty & !1 != 0 || options.has_written;
    let fenced = needs_fence.then(|| medium.fence());
    if commits {
        let next = options.next.unwrap_or_else(|| leaf.next(medium).offset());
        let (word, state) = (&leaf.words[layout::STATE], layout::state(valid, next));
        match fenced {
            Some(fenced) => medium.commit(word, state, fenced),
            None => medium.store(word, state), // All entries that it makes valid lie in its own line.
        }
    }
    if let Some(stamp) = options.stamp {
        medium.store(&leaf.words[layout::STAMP], stamp);
    }
    if let Some(next) = options.unlink {
        medium.store(&leaf.words[layout::STATE], layout::state(valid, next));
    }
    if commits || dirty & 1 != 0 {
        let _ = medium.persist(leaf.line(0));
    }
    Ok(())
}

#[cold]
fn no_space(leaf: &LeafView<'_>) -> Corrupt {
    let (at, what) = (leaf.at.offset(), "leaf has no space for its buffered or logged writes");
    Corrupt { at, what, expected: CAPACITY as u64, found: CAPACITY as u64 + 1 }
}
