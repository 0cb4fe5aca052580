//! Sizes that several modules of this crate lay the pool file out by.

/// Bytes of a chunk, the unit in which a pool is divided and grows.
pub const CHUNK_BYTES: u64 = 32 << 10;
/// Bytes at the front of a pool that hold its superblocks, roots and logs.
pub const HEADER_BYTES: u64 = CHUNK_BYTES;
/// Bytes of the smallest pool: the header and four chunks.
pub const POOL_BYTES_MIN: u64 = 5 * CHUNK_BYTES;
/// Bytes of the largest pool: 47 bits of address, less a chunk.
pub const POOL_BYTES_MAX: u64 = (1 << 47) - CHUNK_BYTES;
