//! The corruptions of a medium's contents.

use crate::medium::fault::FaultMedium;
use bristlecone_pmem::line::LINE_BYTES;
use core::ops::Range;

/// The words of a media block, the unit in which media fail.
pub(super) const UNIT_WORDS: usize = 32;
const LINE_WORDS: usize = LINE_BYTES / 8;
/// The bits of a pointer that hold its offset; the others are tags.
const OFFSET: u64 = 0xFFFF_FFFF_FFC0;

/// Extreme values: the greatest numbers of 64, 63, 48, 32 and 16 bits, and 0.
const ENDS: [u64; 6] =
    [u64::MAX, u64::MAX >> 1, (1 << 48) - 1, u32::MAX as u64, u16::MAX as u64, 0];

/// A kind of corruption, tried at every place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CorruptionKind {
    BitFlips,
    WordsAtEnds,
    ZeroedUnits,
    GarbageUnits,
    PoisonedUnits,
    StaleLines,
    SwappedLines,
    MisledPointers,
    Lengths,
    GarbageImages,
}

impl CorruptionKind {
    pub(super) const ALL: [Self; 10] = [
        Self::BitFlips,
        Self::WordsAtEnds,
        Self::ZeroedUnits,
        Self::GarbageUnits,
        Self::PoisonedUnits,
        Self::StaleLines,
        Self::SwappedLines,
        Self::MisledPointers,
        Self::Lengths,
        Self::GarbageImages,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::BitFlips => "bit-flips",
            Self::WordsAtEnds => "words-at-ends",
            Self::ZeroedUnits => "zeroed-units",
            Self::GarbageUnits => "garbage-units",
            Self::PoisonedUnits => "poisoned-units",
            Self::StaleLines => "stale-lines",
            Self::SwappedLines => "swapped-lines",
            Self::MisledPointers => "misled-pointers",
            Self::Lengths => "lengths",
            Self::GarbageImages => "garbage-images",
        }
    }
}

/// The contents to corrupt.
pub(super) struct MediaContents {
    /// The present contents, by word.
    pub(super) image: Vec<u64>,
    /// The contents at some earlier moments, the last one first.
    pub(super) former: Vec<Vec<u64>>,
    /// Set for each word that a run without corruption reads. Other words cannot change the run.
    pub(super) is_read: Vec<bool>,
    /// The numbers of the lines that are not all zero.
    used_lines: Vec<usize>,
    /// The indices of the words that are read and can be pointers.
    pointers: Vec<usize>,
}

/// A corruption: changed words, unreadable words, another length.
#[derive(Clone, Debug, Default)]
pub(super) struct Corruption {
    pub(super) words: Vec<(usize, u64)>,
    pub(super) poisoned: Range<usize>,
    /// The new length, if it changes.
    pub(super) bytes: Option<u64>,
}

impl MediaContents {
    pub(super) fn new(image: Vec<u64>, mut former: Vec<Vec<u64>>, is_read: Vec<bool>) -> Self {
        // The medium was shorter then; its new words were zero.
        for former in &mut former {
            former.resize(image.len(), 0);
        }
        let lines = image.chunks(LINE_WORDS).enumerate();
        let used = lines.filter(|(_, line)| line.iter().any(|&word| word != 0));
        let used_lines = used.map(|(number, _)| number).collect();
        let bytes = image.len() as u64 * 8;
        let is_pointer = |&index: &usize| is_read[index] && leads_into(image[index], bytes);
        let pointers = (0..image.len()).filter(is_pointer).collect();
        Self { image, former, is_read, used_lines, pointers }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.image.len() as u64 * 8
    }

