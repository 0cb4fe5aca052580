//! Reading what is left of a damaged store.
//!
//! 1. The file is only read. It is not mapped, so a page that the medium has lost is an error and
//!    not a signal.
//! 2. The chain of leaves from the root gives the pairs in key order. A leaf holds keys from its
//!    low key up to that of its right neighbour; others are leftovers of a split or merge.
//! 3. A pair is returned only if checksums vouch for all of it: the sum of its cell for a pair in
//!    the leaf, both sums of its record for any other. So a damaged cell hides its short pairs
//!    alone, and a damaged header none.
//! 4. Whatever is not returned is named: each header, link, cell or record that fails its check. A
//!    cell of zeros is not if it came into use after its leaf was linked to a right neighbour.
//! 5. Where the chain breaks, all blocks of the file are searched for leaves. Some are old: a merge
//!    leaves the merged leaf behind, unmarked, until its block is used again. The low key of an old
//!    leaf lies in the range of another leaf, the one that it was merged into. So runs of leaves
//!    that are found add pairs only in ranges that nothing has covered: first the run that begins
//!    with the empty key, then from the longest on those that begin outside these ranges, at last
//!    the others.
//! 6. A leaf before a break ends at the least low key above its own of all leaves that are found. A
//!    leaf before a damaged low key ends at the least key of a pair there.
//!
//! By 5 and 6 these pairs may come back, or be older than the newest: those of an old leaf whose
//! low key lies between the leaf before a break and the right neighbour that it had, or which
//! covers keys of a leaf that is lost; those that a split has moved away from the leaf before a
//! damaged low key, if they were deleted since and are below all keys there. In the first case the
//! pairs of the old leaf take the place of what was written there since.

mod claims;
mod source;

use crate::error::Error;
use crate::open::kind_of;
use crate::scan::Pair;
use bristlecone_pmem::medium::MediumError;
use bristlecone_pmem::{Corrupt, Journaled, PmPtr};
use bristlecone_trees::designs::cell_tree::LeafBytes;
use claims::Claims;
use source::Source;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::fs::{File, TryLockError};
use std::iter::FusedIterator;
use std::path::Path;

/// Returns an iterator over the pairs of a damaged store that checksums can still vouch for. It
/// never writes to the file.
///
/// An item is a pair, or the damage that hides pairs: its offset in the file and what is wrong
/// there. The iterator continues after damage. No key comes twice. For a store without damage, the
/// items are all of its pairs, in the order of their keys. A write that a power cut has torn is
/// named as damage, because nothing tells the two apart.
///
/// Where damage has broken the chain of leaves, pairs are found by a search of the whole file, in
/// no particular order. Such a pair, or one beside damage in its leaf, was written whole. It may
/// have been deleted or replaced since, if the damage or a power cut hides that.
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
    /// The number of the newest committed batch. If it is not known, all count.
    batch: u64,
    /// The run of leaves that is being read.
    run: Option<Run>,
    /// The leaves that a search has found; `None` before a search.
    found: Option<Found>,
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

/// The right neighbour of a leaf.
struct Right {
    leaf: LeafBytes,
    /// `false` if a run that a search has found joins another here.
    is_new: bool,
    /// The key at which it begins.
    start: Option<Vec<u8>>,
}

/// The leaves that a search has found, in the order of the runs that begin with them.
struct Found {
    /// The first run is the last.
    leaves: Vec<Start>,
    /// Those that begin in a range that was read before them.
    old: Vec<Start>,
    /// The keys at which the leaves begin, and their offsets.
    keys: BTreeSet<(Vec<u8>, u64)>,
}

/// A leaf as the start of a run. The order is that of invariant 5, from the last run on.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Start {
    is_first: bool,
    /// The number of leaves of the run.
    length: u64,
    key: Vec<u8>,
    at: u64,
}

