//! The bytes of a pool, as docs/FORMAT.md describes them: for tests that change a file by hand.

/// The offsets of the two superblocks.
const SUPERBLOCKS: [usize; 2] = [0, 0x1000];
/// The offset of the boot id in a superblock.
const BOOT_ID: usize = 96;
/// The offset of the checksum in a superblock.
const CHECKSUM: usize = 120;

/// Returns the word at `at`.
pub(crate) fn word(image: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(image[at..at + 8].try_into().expect("a word has 8 bytes"))
}

/// Sets the word at `at`.
pub(crate) fn set_word(image: &mut [u8], at: usize, value: u64) {
    image[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Writes the checksums of both superblocks anew.
pub(crate) fn seal(image: &mut [u8]) {
    for at in SUPERBLOCKS {
        let checksum = crc32c(&image[at..at + CHECKSUM]);
        set_word(image, at + CHECKSUM, checksum.into());
    }
}

/// Makes the image that of a machine that has restarted since: the boot in its superblocks is
/// another one.
pub(crate) fn restart(image: &mut [u8]) {
    for at in SUPERBLOCKS {
        let boot = word(image, at + BOOT_ID);
        set_word(image, at + BOOT_ID, boot ^ 1 << 63 | 1);
    }
    seal(image);
}

/// Returns `true` if a superblock names a boot: a restart of the machine may then tear the pool.
pub(crate) fn names_a_boot(image: &[u8]) -> bool {
    SUPERBLOCKS.iter().any(|&at| word(image, at + BOOT_ID) != 0)
}

/// Returns the offsets of all leaves of a store.
pub(crate) fn leaves(image: &[u8]) -> Vec<usize> {
    /// The bits of a link word with the offset.
    const LINK: u64 = (1 << 48) - 1;
    let mut leaf = word(image, 0x2000) as usize - 1;
    let mut leaves = Vec::new();
    while leaf != 0 {
        leaves.push(leaf);
        leaf = (word(image, leaf) & LINK) as usize;
    }
    leaves
}

/// Computes CRC-32C bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| (crc >> 1) ^ (0x82F6_3B78 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}
