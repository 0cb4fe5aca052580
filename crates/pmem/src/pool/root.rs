//! Named roots: the rest of the pool is reached only from them.
//!
//! A table of 64 entries at offset 0x2000, each a line:
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0 | 8 | block | commit | offset of the root's block, plus 1; 0: the entry is free |
//! | 8 | 8 | kind | data | the kind of the block, a number of its owner |
//! | 16 | 40 | name | data | its length in one byte, then the bytes |
//! | 56 | 8 | checksum | data | CRC-32C of kind, name and block |
//!
//! Because of the 1, no single flipped bit makes an entry look free.

use super::{Pool, PoolError};
use crate::checksum;
use crate::error::Corrupt;
use crate::medium::Medium;
use crate::word::{PmPtr, PmWord};

pub(super) const TABLE: u64 = 0x2000;
const ENTRIES: usize = 64;
const ENTRY_WORDS: usize = 8;
/// The largest length of a name, in bytes.
const NAME_BYTES_MAX: usize = 39;
/// The bit that is set in the block word of an entry in use.
const IN_USE: u64 = 1;

/// A named root: an entry of the root table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// The name, of 1 to 39 bytes.
    pub name: String,
    /// The kind of the block, a number that the root's owner chose.
    pub kind: u64,
    /// The block from which the owner's other blocks are reached.
    pub block: PmPtr,
}

impl<M: Medium> Pool<M> {
    /// Returns the roots, in the order of the table.
    ///
    /// # Errors
    /// An entry is damaged.
    pub fn roots(&self) -> Result<Vec<Root>, Corrupt> {
        let mut roots = Vec::new();
        for (index, entry) in self.root_table()?.chunks_exact(ENTRY_WORDS).enumerate() {
            roots.extend(self.read_root(entry, index)?);
        }
        Ok(roots)
    }

    /// Returns the root called `name`, or `None` if the pool has no such root.
    ///
    /// # Errors
    /// An entry is damaged.
    pub fn root(&self, name: &str) -> Result<Option<Root>, Corrupt> {
        Ok(self.roots()?.into_iter().find(|root| root.name == name))
    }

    /// Adds a root. This thread must have flushed every block that `block` reaches: the fence
    /// before C makes them durable, so they are durable before the root points to them. Durable on
    /// return.
    ///
    /// ```text
    /// W kind, name, checksum   1 line     crash before C: the entry is free
    /// F entry |                           this makes all that the thread has flushed durable
    /// C block                  8 B
    /// F entry |, S             -> durable  budget: 2 lines, 2 fences
    /// ```
    ///
    /// S syncs a file of the page cache, so that the root and all that it reaches survive a power
    /// cut there too. What is written later does not.
    ///
    /// # Panics
    /// `block` is null.
    ///
    /// # Errors
    /// The name exists, is empty or is longer than 39 bytes; all 64 entries are in use; an entry is
    /// damaged; the system could not write the file.
    pub fn create_root(&self, name: &str, kind: u64, block: PmPtr) -> Result<(), PoolError> {
        assert!(!block.is_null(), "the block of a root is not null");
        let bytes = name.len();
        if !(1..=NAME_BYTES_MAX).contains(&bytes) {
            return Err(PoolError::RootName { bytes, maximum: NAME_BYTES_MAX });
        }
        let _table = self.root_latch.lock();
        if self.root(name)?.is_some() {
            return Err(PoolError::RootExists);
        }
        let medium = self.medium();
        let entry = self
            .root_table()?
            .chunks_exact(ENTRY_WORDS)
            .find(|entry| medium.load(&entry[0]) == 0)
            .ok_or(PoolError::RootsFull(ENTRIES))?;
        let words = encode(kind, name.as_bytes(), block);
        for (word, value) in entry[1..].iter().zip(words) {
            medium.store(word, value);
        }
        medium.commit(&entry[0], block.offset() | IN_USE, medium.persist(entry));
        let _ = medium.persist(&entry[..1]);
        self.sync_pages()
    }

    /// Returns `true` if an entry of the table is in use, whole or damaged.
    pub(super) fn has_roots(&self) -> Result<bool, Corrupt> {
        let mut entries = self.root_table()?.chunks_exact(ENTRY_WORDS);
        Ok(entries.any(|entry| self.medium().load(&entry[0]) != 0))
    }

    fn root_table(&self) -> Result<&[PmWord], Corrupt> {
        self.words(PmPtr::new(TABLE), ENTRIES * ENTRY_WORDS)
    }

    fn read_root(&self, entry: &[PmWord], index: usize) -> Result<Option<Root>, Corrupt> {
        let at = TABLE + (index * ENTRY_WORDS * 8) as u64;
        let mut bytes = [0; Root::ENTRY_BYTES];
        self.medium().copy_out(entry, &mut bytes);
        Root::decode(at, &bytes)
    }
}

impl Root {
    /// The offset of the root table in a pool.
    pub const TABLE: u64 = TABLE;
    /// The number of entries of the root table.
    pub const ENTRIES: usize = ENTRIES;
    /// The size of an entry of the root table, in bytes.
    pub const ENTRY_BYTES: usize = 8 * ENTRY_WORDS;

    /// Returns the root in the entry of the root table at `at`, whose bytes are `entry`; `None` if
    /// the entry is free.
    ///
    /// # Errors
    /// The entry is damaged.
    pub fn decode(at: u64, entry: &[u8; Self::ENTRY_BYTES]) -> Result<Option<Self>, Corrupt> {
        let (words, _) = entry.as_chunks();
        let word = |i: usize| u64::from_le_bytes(words[i]);
        if word(0) == 0 {
            return Ok(None);
        }
        let block = PmPtr::new(word(0) ^ IN_USE);
        let bytes = &entry[8..56];
        let (expected, found) = (entry_checksum(bytes, block), word(7));
        let length = usize::from(bytes[8]);
        if found != expected || length > NAME_BYTES_MAX {
            let what = "root entry's checksum";
            return Err(Corrupt { at, what, expected, found });
        }
        let name = String::from_utf8_lossy(&bytes[9..9 + length]).into_owned();
        Ok(Some(Self { name, kind: word(1), block }))
    }
}

fn entry_checksum(kind_and_name: &[u8], block: PmPtr) -> u64 {
    let crc = checksum::checksum(kind_and_name);
    u64::from(checksum::checksum_append(crc, &block.offset().to_le_bytes()))
}

fn encode(kind: u64, name: &[u8], block: PmPtr) -> [u64; 7] {
    let mut bytes = [0; 48];
    bytes[..8].copy_from_slice(&kind.to_le_bytes());
    bytes[8] = name.len() as u8;
    bytes[9..9 + name.len()].copy_from_slice(name);
    let mut words = [0; 7];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
    }
    words[6] = entry_checksum(&bytes, block);
    words
}
