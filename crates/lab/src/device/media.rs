//! The media: their bytes, and the number of writes of each unit.
//!
//! The medium below the model always has the newest bytes. The media have the bytes that were
//! written back. The difference is the set of bits that a write changes.

use bristlecone_pmem::line::{LINE_BYTES, LINE_WORDS};
use bristlecone_pmem::sys;

/// The number of a media unit, counted from the base of the medium.
pub(super) type Unit = u32;

/// The words of one line.
pub(super) type LineWords = [u64; LINE_WORDS];

/// Makes `table` at least `len` long. Pages of a new table that are never touched take no memory.
pub(super) fn grow<T: Clone + Default>(table: &mut Vec<T>, len: usize) {
    if table.is_empty() {
        *table = vec![T::default(); len];
    } else if table.len() < len {
        table.resize(len, T::default());
    }
}

/// The bytes on the media, and the writes of each unit.
#[derive(Debug)]
pub(super) struct MediaState {
    words: Vec<u64>,
    /// The number of writes of each unit.
    wear: Vec<u32>,
    unit_words: usize,
}

impl MediaState {
    pub(super) fn new(unit_bytes: usize) -> Self {
        Self { words: Vec::new(), wear: Vec::new(), unit_words: unit_bytes / 8 }
    }

    /// Makes the media hold `bytes` bytes; new ones are zero. Returns the number of units.
    pub(super) fn grow(&mut self, bytes: u64) -> usize {
        let units = (bytes as usize).div_ceil(self.unit_words * 8);
        grow(&mut self.words, units * self.unit_words);
        grow(&mut self.wear, units);
        units
    }

    /// Sets the initial contents of a line. This counts as no write.
    pub(super) fn place(&mut self, line: usize, words: &LineWords) {
        // Zero pages that are never touched take no memory.
        if words.iter().any(|&word| word != 0) {
            let at = line * LINE_WORDS;
            self.words[at..at + LINE_WORDS].copy_from_slice(words);
        }
    }

    /// Writes the lines of a unit that `mask` names. Returns the number of bits that change.
    pub(super) fn write(&mut self, unit: Unit, mask: u64, lines: &[LineWords]) -> u64 {
        self.wear(unit);
        let named = lines.iter().enumerate().filter(|(at, _)| mask >> at & 1 != 0);
        named.map(|(at, words)| self.change(unit, at, words)).sum()
    }

    /// Writes a unit of which one line is new. Returns the number of bits that change.
    pub(super) fn write_line(&mut self, unit: Unit, at: usize, words: &LineWords) -> u64 {
        self.wear(unit);
        self.change(unit, at, words)
    }

    /// Prefetches a line of a unit, and its wear, into the cache of the host.
    pub(super) fn prefetch(&self, unit: Unit, at: usize) {
        let first = unit as usize * self.unit_words + at * LINE_WORDS;
        sys::prefetch(self.words.as_ptr().wrapping_add(first) as usize);
        sys::prefetch(self.wear.as_ptr().wrapping_add(unit as usize) as usize);
    }

    /// Returns the mean number of writes of a unit, in each of `cells` parts up to the last written
    /// unit.
    pub(super) fn wear_map(&self, cells: usize) -> Vec<f64> {
        let end = self.wear.iter().rposition(|&wear| wear > 0).map_or(0, |last| last + 1);
        let part = end.div_ceil(cells.max(1)).max(1);
        let mean = |units: &[u32]| {
            units.iter().map(|&wear| f64::from(wear)).sum::<f64>() / units.len() as f64
        };
        self.wear[..end].chunks(part).map(mean).collect()
    }

    fn wear(&mut self, unit: Unit) {
        let wear = &mut self.wear[unit as usize];
        *wear = wear.saturating_add(1);
    }

    fn change(&mut self, unit: Unit, at: usize, words: &LineWords) -> u64 {
        let first = unit as usize * self.unit_words + at * LINE_WORDS;
        let mut flipped = 0;
        for (old, new) in self.words[first..first + LINE_WORDS].iter_mut().zip(words) {
            flipped += u64::from((*old ^ new).count_ones());
            *old = *new;
        }
        flipped
    }

    /// Resets the wear of all units.
    pub(super) fn reset_wear(&mut self) {
        self.wear.fill(0);
    }

    /// Returns the number of writes of each unit.
    pub(super) fn wear_of_units(&self) -> &[u32] {
        &self.wear
    }

    /// Returns the number of lines of a unit.
    pub(super) fn unit_lines(&self) -> usize {
        self.unit_words * 8 / LINE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_changes_the_bits_that_differ_and_no_other_line() {
        let mut media = MediaState::new(256);
        assert_eq!(media.grow(1000), 4);
        let lines = [[1; LINE_WORDS], [0; LINE_WORDS], [3; LINE_WORDS], [u64::MAX; LINE_WORDS]];
        assert_eq!(media.write(2, 0b0111, &lines), 8 + 16);
        assert_eq!(media.write(2, 0b0111, &lines), 0);
        assert_eq!(media.write(2, 0b1000, &lines), 512);
        assert_eq!(media.wear_of_units(), [0, 0, 3, 0]);
        media.place(4, &[1; LINE_WORDS]);
        assert_eq!(media.write(1, 1, &lines), 0, "it was there");
        media.reset_wear();
        assert_eq!(media.wear_of_units(), [0; 4]);
    }
}