impl Salvage {
    fn new(source: Source) -> Self {
        let mut salvage = Self {
            source,
            batch: u64::MAX,
            run: None,
            found: None,
            is_broken: false,
            visited: HashSet::new(),
            claims: Claims::default(),
            items: VecDeque::new(),
        };
        match salvage.source.first_leaf().and_then(|at| salvage.enter(at)) {
            Ok(leaf) => {
                match leaf.batch() {
                    Ok(batch) => salvage.batch = batch,
                    Err(damage) => salvage.items.push_back(Err(damage)),
                }
                salvage.begin(leaf, Vec::new());
            }
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

    /// Returns the right neighbour of a leaf; `None` for the last leaf.
    ///
    /// # Errors
    /// The link is damaged, or leads to keys that are not above `floor`: that of an old leaf does,
    /// if its neighbour's block is another leaf now.
    fn right_of(&mut self, leaf: &LeafBytes, floor: &[u8]) -> Result<Option<Right>, Corrupt> {
        let next = leaf.next()?;
        if next.is_null() {
            return Ok(None);
        }
        let at = next.offset();
        let is_new = !self.is_broken || !self.visited.contains(&at);
        let right = if is_new { self.enter(at)? } else { self.source.leaf(at)? };
        let start = self.start_of(&right);
        if start.as_deref().is_some_and(|start| start <= floor) {
            if is_new {
                self.visited.remove(&at);
            }
            let what = "right neighbour whose low key is not greater";
            return Err(Corrupt { at: leaf.at(), what, expected: 0, found: at });
        }
        Ok(Some(Right { leaf: right, is_new, start }))
    }

    /// Reads the next leaf of the run, and adds its items.
    fn advance(&mut self, run: &mut Run) {
        let Some(leaf) = run.leaf.take() else { return };
        // Damage of an old leaf hides nothing.
        let is_old = self.claims.contains(&run.floor);
        let right = self.right_of(&leaf, &run.floor);
        let is_end = matches!(right, Ok(None));
        let (right, damage) = match right {
            Ok(right) => (right, None),
            Err(damage) => (None, Some(damage)),
        };
        let mut bound = right.as_ref().and_then(|right| right.start.clone());
        if bound.is_none() && !is_end {
            bound = self.least_start_above(&run.floor);
        }
        self.read_pairs(&leaf, run, bound.as_deref(), is_old);
        if let Some(bound) = bound {
            run.floor = bound;
        }
        if let Some(damage) = damage.filter(|_| !is_old) {
            self.broken(damage);
        }
        run.leaf = right.and_then(|right| right.is_new.then_some(right.leaf));
        if run.leaf.is_none() {
            let end = (!is_end).then(|| run.floor.clone());
            self.claims.add(run.start.clone(), end);
        }
    }

    /// Returns the low key of a leaf or, if that is damaged, the least key of its pairs.
    fn start_of(&self, leaf: &LeafBytes) -> Option<Vec<u8>> {
        if let Ok(low) = self.source.low_key(leaf) {
            return Some(low.to_vec());
        }
        let cells = leaf.cells(self.batch);
        let entries = cells.filter(|cell| cell.is_whole).flat_map(|cell| cell.entries);
        entries.filter_map(|entry| Some(self.source.pair(entry).ok()?.0)).min()
    }

    /// Returns the least key above `floor` at which a leaf begins that was not read.
    fn least_start_above(&mut self, floor: &[u8]) -> Option<Vec<u8>> {
        self.search();
        let from = (floor.to_vec(), u64::MAX);
        let mut above = self.found.as_ref()?.keys.range(from..);
        above.find(|(_, at)| !self.visited.contains(at)).map(|(key, _)| key.clone())
    }

    /// Adds the items of a leaf: pairs from the floor of the run up to `bound`.
    fn read_pairs(&mut self, leaf: &LeafBytes, run: &mut Run, bound: Option<&[u8]>, is_old: bool) {
        let name = |items: &mut VecDeque<_>, damage| {
            if !is_old {
                items.push_back(Err(damage));
            }
        };
        let header = leaf.verify_header().and_then(|()| self.source.low_key(leaf).map(drop));
        if let Err(damage) = header {
            name(&mut self.items, damage);
        }
        let mut pairs = Vec::new();
        for cell in leaf.cells(self.batch) {
            if let Some(damage) = cell.damage {
                name(&mut self.items, damage);
            }
            for entry in cell.entries {
                match self.source.pair(entry) {
                    Ok((key, value)) => pairs.push((key, cell.is_whole, value)),
                    // The error of the cell stands for its entries.
                    Err(_) if !cell.is_whole => {}
                    // The pair of an older leaf, whose record was freed since; a newer one has the
                    // key.
                    Err(_) if self.claims.contains(&entry.key.to_be_bytes()) => {}
                    Err(damage) => name(&mut self.items, damage),
                }
            }
        }
        let is_inside = |key: &[u8]| *key >= *run.floor && bound.is_none_or(|bound| key < bound);
        pairs.retain(|(key, ..)| is_inside(key) && !self.claims.contains(key));
        pairs.sort_unstable();
        if let Some((last, ..)) = pairs.last() {
            run.floor = [last, &[0][..]].concat();
        }
        for equal in pairs.chunk_by_mut(|a, b| a.0 == b.0) {
            // Entries of damaged cells may be old.
            let whole = equal.iter().filter(|(_, is_whole, _)| *is_whole).count();
            equal.sort_unstable_by_key(|(_, is_whole, _)| !is_whole);
            if let (1, _) | (0, 1) = (whole, equal.len()) {
                let (key, _, value) = core::mem::take(&mut equal[0]);
                self.items.push_back(Ok((key, value)));
            } else {
                let (at, what) = (leaf.at(), "number of entries of a leaf with one key");
                let found = equal.len() as u64;
                self.items.push_back(Err(Corrupt { at, what, expected: 1, found }));
            }
        }
    }

    /// Returns the next run that a search has found.
    fn next_run(&mut self) -> Option<Run> {
        if !self.is_broken {
            return None;
        }
        self.search();
        let Found { leaves, old, .. } = self.found.as_mut()?;
        loop {
            let start = match leaves.pop() {
                Some(start) if self.claims.contains(&start.key) => {
                    old.push(start);
                    continue;
                }
                Some(start) => start,
                None => old.pop()?,
            };
            // A longer run has read the leaves of a shorter one that joins it.
            if self.visited.insert(start.at)
                && let Ok(leaf) = self.source.leaf(start.at)
            {
                if leaf.low() == Ok(0) {
                    self.batch = leaf.batch().unwrap_or(u64::MAX);
                }
                self.begin(leaf, start.key);
                return self.run.take();
            }
        }
    }

    /// Searches the file for leaves that were not visited, unless it was searched before.
    fn search(&mut self) {
        if self.found.is_some() {
            return;
        }
        let (mut next_of, mut starts) = (HashMap::new(), Vec::new());
        self.source.for_each_leaf(&mut |leaf| {
            if !self.visited.contains(&leaf.at())
                && let Some(key) = self.start_of(&leaf)
            {
                next_of.insert(leaf.at(), leaf.next().map_or(0, PmPtr::offset));
                let is_first = leaf.low() == Ok(0);
                starts.push(Start { is_first, length: 0, key, at: leaf.at() });
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
        for start in &mut starts {
            start.length = lengths[&start.at];
        }
        starts.sort_unstable();
        let keys = starts.iter().map(|start| (start.key.clone(), start.at)).collect();
        self.found = Some(Found { leaves: starts, old: Vec::new(), keys });
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
