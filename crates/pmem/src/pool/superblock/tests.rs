use super::*;
use crate::alloc::{Heap, ZoneMap};
use crate::medium::torn::Torn;
use crate::pool::{Opened, POOL_BYTES_MIN, Pool};

const GOOD: Superblock = Superblock {
    uuid: [1, 2],
    sequence: 2,
    generation: 1,
    pool_bytes: POOL_BYTES_MIN,
    free_map: None,
};

/// Opens a pool both of whose superblocks are `words`.
fn open_words(words: [u64; WORDS]) -> Result<(Pool<Torn>, Opened), PoolError> {
    let mut image = vec![0; POOL_BYTES_MIN as usize];
    for copy in COPIES {
        for (bytes, word) in image[copy as usize..].chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }
    Pool::open(Torn::new(&image))
}

fn open(superblock: Superblock) -> Result<(Pool<Torn>, Opened), PoolError> {
    open_words(superblock.encode())
}

#[test]
fn a_newer_version_is_an_error() {
    for version in [2, 7, u64::from(u32::MAX), u64::MAX] {
        let mut words = GOOD.encode();
        words[1] = version;
        words[CHECKSUM] = checksum(&words);
        let error = open_words(words).unwrap_err();
        let expected = u32::try_from(version).unwrap_or(u32::MAX);
        assert!(
            matches!(error, PoolError::Version { at: 8, found, supported: 1 } if found == expected),
            "{error}"
        );
    }
}

#[test]
fn impossible_numbers_are_errors() {
    assert_eq!(open(GOOD).unwrap().1, Opened::Crashed);
    let corrupt_at = |superblock| match open(superblock) {
        Err(PoolError::Corrupt(corrupt)) => corrupt.at,
        other => panic!("{other:?}"),
    };
    for count in [COUNT_END, u64::MAX] {
        assert_eq!(corrupt_at(Superblock { sequence: count, ..GOOD }), 32);
        assert_eq!(corrupt_at(Superblock { generation: count, ..GOOD }), 40);
    }
    for pool_bytes in [0, POOL_BYTES_MIN - CHUNK_BYTES, POOL_BYTES_MIN - 8] {
        assert_eq!(corrupt_at(Superblock { pool_bytes, ..GOOD }), 48);
    }
    let longer = Superblock { pool_bytes: u64::MAX, ..GOOD };
    assert!(matches!(open(longer), Err(PoolError::Truncated { .. })));
}

#[test]
fn an_impossible_free_map_leads_to_recovery() {
    let crc = crate::checksum(&[]);
    for (at, bytes) in [
        (0, 0),
        (0, u64::MAX),
        (0x8000, u64::MAX - 7),
        (0x8000, 1 << 61),
        (0x8004, 8),
        (POOL_BYTES_MIN, 8),
        (u64::MAX, 0),
    ] {
        let free_map = Some(SavedFreeMap { at: PmPtr::new(at), bytes, crc });
        assert_eq!(
            open(Superblock { free_map, ..GOOD }).unwrap().1,
            Opened::Crashed,
            "{at} {bytes}"
        );
    }
}

#[test]
fn a_free_map_in_a_block_of_another_size_leads_to_recovery() {
    const AT: u64 = CHUNK_BYTES;
    let mut heap = Heap::new(POOL_BYTES_MIN, 1, ZoneMap::SINGLE);
    assert_eq!(heap.reserve(64, 0), Some(AT), "in use, but far too small for a free map");
    let saved = heap.encode();
    let crc = crate::checksum(&saved);
    let place_of = |at| Some(SavedFreeMap { at: PmPtr::new(at), bytes: saved.len() as u64, crc });
    let mut pool = vec![0; POOL_BYTES_MIN as usize];
    for at in [AT, AT + 512] {
        let words = Superblock { free_map: place_of(at), ..GOOD }.encode();
        for (bytes, word) in pool.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        pool[at as usize..][..saved.len()].copy_from_slice(&saved);
        assert_eq!(Pool::open(Torn::new(&pool)).unwrap().1, Opened::Crashed);
    }
}

#[test]
fn a_crash_in_creation_leaves_a_pool_or_a_file_without_one() {
    let medium = Torn::new(&vec![0; POOL_BYTES_MIN as usize]);
    let pool = Pool::create(medium.clone()).unwrap();
    let uuid = pool.uuid();
    let mut seen = [0; 3];
    let file = tempfile::tempfile().unwrap();
    medium.crashes(20, |at, image| {
        file.write_all_at(image, 0).unwrap();
        let is_free_to_take = holds_nothing(&file).unwrap();
        let state = match Pool::open(Torn::new(image)) {
            Ok((pool, opened)) => {
                assert_eq!((pool.uuid(), pool.generation(), opened), (uuid, 2, Opened::Crashed));
                usize::from(!is_free_to_take) + 1
            }
            Err(error) => {
                let is_blank = matches!(error, PoolError::NotAPool { found: 0 });
                assert!(is_blank && is_free_to_take, "crash after event {at}: {error}");
                0
            }
        };
        assert!(at < medium.events() || state == 2, "a complete creation is not overwritten");
        seen[state] += 1;
    });
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
}
