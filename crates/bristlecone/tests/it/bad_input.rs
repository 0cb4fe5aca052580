//! Files that are damaged, incomplete, or not a store. Each gives a typed error that names the
//! file; the file does not change, and no method panics.

use crate::image::{restart, seal};
use crate::{journaled, mapped, pairs, place};
use bristlecone::{Domain, Durability, Error, ErrorKind, Store};
use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::pool::POOL_BYTES_MIN;
use bristlecone_pmem::{Mapped, Medium, Pool};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

fn fails(path: &Path) -> Error {
    let error = mapped().open(path).expect_err("this must not open");
    assert!(error.to_string().contains("test.pool"), "{error}");
    assert_eq!(error.path(), Some(path));
    error
}

fn filled(path: &Path, keys: u32) {
    let store = mapped().create(path).unwrap();
    for i in 0..keys {
        store.put(format!("key number {i:05}"), vec![i as u8; i as usize % 300]).unwrap();
    }
    store.close().unwrap();
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_alone() {
    let place = place();
    let path = &place.path;
    assert!(matches!(fails(path), Error::NotFound { .. }));
    assert!(!path.exists());
    for (content, first) in
        [(b"hello".repeat(100_000), b"hellohel"), (b"hello!".to_vec(), b"hello!\0\0")]
    {
        fs::write(path, &content).unwrap();
        for error in [fails(path), mapped().open_or_create(path).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Damaged);
            let first = u64::from_le_bytes(*first);
            assert!(matches!(error, Error::NotAPool { found, .. } if found == first), "{error}");
            let said = error.to_string();
            assert!(!said.contains("backup") && !said.contains("open_or_create"), "{said}");
        }
        let error = mapped().create(path).unwrap_err();
        assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
        assert_eq!(fs::read(path).unwrap(), content);
    }
}

/// Only a file is opened: a pipe would wait for its other end, and a device never end.
#[test]
fn a_folder_a_pipe_and_a_device_are_named_and_not_opened() {
    let place = place();
    let fifo = std::ffi::CString::new(place.path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the path ends with a zero and outlives the call.
    #[expect(unsafe_code, reason = "the standard library makes no pipe with a name")]
    let made = unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) };
    assert_eq!(made, 0);
    for (path, kind) in [
        (place.path.parent().unwrap(), "a folder"),
        (&place.path, "a pipe (FIFO)"),
        (Path::new("/dev/null"), "a character device"),
        (Path::new("/dev/zero"), "a character device"),
    ] {
        for error in [mapped().open(path).unwrap_err(), mapped().open_or_create(path).unwrap_err()]
        {
            assert!(
                matches!(error, Error::NotAFile { kind: found, .. } if found == kind),
                "{error}"
            );
            assert_eq!((error.kind(), error.path()), (ErrorKind::System, Some(path)));
        }
    }
}

/// A file of zeros that is longer than an interrupted creation leaves it was perhaps a store. Its
/// length costs no time, and its bytes stay.
#[test]
fn a_long_file_of_zeros_is_never_made_a_store() {
    let place = place();
    let path = &place.path;
    for bytes in [POOL_BYTES_MIN + 1, 1 << 20, 20 << 30] {
        let file = fs::File::create(path).unwrap();
        file.set_len(bytes).unwrap();
        for error in [fails(path), mapped().open_or_create(path).unwrap_err()] {
            assert!(
                matches!(error, Error::Zeros { bytes: found, .. } if found == bytes),
                "{error}"
            );
            assert!(!error.to_string().contains("open_or_create"), "{error}");
        }
        let metadata = file.metadata().unwrap();
        assert_eq!((metadata.len(), metadata.blocks()), (bytes, 0));
    }
}

/// Acknowledged pairs whose pages a power cut lost as zeros once became an empty store in silence.
#[test]
fn a_store_that_reads_as_zeros_is_never_an_empty_store() {
    let place = place();
    let path = &place.path;
    let store = mapped().open_or_create(path).unwrap();
    for i in 0..10_000 {
        store.put(format!("key{i}"), "acknowledged").unwrap();
    }
    store.close().unwrap();
    let zeros = vec![0; fs::metadata(path).unwrap().len() as usize];
    fs::write(path, &zeros).unwrap();
    for error in [fails(path), mapped().open_or_create(path).unwrap_err()] {
        assert!(matches!(error, Error::Zeros { .. }), "{error}");
    }
    assert!(fs::read(path).unwrap() == zeros);
}

