//! Every way in which a crash can tear the newest entry of a leaf, and every damaged bit.

use super::super::load_tagged_entry;
use super::*;
use bristlecone_pmem::Mapped;
use bristlecone_pmem::sync::OnMedium;

type Words = [u64; PairLeaf::WORDS];

/// The key that the slot of the new entry held before.
const FORMER_KEY: u64 = 4;
/// The key, the value that the slot of the new entry held before, and the new value.
const CASES: [(u64, u64, u64); 4] = [(5, 0, 7), (5, 7, 7), (0, 0, 0), (u64::MAX, u64::MAX, 0)];

/// Returns a leaf before and after a write, whose latch is held: an insert, or an update if
/// `updates`. The slot of the new entry held `former` and a key before.
fn written(updates: bool, (key, former, value): (u64, u64, u64)) -> (Words, Words) {
    let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
    let block = pool.reserve(8 * PairLeaf::WORDS as u64).unwrap();
    let words = pool.words(block, PairLeaf::WORDS).unwrap();
    let medium = pool.medium();
    let tagged = |key, value| TaggedEntry { entry: Entry::plain(key, value), fingerprint: 0 };
    let kept = [tagged(1, 2), tagged(key, 3)];
    let kept = if updates { &kept[..] } else { &kept[..1] };
    PairLeaf::format::<u64, _>(&pool, words, 0, 0, kept).unwrap();
    set_entry(medium, words, kept.len(), Entry::plain(FORMER_KEY, former));
    let _held = OnMedium::latch(medium, &words[PairLeaf::LATCH], pool.nonce()).lock().unwrap();
    let load = || core::array::from_fn(|word| medium.load(&words[word]));
    let before = load();
    let new = crate::key::Value::plain(value);
    if updates {
        assert!(PairLeaf::update::<u64, _>(&pool, words, 1, new).is_some());
    } else {
        PairLeaf::insert::<u64, _>(&pool, words, key, new).unwrap();
    }
    (before, load())
}

fn settle(leaf: &Words) -> Result<u64, Corrupt> {
    settled(0, |word| leaf[word], false).map(|state| state.0)
}

fn with(mut leaf: Words, changes: &[(usize, u64)]) -> Words {
    for &(word, value) in changes {
        leaf[word] = value;
    }
    leaf
}

/// Calls `test` with the leaf before and after each kind of write, and the first word of the new
/// entry.
fn for_each_write(test: impl Fn(Words, Words, usize)) {
    for updates in [false, true] {
        for case in CASES {
            let (before, after) = written(updates, case);
            test(before, after, ENTRIES + 2 + 2 * usize::from(updates));
        }
    }
}

#[test]
fn a_torn_entry_is_taken_back_and_a_whole_one_stays() {
    for_each_write(|before, after, at| {
        assert_eq!(settle(&after).unwrap(), after[STATE]);
        let torn = with(after, &[(at, before[at]), (at + 1, before[at + 1])]);
        assert_eq!(settle(&torn).unwrap(), before[STATE]);
        let half = with(after, &[(at + 1, before[at + 1])]);
        let is_whole = half == after;
        assert_eq!(settle(&half).unwrap(), if is_whole { after } else { before }[STATE]);
        // A crash before the state leaves the old one, whatever the entry is.
        let early = with(after, &[(STATE, before[STATE])]);
        assert_eq!(settle(&early).unwrap(), before[STATE]);
    });
}

/// A pair that was removed and put again gets its former slot: nothing of it can be torn.
#[test]
fn a_damaged_bit_of_a_pair_that_was_put_again_is_no_torn_write() {
    for updates in [false, true] {
        let (_, after) = written(updates, (FORMER_KEY, 7, 7));
        assert_eq!(settle(&after).unwrap(), after[STATE]);
        let at = ENTRIES + 2 + 2 * usize::from(updates);
        for bit in 0..128 {
            let (word, bit) = (at + bit / 64, 1 << (bit % 64));
            let damaged = with(after, &[(word, after[word] ^ bit)]);
            assert!(settle(&damaged).is_err(), "word {word}, bit {bit:#x}");
        }
    }
}

/// A durable entry that is damaged is damage, not a torn write.
#[test]
fn no_damaged_bit_of_a_whole_entry_passes_for_a_torn_write() {
    for_each_write(|before, after, at| {
        for bit in 0..128 {
            let (word, bit) = (at + bit / 64, 1 << (bit % 64));
            let damaged = with(after, &[(word, after[word] ^ bit)]);
            // Some flips restore the word that the slot held before: these look torn.
            let is_former = damaged[at + 1] == before[at + 1] && after[at + 1] != before[at + 1]
                || damaged[at..at + 2] == before[at..at + 2];
            assert_eq!(settle(&damaged).is_ok(), is_former, "word {word}, bit {bit:#x}");
        }
    });
}

#[test]
fn no_damage_beside_a_torn_entry_gets_a_checksum() {
    for_each_write(|before, after, at| {
        let torn = with(after, &[(at, before[at]), (at + 1, before[at + 1])]);
        for word in 0..at {
            for bit in 0..64 {
                let damaged = with(torn, &[(word, torn[word] ^ 1 << bit)]);
                let Ok(state) = settle(&damaged) else { continue };
                let verified = with(damaged, &[(STATE, state)]);
                verify(0, |word| verified[word]).unwrap();
                let is_covered = word >= ENTRIES || word == PairLeaf::LOW;
                assert!(state == before[STATE] && !is_covered, "word {word}, bit {bit}");
            }
        }
    });
}

/// The note of a write fits no state after that of its write, and says nothing once it is released.
#[test]
fn a_note_is_of_its_write_alone() {
    for_each_write(|before, after, at| {
        let torn = with(after, &[(at, before[at]), (at + 1, before[at + 1])]);
        let removed = State(torn[STATE]).toggle(0, load_tagged_entry(|word| torn[word], 0));
        assert!(settle(&with(torn, &[(STATE, removed.0)])).is_err());
        assert!(settle(&with(torn, &[(PairLeaf::LATCH, 0)])).is_err());
        assert!(settle(&with(torn, &[(KIND, 1)])).is_err());
    });
}
