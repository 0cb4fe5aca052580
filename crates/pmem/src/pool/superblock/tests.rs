use super::*;
use crate::alloc::{Heap, ZoneMap};
use crate::medium::torn::Torn;
use crate::medium::{FileOptions, Mapped};
use crate::pool::{Opened, Pool};
use std::collections::HashSet;

const GOOD: Superblock = Superblock {
    uuid: [1, 2],
    sequence: 2,
    generation: 1,
    pool_bytes: POOL_BYTES_MIN,
    free_map: None,
    nonce: 7,
    boot_id: [0; 2],
    features: 0,
    file_id: [0; 2],
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
    for version in [4, 7, u64::from(u32::MAX), u64::MAX] {
        let mut words = GOOD.encode();
        words[1] = version;
        words[CHECKSUM] = checksum(&words);
        let error = open_words(words).unwrap_err();
        let expected = u32::try_from(version).unwrap_or(u32::MAX);
        assert!(
            matches!(error, PoolError::Version { at: 8, found, supported: 3 } if found == expected),
            "{error}"
        );
    }
}

#[test]
fn an_older_version_is_refused_with_the_way_to_move_its_pairs() {
    for version in [0, 1, 2] {
        let mut words = GOOD.encode();
        words[1] = version;
        words[CHECKSUM] = checksum(&words);
        let error = open_words(words).unwrap_err();
        let said = error.to_string();
        assert!(
            matches!(error, PoolError::OldVersion { at: 8, found, supported: 3 } if u64::from(found) == version),
            "{said}"
        );
        assert!(said.contains("bristlecone dump") && said.contains("bristlecone load"), "{said}");
    }
}

#[test]
fn an_unknown_feature_of_the_low_half_is_refused_and_one_of_the_upper_half_kept() {
    for bit in 0..64 {
        let features = 1 << bit;
        match open(Superblock { features, ..GOOD }) {
            Err(PoolError::Feature { at: 112, bit: found }) => {
                assert!(found == bit && bit < 32, "bit {bit}: {found}");
            }
            opened => {
                let (pool, _) = opened.unwrap();
                let copies = COPIES.map(|at| pool.words(PmPtr::new(at), WORDS).unwrap());
                let kept = Superblock::read(pool.medium(), copies).unwrap();
                // Bit 0: the pool was open with a journal, and is whole.
                let expected = if bit == 0 { 0 } else { features };
                assert!((bit == 0 || bit >= 32) && kept.features == expected, "bit {bit}");
            }
        }
    }
}

#[test]
fn a_nonce_differs_from_the_one_before_and_from_0_in_what_latches_carry() {
    let mut seen = HashSet::new();
    for drawn in [0, 1, u64::MAX] {
        let mut before = 0;
        for generation in 1..3000 {
            let nonce = next_nonce(drawn, generation, before);
            let bits = nonce & LATCH_BITS;
            assert!(bits != 0 && bits != before & LATCH_BITS);
            assert_eq!(nonce, next_nonce(drawn, generation, before), "the same for the same draw");
            assert_ne!(nonce & LATCH_BITS, next_nonce(drawn, generation, nonce) & LATCH_BITS);
            seen.insert(bits);
            before = nonce;
        }
    }
    assert!(seen.len() > 8990, "{} of 8997 nonces are distinct", seen.len());
}

/// Opens a file that begins with `superblock`, of a pool in `boot_id`.
fn open_file(superblock: Superblock, torn: bool) -> Result<Opened, PoolError> {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(POOL_BYTES_MIN).unwrap();
    for at in COPIES {
        let bytes = superblock.encode().map(u64::to_le_bytes).concat();
        file.as_file().write_all_at(&bytes, at).unwrap();
    }
    file.as_file().write_all_at(&[1], 0x2000).unwrap(); // An entry of the root table.
    let before = std::fs::read(file.path()).unwrap();
    let medium = Mapped::open(file.path(), &FileOptions::default()).unwrap();
    assert_eq!(medium.domain(), Domain::ProcessCrash, "the temporary folder is not on DAX");
    let here = medium.boot_id();
    let open = if torn { Pool::open_torn } else { Pool::open };
    let opened = open(medium);
    if opened.is_err() {
        assert!(before == std::fs::read(file.path()).unwrap(), "a refused open changes nothing");
    }
    opened.map(|(pool, opened)| {
        assert_eq!(pool.superblock_of_this_open().boot_id, here);
        opened
    })
}

#[test]
fn an_open_pool_of_another_boot_may_be_torn_and_a_closed_one_is_not() {
    let boot_id = [0xb, 0xc];
    let longer = Superblock { pool_bytes: 1 << 30, boot_id, ..GOOD };
    for superblock in [Superblock { boot_id, ..GOOD }, longer] {
        let error = open_file(superblock, false).unwrap_err();
        let said = error.to_string();
        assert!(
            matches!(error, PoolError::MayBeTorn { opened_in, .. } if opened_in == (0xb << 64 | 0xc)),
            "{said}"
        );
        assert!(said.contains("bristlecone salvage") && said.contains("--open-torn"), "{said}");
    }
    let opened = open_file(Superblock { boot_id, ..GOOD }, true);
    assert_eq!(opened.unwrap(), Opened::Crashed);
    assert!(matches!(open_file(longer, true), Err(PoolError::Truncated { .. })));
    // A boot that is not known, and this one.
    assert_eq!(open_file(GOOD, false).unwrap(), Opened::Crashed);
    let here =
        Mapped::open(tempfile::NamedTempFile::new().unwrap().path(), &FileOptions::default());
    let here = here.unwrap().boot_id();
    assert_eq!(open_file(Superblock { boot_id: here, ..GOOD }, false).unwrap(), Opened::Crashed);
    // The free map is damaged, but the pool was closed, so no page is missing.
    let free_map = Some(SavedFreeMap { at: PmPtr::new(0x8000), bytes: 64, crc: 0 });
    let closed = Superblock { free_map, boot_id, ..GOOD };
    assert_eq!(open_file(closed, false).unwrap(), Opened::Crashed);
}

