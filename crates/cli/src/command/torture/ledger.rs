//! The contents that the store must have after a kill.

use super::child::{ACKNOWLEDGEMENT_BYTES, acknowledged};
use super::steps::{Load, Step, Version, key_of, number_of, value_of, version_of};
use bristlecone::Store;

/// The version that each key must have, by the acknowledgements.
pub(super) struct Ledger {
    expected: Vec<Option<Version>>,
}

/// The steps that the threads of a child did for certain, and the one step of each that is open.
pub(super) struct Done {
    /// The number of steps that were acknowledged, or whose value the reader saw.
    pub(super) acknowledged: u64,
    open: Vec<Step>,
}

/// The number of errors that a comparison found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The number of keys whose last acknowledged step is undone.
    pub(super) lost: u64,
    /// The number of pairs that no thread wrote, of keys out of order, of lookups that differ from
    /// the scan, and of failed checks.
    pub(super) wrong: u64,
}

impl Ledger {
    /// Returns the ledger of a new pool: the first `loaded` keys are present, the others absent.
    pub(super) fn new(keys: u64, loaded: u64) -> Self {
        let version = |key| (key < loaded).then(|| Version::loaded(key));
        Self { expected: (0..keys).map(version).collect() }
    }

    /// Puts the expected versions into `store`.
    pub(super) fn load(&self, store: &Store) -> Result<(), bristlecone::Error> {
        let versions = (0..).zip(&self.expected);
        for (key, version) in versions.filter_map(|(key, version)| Some((key, (*version)?))) {
            store.put(key_of(key), value_of(key, version))?;
        }
        Ok(())
    }

    /// Returns the number of keys that have a value.
    pub(super) fn present(&self) -> u64 {
        self.expected.iter().flatten().count() as u64
    }

    /// Notes the acknowledgements of a child: the words from its pipe. Ignores a word that the kill
    /// cut off.
    pub(super) fn note(&mut self, load: Load, pipe: &[u8]) -> Done {
        let mut counts = vec![0; load.threads as usize];
        let (words, _) = pipe.as_chunks::<ACKNOWLEDGEMENT_BYTES>();
        for &word in words {
            let (thread, steps) = acknowledged(word);
            if let Some(count) = counts.get_mut(thread as usize) {
                *count = steps.max(*count);
            }
        }
        let mut open = Vec::new();
        for (thread, &count) in (0..).zip(&counts) {
            let mut steps = load.steps(thread);
            for step in steps.by_ref().take(count as usize) {
                self.expected[step.key as usize] = step.version;
            }
            open.extend(steps.next());
        }
        Done { acknowledged: counts.iter().sum(), open }
    }

    /// Returns the ledger and the open steps as bytes, for a process that judges an image.
    pub(super) fn written(&self, done: &Done) -> Vec<u8> {
        let mut words = vec![self.expected.len() as u64];
        words.extend(self.expected.iter().flat_map(|&version| Version::words(version)));
        for step in &done.open {
            words.push(step.key);
            words.extend(Version::words(step.version));
        }
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Parses the result of [`written`](Self::written); `None` if it is cut off.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, Done)> {
        let (words, []) = bytes.as_chunks::<8>() else { return None };
        let mut words = words.iter().map(|&word| u64::from_le_bytes(word));
        let version = |words: &mut dyn Iterator<Item = u64>| {
            Some(Version::of_words([words.next()?, words.next()?, words.next()?]))
        };
        let keys = words.next()?;
        let expected = (0..keys).map(|_| version(&mut words)).collect::<Option<Vec<_>>>()?;
        let mut open = Vec::new();
        while let Some(key) = words.next() {
            open.push(Step { key, version: version(&mut words)? });
        }
        Some((Self { expected }, Done { acknowledged: 0, open }))
    }

    /// Returns the number of keys whose lookup gives another value than the ledger allows. A lookup
    /// that fails gives none.
    pub(super) fn wrong_lookups(&self, store: &Store, done: &Done) -> u64 {
        let is_wrong = |(key, expected): &(u64, &Option<Version>)| {
            let found = store.get_with(key_of(*key), |value| version_of(*key, value));
            let Ok(found) = found else { return false };
            // A value that no thread wrote is `Some(None)`.
            let Some(version) = found.map_or(Some(None), |version| version.map(Some)) else {
                return true;
            };
            version != **expected && !done.open.contains(&Step { key: *key, version })
        };
        (0..).zip(&self.expected).filter(is_wrong).count() as u64
    }

    /// Compares all of `store`, with a scan, a lookup of each key, and the store's own check. From
    /// then on the ledger expects what the store holds.
    pub(super) fn compare(
        &mut self,
        store: &mut Store,
        done: &Done,
    ) -> Result<Verdict, bristlecone::Error> {
        let (found, wrong) = Self::find(store, self.expected.len() as u64)?;
        let pairs = (0..).zip(self.expected.iter().zip(&found.expected));
        let is_lost = |&(key, (expected, found)): &(u64, (&Option<Version>, &Option<Version>))| {
            found != expected && !done.open.contains(&Step { key, version: *found })
        };
        let lost = pairs.filter(is_lost).count() as u64;
        *self = found;
        Ok(Verdict { lost, wrong })
    }

