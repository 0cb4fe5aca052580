//! Tests of all encodings of entries, and of separators.

use super::super::format::RecordBytes;
use super::*;
use bristlecone_pmem::Mapped;
use proptest::prelude::*;

fn entry(pool: &Pool<Mapped>, key: &[u8], value: &[u8]) -> Entry {
    let value = match Record::inline(key, value) {
        Some(inline) => inline,
        None => Record::write(pool, key, value).unwrap(),
    };
    Entry { key: text::prefix(key), value: value.word, encoding: value.encoding }
}

fn record_entry(pool: &Pool<Mapped>, key: &[u8], value: &[u8]) -> Entry {
    let value = Record::write(pool, key, value).unwrap();
    Entry { key: text::prefix(key), value: value.word, encoding: value.encoding }
}

fn read_value(pool: &Pool<Mapped>, key: &[u8], entry: Entry) -> Result<Vec<u8>, Corrupt> {
    let stored = Record::stored(pool, entry.held_value())?;
    let mut read = vec![9; stored.len()];
    stored.copy_out(pool, key, &mut read).map(|()| read)
}

fn record_bytes(pool: &Pool<Mapped>, entry: Entry) -> Vec<u8> {
    let (block, bytes) = Record::extent(pool, entry.held_value()).unwrap().unwrap();
    let mut copy = vec![0; bytes as usize];
    pool.medium().copy_out(pool.words(block, copy.len() / 8).unwrap(), &mut copy);
    copy
}

fn bytes(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0u8..3, 0..=longest)
}

proptest! {
    #[test]
    fn entries_of_all_encodings_store_and_compare_their_bytes(
        a in bytes(40), b in bytes(40), value in bytes(20),
    ) {
        let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
        let entry = entry(&pool, &a, &value);
        prop_assert_eq!(is_inline(entry.encoding), a.len() <= 8 && value.len() <= 8);
        prop_assert_eq!(Record::order_entry(&pool, entry, &b).unwrap(), a.cmp(&b));
        prop_assert_eq!(Record::read_entry(&pool, entry).unwrap().to_vec(), a.clone());
        let stored = Record::stored(&pool, entry.held_value()).unwrap();
        let mut read = vec![9; stored.len()];
        stored.copy_out(&pool, &a, &mut read).unwrap();
        prop_assert_eq!(read, value);
    }

    #[test]
    fn an_encoding_gives_the_size_of_the_record(lines in 1usize..200, spare in 0usize..64) {
        let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
        let value = vec![7; (64 * lines).saturating_sub(8 + 16 + 4 + spare)];
        let written = Record::write(&pool, &[1; 16], &value).unwrap();
        prop_assert_eq!(written.encoding == PLAIN, 28 + value.len() > 174 * 64);
        // An entry of encoding `PLAIN` does not give the size; the header of its record does.
        for value in [written, Value::plain(written.word)] {
            let (block, bytes) = Record::extent(&pool, value).unwrap().unwrap();
            prop_assert!(pool.is_block(block, bytes));
        }
        prop_assert_eq!(Record::stored(&pool, written).unwrap().len(), value.len());
        let other = Value { encoding: written.encoding.max(82) ^ 1, ..written };
        prop_assert!(Record::stored(&pool, other).is_err());
    }

    #[test]
    fn a_record_does_not_pass_for_another(a in bytes(40), b in bytes(40), value in bytes(20)) {
        let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
        let [one, other] = [&a, &b].map(|key| record_entry(&pool, key, &value));
        prop_assert!(Record::read_entry(&pool, other).is_ok());
        prop_assert_eq!(read_value(&pool, &b, other).unwrap(), value);
        let words = |entry: Entry| pool.words(PmPtr::new(entry.value), 16).unwrap();
        for (from, to) in words(one).iter().zip(words(other)) {
            pool.medium().store(to, pool.medium().load(from));
        }
        prop_assert!(Record::read_entry(&pool, other).is_err());
        prop_assert!(read_value(&pool, &a, other).is_err());
    }

    /// Bytes of a file and words of a pool are two readers of one format.
    #[test]
    fn the_bytes_of_a_record_give_its_pair(key in bytes(40), value in bytes(80)) {
        let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
        let entry = record_entry(&pool, &key, &value);
        let bytes = record_bytes(&pool, entry);
        let at = entry.value;
        let record = RecordBytes::begin(at, *bytes.first_chunk().unwrap()).unwrap();
        prop_assert_eq!(record.bytes(), pair_record_bytes(key.len(), value.len()).next_multiple_of(8) as u64);
        prop_assert_eq!(record.pair(&bytes).unwrap(), (&key[..], &value[..]));
        for moved in [at + 64, at ^ 1 << 20] {
            let record = RecordBytes::begin(moved, *bytes.first_chunk().unwrap()).unwrap();
            prop_assert!(record.pair(&bytes).is_err());
        }
    }

    #[test]
    fn any_bytes_give_a_pair_or_an_error(bytes in prop::collection::vec(any::<u8>(), 8..200), at: u64) {
        if let Ok(record) = RecordBytes::begin(at, *bytes.first_chunk().unwrap()) {
            prop_assert!(record.bytes() >= 16);
            let _ = record.pair(&bytes);
        }
    }

    /// Each flip of a bit outside the padding is an error: of the key if it lies in header or key,
    /// of the value if it lies elsewhere or in the header.
    #[test]
    fn a_flipped_bit_of_a_record_is_an_error(
        key in bytes(24), value in prop::collection::vec(any::<u8>(), 0..40), flip: u64,
    ) {
        let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
        let entry = record_entry(&pool, &key, &value);
        let value_at = value_offset(key.len());
        let covered = [0..8 + key.len(), value_at..value_at + value.len() + 4];
        let places: Vec<_> = covered.into_iter().flatten().collect();
        let at = places[(flip / 8) as usize % places.len()];
        let word = &pool.words(PmPtr::new(entry.value), 16).unwrap()[at / 8];
        let flipped = pool.medium().load(word) ^ 1 << (8 * (at % 8) as u64 + flip % 8);
        pool.medium().store(word, flipped);
        prop_assert_eq!(Record::read_entry(&pool, entry).is_err(), at < 8 + key.len());
        // The value is read with the key that the caller has, not with the one in the record.
        let in_key = (8..8 + key.len()).contains(&at);
        prop_assert_eq!(read_value(&pool, &key, entry).is_err(), !in_key);
    }

    #[test]
    fn a_separator_lies_between_its_neighbours(a in bytes(12), b in bytes(12), probe in bytes(12)) {
        prop_assume!(a < b);
        let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
        let separator = Record::between(&pool, entry(&pool, &a, b""), &b).unwrap().to_vec();
        prop_assert!(a < separator && separator <= b);
        let word = Record::store_separator(&pool, &separator).unwrap();
        prop_assert_eq!(Record::block(&pool, word).unwrap().is_some(), separator.len() > 7);
        prop_assert_eq!(Record::order(&pool, word, &probe).unwrap(), separator.cmp(&probe));
        prop_assert_eq!(Record::read(&pool, word).unwrap().to_vec(), separator);
    }
}

