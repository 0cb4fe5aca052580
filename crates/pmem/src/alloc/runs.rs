//! The free pages of a zone, as runs.

use super::chunk::CHUNK_PAGES;
use std::collections::{BTreeMap, BTreeSet};

/// The runs of free pages of a zone. No two are adjacent: they would be one.
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// The length of each run, by its first page.
    lengths: BTreeMap<u64, u64>,
    /// The runs by length and first page, for the shortest that is long enough.
    by_length: BTreeSet<(u64, u64)>,
    /// The first pages of the runs that contain a whole chunk.
    with_chunk: BTreeSet<u64>,
    pages: u64,
    chunks: u64,
}

/// Returns the number of whole chunks in a run of pages.
fn chunks_in(first: u64, length: u64) -> u64 {
    ((first + length) / CHUNK_PAGES).saturating_sub(first.div_ceil(CHUNK_PAGES))
}

impl Runs {
    /// Returns the number of free pages.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the number of chunks that are wholly free.
    pub(super) fn chunks(&self) -> u64 {
        self.chunks
    }

    /// Returns the number of whole chunks in the run that ends at page `end`, if there is one.
    pub(super) fn chunks_before(&self, end: u64) -> u64 {
        let last = self.lengths.range(..end).next_back();
        last.filter(|(first, length)| *first + *length == end)
            .map_or(0, |(&first, &length)| chunks_in(first, length))
    }

    fn add(&mut self, first: u64, length: u64) {
        if length == 0 {
            return;
        }
        self.lengths.insert(first, length);
        self.by_length.insert((length, first));
        let chunks = chunks_in(first, length);
        if chunks > 0 {
            self.with_chunk.insert(first);
        }
        self.pages += length;
        self.chunks += chunks;
    }

    fn remove(&mut self, first: u64, length: u64) {
        self.lengths.remove(&first);
        self.by_length.remove(&(length, first));
        self.with_chunk.remove(&first);
        self.pages -= length;
        self.chunks -= chunks_in(first, length);
    }

    /// Adds pages that were not free, and joins them with their neighbours.
    pub(super) fn insert(&mut self, first: u64, length: u64) {
        let (mut begin, mut end) = (first, first + length);
        if let Some((&at, &before)) = self.lengths.range(..first).next_back()
            && at + before == first
        {
            self.remove(at, before);
            begin = at;
        }
        if let Some(&after) = self.lengths.get(&end) {
            self.remove(end, after);
            end += after;
        }
        self.add(begin, end - begin);
    }

    /// Takes pages of one run out of it.
    pub(super) fn take(&mut self, first: u64, length: u64) {
        let run = self.lengths.range(..=first).next_back().map(|(&at, &length)| (at, length));
        let Some((at, whole)) = run.filter(|(at, whole)| first + length <= at + whole) else {
            unreachable!("the caller has found these pages in a run")
        };
        self.remove(at, whole);
        self.add(at, first - at);
        self.add(first + length, at + whole - first - length);
    }

    /// Returns the lowest chunk that is wholly free.
    pub(super) fn lowest_chunk(&self) -> Option<u32> {
        self.with_chunk.first().map(|first| first.div_ceil(CHUNK_PAGES) as u32)
    }

    /// Returns `length` free pages from the shortest run that has them, at a multiple of
    /// `alignment`.
    pub(super) fn best_fit(&self, length: u64, alignment: u64) -> Option<u64> {
        let from = self.by_length.range((length, 0)..);
        from.map(|&(whole, first)| (first.next_multiple_of(alignment), first + whole))
            .find(|&(at, end)| at + length <= end)
            .map(|(at, _)| at)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.lengths.iter().map(|(&first, &length)| (first, length))
    }
}

/// Returns the lowest `length` free pages of all zones at a multiple of `alignment`. They may lie
/// in several zones.
pub(super) fn lowest_fit<'a>(
    zones: impl Iterator<Item = &'a Runs>,
    length: u64,
    alignment: u64,
) -> Option<u64> {
    let mut all: Vec<_> = zones.flat_map(Runs::iter).collect();
    all.sort_unstable();
    let (mut begin, mut end) = (0, 0);
    for (first, whole) in all {
        if first != end {
            begin = first;
        }
        end = first + whole;
        let at = begin.next_multiple_of(alignment);
        if at + length <= end {
            return Some(at);
        }
    }
    None
}