    /// Returns a ledger of what `store` holds, of `keys` keys, and the number of wrong answers: the
    /// scan, the lookup of each key and the store's own check must agree.
    pub(super) fn find(store: &mut Store, keys: u64) -> Result<(Self, u64), bristlecone::Error> {
        let mut wrong = 0;
        let mut expected = vec![None; keys as usize];
        let mut former: Option<Vec<u8>> = None;
        for pair in &*store {
            let (key, value) = pair?;
            let ascends = former.as_ref().is_none_or(|former| *former < key);
            let place = number_of(&key).filter(|&number| number < keys);
            let version = place.and_then(|number| version_of(number, &value));
            match place.zip(version).filter(|_| ascends) {
                Some((number, version)) => expected[number as usize] = Some(version),
                None => wrong += 1,
            }
            former = Some(key);
        }
        for (number, found) in (0..).zip(&expected) {
            let looked_up = store.get_with(key_of(number), |value| version_of(number, value))?;
            wrong += u64::from(looked_up != found.map(Some));
        }
        let report = store.check()?;
        let keys = expected.iter().flatten().count() as u64;
        wrong += u64::from(report.keys != keys || report.unreachable_blocks != 0);
        Ok((Self { expected }, wrong))
    }

    /// Returns the version that each key must have.
    pub(super) fn versions(&self) -> &[Option<Version>] {
        &self.expected
    }
}

#[cfg(test)]
mod tests {
    use super::super::child::acknowledgement;
    use super::*;

    const LOAD: Load = Load { seed: 5, cycle: 1, keys: 40, threads: 2 };

    fn perform(store: &Store, step: Step) {
        match step.version {
            Some(version) => store.put(key_of(step.key), value_of(step.key, version)).unwrap(),
            None => drop(store.delete(key_of(step.key)).unwrap()),
        }
    }

    /// Compares after the two threads did `did` steps and acknowledged `acknowledged` of them.
    fn verdict(did: [usize; 2], acknowledged: [u64; 2]) -> Verdict {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::create(folder.path().join("a.pool")).unwrap();
        let mut pipe = Vec::new();
        for thread in 0..2 {
            LOAD.steps(thread).take(did[thread as usize]).for_each(|step| perform(&store, step));
            pipe.extend(acknowledgement(thread, acknowledged[thread as usize]));
        }
        pipe.extend([1, 2, 3]); // Cut off.
        let mut ledger = Ledger::new(LOAD.keys, 0);
        let done = ledger.note(LOAD, &pipe);
        let first = ledger.compare(&mut store, &done).unwrap();
        let second =
            ledger.compare(&mut store, &Done { acknowledged: 0, open: Vec::new() }).unwrap();
        assert_eq!(second, Verdict::default(), "from then on the ledger expects what it found");
        first
    }

    #[test]
    fn one_step_a_thread_may_have_happened_or_not() {
        let right = Verdict::default();
        assert_eq!(verdict([50, 60], [50, 60]), right);
        assert_eq!(verdict([51, 60], [50, 60]), right);
        assert_eq!(verdict([51, 61], [50, 60]), right);
    }

    #[test]
    fn a_lost_put_and_a_lost_delete_are_found() {
        // The prefixes of the steps end with each kind of step.
        for (number, step) in LOAD.steps(0).enumerate().skip(30).take(20) {
            let before = LOAD.steps(0).take(number).filter(|other| other.key == step.key).last();
            let changes = before.map_or(step.version.is_some(), |b| b.version != step.version);
            let found = verdict([number, 9], [number as u64 + 1, 9]);
            assert_eq!(found, Verdict { lost: u64::from(changes), wrong: 0 }, "{step:?}");
        }
    }

    #[test]
    fn a_ledger_survives_the_round_trip() {
        let mut ledger = Ledger::new(LOAD.keys, 7);
        let done = ledger.note(LOAD, &acknowledgement(1, 5));
        let bytes = ledger.written(&done);
        let (again, open) = Ledger::read(&bytes).unwrap();
        assert_eq!((&again.expected, &open.open), (&ledger.expected, &done.open));
        assert!(Ledger::read(&bytes[..bytes.len() - 8]).is_none());
        let folder = tempfile::tempdir().unwrap();
        let store = Store::create(folder.path().join("a.pool")).unwrap();
        let absent = ledger.expected.iter().filter(|version| version.is_none()).count() as u64;
        assert_eq!(again.wrong_lookups(&store, &open), LOAD.keys - absent);
        ledger.load(&store).unwrap();
        assert_eq!(again.wrong_lookups(&store, &open), 0);
    }

    #[test]
    fn a_loaded_key_is_expected() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::create(folder.path().join("a.pool")).unwrap();
        let mut ledger = Ledger::new(LOAD.keys, 30);
        ledger.load(&store).unwrap();
        assert_eq!(ledger.present(), 30);
        let done = ledger.note(LOAD, &[]);
        assert_eq!(ledger.compare(&mut store, &done).unwrap(), Verdict::default());
        let untouched = (0..30).find(|&key| done.open.iter().all(|step| step.key != key)).unwrap();
        store.delete(key_of(untouched)).unwrap();
        let lost = Verdict { lost: 1, wrong: 0 };
        assert_eq!(ledger.compare(&mut store, &done).unwrap(), lost);
    }

    #[test]
    fn a_step_that_was_never_tried_is_found() {
        let found = verdict([70, 9], [50, 9]);
        assert!(found.lost > 0, "{found:?}");
    }

    #[test]
    fn a_pair_that_no_thread_wrote_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::create(folder.path().join("a.pool")).unwrap();
        store.put("no such key", "1").unwrap();
        store.put(key_of(1), "no such value").unwrap();
        let mut ledger = Ledger::new(3, 0);
        let done = Done { acknowledged: 0, open: Vec::new() };
        // The scan finds both errors, the lookup finds key 1, and the check counts other keys.
        let wrong = Verdict { lost: 0, wrong: 4 };
        assert_eq!(ledger.compare(&mut store, &done).unwrap(), wrong);
    }
}
