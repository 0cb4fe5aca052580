//! The root block of the engines whose nodes, and the pointer to the root node, all lie in
//! persistent memory.
//!
//! The block is one line, which the pool's root table names:
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | root | commit | the root node |
//! | 8 | 8 | latch | transient | held to replace the root |
//! | 16 | 8 | tag | data | a magic number, and the bytes of a node in the low half |
//! | 24 | 8 | log | data | the block of the log; 0 without one |
//! | 32 | 32 | | | zero |

use crate::index::{TreeError, find_root};
use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool};

/// The word of the root pointer.
pub(crate) const ROOT: usize = 0;
const LATCH: usize = 1;
const TAG: usize = 2;
const LOG: usize = 3;
/// The size of the block in bytes.
pub(crate) const ROOT_BYTES: u64 = LINE_BYTES as u64;

/// The owner of a root block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RootKind<'a> {
    /// The name in the pool's root table.
    pub(crate) name: &'a str,
    /// The kind in that table.
    pub(crate) kind: u64,
    /// The tag: the magic number of the design, and the bytes of a node.
    pub(crate) tag: u64,
}

/// The blocks that an empty tree begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstBlocks {
    /// The root node.
    pub(crate) root: PmPtr,
    /// The log, or null.
    pub(crate) log: PmPtr,
}

/// The root block of a tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RootBlock {
    /// The offset of the block.
    pub(crate) at: PmPtr,
}

impl RootBlock {
    /// Reserves a root block and blocks of `sizes` bytes, lets `fill` create an empty tree in the
    /// latter, and enters the root block in the pool's root table. After an error all blocks are
    /// free.
    ///
    /// # Persist order
    /// ```text
    /// N root block; what `fill` creates    crash before C: all are free again
    /// |
    /// C root's entry                       -> durable
    /// ```
    pub(crate) fn create<M: Medium, const N: usize>(
        pool: &Pool<M>,
        of: RootKind<'_>,
        sizes: [u64; N],
        fill: impl FnOnce([PmPtr; N]) -> Result<FirstBlocks, TreeError>,
    ) -> Result<Self, TreeError> {
        let mut reserved = Vec::with_capacity(1 + N);
        let done = Self::create_in(pool, of, sizes, fill, &mut reserved);
        if done.is_err() {
            let sizes = [ROOT_BYTES].into_iter().chain(sizes);
            reserved.into_iter().zip(sizes).for_each(|(at, bytes)| pool.release(at, bytes));
        }
        done
    }

    /// Reserves the blocks, adds them to `reserved`, the root block first, and creates the tree.
    fn create_in<M: Medium, const N: usize>(
        pool: &Pool<M>,
        of: RootKind<'_>,
        sizes: [u64; N],
        fill: impl FnOnce([PmPtr; N]) -> Result<FirstBlocks, TreeError>,
        reserved: &mut Vec<PmPtr>,
    ) -> Result<Self, TreeError> {
        let at = pool.reserve(ROOT_BYTES)?;
        reserved.push(at);
        let mut blocks = [PmPtr::NULL; N];
        for (block, bytes) in blocks.iter_mut().zip(sizes) {
            *block = pool.reserve(bytes)?;
            reserved.push(*block);
        }
        let first = fill(blocks)?;
        let words = [first.root.offset(), 0, of.tag, first.log.offset(), 0, 0, 0, 0];
        let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
        pool.medium().fill(pool.words(at, LINE_WORDS)?, &bytes);
        pool.create_root(of.name, of.kind, at)?;
        Ok(Self { at })
    }

    /// Finds the root block of a tree and checks its tag.
    ///
    /// # Errors
    /// The pool has no such root, or the block has another tag.
    pub(crate) fn open<M: Medium>(pool: &Pool<M>, of: RootKind<'_>) -> Result<Self, TreeError> {
        let block = Self { at: find_root(pool, of.name, of.kind)? };
        let found = pool.medium().load(&block.words(pool)?[TAG]);
        if found != of.tag {
            let at = block.at.offset() + 8 * TAG as u64;
            return Err(Corrupt { at, what: "tag of a root block", expected: of.tag, found }.into());
        }
        Ok(block)
    }

    /// Returns the words of the block.
    #[inline(always)]
    pub(crate) fn words<M: Medium>(self, pool: &Pool<M>) -> Result<&[PmWord], Corrupt> {
        pool.words(self.at, LINE_WORDS)
    }

    /// Returns the pointer to the root node.
    #[inline(always)]
    pub(crate) fn root<M: Medium>(self, pool: &Pool<M>) -> Result<PmPtr, Corrupt> {
        Ok(PmPtr::new(pool.medium().load(&self.words(pool)?[ROOT])))
    }

    /// Returns the block of the log.
    pub(crate) fn log<M: Medium>(self, pool: &Pool<M>) -> Result<PmPtr, Corrupt> {
        Ok(PmPtr::new(pool.medium().load(&self.words(pool)?[LOG])))
    }

    /// Returns the word of the latch that protects the root pointer.
    #[inline(always)]
    pub(crate) fn latch_word<M: Medium>(self, pool: &Pool<M>) -> Result<&PmWord, Corrupt> {
        Ok(&self.words(pool)?[LATCH])
    }

    /// Returns the error that the latch says that the block is unlinked, which it never is.
    #[cold]
    pub(crate) fn damaged_latch(self) -> Corrupt {
        let at = self.at.offset() + 8 * LATCH as u64;
        Corrupt { at, what: "latch of a root block", expected: 0, found: 1 }
    }
}
