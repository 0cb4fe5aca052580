//! Reading what is left of a damaged store.
//!
//! 1. The file is only read. It is not mapped, so a page that the medium has lost is an error and
//!    not a signal.
//! 2. A pair is returned only if checksums vouch for all of it: that of its leaf, and both of its
//!    record.
//! 3. Whatever is not returned is named: each leaf or record that fails its check gives an error.

use crate::error::Error;
use crate::scan::Pair;
use crate::{Flagship, ROOT};
use bristlecone_pmem::Corrupt;
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::pool::Root;
use bristlecone_trees::key::format::RecordBytes;
use bristlecone_trees::key::{Entry, InlinePair};
use bristlecone_trees::leaf::pairs::LeafBytes;
use bristlecone_trees::{Design, Record};
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::iter::FusedIterator;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Returns an iterator over the pairs of a damaged store that checksums can still vouch for. It
/// never writes to the file.
///
/// An item is a pair, or the damage that hides pairs: its offset in the file and what is wrong
/// there. The iterator continues after damage. Pairs come in no particular order, and no key comes
/// twice. For a store without damage, the items are all of its pairs.
///
/// A store that is open cannot be salvaged; a copy of its file may be damaged.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("trees.pool");
/// # bristlecone::Store::open_or_create(&path)?.put("sequoia", "3266 years")?;
/// let whole = bristlecone::Store::open_or_create(dir.path().join("whole.pool"))?;
/// for item in bristlecone::salvage(&path)? {
///     match item {
///         Ok((key, value)) => whole.put(key, value)?,
///         Err(damage) => eprintln!("{damage}"),
///     }
/// }
/// # assert_eq!(whole.len()?, 1);
/// # Ok::<(), bristlecone::Error>(())
/// ```
///
/// # Errors
/// - [`Error::NotFound`], [`Error::Denied`], [`Error::System`]: the file cannot be read.
/// - [`Error::InUse`]: the store is open.
pub fn salvage(path: impl AsRef<Path>) -> Result<Salvage, Error> {
    let path = path.as_ref();
    let failed = |action| move |source| Error::from_system(path.into(), action, source);
    let file = File::open(path).map_err(failed("open the file"))?;
    match file.try_lock_shared() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Error::from_medium(path, MediumError::Locked)),
        Err(TryLockError::Error(source)) => return Err(failed("lock the file")(source)),
    }
    let source = Source { file };
    let mut salvage =
        Salvage { next: None, items: VecDeque::new(), visited: HashSet::new(), source };
    salvage.begin();
    Ok(salvage)
}

/// An iterator over the pairs of a damaged store, and over its damage; [`salvage`] returns it.
#[must_use = "a salvage reads little before `next` is called"]
pub struct Salvage {
    source: Source,
    /// The offset of the next leaf of the chain.
    next: Option<u64>,
    /// The offsets of all leaves that were read, so that a chain with a cycle ends.
    visited: HashSet<u64>,
    /// The items of the leaves that were read, and not returned yet.
    items: VecDeque<Result<Pair, Corrupt>>,
}

/// The bytes of the file.
struct Source {
    file: File,
}

impl Source {
    /// Fills `bytes` from offset `at` of the file.
    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), Corrupt> {
        self.file.read_exact_at(bytes, at).map_err(|error| {
            let (expected, found) = (bytes.len() as u64, 0);
            let what = match error.kind() {
                io::ErrorKind::UnexpectedEof => "bytes beyond the end of the file",
                _ => "bytes that the system cannot read",
            };
            Corrupt { at, what, expected, found }
        })
    }

    fn leaf(&self, at: u64) -> Result<LeafBytes, Corrupt> {
        if !at.is_multiple_of(LeafBytes::BYTES as u64) {
            let what = "offset of a leaf, which is no multiple of its size";
            return Err(Corrupt { at, what, expected: LeafBytes::BYTES as u64, found: at });
        }
        let mut bytes = [0; LeafBytes::BYTES];
        self.read(at, &mut bytes)?;
        Ok(LeafBytes::new(at, &bytes))
    }

    /// Returns the offset of the first leaf.
    fn first_leaf(&self) -> Result<u64, Corrupt> {
        let mut damage = None;
        for index in 0..Root::ENTRIES {
            let at = Root::TABLE + (index * Root::ENTRY_BYTES) as u64;
            let mut entry = [0; Root::ENTRY_BYTES];
            self.read(at, &mut entry)?;
            match Root::decode(at, &entry) {
                Ok(Some(root))
                    if root.name == ROOT && root.kind == Flagship::SPEC.kind::<Record>() =>
                {
                    let at = root.block.offset();
                    let mut first = [0; 8];
                    self.read(at, &mut first)?;
                    return Ok(u64::from_le_bytes(first));
                }
                Ok(_) => {}
                Err(found) => damage = Some(found),
            }
        }
        let what = "root of the store, which is missing";
        Err(damage.unwrap_or(Corrupt { at: Root::TABLE, what, expected: 1, found: 0 }))
    }

    /// Returns the pair of an entry of a leaf whose checksum is right.
    fn pair(&self, entry: Entry) -> Result<Pair, Corrupt> {
        if let Some(pair) = InlinePair::of(entry)? {
            return Ok((pair.key().to_vec(), pair.value().to_vec()));
        }
        let at = entry.value;
        let mut header = [0; RecordBytes::HEADER_BYTES];
        self.read(at, &mut header)?;
        let record = RecordBytes::begin(at, header)?;
        let mut bytes = vec![0; record.bytes() as usize];
        self.read(at, &mut bytes)?;
        let (key, value) = record.pair(&bytes)?;
        Record::verify_prefix(entry, key)?;
        Ok((key.to_vec(), value.to_vec()))
    }
}

impl Salvage {
    fn begin(&mut self) {
        match self.source.first_leaf() {
            Ok(first) => self.next = Some(first),
            Err(damage) => self.items.push_back(Err(damage)),
        }
    }

    /// Reads the leaf at `at`, adds its items, and returns the offset of the next one.
    fn visit(&mut self, at: u64) -> Result<Option<u64>, Corrupt> {
        if !self.visited.insert(at) {
            let what = "link to a leaf, which leads back";
            return Err(Corrupt { at, what, expected: 0, found: at });
        }
        let leaf = self.source.leaf(at)?;
        match leaf.verify() {
            Ok(()) => {
                let pairs = leaf.entries().map(|tagged| self.source.pair(tagged.entry));
                self.items.extend(pairs);
            }
            Err(damage) => self.items.push_back(Err(damage)),
        }
        let next = leaf.next()?;
        Ok((!next.is_null()).then(|| next.offset()))
    }
}

impl Iterator for Salvage {
    type Item = Result<Pair, Corrupt>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Some(item);
            }
            let at = self.next.take()?;
            match self.visit(at) {
                Ok(next) => self.next = next,
                Err(damage) => self.items.push_back(Err(damage)),
            }
        }
    }
}

impl FusedIterator for Salvage {}

impl fmt::Debug for Salvage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Salvage").field("next", &self.next).finish_non_exhaustive()
    }
}
