//! Inner nodes in one array, without pointers, as NV-Tree has them.
//!
//! 1. An array has the nodes of all levels, from the root to the lowest. Child j of node i of a
//!    level is node 64 i + j of the level below, so these nodes have separators alone. The lowest
//!    nodes have pointers to leaves.
//! 2. Nodes above the lowest do not change. If a lowest node is full, a thread copies all leaves
//!    and separators into the other of two arrays, where every lowest node has room again. Threads
//!    that descend wait for the end of this rebuild.
//! 3. A rebuild latches each lowest node while it copies it, which ends all routes through the
//!    node: no thread inserts a separator into the former array, and none is lost. It holds the
//!    latch `rebuild` for all of the time. A descent validates that latch after it has read the
//!    version of the lowest node, so that version is one of the array in use.
//! 4. A thread rebuilds while it holds latches of leaves. A thread that holds a lowest node waits
//!    for no latch, so the rebuild ends.
//! 5. The shape is one word, so the numbers that a descent computes from it lie within an array,
//!    whatever it reads there. The first word of a node is a version, and nothing else, in every
//!    array: versions only grow.
//! 6. The first leaf below a lowest node keeps its low key: a merge keeps that of the left leaf. So
//!    the separators above lowest nodes name records that live.

use super::node::{FANOUT, InnerNode, NODE_WORDS, NodeView, SeparatorWords, load, store};
use super::nodes::{InnerNodes, SeparatedChild, SeparatedLeaf};
use super::{BATCH, Direction, LeafRoute, Restart};
use crate::key::Key;
use crate::spec::NodeSearch;
use bristlecone_pmem::dram::Blocks;
use bristlecone_pmem::sync::{Latch, OnDram, Version};
use bristlecone_pmem::{Corrupt, Defect, Medium, PmPtr, Pool, PoolError};
use core::cmp::Ordering;
use core::marker::PhantomData;
use core::sync::atomic::AtomicU64;

/// The children of a node above the lowest. It has a separator less.
const CHILDREN: usize = NODE_WORDS;
/// The first separator's place in such a node, behind the word that is the version of a lowest one.
const SEPARATORS: usize = 1;
/// The largest number of leaves below a lowest node after a rebuild, about half of those that fit.
const BUILT_LEAVES_MAX: usize = (FANOUT + 1).div_ceil(2);

/// The inner nodes of an index whose leaves are on a medium of type `M`.
#[derive(Debug)]
pub struct InnerArray<M> {
    arrays: [Array; 2],
    /// The latch of rebuilds.
    rebuild: AtomicU64,
    /// The [`Shape`].
    shape: AtomicU64,
    medium: PhantomData<fn() -> M>,
}

/// Nodes, and the separator words of each; `None` if prefixes decide.
#[derive(Debug)]
struct Array {
    nodes: Blocks<NODE_WORDS>,
    separator_words: Option<Blocks<NODE_WORDS>>,
}

/// The array in use and its number of lowest nodes, which together give the place of every node.
#[derive(Clone, Copy)]
struct Shape {
    array: usize,
    lowest: usize,
}

/// A lowest node, its version, and the version of the rebuilds.
struct Lowest {
    index: usize,
    version: Version,
    rebuild: Version,
}

impl Shape {
    fn of(word: u64) -> Self {
        Self { array: (word & 1) as usize, lowest: (word >> 1) as usize }
    }

    fn word(self) -> u64 {
        (self.lowest as u64) << 1 | self.array as u64
    }

    /// Returns the number of nodes of a level; the lowest is level 1.
    #[inline(always)]
    fn nodes(self, level: u32) -> usize {
        ((self.lowest - 1) >> (CHILDREN.ilog2() * (level - 1))) + 1
    }

    #[inline(always)]
    fn height(self) -> u32 {
        let bits = usize::BITS - (self.lowest - 1).leading_zeros();
        1 + bits.div_ceil(CHILDREN.ilog2())
    }

    /// Returns the number of the first node of a level.
    fn first(self, level: u32) -> usize {
        (level + 1..=self.height()).map(|above| self.nodes(above)).sum()
    }

    /// Returns the index of a lowest node, by which routes name it: its number, and the array.
    fn index(self, lowest: usize) -> usize {
        (self.first(1) + lowest) << 1 | self.array
    }

