//! Reading what is left of a damaged store.
//!
//! 1. The file is only read. It is not mapped, so a page that the medium has lost is an error and
//!    not a signal.
//! 2. The chain of leaves from the root gives the pairs in key order. A leaf holds keys from its
//!    low key up to that of its right neighbour; others are leftovers of a split or merge.
//! 3. Where the chain breaks, all blocks of the file are searched for leaves. A merge leaves the
//!    bytes of the merged leaf behind, and marks its latch word. Such a leaf is passed over. The
//!    mark can be lost in a power cut, so leaves that are found add pairs only in ranges of keys
//!    that the chain, or a longer run of such leaves, has not covered.
//! 4. A pair is returned only if checksums vouch for all of it: that of its leaf for a pair in the
//!    leaf, both of its record for any other.
//! 5. Whatever is not returned is named: each leaf, link or record that fails its check.

mod claims;
mod source;

use crate::error::Error;
use crate::open::kind_of;
use crate::scan::Pair;
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::{Corrupt, Journaled};
use bristlecone_trees::leaf::pairs::LeafBytes;
use claims::Claims;
use source::Source;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::fs::{File, TryLockError};
use std::iter::FusedIterator;
use std::path::Path;

/// Returns an iterator over the pairs of a damaged store that checksums can still vouch for. It
/// never writes to the file.
///
/// An item is a pair, or the damage that hides pairs: its offset in the file and what is wrong
/// there. The iterator continues after damage. No key comes twice. For a store without damage, the
/// items are all of its pairs, in the order of their keys.
///
/// Where damage has broken the chain of leaves, pairs are found by a search of the whole file, in
/// no particular order. Such a pair, or one of a damaged leaf, was written whole. It may have been
/// deleted or replaced since, if the damage or a power cut hides that.
///
/// A store that is open cannot be salvaged, and a copy of its file may be damaged: close it first.
/// This reads the file alone. If the store was not closed, its journal may have newer pairs: an
/// open finds them, and if that fails, the first item here says that they are missing.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("trees.pool");
/// # let store = bristlecone::Store::open_or_create(&path)?;
/// # store.put("sequoia", "3266 years")?;
/// # store.close()?;
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
/// - [`Error::NotAFile`]: there is a folder, a device or a pipe at `path`.
/// - [`Error::InUse`]: the store is open.
/// - [`Error::NewerVersion`], [`Error::OldVersion`]: another version of this library wrote it.
pub fn salvage(path: impl AsRef<Path>) -> Result<Salvage, Error> {
    let path = path.as_ref();
    let failed = |action, source| Error::from_system(path.into(), action, source);
    // To open a pipe would wait for its other end.
    let metadata = std::fs::metadata(path);
    let metadata = metadata.map_err(|source| failed("read the type of the file", source))?;
    if let Some(kind) = kind_of(metadata.file_type()) {
        return Err(Error::NotAFile { path: path.into(), kind });
    }
    let file = File::open(path).map_err(|source| failed("open the file", source))?;
    match file.try_lock_shared() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Error::from_medium(path, MediumError::Locked)),
        Err(TryLockError::Error(source)) => return Err(failed("lock the file", source)),
    }
    let needs_journal = Journaled::is_needed_by(&file).unwrap_or(false); // Else the mark is damaged.
    let source = Source::new(file);
    source.check_version().map_err(|error| Error::from_pool(path, error))?;
    let mut salvage = Salvage::new(source);
    if needs_journal {
        let what = "pairs that the journal alone has, which this does not read: open the store";
        let damage = Corrupt { at: Journaled::MARK, what, expected: 0, found: 1 };
        salvage.items.push_front(Err(damage));
    }
    Ok(salvage)
}

