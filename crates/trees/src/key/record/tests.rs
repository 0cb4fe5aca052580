//! Tests of all encodings of entries, and of separators.

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
        let value = vec![7; (64 * lines).saturating_sub(8 + 16 + spare)];
        let written = Record::write(&pool, &[1; 16], &value).unwrap();
        prop_assert_eq!(written.encoding == PLAIN, 24 + value.len() > 174 * 64);
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
        let [one, other] = [&a, &b].map(|key| {
            let value = Record::write(&pool, key, &value).unwrap();
            Entry { key: text::prefix(key), value: value.word, encoding: value.encoding }
        });
        prop_assert!(Record::verify_entry(&pool, other).is_ok());
        let words = |entry: Entry| pool.words(PmPtr::new(entry.value), 16).unwrap();
        for (from, to) in words(one).iter().zip(words(other)) {
            pool.medium().store(to, pool.medium().load(from));
        }
        prop_assert!(Record::verify_entry(&pool, other).is_err());
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
