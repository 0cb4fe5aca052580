//! Changes of a sound image, as a fuzzer chooses them.

const BLOCK_BYTES: usize = 256;

/// Returns `image` with the changes that `data` lists, 12 B each: a kind, a place, a word.
pub(crate) fn changed(image: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = image.to_vec();
    for change in data.as_chunks::<12>().0 {
        let [kind, a, b, c, word @ ..] = *change;
        let place = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        let word = u64::from_le_bytes(word);
        if bytes.len() < BLOCK_BYTES {
            break;
        }
        match kind % 5 {
            0 => xor(&mut bytes, place, word),
            1 => xor(&mut bytes, place, 1 << (word % 64)),
            2 => store(&mut bytes, place, word),
            3 => {
                // A block that another one overwrites: a misplaced or an old write.
                let blocks = bytes.len() / BLOCK_BYTES;
                let (from, to) = (word as usize % blocks, place % blocks);
                bytes.copy_within(from * BLOCK_BYTES..(from + 1) * BLOCK_BYTES, to * BLOCK_BYTES);
            }
            _ => bytes.truncate(place),
        }
    }
    bytes
}

fn xor(bytes: &mut [u8], place: usize, mask: u64) {
    let words = bytes.as_chunks_mut::<8>().0;
    let word = &mut words[place % words.len()];
    *word = (u64::from_le_bytes(*word) ^ mask).to_le_bytes();
}

fn store(bytes: &mut [u8], place: usize, word: u64) {
    let words = bytes.as_chunks_mut::<8>().0;
    words[place % words.len()] = word.to_le_bytes();
}

/// Returns a new temporary folder, in memory where the system has such a folder.
pub(crate) fn folder() -> tempfile::TempDir {
    let shared = std::path::Path::new("/dev/shm");
    let folder = if shared.is_dir() { tempfile::tempdir_in(shared) } else { tempfile::tempdir() };
    folder.expect("a temporary folder")
}
