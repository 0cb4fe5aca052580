//! The allocator: which blocks of a pool are in use. All of it is volatile, except the free map
//! that a clean close saves.
//!
//! 1. Until its owner commits a pointer to it, nothing reaches a reserved block. A crash before
//!    that commit leaks nothing, because recovery frees every block that the roots do not reach.
//! 2. A chunk of 32 KiB holds blocks of one size. A block of more than half a chunk takes whole
//!    chunks.
//! 3. The address of a block is a multiple of 64, and of the block's size if that is a power of
//!    two.
//! 4. A chunk without a block in use keeps its block size until another size needs a chunk.
//! 5. Under a [`Placement`](crate::numa::Placement) each chunk belongs to the zone of its stripe
//!    for good. A block comes from its thread's zone while that has space or the pool can grow,
//!    then from another zone.

mod chunk;
mod heap;
mod zone;

pub(crate) use heap::{Heap, Reach, reserved_bytes};
pub(crate) use zone::ZoneMap;

/// The amounts of used and free space in a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The size of all blocks in use, in bytes, each at its reserved size.
    pub used_bytes: u64,
    /// The number of blocks in use.
    pub blocks: u64,
    /// The number of blocks in use that are retired and wait for readers to unpin.
    pub waiting_blocks: u64,
    /// The size of all chunks that no block uses, in bytes.
    pub free_bytes: u64,
    /// The size of the pool with its header, in bytes.
    pub pool_bytes: u64,
}

/// The amounts of used and free space in the stripes of one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeUsage {
    /// The number of the node.
    pub node: u16,
    /// The size of the blocks in use and of the header, in bytes, each at its reserved size.
    pub used_bytes: u64,
    /// The size of all chunks that no block uses, in bytes.
    pub free_bytes: u64,
    /// The size of the node's stripes, in bytes.
    pub pool_bytes: u64,
}
