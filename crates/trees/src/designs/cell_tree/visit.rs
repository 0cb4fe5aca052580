//! The first use of a leaf after an open: it compares all that the leaf has, and makes the leaf
//! words. It writes nothing: after a crash the open has [completed](super::recover) the leaf.

use super::CellTreeIndex;
use super::epoch::Ended;
use super::leaf::{CellLeaf, Placed, unfindable};
use super::leaf_table::high_of;
use super::place::{Candidates, ENTRIES_MAX};
use super::recover::{settled_words, valid_entries, verified_kind};
use super::rows::{CELLS_MAX, LeafWords, Notes, Tags};
use super::word::{CellKind, CellLayout, CommitWord, UNKNOWN_TAG, tag_of, with_kind};
use super::write::Latched;
use crate::inner::InnerNodes;
use crate::key::Key;
use crate::leaf_table::LeafBounds;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, Pool};

impl<M: Medium, K: Key, const BYTES: usize> CellTreeIndex<M, K, BYTES> {
    /// Makes the words of a leaf that no operation has reached since the open. Another thread may
    /// do so meanwhile.
    ///
    /// # Errors
    /// The leaf is damaged.
    #[cold]
    pub(super) fn visit_first(&self, row: LeafWords<'_>) -> Result<(), Corrupt> {
        // Nothing unlinks a leaf that was not visited.
        let Some(_held) = row.latch::<M>().lock() else { return Ok(()) };
        self.visit_latched(row)
    }

    /// As [`visit_first`](Self::visit_first), with the latch of the leaf held; does nothing if the
    /// leaf was visited.
    ///
    /// # Errors
    /// The leaf is damaged.
    pub(super) fn visit_latched(&self, row: LeafWords<'_>) -> Result<(), Corrupt> {
        if !row.is_unvisited() {
            return Ok(());
        }
        let leaf = self.leaf(row)?;
        leaf.prefetch_all(self.pool.medium());
        let low = K::read(&self.pool, leaf.low(self.pool.medium())?)?;
        let high = high_of::<K, M>(&self.pool, leaf, BYTES)?.map(|(_, high)| high);
        let range = (&low, high.as_ref());
        let kind = verified_kind::<K, M>(self.pool.medium(), leaf, range)?;
        let (notes, tags) = with_kind!(kind, C => words_of::<C, K, M>(&self.pool, leaf, range))?;
        row.set_tags::<M>(tags);
        row.set_notes::<M>(notes);
        Ok(())
    }

    /// Latches the leaf of `row`, and visits it. `None` if it is unlinked.
    pub(super) fn latch_row<'a>(
        &'a self,
        row: LeafWords<'a>,
    ) -> Result<Option<Latched<'a, M>>, Corrupt> {
        let Some(held) = row.latch::<M>().lock() else { return Ok(None) };
        self.visit_latched(row)?;
        Ok(Some((row, held)))
    }

    /// Visits all leaves that no operation has reached.
    ///
    /// # Errors
    /// A leaf is damaged.
    pub(super) fn visit_all(&self) -> Result<(), Corrupt> {
        let mut leaves = Vec::new();
        self.inner.for_each_leaf(&mut |separated| leaves.push(separated.leaf));
        leaves.into_iter().try_for_each(|leaf| {
            let row = self.row_at(PmPtr::new(leaf));
            if row.is_unvisited() { self.visit_first(row) } else { Ok(()) }
        })
    }
}

/// Returns the words of a leaf with this range, whose cells are complete and whose header is whole.
///
/// # Errors
/// A cell is damaged, or a lookup would not find one of its entries.
fn words_of<C: CellLayout, K: Key, M: Medium>(
    pool: &Pool<M>,
    leaf: CellLeaf<'_>,
    (low, high): (&K::Owned, Option<&K::Owned>),
) -> Result<(Notes, Tags), Corrupt> {
    let medium = pool.medium();
    let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
    let mut words = [CommitWord::<C>::default(); CELLS_MAX];
    let words = settled_words::<C, K, M>(pool, leaf, Ended::ALL, &mut words)?;
    let mut placed = [Placed::default(); ENTRIES_MAX + 1];
    let entries = valid_entries::<C, K, M>(pool, leaf, words, &mut placed);
    let high = high.filter(|_| !injects(Defect::RangeIgnored));
    let range = LeafBounds::<K>::new(low, high);
    let (mut notes, mut tags, mut count) = (Notes::of(C::KIND), Tags::default(), 0);
    for &Placed { cell: index, slot, entry } in entries {
        if range.is_behind(pool, leaf.at, entry)? {
            let hidden = 1 << C::KIND.number((index, slot));
            notes = notes.with_hidden::<C>(hidden, range.end().unwrap_or(0));
            continue;
        }
        count += 1;
        let hash = match K::hash_entry(pool, entry) {
            // Lookups compare the key, and meet the damage.
            Err(_) if C::KIND == CellKind::Pairs => {
                tags.set((index, slot), UNKNOWN_TAG);
                continue;
            }
            hash => hash?,
        };
        if !words[index].has_tag(slot, hash) {
            return Err(unfindable(leaf.at, entry));
        }
        if C::KIND == CellKind::Pairs {
            tags.set((index, slot), tag_of(hash));
        }
        let is_far = !Candidates::of(hash, leaf.cells()).is_near(index);
        if is_far && !injects(Defect::FarForgotten) {
            notes = notes.with_far::<C>(hash);
        }
    }
    Ok((notes.with_count::<C>(count), tags))
}