    /// Returns the node and the position of the separator to the left of a lowest node, which is
    /// not the first.
    fn left_separator(self, lowest: usize) -> (usize, usize) {
        let (mut level, mut number) = (1, lowest);
        while number.is_multiple_of(CHILDREN) {
            (level, number) = (level + 1, number / CHILDREN);
        }
        (self.first(level + 1) + number / CHILDREN, number % CHILDREN - 1)
    }
}

impl Array {
    fn new(exact: bool) -> Result<Self, PoolError> {
        let separator_words = if exact { None } else { Some(Blocks::new()?) };
        Ok(Self { nodes: Blocks::new()?, separator_words })
    }

    fn extend(&self, node: usize) {
        self.nodes.extend(node);
        if let Some(words) = &self.separator_words {
            words.extend(node);
        }
    }

    /// Returns the separator at `at` in a node above the lowest, without a leaf.
    fn separator<M: Medium>(&self, node: usize, at: usize) -> SeparatedLeaf {
        let prefix = load::<M>(&self.nodes.get(node)[SEPARATORS + at]);
        let word = match &self.separator_words {
            Some(words) => load::<M>(&words.get(node)[at]),
            None => prefix,
        };
        SeparatedLeaf { prefix, word, leaf: 0 }
    }

    fn set_separator<M: Medium>(&self, node: usize, at: usize, separator: SeparatedLeaf) {
        store::<M>(&self.nodes.get(node)[SEPARATORS + at], separator.prefix);
        if let Some(words) = &self.separator_words {
            store::<M>(&words.get(node)[at], separator.word);
        }
    }

    /// Returns the position of the child that `key` leads to in a node above the lowest with
    /// `count` separators, which are searched from the first on.
    #[inline(always)]
    fn position<K: Key, M: Medium>(
        &self,
        pool: &Pool<M>,
        (node, count): (usize, usize),
        key: K::Ref<'_>,
        direction: Direction,
    ) -> Result<usize, Corrupt> {
        let prefix = K::prefix(key);
        let prefixes = &self.nodes.get(node)[SEPARATORS..][..count];
        for (at, found) in prefixes.iter().enumerate() {
            let order = match load::<M>(found).cmp(&prefix) {
                Ordering::Equal if !K::EXACT => {
                    K::order(pool, self.separator::<M>(node, at).word, key)?
                }
                order => order,
            };
            let ends = match direction {
                Direction::Key => order == Ordering::Greater,
                Direction::Below => order != Ordering::Less,
            };
            if ends {
                return Ok(at);
            }
        }
        Ok(count)
    }
}