/// A pool from before the field has zeros there. One of a file system whose numbers do not last has
/// its type; a copy that had come from there, or went there, once opened without a word.
#[test]
fn an_open_pool_in_another_file_is_refused_and_a_closed_or_older_one_is_not() {
    const OVERLAY: u64 = 0x794C_7630;
    let folder = ["/dev/shm".into(), std::env::temp_dir()].into_iter().find(|path| path.is_dir());
    let file = tempfile::NamedTempFile::new_in(folder.unwrap()).unwrap();
    file.as_file().set_len(POOL_BYTES_MIN).unwrap();
    let medium = Mapped::open(file.path(), &FileOptions::default()).unwrap();
    let [inode, birth] = medium.file_id();
    if inode == 0 {
        return eprintln!("skipped: the file system has no lasting inode numbers");
    }
    let free_map = Some(SavedFreeMap { at: PmPtr::new(0x8000), bytes: 64, crc: 0 });
    let copied = |superblock: Superblock| {
        let read = Superblock::decode(&superblock.encode(), 0).unwrap().unwrap();
        assert_eq!(read, Superblock { file_id: read.file_id, ..superblock });
        match read.check_file(medium.file_id()) {
            Err(PoolError::UnclosedCopy { original, found }) => Some((original, found)),
            other => {
                other.unwrap();
                None
            }
        }
    };
    for (original, is_copy) in [
        ([0; 2], false),
        ([inode, birth], false),
        ([inode, 0], false),
        ([inode + 1, birth], true),
        ([inode + 1, 0], true),
        ([inode, birth + 1], birth != 0),
        ([0, OVERLAY], true),
    ] {
        let open = Superblock { file_id: original, ..GOOD };
        assert_eq!(copied(open), is_copy.then_some((original[0], inode)), "{original:?}");
        assert_eq!(copied(Superblock { free_map, ..open }), None, "closed, so the copy is whole");
    }
    for (original, is_copy) in
        [([0; 2], false), ([0, OVERLAY], false), ([0, 7], true), ([7, 0], true)]
    {
        let found = Superblock { file_id: original, ..GOOD }.check_file([0, OVERLAY]);
        assert_eq!(found.is_err(), is_copy, "{original:?}");
    }
}

#[test]
fn the_first_bytes_of_a_file_tell_a_pool_from_anything_else() {
    const MIN: usize = POOL_BYTES_MIN as usize;
    let zeros = |length: usize| vec![0; length];
    let with = |length: usize, at: usize, byte: u8| {
        let mut bytes = zeros(length);
        bytes[at] = byte;
        bytes
    };
    let magic = |length: usize, at: usize| {
        let mut bytes = zeros(length);
        bytes[at..at + 8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes
    };
    let cases = [
        (zeros(0), FileState::Empty),
        (b"hello!".to_vec(), FileState::Foreign(u64::from_le_bytes(*b"hello!\0\0"))),
        (b"hello".repeat(100_000), FileState::Foreign(u64::from_le_bytes(*b"hellohel"))),
        (zeros(1), FileState::Unfinished),
        (zeros(MIN), FileState::Unfinished),
        (zeros(MIN + 1), FileState::Zeros),
        (zeros(16 << 20), FileState::Zeros),
        // Superblocks before their magic numbers, and the magic number of copy 1 alone.
        (with(MIN, 8, 2), FileState::Unfinished),
        (with(MIN, 0x1000 + 127, 2), FileState::Unfinished),
        (magic(MIN, 0x1000), FileState::Unfinished),
        (magic(MIN + 1, 0x1000), FileState::Pool),
        (with(MIN, 0x2000, 1), FileState::Foreign(0)),
        (with(MIN, MIN - 1, 1), FileState::Zeros),
        (with(MIN + 1, 0x2000, 1), FileState::Foreign(0)),
        // Zeros at the beginning, whatever follows: the header may be all that is lost.
        (with(MIN + 1, 0x8000, 1), FileState::Zeros),
        (magic(8, 0), FileState::Pool),
        (magic(1 << 20, 0), FileState::Pool),
        (b"BRSTLCN".to_vec(), FileState::Foreign(MAGIC & !(0xff << 56))),
    ];
    let file = tempfile::tempfile().unwrap();
    for (bytes, state) in cases {
        file.set_len(0).unwrap();
        file.write_all_at(&bytes, 0).unwrap();
        let length = bytes.len();
        assert_eq!(FileState::read(&file).unwrap(), state, "{length} bytes");
        let blank = matches!(state, FileState::Empty | FileState::Unfinished);
        assert_eq!(holds_nothing(&file).unwrap(), blank);
    }
    // Only the beginning of a long file is read.
    file.write_all_at(&MAGIC.to_le_bytes(), 0).unwrap();
    file.set_len(20 << 30).unwrap();
    assert_eq!(FileState::read(&file).unwrap(), FileState::Pool);
    file.set_len(0).unwrap();
    file.set_len(20 << 30).unwrap();
    assert_eq!(FileState::read(&file).unwrap(), FileState::Zeros);
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
