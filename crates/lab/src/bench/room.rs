//! The size of a pool that a workload does not outgrow.

use crate::system::{BASE_ROOM_BYTES, KEY_ROOM_BYTES, Target};
use crate::workload::{Recipe, whole};
use bristlecone_pmem::line::LINE_BYTES;

/// Bytes for each pair of the store, whose record has a block of its own, and of a peer that makes
/// a pool.
const PAIR_ROOM_BYTES: u64 = 128;

/// Returns the bytes of a pool that need not grow while `target` runs `recipe`.
pub(super) fn room_bytes(target: &Target, recipe: &Recipe) -> u64 {
    let each = match target {
        Target::Store | Target::Peer(_) => PAIR_ROOM_BYTES,
        Target::Design { .. } | Target::Floor(_) => KEY_ROOM_BYTES,
    };
    let each = each + if recipe.keys().are_bytes() { record_room_bytes(recipe) } else { 0 };
    let inserts = recipe.workload.inserts_max(recipe.planned() / recipe.threads + 1);
    BASE_ROOM_BYTES + (recipe.records + recipe.threads * inserts) * each
}

/// Returns the bytes with which a pool in anonymous memory begins, that may grow while `target`
/// runs `recipe`.
pub(super) fn first_room_bytes(target: &Target, recipe: &Recipe) -> u64 {
    BASE_ROOM_BYTES.max(room_bytes(target, recipe) / 8)
}

/// Returns the bytes for the record of a byte string, in whole lines, twice: once more for the
/// separators.
fn record_room_bytes(recipe: &Recipe) -> u64 {
    const HEADER_BYTES: u64 = 8;
    let bytes = HEADER_BYTES + whole(recipe.keys().mean_bytes().ceil());
    2 * bytes.next_multiple_of(LINE_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::{first_room_bytes, room_bytes};
    use crate::system::Target;
    use crate::workload::{Recipe, Workload};
    use bristlecone_pmem::Mapped;
    use bristlecone_pmem::medium::Medium as _;

    #[test]
    fn a_pool_in_memory_can_grow_to_what_ten_million_inserts_need() {
        let recipe =
            Recipe { workload: Workload::Insert, ops: 10_000_000, records: 0, ..Recipe::default() };
        let needed = room_bytes(&Target::Store, &recipe);
        let medium = Mapped::anonymous(first_room_bytes(&Target::Store, &recipe)).unwrap();
        medium.grow(needed).unwrap();
    }
}
