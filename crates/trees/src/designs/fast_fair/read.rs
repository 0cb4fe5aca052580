//! Lookups: one key at a time, and several at once.

use super::descend::{Route, Seek, Trail};
use super::{FastFairTree, expect_level};
use crate::key::Key;
use crate::leaf::sorted_shift::ShiftNode;
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};

/// Keys that descend together: about as many as a processor has accesses in flight.
const GROUP: usize = 16;

/// What a leaf says about a key.
enum Answer {
    Value(Option<u64>),
    Right(PmPtr),
}

/// How far one key of a group has come.
enum Lookup<'t, M, const NODE: usize> {
    /// At a node that should be of that level, and that has been asked for and not looked at.
    At(ShiftNode<'t, M, NODE>, u32),
    Done(Option<u64>),
}

impl<M: Medium, K: Key, const NODE: usize> FastFairTree<M, K, NODE> {
    #[inline(always)]
    fn answer(&self, leaf: &ShiftNode<'_, M, NODE>, key: K::Ref<'_>) -> Result<Answer, Corrupt> {
        let place = leaf.search::<K>(&self.pool, key)?;
        if place.equal {
            return Ok(Answer::Value(Some(leaf.value(place.index))));
        }
        if place.end
            && !(M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::HopMissed))
            && let Some(right) = self.beyond(leaf, Seek::At(key))?
        {
            return Ok(Answer::Right(right));
        }
        Ok(Answer::Value(None))
    }

    /// The value of `key`.
    pub(super) fn lookup(&self, key: K::Ref<'_>, _pinned: &Guard) -> Result<Option<u64>, Corrupt> {
        let mut trail = Trail::default();
        let pool_bytes = self.pool.medium().len();
        loop {
            let Some(mut leaf) = self.descend(Seek::At(key), 0, &mut trail)? else {
                return Ok(None); // No tree is lower than its leaves.
            };
            while let Some(answer) = self.validated(&leaf, || self.answer(&leaf, key))? {
                match answer {
                    Answer::Value(value) => return Ok(value),
                    Answer::Right(at) => {
                        trail.step(&leaf, pool_bytes)?;
                        leaf = self.node(at, 0)?;
                    }
                }
            }
            trail.restart(&leaf)?;
        }
    }

    /// The values of `keys`. The keys of a group take their steps in turns, and each asks for its
    /// next node, without a look at it, before the others take theirs, so that their accesses overlap.
    pub(super) fn lookup_all(
        &self,
        keys: &[K::Ref<'_>],
        values: &mut [Option<u64>],
        pinned: &Guard,
    ) -> Result<(), Corrupt> {
        assert_eq!(keys.len(), values.len(), "a place for each value");
        for (keys, values) in keys.chunks(GROUP).zip(values.chunks_mut(GROUP)) {
            let root = self.root_node()?;
            let mut group: [Lookup<'_, M, NODE>; GROUP] =
                core::array::from_fn(|_| Lookup::At(root, root.level()));
            let mut trail = Trail::default();
            let pool_bytes = self.pool.medium().len().saturating_mul(GROUP as u64);
            let mut waiting = keys.len();
            while waiting > 0 {
                for (lookup, &key) in group.iter_mut().zip(keys) {
                    let Lookup::At(node, level) = lookup else { continue };
                    trail.step(node, pool_bytes)?;
                    *lookup = self.advance(node, *level, key, pinned)?;
                    waiting -= usize::from(matches!(lookup, Lookup::Done(_)));
                }
            }
            for (value, lookup) in values.iter_mut().zip(group) {
                *value = if let Lookup::Done(value) = lookup { value } else { None };
            }
        }
        Ok(())
    }

    /// One step of `key` from `node`, which should be of `level`. A key whose node is gone goes on by itself.
    #[inline(always)]
    fn advance<'t>(
        &'t self,
        node: &ShiftNode<'t, M, NODE>,
        level: u32,
        key: K::Ref<'_>,
        pinned: &Guard,
    ) -> Result<Lookup<'t, M, NODE>, Corrupt> {
        expect_level(node, level)?;
        let next = if level == 0 {
            match self.validated(node, || self.answer(node, key))? {
                Some(Answer::Value(value)) => return Ok(Lookup::Done(value)),
                Some(Answer::Right(at)) => Some((at, 0)),
                None => None,
            }
        } else {
            match self.validated(node, || self.route(node, Seek::At(key)))? {
                Some(Route::Down(at)) => Some((at, level - 1)),
                Some(Route::Right(at)) => Some((at, level)),
                None => None,
            }
        };
        match next {
            Some((at, level)) => Ok(Lookup::At(self.distant_node(at)?, level)),
            None => Ok(Lookup::Done(self.lookup(key, pinned)?)),
        }
    }
}
