//! A header of two words, as published nodes have one of 16 B: spare bits of the first hold level
//! and magic number, spare bits of the link hold the latch.
//!
//! | bits of word 0 | field |
//! | --- | --- |
//! | 0..32 | count or bitmap: the layout's |
//! | 32..59 | magic number; or the layout's too, if it needs more than 32 bits |
//! | 59..64 | level |
//!
//! | bits of word 1 | field |
//! | --- | --- |
//! | 0..35 | latch |
//! | 35..64 | next leaf or leftmost child, in multiples of the node size |
//!
//! 1. Only a transaction changes the link. The holder of the latch stores it with the latch as it
//!    is.

use super::{LEVEL_MAX, View};
use bristlecone_pmem::sync::LatchBits;
use bristlecone_pmem::{Corrupt, Medium};

/// The index of the word of link and latch.
pub(super) const LINK: usize = 1;
/// The most bits of word 0 that a layout can have.
pub(super) const BITS_MAX: usize = LEVEL_SHIFT as usize;

const MAGIC_SHIFT: u32 = 32;
const LEVEL_SHIFT: u32 = 59;
const LINK_SHIFT: u32 = LatchBits::LINK_SHIFT;

const _: () = assert!(LEVEL_MAX >> (64 - LEVEL_SHIFT) == 0);

/// The bits of word 0 that are not the layout's.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    /// The mask of the layout's bits.
    pub(super) own: u64,
    magic: u64,
}

impl Mark {
    /// The mark of a layout with this magic number, which needs `bits` bits of the word.
    pub(super) const fn new(bits: usize, magic: u64) -> Self {
        assert!(bits <= BITS_MAX && magic >> (LEVEL_SHIFT - MAGIC_SHIFT) == 0);
        if bits <= MAGIC_SHIFT as usize {
            Self { own: (1 << MAGIC_SHIFT) - 1, magic: magic << MAGIC_SHIFT }
        } else {
            Self { own: (1 << LEVEL_SHIFT) - 1, magic: 0 }
        }
    }

    /// Returns the bits in a node at `level`.
    pub(super) const fn at(self, level: u64) -> u64 {
        assert!(level <= LEVEL_MAX);
        self.magic | level << LEVEL_SHIFT
    }

    /// Returns the level of a node, after a check of its magic number and of its link.
    #[inline(always)]
    pub(super) fn level_of<M: Medium>(
        self,
        node: View<'_, M>,
        node_bytes: usize,
    ) -> Result<u64, Corrupt> {
        let word = node.load(0) & !self.own;
        let level = word >> LEVEL_SHIFT;
        if word != self.at(level) {
            return Err(node.corrupt(0, "mark of a node", self.at(level), word));
        }
        check_link(node, node_bytes)?;
        Ok(level)
    }
}

/// Checks that the link lies in the medium. A damaged link may also damage the latch beside it, so
/// that no thread waits for it.
#[inline(always)]
pub(super) fn check_link<M: Medium>(node: View<'_, M>, node_bytes: usize) -> Result<(), Corrupt> {
    let (link, end) = (link_of(node, node_bytes), node.medium().len());
    if link >= end {
        return Err(node.corrupt(LINK, "pointer to a node", end, link));
    }
    Ok(())
}

/// Returns the largest offset that a link can name.
pub(super) const fn offset_max(node_bytes: usize) -> u64 {
    node_bytes as u64 * (u64::MAX >> LINK_SHIFT)
}

/// Returns the link of a node.
#[inline(always)]
pub(super) fn link_of<M: Medium>(node: View<'_, M>, node_bytes: usize) -> u64 {
    let kept = LatchBits::BesideLink.link();
    (node.medium().load_beside(node.word(LINK), kept) >> LINK_SHIFT) * node_bytes as u64
}

/// Returns the bits of word 1 for a link.
///
/// # Panics
/// If `link` is not the offset of a node at most at [`offset_max`].
pub(super) fn link_bits(link: u64, node_bytes: usize) -> u64 {
    assert!(link.is_multiple_of(node_bytes as u64) && link <= offset_max(node_bytes));
    (link / node_bytes as u64) << LINK_SHIFT
}

/// Returns word 1 with another link and the latch as it is, for the holder of the latch.
pub(super) fn link_word<M: Medium>(node: View<'_, M>, link: u64, node_bytes: usize) -> u64 {
    node.load(LINK) & !LatchBits::BesideLink.link() | link_bits(link, node_bytes)
}
