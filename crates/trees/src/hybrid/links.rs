//! Finding the order of the leaves by following their links.
//!
//! A single walk waits for one cache miss after the other. Therefore many walks run interleaved:
//! one from the first leaf, and others from blocks all over the pool that may be leaves.
//!
//! 1. The other starting points are guesses, and nothing relies on them. The result starts with the
//!    walk from the first leaf. Another walk contributes only its leaves from the one on that the
//!    walks joined so far reach through their links.
//! 2. A walk ends at the last leaf, at a link that names no possible leaf, or at a leaf that some
//!    walk has visited. So every walk ends, whatever the file holds, and each leaf is on at most
//!    one walk.
//! 3. Threads share the walks. Timing decides which of two walks visits a leaf first; the order of
//!    the links from the first leaf on does not depend on it.

use super::line_set::LineSet;
use super::{Hybrid, HybridSpec, LeafRef};
use crate::key::Key;
use crate::leaf::Leaf;
use crate::parallel::{in_parallel, thread_count};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr};
use std::collections::HashMap;

/// The largest number of walks beside the one from the first leaf.
const WALKS_MAX: usize = 128;
/// The fewest walks for each thread.
const WALKS_PER_THREAD: usize = 16;
/// The largest number of blocks that are examined as starting points.
const PROBES_MAX: u64 = 1024;
/// The distance of the starting points in leaves, and their number, at a
/// [small scale](Medium::has_small_scale).
const SMALL_DISTANCE: u64 = 3;
const SMALL_PROBES: u64 = 128;
/// The size of the pool's chunks in bytes. Small blocks lie within a chunk; the first of them
/// starts where the chunk does.
const CHUNK_BYTES: u64 = 32 << 10;

/// A leaf of the chain, as following the links finds it. Nothing of it is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) at: PmPtr,
    /// The separator word of the low key.
    pub(super) low: u64,
}

/// A run of leaves in the order of their links.
struct Walk {
    leaves: Vec<Link>,
    /// The next leaf, or the reason why the walk has ended.
    state: WalkState,
}

#[derive(Clone, Copy)]
enum WalkState {
    At(PmPtr),
    /// The last leaf has no right neighbour.
    AtEnd,
    /// A walk has visited this leaf before.
    Visited(PmPtr),
    /// The link names an offset at which no leaf can be.
    NoLeaf(Corrupt),
}

impl<S: HybridSpec, M: Medium, K: Key> Hybrid<S, M, K> {
    /// Returns all leaves in key order.
    pub(super) fn links(&self, crashed: bool) -> Result<Vec<Link>, Corrupt> {
        let first = PmPtr::new(self.load(&self.root_words()?[0]));
        // A medium that controls the schedule has no cache misses to overlap.
        let has_guesses = !M::CONTROLS_SCHEDULE || M::has_small_scale();
        let guesses = if has_guesses { self.walk_starts() } else { Vec::new() };
        let starts: Vec<_> = [first].into_iter().chain(guesses).collect();
        let visited = LineSet::of(self.pool.medium().len());
        let threads = thread_count::<M>(self.pool.medium().len());
        let share = starts.len().div_ceil(threads).max(WALKS_PER_THREAD);
        let parts: Vec<_> = starts.chunks(share).collect();
        let walks = in_parallel(threads, &parts, |starts| self.follow(starts, &visited, crashed));
        let walks: Vec<Vec<Walk>> = walks.into_iter().collect::<Result<_, _>>()?;
        self.join_walks(&walks.into_iter().flatten().collect::<Vec<_>>())
    }

    /// Walks from all of `starts`, advancing each walk by one leaf in turn.
    fn follow(
        &self,
        starts: &[PmPtr],
        visited: &LineSet,
        crashed: bool,
    ) -> Result<Vec<Walk>, Corrupt> {
        let walk_from = |&at| Walk { leaves: Vec::new(), state: WalkState::At(at) };
        let mut walks: Vec<_> = starts.iter().map(walk_from).collect();
        loop {
            let mut is_any_under_way = false;
            for walk in &mut walks {
                if let WalkState::At(at) = walk.state {
                    walk.state = self.advance(at, &mut walk.leaves, visited, crashed)?;
                    is_any_under_way = true;
                }
            }
            if !is_any_under_way {
                return Ok(walks);
            }
        }
    }

