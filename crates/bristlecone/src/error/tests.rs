use super::*;

fn error_of(kind: io::ErrorKind) -> Error {
    let source = io::Error::from(kind);
    Error::from_medium(Path::new("a.pool"), MediumError::System { action: "open", source })
}

fn full() -> MediumError {
    MediumError::System { action: "allocate", source: io::ErrorKind::StorageFull.into() }
}

#[test]
fn a_system_error_becomes_the_variant_for_its_cause() {
    assert!(matches!(error_of(io::ErrorKind::NotFound), Error::NotFound { .. }));
    assert!(matches!(error_of(io::ErrorKind::AlreadyExists), Error::AlreadyExists { .. }));
    assert!(matches!(error_of(io::ErrorKind::PermissionDenied), Error::Denied { .. }));
    assert!(matches!(error_of(io::ErrorKind::ReadOnlyFilesystem), Error::Denied { .. }));
    assert!(matches!(error_of(io::ErrorKind::OutOfMemory), Error::System { .. }));
    let locked = Error::from_medium(Path::new("a.pool"), MediumError::Locked);
    assert!(matches!(locked, Error::InUse { .. }));
}

#[test]
fn kinds_have_exit_codes_and_messages_begin_with_the_file() {
    let path = Path::new("a.pool");
    let damage = Corrupt { at: 0x1234, what: "key length", expected: 4096, found: 5000 };
    let source = MediumError::Limit { wanted: 2, limit: 1 };
    let refused = io::Error::from(io::ErrorKind::InvalidInput);
    let cases = [
        (Error::from_pool(path, PoolError::NotAPool { found: 7 }), 3),
        (Error::from_pool(path, PoolError::Superblocks), 3),
        (Error::from_pool(path, PoolError::Truncated { expected: 2, found: 1 }), 3),
        (Error::from_pool(path, PoolError::TooSmall { bytes: 1, minimum: 2 }), 2),
        (Error::from_pool(path, PoolError::OldVersion { at: 8, found: 1, supported: 2 }), 3),
        (Error::from_pool(path, PoolError::Feature { at: 112, bit: 3 }), 3),
        (Error::from_pool(path, PoolError::MayBeTorn { opened_in: 1, now: 2 }), 3),
        (Error::from_pool(path, PoolError::UnclosedCopy { original: 1, found: 2 }), 3),
        (Error::Empty { path: path.into() }, 3),
        (Error::Zeros { path: path.into(), bytes: 1 << 20 }, 3),
        (Error::NotAFile { path: path.into(), kind: "a folder" }, 4),
        (Error::from_pool(path, PoolError::Version { at: 8, found: 9, supported: 1 }), 3),
        (Error::from_pool(path, damage.into()), 3),
        (Error::from_tree(path, TreeError::Foreign { expected: 1, found: 2 }), 3),
        (Error::from_tree(path, TreeError::Foreign { expected: 1, found: 0 }), 3),
        (Error::from_pool(path, PoolError::Full { wanted: 2, reason: source }), 4),
        (Error::NoJournalSpace { path: path.into(), wanted: 64 << 20, source: full() }, 4),
        (Error::from_medium(path, MediumError::Locked), 4),
        (Error::from_medium(path, MediumError::Node { node: 7, source: refused }), 4),
        (Error::TooSmall { path: path.into(), bytes: 1, minimum: 2 }, 2),
    ];
    for (error, code) in cases {
        assert_eq!(error.kind().exit_code(), code, "{error}");
        assert_eq!(error.path(), Some(path));
        assert!(error.to_string().starts_with("a.pool: "), "{error}");
    }
    let damaged = Error::from_pool(path, damage.into()).to_string();
    assert!(damaged.contains("offset 0x1234"), "{damaged}");
    let long = Error::KeyTooLong { bytes: 4097, maximum: 4096 };
    assert_eq!((long.kind().exit_code(), long.path()), (2, None));
}
