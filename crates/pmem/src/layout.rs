//! Sizes of the parts of a pool file that several modules need.

/// The size of a chunk, in bytes. A pool is divided into chunks and grows by chunks.
pub const CHUNK_BYTES: u64 = 32 << 10;
/// The size of the header at offset 0, in bytes: superblocks, roots and logs.
pub const HEADER_BYTES: u64 = CHUNK_BYTES;
/// The size of the smallest pool, in bytes: the header and four chunks.
pub const POOL_BYTES_MIN: u64 = 5 * CHUNK_BYTES;
/// The size of the largest pool, in bytes: 47 bits of address, less a chunk.
pub const POOL_BYTES_MAX: u64 = (1 << 47) - CHUNK_BYTES;