    /// Returns the number of cases of a kind, which is `garbage` for garbage images.
    pub(super) fn cases(&self, kind: CorruptionKind, garbage: u64) -> u64 {
        let (words, lines) = (self.image.len() as u64, self.used_lines.len() as u64);
        let units = words / UNIT_WORDS as u64;
        match kind {
            CorruptionKind::BitFlips => words * 64,
            CorruptionKind::WordsAtEnds => words * ENDS.len() as u64,
            CorruptionKind::ZeroedUnits
            | CorruptionKind::GarbageUnits
            | CorruptionKind::PoisonedUnits => units,
            CorruptionKind::StaleLines => self.former.len() as u64 * words / LINE_WORDS as u64,
            CorruptionKind::SwappedLines => lines * lines.saturating_sub(1) / 2,
            CorruptionKind::MisledPointers => self.pointers.len() as u64 * lines,
            CorruptionKind::Lengths => units + 8,
            CorruptionKind::GarbageImages => garbage,
        }
    }

    /// Returns the corruption of a case.
    pub(super) fn corruption(&self, kind: CorruptionKind, case: u64) -> Corruption {
        let number = case as usize;
        let unit = number * UNIT_WORDS..(number + 1) * UNIT_WORDS;
        let words = |words: Vec<(usize, u64)>| Corruption { words, ..Corruption::default() };
        match kind {
            CorruptionKind::BitFlips => {
                let index = number / 64;
                words(vec![(index, self.image[index] ^ 1 << (case % 64))])
            }
            CorruptionKind::WordsAtEnds => {
                words(vec![(number / ENDS.len(), ENDS[number % ENDS.len()])])
            }
            CorruptionKind::ZeroedUnits => words(unit.map(|index| (index, 0)).collect()),
            CorruptionKind::GarbageUnits => {
                let mut random = Random::new(case);
                words(unit.map(|index| (index, random.next())).collect())
            }
            CorruptionKind::PoisonedUnits => Corruption { poisoned: unit, ..Corruption::default() },
            CorruptionKind::StaleLines => {
                let lines = self.image.len() / LINE_WORDS;
                let former = &self.former[number / lines];
                words(copy(former, number % lines, number % lines))
            }
            CorruptionKind::SwappedLines => {
                let (a, b) = pair(number);
                let (a, b) = (self.used_lines[a], self.used_lines[b]);
                let mut both = copy(&self.image, a, b);
                both.extend(copy(&self.image, b, a));
                words(both)
            }
            // A pointer is led to every line: also backwards, to itself, and into another block.
            CorruptionKind::MisledPointers => {
                let lines = self.used_lines.len();
                let index = self.pointers[number / lines];
                let line = (self.used_lines[number % lines] * LINE_BYTES) as u64;
                words(vec![(index, self.image[index] & !OFFSET | line)])
            }
            CorruptionKind::Lengths => {
                let units = self.bytes() / (UNIT_WORDS as u64 * 8);
                let bytes = match case.checked_sub(units) {
                    None => case * UNIT_WORDS as u64 * 8,
                    Some(longer) => self.bytes() + (64 << (2 * longer)).min(1 << 18),
                };
                Corruption { bytes: Some(bytes), ..Corruption::default() }
            }
            CorruptionKind::GarbageImages => words(self.garbage(case)),
        }
    }

    /// Returns words from elsewhere, or plausible values, at places that are in use.
    fn garbage(&self, seed: u64) -> Vec<(usize, u64)> {
        let mut random = Random::new(seed ^ 0x6172_6261_6765);
        let count = 1 << random.below(7);
        let whole = random.below(64) == 0;
        let first_body = bristlecone_pmem::pool::HEADER_BYTES as usize / 8;
        if whole {
            return (first_body..self.image.len()).map(|index| (index, random.next())).collect();
        }
        let place = |random: &mut Random| {
            let line = self.used_lines[random.below(self.used_lines.len())];
            line * LINE_WORDS + random.below(LINE_WORDS)
        };
        let change = |random: &mut Random| {
            let index = place(random);
            let word = match random.below(8) {
                0 => u64::MAX,
                1 => random.below(64) as u64,
                2 => place(random) as u64 * 8,
                3 => random.below(self.image.len() / UNIT_WORDS) as u64 * UNIT_WORDS as u64 * 8,
                4 => self.image[place(random)],
                5 => self.image[index].wrapping_add(random.below(9) as u64).wrapping_sub(4),
                6 => self.image[index] ^ 1 << random.below(64),
                _ => random.next(),
            };
            (index, word)
        };
        (0..count).map(|_| change(&mut random)).collect()
    }

