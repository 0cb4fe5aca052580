//! The leaves in the order of their links.
//!
//! Whoever follows a chain waits for one leaf after the other. So it is followed from many places at
//! once: from the first leaf, and from blocks here and there in the pool that may be leaves.
//!
//! 1. Nothing is believed of those blocks. A walk from one of them counts from that leaf on at which
//!    the walk that counts so far comes to it; so what counts are the links from the first leaf on.
//! 2. A walk ends at the last leaf, at a link that leads nowhere, or at a leaf to which some walk has
//!    come before. So all end, whatever the file holds, and each leaf is on one walk at the most.
//! 3. Threads share the walks. Which of two walks comes to a leaf first is open; what the links from the
//!    first leaf on are is not.

use super::{Hybrid, HybridSpec, LeafRef};
use crate::key::Key;
use crate::leaf::Leaf;
use crate::parallel::{in_parallel, width};
use bristlecone_pmem::line::LINE_BYTES;
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;
use std::collections::HashMap;

/// Walks beside the one from the first leaf, at the most.
const WALKS_MAX: usize = 128;
/// The fewest walks that are worth a thread.
const WALKS_A_THREAD: usize = 16;
/// Blocks that are looked at for the beginning of a walk, at the most.
const PLACES_MAX: u64 = 1024;
/// Blocks lie in chunks of so many bytes, one of them at the beginning of each.
const CHUNK_BYTES: u64 = 32 << 10;

/// Leaves in the order of their links.
struct Walk {
    leaves: Vec<PmPtr>,
    /// The leaf to come, or how the walk has ended.
    next: Next,
}

#[derive(Clone, Copy)]
enum Next {
    At(PmPtr),
    /// There is none.
    Last,
    /// It was visited before.
    Visited(PmPtr),
    /// No leaf can be there.
    Nowhere(Corrupt),
}

/// A bit for each line of the pool.
struct Lines(Vec<AtomicU64>);

impl Lines {
    fn of(bytes: u64) -> Self {
        // Zeros that are not there until they are used; the map is done in place, and nothing.
        let words = vec![0; (bytes / LINE_BYTES as u64).div_ceil(64) as usize];
        Self(words.into_iter().map(AtomicU64::new).collect())
    }

    /// The word of the line at `at`, and its bit there.
    fn place(&self, at: PmPtr) -> (&AtomicU64, u64) {
        let line = at.offset() / LINE_BYTES as u64;
        (&self.0[(line / 64) as usize], 1 << (line % 64))
    }

    fn has(&self, at: PmPtr) -> bool {
        let (word, bit) = self.place(at);
        word.load(Relaxed) & bit != 0
    }

    /// Sets the bit; whether it was set.
    fn set(&self, at: PmPtr) -> bool {
        let (word, bit) = self.place(at);
        word.fetch_or(bit, Relaxed) & bit != 0
    }
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// The leaves in their order, the first one first.
    pub(super) fn leaves(&self, crashed: bool) -> Result<Vec<PmPtr>, Corrupt> {
        let first = PmPtr::new(self.load(&self.root_words()?[0]));
        // A medium that decides who goes on has no memory to wait for.
        let places = if M::CONTROLS_SCHEDULE { Vec::new() } else { self.places() };
        let begins: Vec<_> = [first].into_iter().chain(places).collect();
        let visited = Lines::of(self.pool.medium().len());
        let width = width::<M>(self.pool.medium().len());
        let share = begins.len().div_ceil(width).max(WALKS_A_THREAD);
        let parts: Vec<_> = begins.chunks(share).collect();
        let walks = in_parallel(width, &parts, |begins| self.follow(begins, &visited, crashed));
        let walks: Vec<Vec<Walk>> = walks.into_iter().collect::<Result<_, _>>()?;
        self.join(&walks.into_iter().flatten().collect::<Vec<_>>())
    }

    /// Walks from all of these places, in turns.
    fn follow(
        &self,
        begins: &[PmPtr],
        visited: &Lines,
        crashed: bool,
    ) -> Result<Vec<Walk>, Corrupt> {
        let begin = |&at| Walk { leaves: Vec::new(), next: Next::At(at) };
        let mut walks: Vec<_> = begins.iter().map(begin).collect();
        loop {
            let mut goes_on = false;
            for walk in &mut walks {
                if let Next::At(at) = walk.next {
                    walk.next = self.hop(at, &mut walk.leaves, visited, crashed)?;
                    goes_on = true;
                }
            }
            if !goes_on {
                return Ok(walks);
            }
        }
    }

