//! The images that a power cut can leave of a plain file.
//!
//! 1. The system writes the dirty pages of a file back one by one, in any order, and at any time.
//!    So after a cut each page that changed since the last sync is as it was then, or as it is now.
//! 2. A store syncs its file at the end of its creation, and before the mark of a close. It syncs
//!    the superblocks after the mark of a close, and after that of an open, before anything else
//!    changes.
//! 3. A machine that comes back has another boot id, so the image must not look as if this boot had
//!    written it.

use bristlecone_pmem::checksum;
use rand::RngExt;
use rand::rngs::SmallRng;
use std::ops::Range;

/// The unit of write-back, in bytes.
const PAGE_BYTES: usize = 4096;
/// The offsets of the two copies of the superblock. Each begins a page of its own.
const SUPERBLOCKS: [usize; 2] = [0, PAGE_BYTES];
/// The bytes of a superblock before its checksum, which is a word of its own.
const SUMMED_BYTES: usize = 120;
/// The offsets of words within a superblock; see docs/FORMAT.md.
const VERSION: usize = 8;
const SEQUENCE: usize = 32;
const CLEAN: usize = 56;
const BOOT_ID: Range<usize> = 96..112;

/// Returns an image: the state `after`, in which a random share of the pages that differ are as
/// they were `before`. Where the lengths differ, half of the images have the length of `before`.
/// Also returns the number of pages that are as before.
pub(super) fn mixed(before: &[u8], after: &[u8], rng: &mut SmallRng) -> (Vec<u8>, u64) {
    let share = rng.random_range(0.0..1.0);
    let mut image = after.to_vec();
    if before.len() < after.len() && rng.random() {
        image.truncate(before.len());
    }
    let mut stale = 0;
    for (number, page) in image.chunks_mut(PAGE_BYTES).enumerate() {
        let at = number * PAGE_BYTES;
        // A page that did not exist before is one of zeros: its block is allocated, not written.
        let mut old = [0; PAGE_BYTES];
        let kept = before.get(at..).unwrap_or(&[]);
        let kept = &kept[..kept.len().min(page.len())];
        old[..kept.len()].copy_from_slice(kept);
        let old = &old[..page.len()];
        if old != page && rng.random_bool(share) {
            page.copy_from_slice(old);
            stale += 1;
        }
    }
    (image, stale)
}

/// Returns `file` with the superblocks of `marked`: the state after the mark of an open or of a
/// close was synced, and before anything else was.
pub(super) fn with_superblocks(mut file: Vec<u8>, marked: &[u8]) -> Vec<u8> {
    for at in SUPERBLOCKS {
        let page = at..at + PAGE_BYTES;
        if let (Some(page), Some(new)) = (file.get_mut(page.clone()), marked.get(page)) {
            page.copy_from_slice(new);
        }
    }
    file
}

/// Returns `true` if the superblock in force says that the store was closed.
pub(super) fn is_closed(file: &[u8]) -> bool {
    let valid = SUPERBLOCKS.into_iter().filter(|&at| is_valid(file, at));
    let newest = valid.max_by_key(|&at| word(file, at + SEQUENCE));
    newest.is_some_and(|at| word(file, at + CLEAN) == Some(1))
}

/// Changes the boot id in each valid superblock of an image, and its checksum.
pub(super) fn set_other_boot(image: &mut [u8]) {
    for at in SUPERBLOCKS {
        // Version 1 has no boot id: the words are spare, and must be zero.
        if !is_valid(image, at) || word(image, at + VERSION) < Some(2) {
            continue;
        }
        for byte in &mut image[at..][BOOT_ID] {
            *byte ^= 0x5A;
        }
        let sum = u64::from(checksum(&image[at..at + SUMMED_BYTES]));
        image[at + SUMMED_BYTES..][..8].copy_from_slice(&sum.to_le_bytes());
    }
}

fn is_valid(file: &[u8], at: usize) -> bool {
    let summed = file.get(at..at + SUMMED_BYTES);
    summed.is_some_and(|summed| {
        summed.starts_with(b"BRSTLCN1")
            && word(file, at + SUMMED_BYTES) == Some(u64::from(checksum(summed)))
    })
}

fn word(file: &[u8], at: usize) -> Option<u64> {
    let bytes = file.get(at..at + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn each_page_is_from_before_or_after() {
        let before: Vec<u8> = (0..8).flat_map(|page| [page; PAGE_BYTES]).collect();
        let mut after: Vec<u8> = (0..12).flat_map(|page| [page + 100; PAGE_BYTES]).collect();
        after[..PAGE_BYTES].copy_from_slice(&before[..PAGE_BYTES]);
        let (mut lengths, mut seen) = ([0; 2], std::collections::BTreeSet::new());
        for seed in 0..200 {
            let (image, stale) = mixed(&before, &after, &mut SmallRng::seed_from_u64(seed));
            lengths[usize::from(image.len() == before.len())] += 1;
            let mut changed = 0;
            for (number, page) in (0..).zip(image.chunks(PAGE_BYTES)) {
                assert!(page.iter().all(|&byte| byte == page[0]), "pages are whole");
                let (old, new) = (if number < 8 { number } else { 0 }, number + 100);
                assert!(number == 0 || [old, new].contains(&page[0]));
                changed += u64::from(number > 0 && page[0] == old);
                seen.insert((number, page[0]));
            }
            assert_eq!(changed, stale);
        }
        assert!(lengths.iter().all(|&count| count > 50), "{lengths:?}");
        assert_eq!(seen.len(), 1 + 2 * 11, "each page was seen in both states");
    }

    #[test]
    fn a_store_is_closed_by_its_newest_superblock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pool");
        let options = bristlecone::Store::options().durability(bristlecone::Durability::Process);
        let store = options.create(&path).unwrap();
        let open = std::fs::read(&path).unwrap();
        store.close().unwrap();
        let mut closed = std::fs::read(&path).unwrap();
        assert!(!is_closed(&open) && is_closed(&closed) && !is_closed(&[]));
        assert!(!is_closed(&with_superblocks(closed.clone(), &open)));
        set_other_boot(&mut closed);
        assert!(is_closed(&closed), "the checksum is right");
    }
}
