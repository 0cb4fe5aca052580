//! The ring of a circular node: its head, its slots, and the shifts of insert and remove.

use super::{HEAD, SLOTS};
use crate::key::{Entry, Key};
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Defect, Fenced, Medium, PmWord, Pool};
use core::cmp::Ordering;

/// A side of the ring: the end that a shift moves, and which of two neighbours with equal keys is
/// valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Left = 0,
    Right = 1,
}

/// The content of the head word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingHead {
    /// The slot of the first entry.
    pub(crate) base: usize,
    /// The number of entries.
    pub(crate) count: usize,
    /// The side whose entry is valid where two neighbours have equal key words.
    pub(crate) side: Side,
}

impl RingHead {
    pub(crate) const fn encode(self) -> u64 {
        self.base as u64 | (self.count as u64) << 8 | (self.side as u64) << 16
    }

    /// Decodes a head word of a ring with `slots` slots; `None` if the word is damaged.
    #[inline(always)]
    pub(crate) fn decode(word: u64, slots: usize) -> Option<Self> {
        let (base, count) = ((word & 0xff) as usize, (word >> 8 & 0xff) as usize);
        let side = match word >> 16 {
            0 => Side::Left,
            1 => Side::Right,
            _ => return None,
        };
        (base < slots && count <= slots).then_some(Self { base, count, side })
    }
}

/// A view of the ring in the words of a leaf.
#[derive(Debug)]
pub(crate) struct Ring<'p, M, const NODE: usize> {
    pub(crate) medium: &'p M,
    pub(crate) words: &'p [PmWord],
}

