use super::*;
use crate::medium::{FileOptions, Mapped};

fn pool_of(bytes: u64) -> Pool<Mapped> {
    Pool::create(Mapped::anonymous(bytes).unwrap()).unwrap()
}

#[test]
fn a_closed_pool_opens_clean_and_a_dropped_one_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let block = pool.reserve(100).unwrap();
    let fenced = pool.medium().fence();
    pool.create_root("r", 7, block, fenced).unwrap();
    let used = pool.usage().used_bytes;
    pool.close().unwrap();

    let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    assert_eq!(opened, Opened::Clean);
    assert_eq!(pool.usage().used_bytes, used);
    assert_eq!(pool.generation(), 2);
    let root = pool.root("r").unwrap().unwrap();
    assert_eq!((root.kind, root.block), (7, block));
    assert!(matches!(Mapped::open(&path, &options), Err(MediumError::Locked)));
    drop(pool);

    let (pool, opened) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    assert_eq!(opened, Opened::Crashed);
    assert!(matches!(pool.reserve(1), Err(PoolError::Recovering)));
    pool.mark(root.block, 100).unwrap();
    pool.finish_recovery();
    assert_eq!(pool.usage().used_bytes, used);
}

#[test]
fn a_pool_grows_while_it_is_used_until_its_limit() {
    let pool = pool_of(POOL_BYTES_MIN);
    pool.limit(4 << 20);
    let mut blocks = 0;
    let full = loop {
        match pool.reserve(16 << 10) {
            Ok(block) => {
                blocks += 1;
                pool.medium().store(&pool.words(block, 2048).unwrap()[2047], 1);
            }
            Err(error) => break error,
        }
    };
    assert!(matches!(full, PoolError::Full { .. }), "{full}");
    assert_eq!(blocks, (4 << 20) / (16 << 10) - 2);
}

#[test]
fn hostile_headers_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let options = FileOptions::default();
    let try_open = || Pool::open(Mapped::open(&path, &options).unwrap()).map(|(_, opened)| opened);
    Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap().close().unwrap();
    let good = std::fs::read(&path).unwrap();
    let with = |changes: &[(usize, u8)]| {
        let mut bytes = good.clone();
        for &(at, flip) in changes {
            bytes[at] ^= flip;
        }
        std::fs::write(&path, bytes).unwrap();
    };

    for at in 0..128 {
        for copy in [0, 0x1000] {
            with(&[(copy + at, 1)]);
            assert!(try_open().is_ok(), "one damaged copy is no loss");
        }
        with(&[(at, 1), (0x1000 + at, 1)]);
        let error = try_open().unwrap_err();
        match at {
            0..8 => assert!(matches!(error, PoolError::NotAPool { .. }), "{error}"),
            _ => assert!(matches!(error, PoolError::Superblocks), "{error}"),
        }
    }
    std::fs::write(&path, &good[..700_000]).unwrap();
    assert!(matches!(try_open(), Err(PoolError::Truncated { .. })));
    std::fs::write(&path, b"hello").unwrap();
    assert!(matches!(try_open(), Err(PoolError::TooSmall { .. })));
    std::fs::write(&path, vec![7; 1 << 20]).unwrap();
    assert!(matches!(try_open(), Err(PoolError::NotAPool { .. })));
}

#[test]
fn a_pointer_outside_the_pool_is_an_error() {
    let pool = pool_of(1 << 20);
    assert!(pool.words(PmPtr::new((1 << 20) - 8), 1).is_ok());
    for at in [(1 << 20) - 4, 1 << 20, u64::MAX - 7, 12] {
        assert!(pool.words(PmPtr::new(at), 1).is_err());
    }
    assert!(pool.words(PmPtr::new(8), 1 << 20).is_err());
}

#[test]
fn retired_blocks_are_not_lost_by_a_close() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let options = FileOptions::default();
    let pool = Pool::create(Mapped::create(&path, 1 << 20, &options).unwrap()).unwrap();
    let guard = crate::sync::pin();
    for _ in 0..100 {
        let block = pool.reserve(256).unwrap();
        pool.retire(block, 256, &guard);
    }
    pool.close().unwrap();
    let (pool, _) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    drop(guard);
    assert_eq!(pool.usage().blocks, 1); // The header.
}

#[test]
fn a_creation_that_was_cut_off_is_taken_over_and_a_pool_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("p.pool");
    let options = FileOptions::default();
    let recreate =
        || Mapped::recreate(&path, 1 << 20, &options, crate::pool::holds_nothing).map(Pool::create);
    let mut torn = vec![0; 1 << 20];
    torn[0x1000..0x1040].fill(0xa5);
    for blank in [&[][..], &[0; 5000], &torn] {
        std::fs::write(&path, blank).unwrap();
        recreate().unwrap().unwrap().close().unwrap();
    }
    torn[0x2000] = 1;
    let pool = std::fs::read(&path).unwrap();
    for used in [&torn, &pool] {
        std::fs::write(&path, used).unwrap();
        assert!(matches!(recreate(), Err(MediumError::System { .. })));
        assert_eq!(&std::fs::read(&path).unwrap(), used);
    }
    let (_open, _) = Pool::open(Mapped::open(&path, &options).unwrap()).unwrap();
    assert!(matches!(recreate(), Err(MediumError::Locked)));
}