/// An iterator over the pairs of a damaged store, and over its damage; [`salvage`] returns it.
#[must_use = "a salvage reads little before `next` is called"]
pub struct Salvage {
    source: Source,
    /// The run of leaves that is being read.
    run: Option<Run>,
    /// The first leaves of the runs that a search has found, the longest run last; `None` before a
    /// search.
    found_runs: Option<Vec<u64>>,
    /// `true` if a run has ended before the end of the chain.
    is_broken: bool,
    /// The offsets of all leaves that were read, so that each is read once.
    visited: HashSet<u64>,
    claims: Claims,
    /// The items that were read and not returned yet.
    items: VecDeque<Result<Pair, Corrupt>>,
}

/// A run of leaves, read from one to the next.
struct Run {
    /// The next leaf.
    leaf: Option<LeafBytes>,
    /// The lowest key of the run.
    start: Vec<u8>,
    /// The keys below this one have been read.
    floor: Vec<u8>,
}

impl Salvage {
    fn new(source: Source) -> Self {
        let mut salvage = Self {
            source,
            run: None,
            found_runs: None,
            is_broken: false,
            visited: HashSet::new(),
            claims: Claims::default(),
            items: VecDeque::new(),
        };
        match salvage.source.first_leaf().and_then(|at| salvage.enter(at)) {
            Ok(leaf) => salvage.begin(leaf, Vec::new()),
            Err(damage) => salvage.broken(damage),
        }
        salvage
    }

    fn begin(&mut self, leaf: LeafBytes, start: Vec<u8>) {
        self.run = Some(Run { leaf: Some(leaf), floor: start.clone(), start });
    }

    fn broken(&mut self, damage: Corrupt) {
        self.is_broken = true;
        self.items.push_back(Err(damage));
    }

    /// Reads the leaf at `at`, which a link names.
    fn enter(&mut self, at: u64) -> Result<LeafBytes, Corrupt> {
        if self.visited.contains(&at) {
            let what = "link to a leaf that was read before";
            return Err(Corrupt { at, what, expected: 0, found: at });
        }
        let leaf = self.source.leaf(at)?;
        self.visited.insert(at);
        Ok(leaf)
    }

    /// Reads the next leaf of the run, and adds its items.
    fn advance(&mut self, run: &mut Run) {
        let Some(leaf) = run.leaf.take() else { return };
        let mut damage = None;
        // The leaf that follows, and whether the run goes on there. A run that a search has found
        // ends where it joins another.
        let right = match leaf.next() {
            Ok(next) if next.is_null() => None,
            Ok(next) if self.found_runs.is_some() && self.visited.contains(&next.offset()) => {
                self.source.leaf(next.offset()).ok().map(|right| (right, false))
            }
            Ok(next) => {
                let entered = self.enter(next.offset()).map_err(|found| damage = Some(found));
                entered.ok().map(|right| (right, true))
            }
            Err(found) => {
                damage = Some(found);
                None
            }
        };
        let is_end = right.is_none() && damage.is_none();
        // A right neighbour that is damaged does not say where this leaf ends.
        let bound = right.as_ref().filter(|(right, _)| right.verify().is_ok());
        let bound = bound.and_then(|(right, _)| self.source.low_key(right).ok());
        let bound = bound.map(|low| low.to_vec());
        self.read_pairs(&leaf, run, bound.as_deref());
        if let Some(bound) = bound {
            run.floor = bound;
        }
        if let Some(damage) = damage {
            self.broken(damage);
        }
        run.leaf = right.and_then(|(right, goes_on)| goes_on.then_some(right));
        if run.leaf.is_none() {
            let end = (!is_end).then(|| run.floor.clone());
            self.claims.add(run.start.clone(), end);
        }
    }

