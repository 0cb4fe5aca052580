//! The memory that a system takes for each key.

use super::peers::allocated_bytes;
use super::{MemoryUse, System};
use crate::error::Result;
use bristlecone_trees::Key;
use serde::Serialize;

/// Memory for each key after the load, in bytes.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct BytesPerKey {
    /// Bytes of the pool; of a store on disk, bytes of its files.
    pub pm: f64,
    /// Bytes of DRAM, by the account of the system or of the allocator.
    pub dram: f64,
}

/// Returns the memory that `system` takes for each of `keys` keys. A system that keeps no account
/// of its memory is weighed by the growth of the process since it used `before` bytes.
pub(crate) fn weigh<K: Key, S: System<K>>(
    system: &mut S,
    keys: u64,
    before: u64,
) -> Result<BytesPerKey> {
    let each = |bytes: u64| bytes as f64 / keys.max(1) as f64;
    Ok(match system.memory()? {
        Some(MemoryUse { pm_bytes, dram_bytes }) => {
            BytesPerKey { pm: each(pm_bytes), dram: each(dram_bytes) }
        }
        None => BytesPerKey { pm: 0.0, dram: each(used_bytes().saturating_sub(before)) },
    })
}

/// Returns the bytes that the process has allocated. If the allocator does not tell, returns the
/// resident bytes that belong to no file.
pub(crate) fn used_bytes() -> u64 {
    allocated_bytes().unwrap_or_else(resident_bytes)
}

/// Returns the resident bytes of the process that belong to no file, or 0 if the system does not
/// tell.
fn resident_bytes() -> u64 {
    const PAGE_BYTES: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let mut fields = statm.split_ascii_whitespace().skip(1).map_while(|field| field.parse().ok());
    let (resident, shared): (u64, u64) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
    resident.saturating_sub(shared) * PAGE_BYTES
}
