//! The bytes of a damaged store: reading leaves, records and the root without mapping the file.

use crate::scan::Pair;
use crate::{Flagship, ROOT};
use bristlecone_pmem::Corrupt;
use bristlecone_pmem::medium::end_of_hole;
use bristlecone_pmem::pool::{HEADER_BYTES, PoolError, Root, check_version};
use bristlecone_trees::designs::cell_tree::LeafBytes;
use bristlecone_trees::key::format::RecordBytes;
use bristlecone_trees::key::{Bytes, Entry, InlinePair};
use bristlecone_trees::{Design, Record};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The bytes that are read at once in the search for leaves.
const SEARCH_BYTES: usize = 1 << 20;

/// A damaged store that is only read.
pub(super) struct Source {
    file: File,
}

impl Source {
    pub(super) const fn new(file: File) -> Self {
        Self { file }
    }

    /// Fails if a superblock is whole and says that this release does not read the file. If both
    /// are damaged, the checksums of leaves and records decide what can be read.
    pub(super) fn check_version(&self) -> Result<(), PoolError> {
        check_version(&self.file)
    }

    /// Fills `bytes` from offset `at` of the file.
    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Corrupt> {
        self.file.read_exact_at(bytes, at).map_err(|error| {
            let what = match error.kind() {
                io::ErrorKind::UnexpectedEof => "number of bytes that the file has from here on",
                _ => "number of bytes that the system can read here",
            };
            Corrupt { at, what, expected: bytes.len() as u64, found: 0 }
        })
    }

    /// Returns the offset of the first leaf, the block of the root.
    pub(super) fn first_leaf(&self) -> Result<u64, Corrupt> {
        let mut damage = None;
        for index in 0..Root::ENTRIES {
            let at = Root::TABLE + (index * Root::ENTRY_BYTES) as u64;
            let mut entry = [0; Root::ENTRY_BYTES];
            self.read(at, &mut entry)?;
            match Root::decode(at, &entry) {
                Ok(Some(root))
                    if root.name == ROOT && root.kind == Flagship::SPEC.kind::<Record>() =>
                {
                    return Ok(root.block.offset());
                }
                Ok(_) => {}
                Err(found) => damage = Some(found),
            }
        }
        let what = "root of the store, which is missing";
        Err(damage.unwrap_or(Corrupt { at: Root::TABLE, what, expected: 1, found: 0 }))
    }

    /// Returns the bytes of the leaf at `at`, which are not verified.
    pub(super) fn leaf(&self, at: u64) -> Result<LeafBytes, Corrupt> {
        if !at.is_multiple_of(LeafBytes::BYTES as u64) {
            let what = "offset of a leaf, which is no multiple of its size";
            return Err(Corrupt { at, what, expected: LeafBytes::BYTES as u64, found: at });
        }
        let mut bytes = [0; LeafBytes::BYTES];
        self.read(at, &mut bytes)?;
        Ok(LeafBytes::new(at, &bytes))
    }

    /// Returns the low key of a leaf.
    pub(super) fn low_key(&self, leaf: &LeafBytes) -> Result<Bytes, Corrupt> {
        let word = leaf.low()?;
        if let Some(key) = Record::inline_separator(word)? {
            return Ok(key);
        }
        let record = self.record_header(word)?;
        let mut bytes = vec![0; record.key_record_bytes() as usize];
        self.read(word, &mut bytes)?;
        record.key(&bytes).map(Bytes::from_slice)
    }

    fn record_header(&self, at: u64) -> Result<RecordBytes, Corrupt> {
        let mut header = [0; RecordBytes::HEADER_BYTES];
        self.read(at, &mut header)?;
        RecordBytes::begin(at, header)
    }

    /// Returns the bytes of the record of a pair at `at`, which are not verified.
    fn record(&self, at: u64) -> Result<(RecordBytes, Vec<u8>), Corrupt> {
        let record = self.record_header(at)?;
        let mut bytes = vec![0; record.bytes() as usize];
        self.read(at, &mut bytes)?;
        Ok((record, bytes))
    }

    /// Returns the pair of an entry. A pair without a record has only the sum of its cell.
    pub(super) fn pair(&self, entry: Entry) -> Result<Pair, Corrupt> {
        if let Some(pair) = InlinePair::of(entry)? {
            return Ok((pair.key().to_vec(), pair.value().to_vec()));
        }
        let (record, bytes) = self.record(entry.value)?;
        let (key, value) = record.pair(&bytes)?;
        Record::verify_prefix(entry, key)?;
        Ok((key.to_vec(), value.to_vec()))
    }

    /// Calls `found` with every block of the file whose header, or whose link, has the check of a
    /// leaf. Skips what the system cannot read, and passes over long holes, which hold no leaf.
    pub(super) fn for_each_leaf(&self, found: &mut dyn FnMut(LeafBytes)) {
        let Ok(metadata) = self.file.metadata() else { return };
        let mut buffer = vec![0; SEARCH_BYTES];
        let mut next = HEADER_BYTES;
        while next < metadata.len() {
            // Where the system does not tell its holes, everything is read.
            let data = end_of_hole(&self.file, next).unwrap_or(next);
            let start = data / LeafBytes::BYTES as u64 * LeafBytes::BYTES as u64;
            next = start + SEARCH_BYTES as u64;
            let bytes = metadata.len().saturating_sub(start).min(SEARCH_BYTES as u64) as usize;
            // If a part cannot be read whole, its leaves are read one by one.
            let is_read = self.read(start, &mut buffer[..bytes]).is_ok();
            for offset in (0..bytes - bytes % LeafBytes::BYTES).step_by(LeafBytes::BYTES) {
                let at = start + offset as u64;
                let leaf = match buffer[offset..].first_chunk() {
                    Some(bytes) if is_read => LeafBytes::new(at, bytes),
                    _ => match self.leaf(at) {
                        Ok(leaf) => leaf,
                        Err(_) => continue,
                    },
                };
                if leaf.low().is_ok() || leaf.next().is_ok() {
                    found(leaf);
                }
            }
        }
    }
}