    /// Adds the items of a leaf: pairs from the floor of the run up to `bound`.
    fn read_pairs(&mut self, leaf: &LeafBytes, run: &mut Run, bound: Option<&[u8]>) {
        let verified = leaf.verify();
        if let Err(damage) = verified {
            self.items.push_back(Err(damage));
        }
        let mut pairs = Vec::new();
        for tagged in leaf.entries() {
            match self.source.pair(tagged.entry) {
                // The checksum of a damaged leaf vouches for none of its entries. A record has its
                // own.
                Ok((key, _)) if verified.is_err() && !leaf.names_record_of(tagged, &key) => {}
                Ok(pair) => pairs.push(pair),
                // The error of the leaf stands for its entries.
                Err(_) if verified.is_err() => {}
                // The pair of an older leaf, whose record was freed since; a newer one has the key.
                Err(_) if self.claims.contains(&tagged.entry.key.to_be_bytes()) => {}
                Err(damage) => self.items.push_back(Err(damage)),
            }
        }
        pairs.sort_unstable();
        let is_inside = |key: &[u8]| *key >= *run.floor && bound.is_none_or(|bound| key < bound);
        pairs.retain(|(key, _)| is_inside(key) && !self.claims.contains(key));
        if let Some((last, _)) = pairs.last() {
            run.floor = [last, &[0][..]].concat();
        }
        // Two entries of a damaged leaf with one key: which of them is valid is not known.
        for equal in pairs.chunk_by_mut(|a, b| a.0 == b.0) {
            if let [pair] = equal {
                self.items.push_back(Ok(core::mem::take(pair)));
            } else {
                let (at, what) = (leaf.at(), "number of entries of a leaf with one key");
                let found = equal.len() as u64;
                self.items.push_back(Err(Corrupt { at, what, expected: 1, found }));
            }
        }
    }

    /// Returns the first leaf of the next run that a search has found.
    fn next_run(&mut self) -> Option<Run> {
        if !self.is_broken {
            return None;
        }
        if self.found_runs.is_none() {
            self.found_runs = Some(self.search());
        }
        while let Some(at) = self.found_runs.as_mut()?.pop() {
            // A longer run has read the leaves of a shorter one that joins it.
            let Ok(leaf) = self.enter(at) else { continue };
            match self.source.low_key(&leaf) {
                Ok(low) => {
                    self.begin(leaf, low.to_vec());
                    return self.run.take();
                }
                Err(damage) => {
                    self.items.push_back(Err(damage));
                    let pairs = leaf.entries().filter_map(|it| self.source.pair(it.entry).ok());
                    if let Some((least, _)) = pairs.min() {
                        self.begin(leaf, least);
                        return self.run.take();
                    }
                }
            }
        }
        None
    }

    /// Returns the leaves of the file that were not visited, in the order of the runs of leaves
    /// that begin with them: the longest is last.
    fn search(&self) -> Vec<u64> {
        let mut next_of = HashMap::new();
        self.source.for_each_leaf(&mut |leaf| {
            if let Ok(next) = leaf.next()
                && !self.visited.contains(&leaf.at())
                && !leaf.is_merged_away()
            {
                next_of.insert(leaf.at(), next.offset());
            }
        });
        let mut lengths: HashMap<u64, u64> = HashMap::with_capacity(next_of.len());
        for &start in next_of.keys() {
            let mut path = Vec::new();
            let mut at = start;
            while let Some(&next) = next_of.get(&at)
                && !lengths.contains_key(&at)
            {
                lengths.insert(at, 0); // ends a cycle
                path.push(at);
                at = next;
            }
            let behind = lengths.get(&at).copied().unwrap_or(0);
            for (length, &at) in (behind + 1..).zip(path.iter().rev()) {
                lengths.insert(at, length);
            }
        }
        let mut runs: Vec<_> = lengths.into_iter().map(|(at, length)| (length, at)).collect();
        runs.sort_unstable();
        runs.into_iter().map(|(_, at)| at).collect()
    }
}

impl Iterator for Salvage {
    type Item = Result<Pair, Corrupt>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Some(item);
            }
            let mut run = match self.run.take() {
                Some(run) => run,
                None => self.next_run()?,
            };
            self.advance(&mut run);
            if run.leaf.is_some() {
                self.run = Some(run);
            }
        }
    }
}

impl FusedIterator for Salvage {}

impl fmt::Debug for Salvage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Salvage").field("is_broken", &self.is_broken).finish_non_exhaustive()
    }
}
