//! Splits under a micro-log.

use crate::hybrid::{Hybrid, HybridSpec, LeafRef};
use crate::index::TreeError;
use crate::inner::InnerNodes;
use crate::key::Key;
use crate::leaf::Leaf;
use crate::node_latch::HeldLatch;
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmPtr};

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// Splits a full leaf. The caller inserts its pair by a normal insert afterwards. Durable on
    /// return.
    ///
    /// # Persist order
    ///
    /// ```text
    /// W low key of the right leaf            its lines; only byte-string keys have a record
    /// W log: low key            8 B          the same line as the leaf
    /// W log: current leaf       8 B          crash before the next store: replay clears the log,
    /// F log |                                and the right leaf is free
    /// W log: new leaf           8 B          crash from here on: replay completes the split, and
    /// F log |                                copies again if C is not durable
    /// W right leaf: copy of the left one, its low key, next; bitmap 0
    /// F lines of the right leaf |
    /// W right leaf: bitmap      8 B          the entries from the low key on
    /// F its line |
    /// C left leaf: bitmap       8 B          the other ones
    /// F its line |
    /// W left leaf: next         8 B          the right leaf
    /// F its line |
    /// A reset of the log                     -> durable
    /// budget: lines of a leaf + 6, 7 fences: (14, 7) with leaves of 512 B
    /// ```
    #[cold]
    pub(in crate::hybrid) fn split_logged(
        &self,
        leaf: &LeafRef<'_>,
        latch_guard: HeldLatch<'_, M>,
    ) -> Result<(), TreeError> {
        let medium = self.pool.medium();
        let sorted = self.sorted_entries(leaf)?;
        if sorted.len() < 2 || sorted.len() != S::Leaf::CAPACITY {
            let (at, what) = (leaf.at.offset(), "number of entries of a full leaf");
            let (expected, found) = (S::Leaf::CAPACITY as u64, sorted.len() as u64);
            return Err(Corrupt { at, what, expected, found }.into());
        }
        let middle = sorted.len() / 2;
        let above = K::read_entry(&self.pool, sorted[middle].1.entry)?;
        let separator = K::between(&self.pool, sorted[middle - 1].1.entry, K::borrow(&above))?;
        let separator = K::borrow(&separator);
        self.check_separator(leaf, sorted[middle - 1].1.entry, separator)?;
        let upper = self.upper_half(leaf, separator)?;
        let right = self.pool.reserve(Self::LEAF_BYTES)?;
        let release_right = |_: &_| self.pool.release(right, Self::LEAF_BYTES);
        let word = K::store_separator(&self.pool, separator).inspect_err(release_right)?;
        let right = self.leaf(right)?;

        let claim = self.micro_logs.claim::<M>();
        let ([log, _], low) = self.micro_log(claim.number)?;
        let next = self.next(leaf);
        let injects = |defect| M::INJECTS_DEFECTS && medium.injects(defect);
        if injects(Defect::LinkBeforeFill) {
            self.persist_link(leaf, right.at);
        }
        medium.store(low, word);
        log.set_current(medium, leaf.at);
        let is_mistaken = injects(Defect::OldNeighbour) && !next.is_null();
        log.set_other(medium, if is_mistaken { next } else { right.at });
        let fenced = self.fill_right(leaf, &right, (word, next), upper);
        medium.commit(&Self::bitmap(leaf)[0], Self::FULL & !upper, fenced);
        let _ = medium.persist(Self::bitmap(leaf));
        self.persist_link(leaf, right.at);

        let post = || self.inner.post::<K>(&self.pool, separator, word, right.at);
        let mut latch_guard = Some(latch_guard);
        let (early_post, early_release) = (injects(Defect::RightEarly), injects(Defect::LeftEarly));
        if early_post || early_release {
            post()?;
        }
        if early_release {
            latch_guard = None;
        }
        log.reset(medium);
        drop(claim);
        if !(early_post || early_release) {
            post()?;
        }
        drop(latch_guard);
        Ok(())
    }

    /// Returns the entries of a full leaf from `separator` on, as bits.
    pub(super) fn upper_half(
        &self,
        leaf: &LeafRef<'_>,
        separator: K::Ref<'_>,
    ) -> Result<u64, Corrupt> {
        // In a full leaf the entries are collected in the order of their slots, from slot 0 on.
        let (mut entries, mut upper) = (Vec::with_capacity(S::Leaf::CAPACITY), 0);
        S::Leaf::collect(self.pool.medium(), leaf.words, &mut entries);
        for (slot, tagged) in entries.iter().enumerate() {
            let is_upper = K::order_entry(&self.pool, tagged.entry, separator)?.is_ge();
            upper |= u64::from(is_upper) << slot;
        }
        Ok(upper)
    }

    /// Copies the entries `upper` of `leaf` to the block of `right`, with another low key and the
    /// right neighbour `next`. Durable on return.
    ///
    /// ```text
    /// W right leaf: copy of the left one, its low key, next; bitmap 0
    /// F lines of the right leaf |
    /// C right leaf: bitmap      8 B
    /// F its line |
    /// ```
    pub(super) fn fill_right(
        &self,
        leaf: &LeafRef<'_>,
        right: &LeafRef<'_>,
        (low, next): (u64, PmPtr),
        upper: u64,
    ) -> Fenced {
        let medium = self.pool.medium();
        let fenced = self.copy_leaf_to(leaf, right, (low, next));
        medium.commit(&Self::bitmap(right)[0], upper, fenced);
        medium.persist(Self::bitmap(right))
    }

    /// Copies `leaf` to the block of `right`, with another low key, the right neighbour `next` and
    /// no valid entry, and fences it.
    fn copy_leaf_to(
        &self,
        leaf: &LeafRef<'_>,
        right: &LeafRef<'_>,
        (low, next): (u64, PmPtr),
    ) -> Fenced {
        let medium = self.pool.medium();
        let mut image = vec![0; 8 * S::Leaf::WORDS];
        medium.copy_out(leaf.words, &mut image);
        let mut set = |at: usize, word: u64| {
            image[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
        };
        set(S::Leaf::LOW, low);
        set(S::Leaf::NEXT, S::Leaf::encode_next(next.offset()));
        set(S::Leaf::LATCH, 0);
        if let Some(at) = S::Leaf::BITMAP {
            set(at, 0);
        }
        medium.fill(right.words, &image);
        medium.fence()
    }
}