    /// Takes a walk one leaf further.
    fn hop(
        &self,
        at: PmPtr,
        leaves: &mut Vec<PmPtr>,
        visited: &Lines,
        crashed: bool,
    ) -> Result<Next, Corrupt> {
        let leaf = match self.leaf(at) {
            Ok(leaf) => leaf,
            Err(damage) => return Ok(Next::Nowhere(damage)),
        };
        if visited.set(at) {
            return Ok(Next::Visited(at));
        }
        leaves.push(at);
        let mut next = self.next(&leaf);
        if M::INJECTS_DEFECTS && crashed {
            next = self.mend_as_published(&leaf, next)?;
        }
        if next.is_null() {
            return Ok(Next::Last);
        }
        if let Ok(words) = self.pool.words(next, S::Leaf::WORDS) {
            self.pool.medium().prefetch(&words[S::Leaf::NEXT..=S::Leaf::NEXT]);
        }
        Ok(Next::At(next))
    }

    /// Blocks that may be leaves, from all over the pool.
    pub(super) fn places(&self) -> Vec<PmPtr> {
        let medium = self.pool.medium();
        let chunks = medium.len() / CHUNK_BYTES;
        let step = chunks.div_ceil(PLACES_MAX).max(1);
        let may_be_leaf = |at: &PmPtr| {
            self.leaf(*at).is_ok_and(|leaf| {
                S::Leaf::verify(medium, at.offset(), leaf.words).is_ok()
                    && self.leaf(self.next(&leaf)).is_ok()
            })
        };
        let places = (1..chunks).step_by(step as usize).map(|at| PmPtr::new(at * CHUNK_BYTES));
        let found: Vec<_> = places.filter(may_be_leaf).collect();
        let share = found.len().div_ceil(WALKS_MAX).max(1);
        found.into_iter().step_by(share).collect()
    }

    /// The walk from the first leaf, continued by others where it has come to their leaves.
    fn join(&self, walks: &[Walk]) -> Result<Vec<PmPtr>, Corrupt> {
        let all: usize = walks.iter().map(|walk| walk.leaves.len()).sum();
        let joints = joints(walks, self.pool.medium().len());
        let mut chain = Vec::with_capacity(all);
        let (mut walk, mut from) = (&walks[0], 0);
        loop {
            chain.extend_from_slice(&walk.leaves[from..]);
            let joint = match walk.next {
                Next::Last => return Ok(chain),
                Next::Visited(at) => joints.get(&at.offset()).filter(|_| chain.len() <= all),
                Next::Nowhere(damage) => return Err(damage),
                Next::At(_) => unreachable!("each walk has gone to its end"),
            };
            let Some(&(number, place)) = joint else {
                let (at, what) = (self.root.offset(), "chain of leaves has no end");
                let (expected, found) = (all as u64, chain.len() as u64);
                return Err(Corrupt { at, what, expected, found });
            };
            (walk, from) = (&walks[number], place);
        }
    }

    /// With a defect of recovery: does what it does to the leaf at `next`, behind `leaf`; gives the
    /// leaf that is behind `leaf` then.
    fn mend_as_published(&self, leaf: &LeafRef<'_>, next: PmPtr) -> Result<PmPtr, Corrupt> {
        let medium = self.pool.medium();
        if next.is_null() {
            return Ok(next);
        }
        let right = self.leaf(next)?;
        if medium.injects(Defect::EmptyLeafLeaked) && S::Leaf::count(medium, right.words) == 0 {
            self.pool.mark(next, Self::LEAF_BYTES)?;
            let after = self.next(&right);
            let link = &leaf.words[S::Leaf::NEXT..=S::Leaf::NEXT];
            medium.store(&link[0], S::Leaf::encode_next(after.offset()));
            let _ = medium.persist(link);
            return Ok(after);
        }
        let old = self.next(&right);
        let is_cut_off = S::Leaf::count(medium, leaf.words) == S::Leaf::CAPACITY
            && S::Leaf::count(medium, right.words) < S::Leaf::CAPACITY;
        if medium.injects(Defect::OldNeighbour) && is_cut_off && !old.is_null() {
            let mut is_upper = false;
            S::Leaf::retain(medium, self.leaf(old)?.words, &mut |_| {
                is_upper = !is_upper;
                Ok(is_upper)
            })?;
        }
        Ok(next)
    }
}

/// The leaves at which walks ended because another had come there: which, and the place on it.
fn joints(walks: &[Walk], bytes: u64) -> HashMap<u64, (usize, usize)> {
    let ends = Lines::of(bytes);
    for walk in walks {
        if let Next::Visited(at) = walk.next {
            ends.set(at);
        }
    }
    let mut joints = HashMap::new();
    for (number, walk) in walks.iter().enumerate() {
        for (place, &at) in walk.leaves.iter().enumerate().filter(|(_, at)| ends.has(**at)) {
            joints.insert(at.offset(), (number, place));
        }
    }
    joints
}