impl<M: Medium> InnerArray<M> {
    fn rebuild_latch(&self) -> Latch<OnDram<'_, M>> {
        OnDram::latch(&self.rebuild)
    }

    #[inline(always)]
    fn shape(&self) -> Shape {
        Shape::of(load::<M>(&self.shape))
    }

    /// Returns the lowest node that covers `key` or, for [`Direction::Below`], the keys just below.
    #[inline]
    fn descend<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        direction: Direction,
    ) -> Result<Lowest, Corrupt> {
        let latch = self.rebuild_latch();
        loop {
            let Some(rebuild) = latch.read() else { continue };
            match self.find_lowest::<K>(pool, key, direction) {
                Err(damage) if latch.validate(rebuild) => return Err(damage),
                Err(_) => {}
                Ok(index) => {
                    let Some(version) = self.node(index).latch().read() else { continue };
                    let skips_validation =
                        M::INJECTS_DEFECTS && pool.medium().injects(Defect::RebuildUnseen);
                    if skips_validation || latch.validate(rebuild) {
                        return Ok(Lowest { index, version, rebuild });
                    }
                }
            }
        }
    }

    /// Returns the index of the lowest node that `key` leads to. It counts only if no rebuild runs.
    #[inline(always)]
    fn find_lowest<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        direction: Direction,
    ) -> Result<usize, Corrupt> {
        let shape = self.shape();
        let (mut first, mut number) = (0, 0);
        for level in (2..=shape.height()).rev() {
            let children = shape.nodes(level - 1) - CHILDREN * number;
            let node = (first + number, children.min(CHILDREN) - 1);
            let at = self.arrays[shape.array].position::<K, M>(pool, node, key, direction)?;
            first += shape.nodes(level);
            number = CHILDREN * number + at;
        }
        Ok((first + number) << 1 | shape.array)
    }

    /// Rebuilds all nodes, unless another thread has done so since `seen`. The caller holds no
    /// inner node.
    #[cold]
    fn rebuild(&self, pool: &Pool<M>, seen: Version) {
        let Some(_guard) = self.rebuild_latch().upgrade(seen) else { return };
        let shape = self.shape();
        let is_unlatched = M::INJECTS_DEFECTS && pool.medium().injects(Defect::RebuildUnlatched);
        let mut leaves = Vec::with_capacity(shape.lowest * (FANOUT + 1));
        for lowest in 0..shape.lowest {
            let latch = self.node(shape.index(lowest)).latch();
            let _node_guard = if is_unlatched { None } else { latch.lock() };
            self.list(shape, lowest, &mut |separated| leaves.push(separated));
        }
        self.fill(1 - shape.array, &leaves);
    }

    /// Fills an array with nodes over `leaves`, which are not empty, and then uses it.
    fn fill(&self, array: usize, leaves: &[SeparatedLeaf]) {
        let leaves_per_node = leaves.len().div_ceil(leaves.len().div_ceil(BUILT_LEAVES_MAX));
        let shape = Shape { array, lowest: leaves.len().div_ceil(leaves_per_node) };
        self.arrays[array].extend(shape.first(1) + shape.lowest - 1);
        for (lowest, leaves) in leaves.chunks(leaves_per_node).enumerate() {
            if lowest > 0 {
                let (node, at) = shape.left_separator(lowest);
                self.arrays[array].set_separator::<M>(node, at, leaves[0]);
            }
            let index = shape.index(lowest);
            self.node(index).set_child(0, leaves[0].leaf);
            self.node(index).set_level_and_count(1, 0);
            for (at, &SeparatedLeaf { prefix, word, leaf }) in leaves[1..].iter().enumerate() {
                self.insert(index, at, SeparatedChild { prefix, word, child: leaf });
            }
        }
        store::<M>(&self.shape, shape.word());
    }

    /// Calls `visit` with each leaf below a lowest node.
    fn list(&self, shape: Shape, lowest: usize, visit: &mut impl FnMut(SeparatedLeaf)) {
        let index = shape.index(lowest);
        let node = self.node(index);
        let mut separator = SeparatedLeaf::default();
        if lowest > 0 {
            let (node, at) = shape.left_separator(lowest);
            separator = self.arrays[shape.array].separator::<M>(node, at);
        }
        visit(SeparatedLeaf { leaf: node.child(0), ..separator });
        for at in 0..node.count() {
            let SeparatedChild { prefix, word, child } = self.slot(index, at);
            visit(SeparatedLeaf { prefix, word, leaf: child });
        }
    }
}

impl<M: Medium> InnerNodes<M> for InnerArray<M> {
    type Node<'a> = InnerNode<'a, M>;
    const SEARCH: NodeSearch = NodeSearch::Linear;
    const FANOUT: usize = FANOUT;

    fn build(leaves: &[SeparatedLeaf], exact: bool) -> Result<Self, PoolError> {
        let inner = Self {
            arrays: [Array::new(exact)?, Array::new(exact)?],
            rebuild: AtomicU64::new(0),
            shape: AtomicU64::new(0),
            medium: PhantomData,
        };
        inner.fill(0, leaves);
        Ok(inner)
    }

    fn for_each_leaf(&self, visit: &mut impl FnMut(SeparatedLeaf)) {
        let shape = self.shape();
        (0..shape.lowest).for_each(|lowest| self.list(shape, lowest, visit));
    }

    fn height(&self) -> u32 {
        self.shape().height()
    }

    fn dram_bytes(&self) -> u64 {
        let words = |array: &Array| array.separator_words.as_ref().map_or(0, Blocks::bytes);
        self.arrays.iter().map(|array| array.nodes.bytes() + words(array)).sum()
    }

    fn node_count(&self) -> u64 {
        let shape = self.shape();
        (shape.first(1) + shape.lowest) as u64
    }