    /// Returns `true` if a run on the corrupted contents can differ at all.
    pub(super) fn matters(&self, corruption: &Corruption) -> bool {
        let changed = corruption.words.iter().filter(|&&(index, word)| self.image[index] != word);
        corruption.bytes.is_some()
            || changed.map(|&(index, _)| index).any(|index| self.is_read[index])
            || corruption.poisoned.clone().any(|index| self.is_read[index])
    }
}

impl Corruption {
    /// Corrupts the contents of `medium`.
    pub(super) fn apply(&self, medium: &FaultMedium) {
        for &(index, word) in &self.words {
            medium.corrupt(index, word);
        }
        medium.poison(self.poisoned.clone());
        if let Some(bytes) = self.bytes {
            medium.cut(bytes);
        }
    }

    /// Returns the corruption as a text for messages.
    pub(super) fn describe(&self) -> String {
        if let Some(bytes) = self.bytes {
            return format!("the file is {bytes} bytes long");
        }
        if !self.poisoned.is_empty() {
            return format!("the unit at {:#x} cannot be read", self.poisoned.start * 8);
        }
        let shown = self.words.iter().take(4);
        let shown: Vec<_> = shown.map(|(i, word)| format!("{:#x}: {word:#x}", i * 8)).collect();
        let more = if self.words.len() > 4 { " and more" } else { "" };
        format!("words changed: {}{more}", shown.join(", "))
    }
}

/// Returns `true` if a word without its tags is the offset of a line that a pool of `bytes`
/// allocates.
fn leads_into(word: u64, bytes: u64) -> bool {
    (bristlecone_pmem::pool::HEADER_BYTES..bytes).contains(&(word & OFFSET))
}

/// Returns the words of line `from` of `source` for line `to`.
fn copy(source: &[u64], from: usize, to: usize) -> Vec<(usize, u64)> {
    let word = |place| (to * LINE_WORDS + place, source[from * LINE_WORDS + place]);
    (0..LINE_WORDS).map(word).collect()
}

/// Returns pair number `number` of all pairs of two different numbers, the greater first.
fn pair(number: usize) -> (usize, usize) {
    let mut greater = (1 + 8 * number).isqrt().div_ceil(2);
    while greater * (greater - 1) / 2 > number {
        greater -= 1;
    }
    (greater, number - greater * (greater - 1) / 2)
}

/// Random numbers from a seed.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_led_to_every_line_and_keeps_its_tags() {
        let header_words = bristlecone_pmem::pool::HEADER_BYTES as usize / 8;
        let mut image = vec![0; header_words + 2 * LINE_WORDS];
        let end = image.len() as u64 * 8;
        let pointer = 0xAB00_0000_0000_0003 | (end - LINE_BYTES as u64);
        (image[9], image[17], image[18], image[header_words]) = (pointer, pointer, end, 7);
        let is_read = (0..image.len()).map(|index| index != 17).collect();
        let contents = MediaContents::new(image, Vec::new(), is_read);
        assert_eq!(
            contents.cases(CorruptionKind::MisledPointers, 0),
            3,
            "one pointer, three used lines"
        );
        let led = |case| contents.corruption(CorruptionKind::MisledPointers, case).words;
        let to = |line: u64| vec![(9, 0xAB00_0000_0000_0003 | (line * LINE_BYTES as u64))];
        assert_eq!([led(0), led(1), led(2)], [to(1), to(2), to(header_words as u64 / 8)]);
    }

    #[test]
    fn every_pair_has_one_number() {
        let mut pairs: Vec<_> = (0..45).map(pair).collect();
        assert!(pairs.iter().all(|&(a, b)| b < a && a < 10), "{pairs:?}");
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), 45);
    }
}