/// A record whose value would end beyond the pool: only a read of the value can fail.
#[test]
fn comparing_a_key_reads_no_value() {
    let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
    let key = b"prefix00 and a rest";
    let entry = record_entry(&pool, key, b"value");
    let header = &pool.words(PmPtr::new(entry.value), 1).unwrap()[0];
    pool.medium().store(header, Header::of(entry.value, key, 16 << 20).word());
    let entry = Entry { encoding: PLAIN, ..entry };
    for probe in [&b"prefix00 and a test"[..], b"prefix00", b"other"] {
        assert_eq!(Record::order_entry(&pool, entry, probe).unwrap(), key[..].cmp(probe));
        Record::verify_mismatch(&pool, entry, probe).unwrap();
    }
    assert_eq!(Record::read_entry(&pool, entry).unwrap().to_vec(), key);
    assert!(Record::stored(&pool, entry.held_value()).is_err());
}

#[test]
fn a_mismatch_at_a_damaged_key_is_an_error() {
    let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
    let entry = record_entry(&pool, b"prefix00 and a rest", b"value");
    let word = &pool.words(PmPtr::new(entry.value), 4).unwrap()[3];
    pool.medium().store(word, pool.medium().load(word) ^ 1);
    assert!(Record::verify_mismatch(&pool, entry, b"prefix00 and a rest").is_err());
    // The first 8 B lie in the entry, and decide.
    assert!(Record::verify_mismatch(&pool, entry, b"other").is_ok());
}

#[test]
fn a_record_with_an_unknown_flag_is_refused() {
    let pool = Pool::create(Mapped::anonymous(1 << 20).unwrap()).unwrap();
    let key = b"a key of some length";
    for flag in [38, 39] {
        let entry = record_entry(&pool, key, b"value");
        let header = &pool.words(PmPtr::new(entry.value), 1).unwrap()[0];
        pool.medium().store(header, pool.medium().load(header) | 1 << flag);
        let refusals = [
            Record::read_entry(&pool, entry).unwrap_err(),
            Record::order_entry(&pool, entry, key).unwrap_err(),
            Record::stored(&pool, entry.held_value()).unwrap_err(),
        ];
        for refusal in refusals {
            assert!(refusal.at == entry.value && refusal.what.contains("flags"), "{refusal}");
        }
    }
}

#[test]
fn records_of_all_sizes_are_written_whole() {
    let pool = Pool::create(Mapped::anonymous(4 << 20).unwrap()).unwrap();
    for key_bytes in [9usize, 16, 55, 56, 57, 4096] {
        for value_bytes in (0..130usize).chain(470..520).chain(4090..4170).chain([20_000]) {
            let key = vec![b'k'; key_bytes];
            let value: Vec<u8> = (0..value_bytes).map(|i| i as u8).collect();
            let entry = record_entry(&pool, &key, &value);
            assert_eq!(read_value(&pool, &key, entry).unwrap(), value, "{key_bytes} {value_bytes}");
            let (block, bytes) = Record::extent(&pool, entry.held_value()).unwrap().unwrap();
            pool.release(block, bytes);
        }
    }
}
