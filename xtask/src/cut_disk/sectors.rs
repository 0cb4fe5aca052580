//! The contents of a disk with a write cache, sector by sector.

use std::collections::HashMap;

/// The unit that is written whole or not at all, in bytes.
const SECTOR_BYTES: usize = 512;

type Sector = [u8; SECTOR_BYTES];

/// A disk and the history of each sector since the last flush.
#[derive(Debug)]
pub(crate) struct Sectors {
    now: Vec<u8>,
    /// The older states of each sector that was written since the last flush, from that flush on.
    older: HashMap<usize, Vec<Sector>>,
}

impl Sectors {
    /// Returns a disk that holds the whole sectors of `bytes`.
    pub(crate) fn new(mut bytes: Vec<u8>) -> Self {
        bytes.truncate(bytes.len() / SECTOR_BYTES * SECTOR_BYTES);
        Self { now: bytes, older: HashMap::new() }
    }

    /// Returns the length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.now.len()
    }

    /// Returns the newest bytes of a range, or `None` if it is not on the disk.
    pub(crate) fn read(&self, at: usize, bytes: usize) -> Option<&[u8]> {
        self.now.get(at..at.checked_add(bytes)?)
    }

    /// Writes whole sectors. Returns `None` if the range is not on the disk, or not of sectors.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) -> Option<()> {
        let (sectors, rest) = bytes.as_chunks::<SECTOR_BYTES>();
        if !rest.is_empty() || !at.is_multiple_of(SECTOR_BYTES) {
            return None;
        }
        let target = self.now.get_mut(at..at.checked_add(bytes.len())?)?;
        let (targets, _) = target.as_chunks_mut::<SECTOR_BYTES>();
        for (number, (target, sector)) in (at / SECTOR_BYTES..).zip(targets.iter_mut().zip(sectors))
        {
            self.older.entry(number).or_default().push(*target);
            *target = *sector;
        }
        Some(())
    }

    /// Makes every write durable.
    pub(crate) fn flush(&mut self) {
        self.older.clear();
    }

    /// Returns an image that a power cut leaves now: a state of each sector since the last flush.
    /// The share of the sectors that keep the state of that flush is random too.
    pub(crate) fn after_cut(&mut self, seed: u64) -> Vec<u8> {
        let mut random = Random(seed);
        let share = random.below(5);
        let mut image = self.now.clone();
        let (sectors, _) = image.as_chunks_mut::<SECTOR_BYTES>();
        // A map has no order of its own, and the seed must decide.
        let mut open: Vec<_> = self.older.iter().collect();
        open.sort_unstable_by_key(|&(&number, _)| number);
        for (&number, older) in open {
            let chosen = if random.below(4) < share { 0 } else { random.below(older.len() + 1) };
            if let (Some(state), Some(sector)) = (older.get(chosen), sectors.get_mut(number)) {
                *sector = *state;
            }
        }
        image
    }
}

/// A generator of random numbers (`SplitMix64`).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((word ^ (word >> 31)) % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Returns the first bytes of the first two sectors in each of many images.
    fn images(disk: &mut Sectors) -> BTreeSet<(u8, u8)> {
        let first = |image: Vec<u8>| (image[0], image[SECTOR_BYTES]);
        (0..200).map(|seed| first(disk.after_cut(seed))).collect()
    }

    #[test]
    fn a_cut_leaves_each_state_of_each_sector_since_the_last_flush() {
        let mut disk = Sectors::new(vec![0; 4 * SECTOR_BYTES]);
        disk.write(0, &[1; 2 * SECTOR_BYTES]).unwrap();
        disk.flush();
        assert_eq!(images(&mut disk), [(1, 1)].into());
        for value in [2, 3] {
            disk.write(0, &[value; SECTOR_BYTES]).unwrap();
        }
        disk.write(SECTOR_BYTES, &[4; SECTOR_BYTES]).unwrap();
        let all = [(1, 1), (2, 1), (3, 1), (1, 4), (2, 4), (3, 4)];
        assert_eq!(images(&mut disk), all.into());
        assert_eq!(disk.read(0, 1), Some([3].as_slice()), "the guest reads what it wrote");
    }

    #[test]
    fn only_whole_sectors_of_the_disk_are_written() {
        let mut disk = Sectors::new(vec![0; 2 * SECTOR_BYTES + 7]);
        assert_eq!(disk.len(), 2 * SECTOR_BYTES);
        for (at, bytes) in [(1, SECTOR_BYTES), (0, 1), (2 * SECTOR_BYTES, SECTOR_BYTES)] {
            assert_eq!(disk.write(at, &vec![1; bytes]), None);
        }
        assert_eq!(disk.read(usize::MAX, 2), None);
    }
}
