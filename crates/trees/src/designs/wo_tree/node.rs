//! The part that leaves and inner nodes share: a block with the next node, a low key and a tag.
//!
//! | word | leaf | inner node |
//! | --- | --- | --- |
//! | 0 | bitmap | leftmost child |
//! | 1 | next node of the level; 0: none | the same |
//! | 2 | low key, which never changes | the same |
//! | 3 | latch | tag |
//! | 4 | sequence number | latch |
//! | 7 | tag | |
//!
//! A tag holds a magic number, the bytes of the node and its level. A leaf has level 0.

use crate::node::LEVEL_MAX;
use bristlecone_pmem::line::LINE_WORDS;
use bristlecone_pmem::{Corrupt, Fenced, Medium, PmPtr, PmWord, Pool};

pub(super) const NEXT: usize = 1;
pub(super) const LOW: usize = 2;
const INNER_TAG: usize = 3;
const LEAF_TAG: usize = 7;
const MAGIC: u64 = 0x3070_7EE1 << 32;
const LEVEL_BITS: u32 = 8;

/// An entry: a separator word and the child from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Separated {
    pub(super) key: u64,
    pub(super) child: u64,
}

/// A node of `NODE` bytes.
#[derive(Debug)]
pub(super) struct Node<'t, M, const NODE: usize> {
    pub(super) medium: &'t M,
    pub(super) at: PmPtr,
    pub(super) words: &'t [PmWord],
    pub(super) level: u32,
}

impl<M, const NODE: usize> Clone for Node<'_, M, NODE> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<M, const NODE: usize> Copy for Node<'_, M, NODE> {}

/// Returns the tag of a node of `level`.
const fn tag<const NODE: usize>(level: u32) -> u64 {
    MAGIC | (NODE as u64) << LEVEL_BITS | level as u64
}

impl<'t, M: Medium, const NODE: usize> Node<'t, M, NODE> {
    pub(super) const BYTES: u64 = NODE as u64;
    pub(super) const WORDS: usize = NODE / 8;

    /// Returns the node of `level` at `at`, after checking its tag.
    #[inline(always)]
    pub(super) fn view(pool: &'t Pool<M>, at: PmPtr, level: u32) -> Result<Self, Corrupt> {
        let node = Self::view_unchecked(pool, at, level)?;
        let place = if level == 0 { LEAF_TAG } else { INNER_TAG };
        let (expected, found) = (tag::<NODE>(level), pool.medium().load(&node.words[place]));
        if expected == found {
            return Ok(node);
        }
        let (at, what) = (at.offset() + 8 * place as u64, "tag of a node");
        Err(Corrupt { at, what, expected, found })
    }

    /// Returns the block at `at` as a node of `level`, whose tag it does not check.
    #[inline(always)]
    pub(super) fn view_unchecked(
        pool: &'t Pool<M>,
        at: PmPtr,
        level: u32,
    ) -> Result<Self, Corrupt> {
        Ok(Self { medium: pool.medium(), at, words: pool.block(at, Self::WORDS)?, level })
    }

    /// Returns the inner node at `at`, of the level that its tag says.
    #[inline(always)]
    pub(super) fn view_root(pool: &'t Pool<M>, at: PmPtr) -> Result<Self, Corrupt> {
        let words = pool.block(at, Self::WORDS)?;
        let found = pool.medium().load(&words[INNER_TAG]);
        let level = found & ((1 << LEVEL_BITS) - 1);
        if level == 0 || level > LEVEL_MAX || found != tag::<NODE>(level as u32) {
            let (at, what) = (at.offset() + 8 * INNER_TAG as u64, "tag of the root");
            return Err(Corrupt { at, what, expected: tag::<NODE>(1), found });
        }
        Ok(Self { medium: pool.medium(), at, words, level: level as u32 })
    }

    /// Puts the tag of a node of `level` into `image`.
    pub(super) fn set_tag(image: &mut [u64], level: u32) {
        image[if level == 0 { LEAF_TAG } else { INNER_TAG }] = tag::<NODE>(level);
    }

    /// Fills the fresh block at `at` with `image`, all of it, so that every line is flushed.
    /// Durable after the next fence.
    pub(super) fn fill(
        pool: &'t Pool<M>,
        at: PmPtr,
        level: u32,
        image: &[u64],
    ) -> Result<Self, Corrupt> {
        let node = Self::view_unchecked(pool, at, level)?;
        let bytes: Vec<u8> = image.iter().flat_map(|word| word.to_le_bytes()).collect();
        pool.medium().fill(node.words, &bytes);
        Ok(node)
    }

    #[inline(always)]
    pub(super) fn load(&self, word: usize) -> u64 {
        self.medium.load(&self.words[word])
    }

    #[inline(always)]
    pub(super) fn store(&self, word: usize, value: u64) {
        self.medium.store(&self.words[word], value);
    }

    #[inline(always)]
    pub(super) fn next(&self) -> PmPtr {
        PmPtr::new(self.load(NEXT))
    }

    #[inline(always)]
    pub(super) fn low(&self) -> u64 {
        self.load(LOW)
    }

    /// Flushes line `line` of the node and fences.
    #[inline(always)]
    pub(super) fn persist_line(&self, line: usize) -> Fenced {
        self.medium.persist(&self.words[line * LINE_WORDS..(line + 1) * LINE_WORDS])
    }

    /// Returns the error that `what` in this node is damaged.
    #[cold]
    pub(super) fn damage(&self, what: &'static str, expected: u64, found: u64) -> Corrupt {
        Corrupt { at: self.at.offset(), what, expected, found }
    }
}

/// Returns the line of word `word`.
pub(super) const fn line(word: usize) -> usize {
    word / LINE_WORDS
}

const _: () = assert!(NEXT < LINE_WORDS && LOW < LINE_WORDS && LEAF_TAG < LINE_WORDS);