    #[inline(always)]
    fn node(&self, index: usize) -> InnerNode<'_, M> {
        InnerNode::new(self.arrays[index & 1].nodes.get(index >> 1))
    }

    #[inline(always)]
    fn separator_words(&self, index: usize) -> Option<SeparatorWords<'_, M>> {
        let words = self.arrays[index & 1].separator_words.as_ref()?.get(index >> 1);
        Some(SeparatorWords::new(words))
    }

    #[inline]
    fn seek<K: Key>(
        &self,
        pool: &Pool<M>,
        key: K::Ref<'_>,
        direction: Direction,
    ) -> Result<LeafRoute, Corrupt> {
        loop {
            let Lowest { index, version, .. } = self.descend::<K>(pool, key, direction)?;
            let position = self.checked_position::<K>(pool, index, version, key, direction)?;
            let Ok(at) = position else { continue };
            let node = self.node(index);
            let leaf = PmPtr::new(node.child(at));
            if node.latch().validate(version) {
                return Ok(LeafRoute { leaf, parent: index, version });
            }
        }
    }

    fn seek_last(&self) -> LeafRoute {
        let latch = self.rebuild_latch();
        loop {
            let Some(rebuild) = latch.read() else { continue };
            let shape = self.shape();
            let index = shape.index(shape.lowest - 1);
            let node = self.node(index);
            let Some(version) = node.latch().read() else { continue };
            if !latch.validate(rebuild) {
                continue;
            }
            let leaf = PmPtr::new(node.child(node.count()));
            if node.latch().validate(version) {
                return LeafRoute { leaf, parent: index, version };
            }
        }
    }

    fn seek_batch<K: Key>(
        &self,
        pool: &Pool<M>,
        keys: &[K::Ref<'_>],
        routes: &mut [Option<LeafRoute>; BATCH],
        prefetch: impl Fn(PmPtr, K::Ref<'_>),
    ) -> Result<(), Corrupt> {
        for (route, &key) in routes.iter_mut().zip(keys) {
            let found = self.seek::<K>(pool, key, Direction::Key)?;
            prefetch(found.leaf, key);
            *route = Some(found);
        }
        Ok(())
    }

    fn try_post<K: Key>(
        &self,
        pool: &Pool<M>,
        separator: K::Ref<'_>,
        slot: SeparatedChild,
        replaced: Option<(PmPtr, PmPtr)>,
    ) -> Result<Result<(), Restart>, Corrupt> {
        let Lowest { index, version, rebuild } =
            self.descend::<K>(pool, separator, Direction::Key)?;
        let position =
            self.checked_position::<K>(pool, index, version, separator, Direction::Key)?;
        let Ok(at) = position else { return Ok(Err(Restart)) };
        let node = self.node(index);
        let Some(latch_guard) = node.latch().upgrade(version) else { return Ok(Err(Restart)) };
        if node.count() == FANOUT {
            drop(latch_guard);
            self.rebuild(pool, rebuild);
            return Ok(Err(Restart));
        }
        if let Some((full, lower)) = replaced {
            node.set_child(at, self.swung(index, at, full, lower)?);
        }
        self.insert(index, at, slot);
        Ok(Ok(()))
    }

    fn load<K: Key>(
        &self,
        _: &Pool<M>,
        only: PmPtr,
        leaves: &[SeparatedLeaf],
        publish: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Corrupt> {
        let _rebuild_guard = self.rebuild_latch().lock();
        let shape = self.shape();
        let _node_guard = self.node(shape.index(0)).latch().lock();
        let is_only = shape.lowest == 1 && self.has_only(shape.index(0), only) && publish();
        if is_only {
            self.fill(1 - shape.array, leaves);
        }
        Ok(is_only)
    }

    /// Does nothing: only a rebuild changes the number of nodes.
    fn merge_path<K: Key>(&self, _: &Pool<M>, _: K::Ref<'_>) -> Result<(), Corrupt> {
        Ok(())
    }

    fn unlink<K: Key>(&self, _: &Pool<M>, _: K::Ref<'_>, _: PmPtr) -> Result<(), Corrupt> {
        unreachable!("no design with these inner nodes frees leaves under micro-logs")
    }
}
