//! The contents that the store must have after a kill.
//!
//! 1. In pass `p` the value of word `i` is `i.p`. So a value names its word and its age.
//! 2. A word that was acknowledged in a pass has the value of that pass, or of a later pass that
//!    tried it. A word that was only tried may have the new value or not.
//! 3. A value that was read once counts as acknowledged from then on.

use bristlecone::Store;
use std::collections::HashMap;

/// The words, one a line.
const WORDS: &[u8] = include_bytes!("../../../../../data/words.txt");

/// The state of each word: tried, or acknowledged.
pub(super) struct Expectation {
    words: Vec<&'static [u8]>,
    index: HashMap<&'static [u8], usize>,
    /// The last pass in which each word was acknowledged or read.
    promised: Vec<Option<u32>>,
    /// The last pass in which each word was tried.
    tried: Vec<Option<u32>>,
}

/// The number of errors that a comparison found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// The number of acknowledged writes that are missing.
    pub(super) lost: u64,
    /// The number of pairs that no thread wrote, of keys out of order, and of lookups that differ
    /// from the scan.
    pub(super) wrong: u64,
}

impl Comparison {
    /// Returns `true` if there was no error.
    pub(super) fn is_right(self) -> bool {
        self == Self::default()
    }
}

impl Expectation {
    /// Returns the state before the first write.
    pub(super) fn new() -> Self {
        let lines = WORDS.split(|&byte| byte == b'\n').filter(|word| !word.is_empty());
        let words: Vec<&[u8]> = lines.collect();
        let index = words.iter().enumerate().map(|(i, &word)| (word, i)).collect();
        let nothing = vec![None; words.len()];
        Self { words, index, promised: nothing.clone(), tried: nothing }
    }

    /// Returns the words in the order of their numbers.
    pub(super) fn words(&self) -> &[&'static [u8]] {
        &self.words
    }

    /// Notes that word `i` is about to be written in `pass`.
    pub(super) fn try_word(&mut self, i: usize, pass: u32) {
        self.tried[i] = Some(pass);
    }

    /// Notes that the write of `word` was acknowledged in `pass`. Returns `false` if there is no
    /// such word.
    pub(super) fn promise(&mut self, word: &[u8], pass: u32) -> bool {
        let found = self.index.get(word);
        found.map(|&i| self.promised[i] = self.promised[i].max(Some(pass))).is_some()
    }

    /// Returns `true` if word `i` is known to be written in `pass` or later.
    pub(super) fn has(&self, i: usize, pass: u32) -> bool {
        self.promised[i] >= Some(pass)
    }

    /// Returns the number of words that are known to be written.
    pub(super) fn written(&self) -> u64 {
        self.promised.iter().flatten().count() as u64
    }

    /// Compares all of `store`, with a scan and with a lookup of each word.
    pub(super) fn compare(&mut self, store: &Store) -> Result<Comparison, bristlecone::Error> {
        let mut verdict = Comparison::default();
        let mut found = vec![None; self.words.len()];
        let mut former: Option<Vec<u8>> = None;
        for pair in store {
            let (key, value) = pair?;
            verdict.wrong += u64::from(former.as_ref().is_some_and(|former| *former >= key));
            match self.index.get(&key[..]) {
                Some(&i) if found[i].is_none() => match pass_of(i, &value) {
                    Some(pass) if Some(pass) <= self.tried[i] => found[i] = Some(pass),
                    _ => verdict.wrong += 1,
                },
                _ => verdict.wrong += 1,
            }
            former = Some(key);
        }
        for (i, &word) in self.words.iter().enumerate() {
            let looked_up = store.get_with(word, |value| pass_of(i, value))?.flatten();
            verdict.wrong += u64::from(looked_up != found[i]);
            verdict.lost += u64::from(found[i] < self.promised[i]);
            self.promised[i] = self.promised[i].max(found[i]); // 3
        }
        Ok(verdict)
    }
}

/// Returns the value of word `i` in `pass`.
pub(super) fn value_of(i: usize, pass: u32) -> Vec<u8> {
    format!("{i}.{pass}").into_bytes()
}

/// Returns the pass whose value of word `i` is `value`, or `None` if there is none.
fn pass_of(i: usize, value: &[u8]) -> Option<u32> {
    let (index, pass) = std::str::from_utf8(value).ok()?.split_once('.')?;
    (index.parse() == Ok(i)).then_some(())?;
    pass.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path().join("a.pool")).unwrap();
        (folder, store)
    }

    #[test]
    fn the_words_are_as_many_as_the_data_says() {
        assert_eq!(Expectation::new().words().len(), 104_334);
    }

    #[test]
    fn a_lost_or_stale_acknowledgement_is_found() {
        let (_folder, store) = store();
        let mut expected = Expectation::new();
        for i in 0..3 {
            expected.try_word(i, 1);
            let word = expected.words()[i];
            assert!(expected.promise(word, 1));
        }
        assert!(!expected.promise(b"no such word", 1));
        let words = expected.words().to_vec();
        store.put(words[0], value_of(0, 1)).unwrap();
        store.put(words[1], value_of(1, 0)).unwrap(); // Older than promised.
        assert_eq!(expected.compare(&store).unwrap(), Comparison { lost: 2, wrong: 0 });
        store.put(words[1], value_of(1, 1)).unwrap();
        store.put(words[2], value_of(2, 1)).unwrap();
        assert_eq!(expected.compare(&store).unwrap(), Comparison::default());
    }

    #[test]
    fn a_pair_that_no_thread_wrote_is_found() {
        let (_folder, store) = store();
        let mut expected = Expectation::new();
        let words = expected.words().to_vec();
        expected.try_word(0, 0);
        store.put("no such word", "0.0").unwrap();
        store.put(words[0], value_of(0, 1)).unwrap(); // Of a pass that was never tried.
        store.put(words[1], value_of(2, 0)).unwrap(); // Another word's.
        let verdict = expected.compare(&store).unwrap();
        // The lookup accepts word 0's value, since it does not compare passes. So lookup and scan
        // differ, and word 0 counts twice.
        assert_eq!(verdict, Comparison { lost: 0, wrong: 4 });
    }

    #[test]
    fn a_value_that_was_read_must_stay() {
        let (_folder, store) = store();
        let mut expected = Expectation::new();
        expected.try_word(5, 0);
        let word = expected.words()[5];
        store.put(word, value_of(5, 0)).unwrap();
        assert_eq!(expected.compare(&store).unwrap(), Comparison::default());
        assert!(expected.has(5, 0) && expected.written() == 1);
        store.delete(word).unwrap();
        assert_eq!(expected.compare(&store).unwrap().lost, 1);
    }
}