impl<M: Medium, const NODE: usize> Ring<'_, M, NODE> {
    const N: usize = (NODE / 8 - SLOTS) / 2;

    /// Returns the head, or that of an empty ring if it is damaged, so that no index leaves the
    /// leaf.
    #[inline(always)]
    pub(crate) fn head(&self) -> RingHead {
        self.checked_head().unwrap_or(RingHead { base: 0, count: 0, side: Side::Right })
    }

    #[inline(always)]
    pub(crate) fn checked_head(&self) -> Option<RingHead> {
        RingHead::decode(self.medium.load(&self.words[HEAD]), Self::N)
    }

    /// Returns the slot of entry `index`; for the number of entries, the slot after the last.
    #[inline(always)]
    pub(crate) const fn slot(head: RingHead, index: usize) -> usize {
        let slot = head.base + index;
        if slot < Self::N { slot } else { slot - Self::N }
    }

    /// Returns the neighbour of `slot` on that side.
    #[inline(always)]
    const fn beside(slot: usize, side: Side) -> usize {
        match side {
            Side::Right if slot + 1 == Self::N => 0,
            Side::Right => slot + 1,
            Side::Left if slot == 0 => Self::N - 1,
            Side::Left => slot - 1,
        }
    }

    /// Returns the index of a slot's first word.
    #[inline(always)]
    pub(crate) const fn word(slot: usize) -> usize {
        SLOTS + 2 * slot
    }

    #[inline(always)]
    pub(crate) fn key(&self, slot: usize) -> u64 {
        self.medium.load(&self.words[Self::word(slot)])
    }

    #[inline(always)]
    pub(crate) fn entry(&self, slot: usize) -> Entry {
        let at = Self::word(slot);
        Entry::plain(self.medium.load(&self.words[at]), self.medium.load(&self.words[at + 1]))
    }

    /// Writes an entry into a slot that its key word makes valid: the key comes last.
    #[inline(always)]
    pub(crate) fn set_value_first(&self, slot: usize, entry: Entry) {
        let at = Self::word(slot);
        self.medium.store(&self.words[at + 1], entry.value);
        self.medium.store(&self.words[at], entry.key);
    }

    /// Writes an entry into a slot that is valid until its key word changes: the key comes first.
    #[inline(always)]
    fn set_key_first(&self, slot: usize, entry: Entry) {
        let at = Self::word(slot);
        self.medium.store(&self.words[at], entry.key);
        self.medium.store(&self.words[at + 1], entry.value);
    }

    #[inline(always)]
    pub(crate) fn persist(&self, slot: usize) -> Fenced {
        let at = Self::word(slot);
        self.medium.persist(&self.words[at..=at])
    }

    #[inline(always)]
    pub(crate) const fn are_in_one_line(a: usize, b: usize) -> bool {
        Self::word(a) / LINE_WORDS == Self::word(b) / LINE_WORDS
    }

    #[inline(always)]
    pub(crate) fn commit(&self, head: RingHead, fenced: Fenced) -> Fenced {
        self.medium.commit(&self.words[HEAD], head.encode(), fenced);
        self.medium.persist(&self.words[HEAD..=HEAD])
    }

    /// Stores a head that makes no entry visible, so it needs no fence before it. Durable on
    /// return.
    #[inline(always)]
    pub(crate) fn set_head(&self, head: RingHead) -> Fenced {
        self.medium.store(&self.words[HEAD], head.encode());
        self.medium.persist(&self.words[HEAD..=HEAD])
    }

    /// Returns the index of the first entry whose key is not less than `key`, and `true` if that
    /// key is equal. Searches from the first entry, as the paper does; byte-string keys, each of
    /// which is a cache miss, by bisection.
    #[inline(always)]
    pub(crate) fn search<K: Key>(
        &self,
        pool: &Pool<M>,
        head: RingHead,
        key: K::Ref<'_>,
    ) -> Result<(usize, bool), Corrupt> {
        if !K::EXACT {
            return self.search_binary::<K>(pool, head, key);
        }
        let mut slot = head.base;
        for index in 0..head.count {
            match K::order(pool, self.key(slot), key)? {
                Ordering::Less => slot = Self::beside(slot, Side::Right),
                order => return Ok((index, order.is_eq())),
            }
        }
        Ok((head.count, false))
    }

    fn search_binary<K: Key>(
        &self,
        pool: &Pool<M>,
        head: RingHead,
        key: K::Ref<'_>,
    ) -> Result<(usize, bool), Corrupt> {
        let (mut low, mut high) = (0, head.count);
        while low < high {
            let middle = low.midpoint(high);
            match K::order(pool, self.key(Self::slot(head, middle)), key)? {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok((middle, true)),
                Ordering::Greater => high = middle,
            }
        }
        Ok((low, false))
    }

    /// Inserts `entry` before entry `p` of a ring of `n` entries that has a free slot. Durable on
    /// return. On the right side:
    ///
    /// ```text
    /// W e[n] = e[n-1]; F |              crash: e[n] is not in the ring
    /// C head: n + 1 entries, side       e[n-1] and e[n] are equal: either may be valid
    /// F head |
    /// for i = n-1 down to p+1:          crash: e[i-1], e[i] have one key, the right one is valid
    ///   W value[i], key[i] = e[i-1]
    ///   F line of i |                   if e[i-1] lies in another line
    /// W value[p]                        e[p] is invalid: its key is still that of e[p+1]
    /// C key[p]                  8 B
    /// F line of p |             -> durable   budget: the lines of the moved entries + 2, as many
    ///                                        fences; at an end of the ring: 2 and 2
    /// ```
    ///
    /// On the left side it is the mirror image, and the head names the slot before the first.
    #[inline]
    pub(crate) fn insert(&self, index: usize, entry: Entry) -> Fenced {
        let head = self.head();
        debug_assert!(head.count < Self::N && index <= head.count, "the ring has a free slot");
        let side = if head.count - index <= index { Side::Right } else { Side::Left };
        let (is_end, end, inner) = match side {
            Side::Right => (index == head.count, Self::slot(head, head.count), Side::Left),
            Side::Left => (index == 0, Self::beside(head.base, side), Side::Right),
        };
        let mut hole = Self::beside(end, inner);
        self.set_value_first(end, if is_end { entry } else { self.entry(hole) });
        let fenced = if self.injects(Defect::RingHeadEarly) {
            self.medium.flush(&self.words[Self::word(end)..=Self::word(end)]);
            Fenced::nothing()
        } else {
            self.persist(end)
        };
        let base = if side == Side::Left { end } else { head.base };
        let head = RingHead { base, count: head.count + 1, side };
        let done = self.commit(head, fenced);
        if is_end {
            return done;
        }
        let target = Self::slot(head, index);
        while hole != target {
            let from = Self::beside(hole, inner);
            if self.injects(Defect::RingKeyFirst) {
                self.set_key_first(hole, self.entry(from));
            } else {
                self.set_value_first(hole, self.entry(from));
            }
            if !Self::are_in_one_line(hole, from) {
                let _ = self.persist(hole);
            }
            hole = from;
        }
        self.set_value_first(target, entry);
        self.persist(target)
    }

    /// Removes entry `d` of a ring of `n` entries. Durable on return. On the right side:
    ///
    /// ```text
    /// C head: side                      only if it is the other one; F head |
    /// for i = d to n-2:                 the first key is C; crash: e[i] and e[i+1] have one key,
    ///   W key[i], value[i] = e[i+1]     the right one is valid
    ///   F line of i |                   if e[i+1] lies in another line, and after the last
    /// C head: n - 1 entries             the dropped entry is invalid already
    /// F head |              -> durable  budget: the lines of the moved entries + 2, as many
    ///                                   fences; at an end of the ring: 1 and 1
    /// ```
    ///
    /// On the left side it is the mirror image.
    #[inline]
    pub(crate) fn remove(&self, index: usize) -> Fenced {
        let head = self.head();
        debug_assert!(index < head.count, "the entry to remove exists");
        let side = if head.count - 1 - index <= index { Side::Right } else { Side::Left };
        self.close(head, Self::slot(head, index), side)
    }

    /// Shifts the entries on one side of `slot` over it, and drops the last entry of that side.
    fn close(&self, mut head: RingHead, slot: usize, side: Side) -> Fenced {
        let last = Self::slot(head, head.count - 1);
        let end = if side == Side::Right { last } else { head.base };
        if slot != end && head.side != side && !self.injects(Defect::RingSideKept) {
            head.side = side;
            let _ = self.set_head(head);
        }
        let mut hole = slot;
        while hole != end {
            let from = Self::beside(hole, side);
            self.set_key_first(hole, self.entry(from));
            if from == end || !Self::are_in_one_line(hole, from) {
                let _ = self.persist(hole);
            }
            hole = from;
        }
        if side == Side::Left {
            head.base = Self::beside(end, Side::Right);
        }
        head.count -= 1;
        self.set_head(head)
    }

    /// Returns the index of an entry that is invalid, because a neighbour has its key word.
    pub(crate) fn invalid_entry(&self, head: RingHead) -> Option<usize> {
        let is_repeated =
            |&at: &usize| self.key(Self::slot(head, at)) == self.key(Self::slot(head, at + 1));
        let left = (0..head.count.saturating_sub(1)).find(is_repeated)?;
        let is_left = (head.side == Side::Right) != self.injects(Defect::RingWrongTwin);
        Some(if is_left { left } else { left + 1 })
    }

    fn injects(&self, defect: Defect) -> bool {
        M::INJECTS_DEFECTS && self.medium.injects(defect)
    }

    /// Completes the shift that a crash interrupted. A crash during this leaves a state that a
    /// second call completes.
    pub(crate) fn drop_duplicates(&self) {
        while let Some(invalid) = self.invalid_entry(self.head()) {
            let head = self.head();
            let _ = self.close(head, Self::slot(head, invalid), head.side);
        }
    }
}
