//! Opening the toy: it reads its node and trusts no word of it.

use super::{ROOT_BYTES, SLOTS_MAX, SLOTS_MIN, State, ToyIndex, node_bytes};
use crate::flaws;
use bristlecone_pmem::{Corrupt, Medium, PmPtr};
use bristlecone_trees::{Key, TreeError, key};

impl<M: Medium, K: Key, const FLAW: u32> ToyIndex<M, K, FLAW> {
    /// Reads the node as recovery must, with a check of every word.
    pub(super) fn load(&self, state: &mut State<K>, crashed: bool) -> Result<(), TreeError> {
        let word = self.pool.medium().load(&self.pool.words(self.root, 1)?[0]);
        let (at, slots) = (word & !63, 1 << (word & 63));
        let corrupt = |what, found| Corrupt { at: self.root.offset(), what, expected: 0, found };
        if !(SLOTS_MIN..=SLOTS_MAX).contains(&slots) {
            return Err(corrupt("slots of the node", slots).into());
        }
        (state.node, state.slots) = (PmPtr::new(at), slots);
        let (bitmap, _) = self.node(state.node, slots)?;
        if crashed {
            self.pool.mark(self.root, ROOT_BYTES)?;
            self.pool.mark(state.node, node_bytes(slots))?;
        }
        for slot in 0..slots {
            let bits = self.pool.medium().load(&bitmap[slot as usize / 64]);
            if bits >> (slot % 64) & 1 == 0 {
                state.free.insert(slot);
                continue;
            }
            let entry = self.entry(state, slot)?;
            if crashed {
                key::mark_entry::<K, M>(&self.pool, entry)?;
            }
            let key = K::read_entry(&self.pool, entry)?;
            if state.places.insert(key, slot).is_some() && FLAW != flaws::BELIEVES_ANYTHING {
                return Err(corrupt("a key that is there twice", slot).into());
            }
        }
        if FLAW == flaws::BELIEVES_ANYTHING {
            assert_eq!(state.places.len() as u64 + state.free.len() as u64, slots);
        }
        if FLAW == flaws::WALKS_IN_RINGS {
            self.follow_values(state)?;
        }
        Ok(())
    }

    /// Walks from slot to slot as values say, until it is past the last one.
    fn follow_values(&self, state: &State<K>) -> Result<(), TreeError> {
        let mut at = 0;
        while at < state.slots {
            let value = self.entry(state, at)?.value;
            at = if state.free.contains(&at) { at + 1 } else { value.saturating_add(1) };
        }
        Ok(())
    }
}
