//! The allocator: which blocks of a pool are in use. All of it is volatile, except the free map
//! that a clean close saves.
//!
//! 1. Until its owner commits a pointer to it, nothing reaches a reserved block. A crash before
//!    that commit leaks nothing, because recovery frees every block that the roots do not reach.
//! 2. A chunk of 32 KiB holds blocks of one size, or pages of 1 KiB. A block of over 8 KiB takes a
//!    run of pages, which may lie in several chunks. It takes the shortest run that is long enough.
//! 3. The address of a block is a multiple of 64. If its size is a power of two, the address is a
//!    multiple of the size, up to 32 KiB.
//! 4. A chunk without a block in use is free for any size at once. A block comes from the fullest
//!    chunks of its size, so that others become empty.
//! 5. Under a [`Placement`](crate::numa::Placement) each chunk belongs to the zone of its stripe
//!    for good. A block comes from its thread's zone while that has space or the pool can grow,
//!    then from another zone.

mod chunk;
mod chunks;
mod heap;
mod runs;
mod zone;

pub use heap::Evacuation;
pub(crate) use heap::{Heap, reserved_bytes};
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
    /// The size of those blocks, in bytes.
    pub waiting_bytes: u64,
    /// The size of all chunks that no block uses, in bytes. Blocks of any size can use them.
    pub free_bytes: u64,
    /// The size of free pages in chunks that larger blocks use in part, in bytes. Only blocks of
    /// over 8 KiB can use them.
    pub free_page_bytes: u64,
    /// The size of free blocks in chunks that blocks of one size use in part, in bytes. Only blocks
    /// of the size of their chunk can use them.
    pub partial_bytes: u64,
    /// The size of the parts of chunks that are too short for one more block, in bytes.
    pub rest_bytes: u64,
    /// The size of the pages that are kept for the free map of a clean close, in bytes.
    pub kept_bytes: u64,
    /// The size of the pool with its header, in bytes. It is the sum of the bytes that are used,
    /// free, in free pages, partial, rest and kept.
    pub pool_bytes: u64,
}

/// The usage of the chunks that hold blocks of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassUsage {
    /// The size of each block, in bytes.
    pub block_bytes: u64,
    /// The number of chunks of 32 KiB that hold blocks of this size.
    pub chunks: u64,
    /// The number of blocks in use.
    pub blocks: u64,
    /// The size of the free blocks, in bytes.
    pub free_bytes: u64,
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