/// A page of the root table that the device lost reads as zeros. The pairs are still there.
#[test]
fn a_store_whose_root_is_lost_is_never_an_empty_store() {
    let place = place();
    let path = &place.path;
    for clean in [true, false] {
        let store = mapped().create(path).unwrap();
        for i in 0..100 {
            store.put(format!("key{i}"), "acknowledged").unwrap();
        }
        if clean {
            store.close().unwrap();
        } else {
            drop(store);
        }
        let mut bytes = fs::read(path).unwrap();
        bytes[0x2000..0x3000].fill(0);
        fs::write(path, &bytes).unwrap();
        for error in [fails(path), mapped().open_or_create(path).unwrap_err()] {
            assert!(matches!(error, Error::Damaged { .. }), "{error}");
        }
        assert!(fs::read(path).unwrap()[0x8000..] == bytes[0x8000..]);
        assert_eq!(bristlecone::salvage(path).unwrap().flatten().count(), 100);
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_second_open_of_a_store_is_refused() {
    let place = place();
    let store = mapped().create(&place.path).unwrap();
    store.put("k", "v").unwrap();
    let refused = [fails(&place.path), mapped().open_or_create(&place.path).unwrap_err()];
    for error in refused {
        assert!(matches!(error, Error::InUse { .. }), "{error}");
        assert_eq!(error.kind().exit_code(), 4);
    }
    assert_eq!(store.get("k").unwrap().unwrap(), b"v");
    drop(store);
    mapped().open(&place.path).unwrap();
}

#[test]
fn a_truncated_file_and_a_damaged_superblock_are_named() {
    let place = place();
    let path = &place.path;
    filled(path, 1000);
    let whole = fs::read(path).unwrap();

    fs::write(path, &whole[..whole.len() / 2]).unwrap();
    let half = whole.len() as u64 / 2;
    let error = fails(path);
    assert!(matches!(error, Error::CutShort { found, .. } if found == half), "{error}");

    let mut both = whole.clone();
    both[40] ^= 1;
    fs::write(path, &both).unwrap();
    assert_eq!(mapped().open(path).unwrap().len().unwrap(), 1000, "one whole copy is enough");
    both[0x1000 + 40] ^= 1;
    fs::write(path, &both).unwrap();
    assert!(matches!(fails(path), Error::Superblocks { .. }));

    let mut newer = whole.clone();
    for at in [0, 0x1000] {
        newer[at + 8] = 4;
    }
    seal(&mut newer);
    fs::write(path, &newer).unwrap();
    let error = fails(path);
    assert!(matches!(error, Error::NewerVersion { found: 4, at: 8, supported: 3, .. }), "{error}");

    fs::write(path, &whole).unwrap();
    assert_eq!(mapped().open(path).unwrap().len().unwrap(), 1000);
}

/// The version that wrote it alone knows what its journal holds.
#[test]
fn a_store_of_another_version_that_needs_its_journal_is_refused_and_left_alone() {
    for version in [2, 4] {
        let place = place();
        let path = &place.path;
        let options = journaled(Durability::Commit);
        options.create(path).unwrap().put("a", "b").unwrap(); // and a drop
        let mut other = fs::read(path).unwrap();
        for at in [0, 0x1000] {
            other[at + 8] = version;
        }
        seal(&mut other);
        fs::write(path, &other).unwrap();
        let ring = path.with_extension("pool.journal").join("ring");
        let before = fs::read(&ring).unwrap();
        for error in [options.open(path).unwrap_err(), fails(path)] {
            let is_refused = match &error {
                Error::OldVersion { found, .. } => (*found, version) == (2, 2),
                Error::NewerVersion { found, .. } => (*found, version) == (4, 4),
                _ => false,
            };
            assert!(is_refused, "{error}");
            assert!(fs::read(path).unwrap() == other && fs::read(&ring).unwrap() == before);
        }
    }
}

#[test]
fn a_pool_of_something_else_is_foreign() {
    let place = place();
    let medium = Mapped::create(&place.path, 1 << 20, &FileOptions::default()).unwrap();
    let pool = Pool::create(medium).unwrap();
    let block = pool.reserve(64).unwrap();
    pool.create_root("store", 4711, block).unwrap();
    pool.close().unwrap();
    for error in [fails(&place.path), mapped().open_or_create(&place.path).unwrap_err()] {
        assert!(matches!(error, Error::Foreign { found: 4711, .. }), "{error}");
    }
}

#[test]
fn an_interrupted_creation_is_reported_and_can_be_finished() {
    let place = place();
    let path = &place.path;
    let rootless = |clean: bool| {
        let medium = Mapped::create(path, 1 << 20, &FileOptions::default()).unwrap();
        let pool = Pool::create(medium).unwrap();
        let block = pool.reserve(64).unwrap();
        pool.medium().fill(pool.words(block, 8).unwrap(), &[0xa5; 64]);
        if clean { pool.close().unwrap() } else { drop(pool) }
    };
    let mut torn = vec![0; POOL_BYTES_MIN as usize];
    torn[0x1000..0x1040].fill(0xa5);
    let begin: [&dyn Fn(); 7] = [
        &|| fs::write(path, b"").unwrap(),
        &|| fs::write(path, [0; 100]).unwrap(),
        &|| fs::write(path, vec![0; POOL_BYTES_MIN as usize]).unwrap(),
        &|| fs::write(path, &torn).unwrap(),
        &|| rootless(false),
        &|| rootless(true),
        &|| {
            rootless(false);
            let mut bytes = fs::read(path).unwrap();
            restart(&mut bytes);
            fs::write(path, bytes).unwrap();
        },
    ];
    for (case, begin) in begin.into_iter().enumerate() {
        begin();
        let error = fails(path);
        let is_told = match error {
            Error::Empty { .. } => case == 0,
            Error::Unfinished { .. } => case > 0,
            _ => false,
        };
        assert!(is_told, "case {case}: {error}");
        assert!(error.to_string().contains("open_or_create"), "{error}");
        let store = mapped().open_or_create(path).unwrap();
        store.put("case", case.to_string()).unwrap();
        drop(store);
        let mut store = mapped().open_or_create(path).unwrap();
        assert_eq!(store.get("case").unwrap().unwrap(), case.to_string().as_bytes());
        assert_eq!(store.check().unwrap().unreachable_blocks, 0);
        drop(store);
        fs::remove_file(path).unwrap();
    }
}

#[test]
fn options_that_cannot_be_met_leave_no_file() {
    let place = place();
    let path = &place.path;
    let error = mapped().initial_bytes(POOL_BYTES_MIN - 1).create(path).unwrap_err();
    assert!(matches!(error, Error::TooSmall { minimum: POOL_BYTES_MIN, .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(!path.exists());
    // 32 TiB: more than the device of any test machine.
    let error = mapped().initial_bytes(1 << 45).create(path).unwrap_err();
    assert!(matches!(error, Error::Full { .. } | Error::System { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::System);
    assert!(!path.exists());

    let store = mapped().initial_bytes(POOL_BYTES_MIN).create(path).unwrap();
    let given = store.stats().domain;
    store.close().unwrap();
    if !given.covers(Domain::Adr) {
        let required = mapped().require(Domain::Adr);
        let error = required.open(path).unwrap_err();
        assert!(
            matches!(
                error,
                Error::Domain { required: Domain::Adr, given: Domain::ProcessCrash, .. }
            ),
            "{error}"
        );
        fs::remove_file(path).unwrap();
        required.create(path).unwrap_err();
        assert!(!path.exists());
    }
    mapped().require(Domain::ProcessCrash).open_or_create(path).unwrap();
}

#[test]
fn statistics_match_the_file_and_its_history() {
    let place = place();
    filled(&place.path, 100);
    let store = Store::open(&place.path).unwrap();
    let stats = store.stats();
    assert_eq!((stats.generation, stats.was_recovered, stats.format_version), (2, false, 3));
    assert_eq!(stats.pool_bytes, fs::metadata(&place.path).unwrap().len());
    assert!(stats.used_bytes + stats.free_bytes <= stats.pool_bytes && stats.blocks > 100);
    let uuid = stats.uuid;
    drop(store);
    let mut store = Store::open(&place.path).unwrap();
    let stats = store.stats();
    assert_eq!((stats.generation, stats.was_recovered, stats.uuid), (3, true, uuid));
    let report = store.check().unwrap();
    assert_eq!(report.keys, 100);
    assert_eq!(report.key_bytes, 100 * "key number 00000".len() as u64);
    assert_eq!(report.value_bytes, (0..100).sum::<u64>());
}

/// Calls every method on a store that may be damaged. Any result is right, but no panic.
fn exercise(path: &Path) {
    let Ok(mut store) = mapped().open(path) else { return };
    let _ = store.check();
    let _ = store.iter().count();
    let _ = store.iter().rev().count();
    for i in (0..200).step_by(7) {
        let key = format!("key number {i:05}");
        let _ = store.get(&key);
        let _ = store.put(&key, "something else");
        let _ = store.delete(&key);
    }
    let _ = store.close();
}

/// Replaces words all over a mapped store by nonsense: no method panics or hangs.
#[test]
fn damage_anywhere_causes_no_panic() {
    let place = place();
    for clean in [true, false] {
        filled(&place.path, 200);
        if !clean {
            drop(mapped().open(&place.path).unwrap());
        }
        let whole = fs::read(&place.path).unwrap();
        let used: Vec<_> = (0x2000..whole.len() - 8)
            .step_by(8)
            .filter(|&at| whole[at..at + 8].iter().any(|&byte| byte != 0))
            .collect();
        assert!(used.len() > 1000);
        for (index, &at) in used.iter().step_by(used.len() / 400).enumerate() {
            let old = u64::from_le_bytes(whole[at..at + 8].try_into().unwrap());
            let nonsense = [
                0,
                u64::MAX,
                old ^ 1 << (index % 64),
                old.wrapping_add(64),
                0x8000,
                whole.len() as u64 - 8,
            ];
            let new = nonsense[index % nonsense.len()];
            let mut damaged = whole.clone();
            damaged[at..at + 8].copy_from_slice(&new.to_le_bytes());
            fs::write(&place.path, &damaged).unwrap();
            let outcome = catch_unwind(AssertUnwindSafe(|| exercise(&place.path)));
            assert!(outcome.is_ok(), "clean {clean}: word {old:#x} at {at:#x} became {new:#x}");
        }
        fs::remove_file(&place.path).unwrap();
    }
}

/// A close saves the free map, to which the superblock points. Damage to it is counted.
#[test]
fn damage_to_what_a_close_saved_is_repaired_and_counted() {
    let place = place();
    filled(&place.path, 300);
    let sound = fs::read(&place.path).unwrap();
    let word = |at: usize| u64::from_le_bytes(sound[at..at + 8].try_into().unwrap());
    let (map, newer) = (64, if word(32) > word(4096 + 32) { 0 } else { 4096 });
    let at = word(newer + map) as usize;
    let mut damaged = sound.clone();
    damaged[at + 100] ^= 4;
    fs::write(&place.path, &damaged).unwrap();
    let store = mapped().open(&place.path).unwrap();
    assert_eq!((store.stats().rebuilt_count, store.stats().was_recovered), (1, true));
    assert_eq!(store.len().unwrap(), 300);
    store.close().unwrap();
    let store = mapped().open(&place.path).unwrap();
    assert_eq!((store.stats().rebuilt_count, store.stats().was_recovered), (0, false));
}

/// Damage to a record affects its own pair alone, and `get` never returns the value. This holds
/// after a close and after a crash, because recovery marks records without reading them.
#[test]
fn a_damaged_record_is_named_and_can_be_replaced() {
    /// Bits 13 to 37 of a record's header: the length of the value.
    const VALUE_LENGTH: u64 = ((1 << 25) - 1) << 13;
    let damages = [
        ("length of the value", -16, VALUE_LENGTH),
        ("check", -16, 1 << 50),
        ("first bit of the value", 0, 1),
        ("a bit far into the value", 16, 1 << 20),
    ];
    let cases = damages.map(|damage| [(true, damage), (false, damage)]);
    for (clean, (what, from_value, damage)) in cases.into_iter().flatten() {
        let place = place();
        let path = &place.path;
        let store = mapped().create(path).unwrap();
        for key in ["before", "broken", "later"] {
            store.put(key, format!("the value of {key}, at some length")).unwrap();
        }
        if clean {
            store.close().unwrap();
        } else {
            drop(store);
        }
        let mut bytes = fs::read(path).unwrap();
        let text = b"the value of broken";
        let value = bytes.windows(text.len()).position(|window| window == text).unwrap();
        let at = value.checked_add_signed(from_value).unwrap();
        let word = &mut bytes[at..at + 8];
        let damaged = u64::from_le_bytes((&*word).try_into().unwrap()) ^ damage;
        word.copy_from_slice(&damaged.to_le_bytes());
        fs::write(path, &bytes).unwrap();

        let mut store = mapped().open(path).unwrap();
        let error = store.get("broken").expect_err(what);
        assert!(matches!(&error, Error::Damaged { damage, .. } if damage.at > 0), "{error}");
        assert_eq!(error.kind(), ErrorKind::Damaged);
        assert!(store.check().is_err(), "{what}");
        let later = store.get("later").unwrap().unwrap();
        assert_eq!(later, b"the value of later, at some length");
        let mut scan = store.iter();
        assert_eq!(scan.next().unwrap().unwrap().0, b"before");
        assert!(scan.next().unwrap().is_err(), "{what}");
        assert!(scan.next().is_none() && scan.next_back().is_none());
        store.put("broken", "whole again").unwrap();
        assert_eq!(pairs(&store).len(), 3);
        drop(store);
        let mut store = mapped().open(path).unwrap();
        assert_eq!(store.check().unwrap().unreachable_blocks, 0, "{what}");
    }
}

/// Every value of a leaf is damaged, and every key is sound. Only a read of a damaged value may
/// fail: all other operations read keys alone, also where fingerprints of two keys are equal.
#[test]
fn an_operation_reads_no_value_of_another_key() {
    let place = place();
    let path = &place.path;
    let store = mapped().create(path).unwrap();
    for number in 0..20 {
        store.put(format!("prefix00 {number:02}"), "the value, at some length").unwrap();
    }
    drop(store);
    let mut bytes = fs::read(path).unwrap();
    let text = b"the value";
    let values: Vec<_> =
        (0..bytes.len() - text.len()).filter(|&at| bytes[at..].starts_with(text)).collect();
    assert_eq!(values.len(), 20);
    for at in values {
        bytes[at] ^= 4;
    }
    fs::write(path, &bytes).unwrap();

    let store = mapped().open(path).unwrap();
    // With 20 fingerprints in the leaf, some 150 of 2000 absent keys share one.
    for number in 0..2000 {
        let absent = format!("prefix00 x{number:04}");
        assert!(!store.contains(&absent).unwrap());
        assert_eq!(store.get(&absent).unwrap(), None);
        assert!(!store.update(&absent, "value").unwrap());
        assert!(store.insert(&absent, "value").unwrap());
        store.put(&absent, "another value").unwrap();
        assert_eq!(store.get(&absent).unwrap().unwrap(), b"another value");
        assert!(store.delete(&absent).unwrap());
    }
    assert_eq!(store.len().unwrap(), 20);
    for number in 0..20 {
        let key = format!("prefix00 {number:02}");
        assert!(store.contains(&key).unwrap());
        assert!(matches!(store.get(&key), Err(Error::Damaged { .. })));
        store.put(&key, "whole again").unwrap();
        assert_eq!(store.get(&key).unwrap().unwrap(), b"whole again");
    }
}

/// A later release may write leaves of another kind.
#[test]
fn a_leaf_of_an_unknown_kind_is_refused() {
    let place = place();
    let path = &place.path;
    for clean in [true, false] {
        let store = mapped().create(path).unwrap();
        store.put("shortkey", "shortval").unwrap();
        if clean {
            store.close().unwrap();
        } else {
            drop(store);
        }
        let mut bytes = fs::read(path).unwrap();
        let pair = bytes.windows(8).position(|window| window == b"shortval").unwrap();
        let leaf = pair / 1024 * 1024;
        bytes[leaf + 32] ^= 1;
        fs::write(path, &bytes).unwrap();
        let found = mapped().open(path).and_then(|store| store.get("shortkey"));
        let Err(Error::Damaged { damage, .. }) = found else { panic!("{found:?}") };
        assert!(damage.at == leaf as u64 + 32 && damage.what.contains("kind of a leaf"));
        fs::remove_file(path).unwrap();
    }
}

/// A key that damage has moved past its leaf looks like an entry that a split left behind. Recovery
/// must not drop it.
#[test]
fn a_key_that_damage_moved_past_its_leaf_is_named_and_not_dropped() {
    let place = place();
    let path = &place.path;
    let store = mapped().create(path).unwrap();
    for number in 0..90 {
        store.put(format!("prefix00{number:02}"), "a value of more than eight bytes").unwrap();
    }
    drop(store);
    let mut bytes = fs::read(path).unwrap();
    let key = b"prefix0005";
    let at = bytes.windows(key.len()).position(|window| window == key).unwrap();
    bytes[at + 8] = b'9';
    fs::write(path, &bytes).unwrap();
    let error = mapped().open(path).unwrap_err();
    assert!(matches!(&error, Error::Damaged { damage, .. } if damage.at > 0), "{error}");
}

/// Recovery refuses a leaf whose checksum does not match. After a close, the first operation that
/// reads the leaf refuses it.
#[test]
fn a_flipped_bit_of_a_short_pair_is_named() {
    type Visit = fn(&mut Store) -> Result<(), Error>;
    let visits: [Visit; 6] = [
        |store| store.get("shortkey").map(|_| ()),
        |store| store.multi_get(&["another"]).map(|_| ()),
        |store| store.put("another", "value"),
        |store| store.delete("shortkey").map(|_| ()),
        |store| store.iter().next().map_or(Ok(()), |pair| pair.map(|_| ())),
        |store| store.check().map(|_| ()),
    ];
    for (clean, visit) in visits.map(|visit| [(true, visit), (false, visit)]).into_iter().flatten()
    {
        let place = place();
        let path = &place.path;
        let store = mapped().create(path).unwrap();
        store.put("shortkey", "shortval").unwrap();
        if clean {
            store.close().unwrap();
        } else {
            drop(store);
        }
        let mut bytes = fs::read(path).unwrap();
        let value = bytes.windows(8).position(|window| window == b"shortval").unwrap();
        bytes[value + 3] ^= 0x10;
        fs::write(path, &bytes).unwrap();
        let found = mapped().open(path).and_then(|mut store| visit(&mut store));
        let error = found.unwrap_err();
        assert!(matches!(&error, Error::Damaged { damage, .. } if damage.at > 0), "{error}");
    }
}

/// Records hold the keys that share their first 8 B, and separators. If one is damaged, a lookup or
/// a scan returns an error, never a wrong answer.
#[test]
fn damage_to_keys_with_a_common_prefix_gives_no_wrong_answer() {
    const HEAD: &str = "what many keys begin with, ";
    let key = |number: u32| format!("{HEAD}{number:02}").into_bytes();
    let value = |number: u32| format!("value {number:02} of some length").into_bytes();
    let place = place();
    let path = &place.path;
    for clean in [true, false] {
        let store = mapped().create(path).unwrap();
        // A stride of 7 spreads splits and free slots over all leaves.
        for number in (0..60).map(|number| number * 7 % 60) {
            store.put(key(number), value(number)).unwrap();
        }
        if clean {
            store.close().unwrap();
        } else {
            drop(store);
        }
        let whole = fs::read(path).unwrap();
        let places: Vec<_> = whole
            .windows(HEAD.len())
            .enumerate()
            .filter(|(_, window)| *window == HEAD.as_bytes())
            .map(|(at, _)| at)
            .collect();
        assert!(places.len() > 60, "separators have records");
        for (case, &at) in places.iter().enumerate() {
            // The tens digit, or a byte after the key in its word.
            let at = at + HEAD.len() + [0, 3][case % 2];
            let mut damaged = whole.clone();
            damaged[at] ^= [1, 2, 4][case % 3];
            fs::write(path, &damaged).unwrap();
            let Ok(store) = mapped().open(path) else { continue };
            for number in 0..60 {
                if let Ok(found) = store.get(key(number)) {
                    assert_eq!(found, Some(value(number)), "{clean}, {at:#x}");
                }
            }
            for (pair, number) in store.iter().zip(0..) {
                let Ok(pair) = pair else { break };
                assert_eq!(pair, (key(number), value(number)), "{clean}, {at:#x}");
            }
            for (number, pair) in (0..60).rev().zip(store.iter().rev()) {
                let Ok(pair) = pair else { break };
                assert_eq!(pair, (key(number), value(number)), "{clean}, {at:#x}");
            }
            let tens = store.scan(key(30)..key(40)).collect::<Result<Vec<_>, _>>();
            if let Ok(tens) = tens {
                assert_eq!(tens, (30..40).map(|n| (key(n), value(n))).collect::<Vec<_>>());
            }
        }
        fs::remove_file(path).unwrap();
    }
}
