//! The checkpoint: the inner nodes as a clean close saves them, so that the next open need not read
//! the leaves.
//!
//! A checkpoint is a block of little-endian words: the number of leaves, the CRC-32C of the words
//! behind the header, then for each leaf the prefix of its low key, the word of its low key (absent
//! if the prefix is the whole key), and its offset. Two words of the index name the checkpoint and
//! the nonce of the open that saved it. Only the next open loads it; it is stale in any later one.

use crate::index::TreeError;
use crate::inner::{InnerNodes, SeparatedLeaf};
use crate::key::Key;
use bristlecone_pmem::{Medium, PmPtr, PmWord, Pool, PoolError};

const HEADER_WORDS: usize = 2;

/// The words of a leaf with keys of layer `K`.
const fn leaf_words<K: Key>() -> usize {
    if K::EXACT { 2 } else { 3 }
}

/// Saves a checkpoint of `inner`, which `named`, two words, then names. It is valid only if the
/// pool is closed cleanly afterwards, so its stores need no order among themselves. In a full pool
/// it saves none: the next open then reads the leaves.
///
/// ```text
/// N checkpoint                  crash before the pool's close: recovery does not read it
/// W its offset, nonce           2 words
/// F both words |                -> durable, with the checkpoint
/// ```
pub(crate) fn save<K: Key, M: Medium>(
    pool: &Pool<M>,
    inner: &impl InnerNodes<M>,
    named: &[PmWord],
) -> Result<(), TreeError> {
    let mut bytes = vec![0; 8 * HEADER_WORDS];
    let mut count = 0u64;
    inner.for_each_leaf(&mut |separated| {
        count += 1;
        bytes.extend_from_slice(&separated.prefix.to_le_bytes());
        if !K::EXACT {
            bytes.extend_from_slice(&separated.word.to_le_bytes());
        }
        bytes.extend_from_slice(&separated.leaf.to_le_bytes());
    });
    let crc = bristlecone_pmem::checksum(&bytes[8 * HEADER_WORDS..]);
    bytes[..8].copy_from_slice(&count.to_le_bytes());
    bytes[8..16].copy_from_slice(&u64::from(crc).to_le_bytes());
    let at = match pool.reserve(bytes.len() as u64) {
        Err(PoolError::Full { .. }) => return Ok(()),
        reserved => reserved?,
    };
    let medium = pool.medium();
    medium.fill(pool.words(at, bytes.len() / 8)?, &bytes);
    medium.store(&named[1], pool.nonce());
    medium.store(&named[0], at.offset());
    let _ = medium.persist(named);
    Ok(())
}

/// Returns the leaves that the last close saved, and frees the checkpoint, which the two words
/// `named` name. Returns `None` if the close saved none, or if the checkpoint or the word that
/// leads to it is damaged; then the caller rebuilds the list from the leaves.
pub(crate) fn load<K: Key, M: Medium>(
    pool: &Pool<M>,
    named: &[PmWord],
) -> Option<Vec<SeparatedLeaf>> {
    let [at, nonce] = [0, 1].map(|word| pool.medium().load(&named[word]));
    let at = PmPtr::new(at);
    if at.is_null() || nonce != pool.former_nonce() {
        return None;
    }
    let Some(bytes) = read::<K, M>(pool, at) else {
        pool.note_rebuilt();
        return None;
    };
    let block_bytes = (8 * HEADER_WORDS + bytes.len()) as u64;
    let word = |leaf: &[u8], at: usize| {
        leaf[8 * at..8 * at + 8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
    };
    let leaves = bytes
        .chunks_exact(8 * leaf_words::<K>())
        .map(|leaf| SeparatedLeaf {
            prefix: word(leaf, 0),
            word: word(leaf, leaf_words::<K>() - 2),
            leaf: word(leaf, leaf_words::<K>() - 1),
        })
        .collect();
    pool.release(at, block_bytes);
    Some(leaves)
}

/// Returns the words of the checkpoint at `at` behind its header, or `None` if it is damaged. The
/// close makes no other use of the word that leads here, so `at` may be any number too.
fn read<K: Key, M: Medium>(pool: &Pool<M>, at: PmPtr) -> Option<Vec<u8>> {
    let load = |word: &PmWord| pool.medium().load(word);
    let header = pool.words(at, HEADER_WORDS).ok()?;
    let count = load(&header[0]) as usize;
    let words = count.saturating_mul(leaf_words::<K>()).saturating_add(HEADER_WORDS);
    let words = pool.words(at, words.min(isize::MAX as usize / 8)).ok()?;
    // Before a buffer of that length: a damaged count may claim all of the pool.
    if count == 0 || !pool.is_block(at, 8 * words.len() as u64) {
        return None;
    }
    let mut bytes = vec![0; 8 * (words.len() - HEADER_WORDS)];
    pool.medium().copy_out(&words[HEADER_WORDS..], &mut bytes);
    let is_whole = u64::from(bristlecone_pmem::checksum(&bytes)) == load(&header[1]);
    is_whole.then_some(bytes)
}
