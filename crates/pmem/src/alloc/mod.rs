//! Which blocks of the pool are in use. Volatile: nothing here is persistent but the image that a
//! clean close saves.
//!
//! 1. A reserved block is reached by nothing until its owner commits a pointer to it. A crash before
//!    that frees it by itself, for recovery frees whatever the roots do not reach: nothing leaks.
//! 2. A chunk of 32 KiB holds blocks of one size. Blocks over half a chunk take whole chunks.
//! 3. A block's address is a multiple of its size where that is a power of two, and of 64 always.
//! 4. A chunk that no block uses keeps its size until another size needs a chunk.

//! 5. Under a [`Placement`](crate::numa::Placement) each chunk is of the zone of its stripe, for good.
//!    A block comes from its thread's zone while there is room, or the pool can grow; then from another.

mod chunk;
mod heap;
mod zone;

pub(crate) use heap::{Heap, Reach, reserved_bytes};
pub(crate) use zone::ZoneMap;

/// How much of a pool is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of blocks in use, each at the size that was reserved for it.
    pub used_bytes: u64,
    /// Blocks in use.
    pub blocks: u64,
    /// Blocks among those that are retired and wait until no reader can hold them.
    pub waiting_blocks: u64,
    /// Bytes of chunks that no block uses.
    pub free_bytes: u64,
    /// Bytes of the pool, header and all.
    pub pool_bytes: u64,
}

/// How much of the part of a pool that belongs to a node is in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeUsage {
    /// The node.
    pub node: u16,
    /// Bytes of blocks in use, each at the size that was reserved for it, and of the header.
    pub used_bytes: u64,
    /// Bytes of chunks that no block uses.
    pub free_bytes: u64,
    /// Bytes of the node's stripes.
    pub pool_bytes: u64,
}