    /// Visits the leaf at `at` and returns the state of its walk behind it.
    fn advance(
        &self,
        at: PmPtr,
        leaves: &mut Vec<Link>,
        visited: &LineSet,
        crashed: bool,
    ) -> Result<WalkState, Corrupt> {
        let leaf = match self.leaf(at) {
            Ok(leaf) => leaf,
            Err(damage) => return Ok(WalkState::NoLeaf(damage)),
        };
        if visited.set(at) {
            return Ok(WalkState::Visited(at));
        }
        leaves.push(Link { at, low: self.low(&leaf) });
        let mut next = self.next(&leaf);
        if M::INJECTS_DEFECTS && crashed {
            next = self.apply_recovery_defects(&leaf, next)?;
        }
        if next.is_null() {
            return Ok(WalkState::AtEnd);
        }
        if let Ok(words) = self.pool.words(next, S::Leaf::WORDS) {
            self.pool.medium().prefetch(&words[S::Leaf::NEXT..=S::Leaf::NEXT]);
        }
        Ok(WalkState::At(next))
    }

    /// Returns blocks from all over the pool that may be leaves: they can be read as one, and so
    /// can the leaf that they link to.
    pub(super) fn walk_starts(&self) -> Vec<PmPtr> {
        let medium = self.pool.medium();
        // A small pool has few chunks, and its first leaf begins one: probe more often there.
        let (distance, places) = if M::has_small_scale() {
            (SMALL_DISTANCE * Self::LEAF_BYTES, SMALL_PROBES)
        } else {
            (CHUNK_BYTES, medium.len() / CHUNK_BYTES)
        };
        let step = places.div_ceil(PROBES_MAX).max(1);
        let may_be_leaf = |at: &PmPtr| {
            self.leaf(*at).is_ok_and(|leaf| {
                S::Leaf::verify(medium, at.offset(), leaf.words).is_ok()
                    && self.leaf(self.next(&leaf)).is_ok()
            })
        };
        let at = |number: u64| PmPtr::new(CHUNK_BYTES + (number - 1) * distance);
        let probes = (1..places).step_by(step as usize).map(at);
        let found: Vec<_> = probes.filter(may_be_leaf).collect();
        let share = found.len().div_ceil(WALKS_MAX).max(1);
        found.into_iter().step_by(share).collect()
    }

    /// Joins the walks into one chain: starts with the walk from the first leaf, and where a walk
    /// ended at a visited leaf, continues with the walk that visited it.
    fn join_walks(&self, walks: &[Walk]) -> Result<Vec<Link>, Corrupt> {
        let all: usize = walks.iter().map(|walk| walk.leaves.len()).sum();
        let joints = joints(walks, self.pool.medium().len());
        let mut chain = Vec::with_capacity(all);
        let (mut walk, mut from) = (&walks[0], 0);
        loop {
            chain.extend_from_slice(&walk.leaves[from..]);
            let joint = match walk.state {
                WalkState::AtEnd => return Ok(chain),
                WalkState::Visited(at) => joints.get(&at.offset()).filter(|_| chain.len() <= all),
                WalkState::NoLeaf(damage) => return Err(damage),
                WalkState::At(_) => unreachable!("`follow` returns only ended walks"),
            };
            let Some(&(number, index)) = joint else {
                let (at, what) = (self.root.offset(), "length of a chain of leaves without an end");
                let (expected, found) = (all as u64, chain.len() as u64);
                return Err(Corrupt { at, what, expected, found });
            };
            let trusted = M::INJECTS_DEFECTS && self.pool.medium().injects(Defect::WalkTrusted);
            (walk, from) = (&walks[number], if trusted { 0 } else { index });
        }
    }

    /// Injected defects of recovery, as their papers print them: changes the leaf at `next`, the
    /// right neighbour of `leaf`. Returns the right neighbour that `leaf` has then.
    fn apply_recovery_defects(&self, leaf: &LeafRef<'_>, next: PmPtr) -> Result<PmPtr, Corrupt> {
        let medium = self.pool.medium();
        // A guess may link to no leaf.
        if next.is_null() || !medium.injects(Defect::EmptyLeafLeaked) {
            return Ok(next);
        }
        let right = self.leaf(next)?;
        if S::Leaf::count(medium, right.words) == 0 {
            self.pool.mark(next, Self::LEAF_BYTES)?;
            let after = self.next(&right);
            let link = &leaf.words[S::Leaf::NEXT..=S::Leaf::NEXT];
            medium.store(&link[0], S::Leaf::encode_next(after.offset()));
            let _ = medium.persist(link);
            return Ok(after);
        }
        Ok(next)
    }
}

/// Returns, for each visited leaf at which some walk ended, the number of the walk that visited it
/// and the leaf's index there.
fn joints(walks: &[Walk], bytes: u64) -> HashMap<u64, (usize, usize)> {
    let ends = LineSet::of(bytes);
    for walk in walks {
        if let WalkState::Visited(at) = walk.state {
            ends.set(at);
        }
    }
    let mut joints = HashMap::new();
    for (number, walk) in walks.iter().enumerate() {
        let is_end = |(_, link): &(usize, &Link)| ends.contains(link.at);
        for (index, link) in walk.leaves.iter().enumerate().filter(is_end) {
            joints.insert(link.at.offset(), (number, index));
        }
    }
    joints
}
