use super::*;
use proptest::prelude::*;

fn stored(mode: StoreMode, flags: u32, data: &[u8]) -> Request<'_> {
    Request::Store { mode, key: b"key", flags, data, is_quiet: false }
}

fn refused(reply: &'static str, bytes: usize) -> Parsed<'static> {
    Parsed::Refused { reply, bytes }
}

#[test]
fn requests_are_read_as_memcached_reads_them() {
    let expected: [(&[u8], Request<'_>); 10] = [
        (b"set key 7 0 5\r\nva\r\nl\r\n", stored(StoreMode::Set, 7, b"va\r\nl")),
        (b"add key 0 0 0\r\n\r\n", stored(StoreMode::Add, 0, b"")),
        (b"replace key 4294967295 0 1\nx\r\n", stored(StoreMode::Replace, u32::MAX, b"x")),
        (b"patch key 17 2\r\nxy\r\n", stored(StoreMode::Patch(17), 0, b"xy")),
        (b"get a  b \r\n", Request::Get { keys: b" a  b ", is_unique: false }),
        (b"  gets a\r\n", Request::Get { keys: b" a", is_unique: true }),
        (b"delete a 0 noreply\r\n", Request::Delete { key: b"a", is_quiet: true }),
        (b"verbosity 1 noreply\r\n", Request::Verbosity { is_quiet: true }),
        (b"stats items\n", Request::Stats),
        (b"quit\r\n", Request::Quit),
    ];
    for (bytes, request) in expected {
        assert_eq!(parse(bytes), Parsed::Request(request, bytes.len()));
        for end in 0..bytes.len() {
            assert_eq!(parse(&bytes[..end]), Parsed::Incomplete, "{end} bytes of {request:?}");
        }
    }
    assert_eq!(words(b" a  b ").collect::<Vec<_>>(), [b"a", b"b"]);
}

#[test]
fn lines_that_are_no_requests_are_refused() {
    let long = [b'k'; KEY_BYTES_MAX + 1];
    let of_key = |before: &str, after: &str| [before.as_bytes(), &long, after.as_bytes()].concat();
    let expected: Vec<(Vec<u8>, &str)> = vec![
        (b"\r\n".into(), reply::ERROR),
        (b"GET a\r\n".into(), reply::ERROR),
        (b"get\r\n".into(), reply::ERROR),
        (b"set key 0 0\r\n".into(), reply::ERROR),
        (b"set key 0 0 1 x\r\n".into(), reply::ERROR),
        (b"delete\r\n".into(), reply::ERROR),
        (b"delete a 1\r\n".into(), reply::BAD_DELETE),
        (b"set key 0 0 -1\r\n".into(), reply::BAD_FORMAT),
        (b"set key 0 0 1e3\r\n".into(), reply::BAD_FORMAT),
        (b"set key 0 0 2147483648\r\n".into(), reply::BAD_FORMAT),
        (b"set key 0 0 99999999999999999999\r\n".into(), reply::BAD_FORMAT),
        (of_key("get ", "\r\n"), reply::BAD_FORMAT),
        (of_key("delete ", "\r\n"), reply::BAD_FORMAT),
    ];
    for (bytes, reply) in expected {
        assert_eq!(parse(&bytes), refused(reply, bytes.len()), "{}", bytes.escape_ascii());
    }
}

/// Data that belong to a line which is refused could else be taken for requests.
#[test]
fn data_of_a_refused_line_are_no_requests() {
    let refusals = [
        ("set key -1 0 6", reply::BAD_FORMAT),
        ("set key 4294967296 0 6", reply::BAD_FORMAT),
        ("set key 0 60 6", reply::NO_EXPIRY),
        ("set key 0 -1 6", reply::BAD_FORMAT),
        ("patch key x 6", reply::BAD_FORMAT),
        ("set key 0 60 6 noreply", ""),
    ];
    for (line, reply) in refusals {
        let bytes = format!("{line}\r\nquit\r\n\r\n");
        assert_eq!(parse(bytes.as_bytes()), refused(reply, bytes.len()), "{line}");
    }
    let long = format!("set {} 0 0 2\r\nxx\r\n", "k".repeat(KEY_BYTES_MAX + 1));
    assert_eq!(parse(long.as_bytes()), refused(reply::BAD_FORMAT, long.len()));
    let line = format!("set key 0 0 {}\r\n", VALUE_BYTES_MAX + 1);
    let bytes = line.len() + VALUE_BYTES_MAX + 3;
    assert_eq!(parse(line.as_bytes()), refused(reply::TOO_LARGE, bytes));
    assert_eq!(parse(b"set key 0 0 2\r\nxxx\r\n"), refused(reply::BAD_DATA, 19));
}

#[test]
fn a_line_without_an_end_is_not_kept() {
    let bytes = vec![b'x'; LINE_BYTES_MAX];
    assert_eq!(parse(&bytes[1..]), Parsed::Incomplete);
    assert_eq!(parse(&bytes), Parsed::Endless(reply::LONG_LINE));
}

/// Bytes near those of requests.
fn near_requests() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        prop::sample::select(vec![
            "set",
            "get",
            "gets",
            "add",
            "replace",
            "patch",
            "delete",
            "noreply",
            "quit",
            "\r\n",
            "\n",
            "0",
            "1",
            "-1",
            "12",
            "4294967296",
            "18446744073709551615",
            "key",
        ])
        .prop_map(|word| word.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..20),
    ];
    prop::collection::vec(word, 0..20).prop_map(|words| words.join(&b' '))
}

proptest! {
    /// Whatever arrives is answered, and what is used up is at least a byte.
    #[test]
    fn any_bytes_are_read(
        bytes in prop_oneof![near_requests(), prop::collection::vec(any::<u8>(), 0..300)],
    ) {
        let mut at = 0;
        while at < bytes.len() {
            match parse(&bytes[at..]) {
                Parsed::Incomplete | Parsed::Endless(_) => break,
                Parsed::Request(_, used) => {
                    prop_assert!(used > 0 && used <= bytes.len() - at);
                    at += used;
                }
                Parsed::Refused { bytes: used, .. } => {
                    prop_assert!(used > 0);
                    at += used;
                }
            }
        }
    }

    #[test]
    fn a_request_is_read_as_it_was_written(
        key in prop::collection::vec(0x21..0x7F_u8, 1..=KEY_BYTES_MAX),
        data in prop::collection::vec(any::<u8>(), 0..400),
        flags: u32,
        is_quiet: bool,
        rest in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let mut bytes = b"set ".to_vec();
        bytes.extend_from_slice(&key);
        let end = if is_quiet { " noreply" } else { "" };
        bytes.extend_from_slice(format!(" {flags} 0 {}{end}\r\n", data.len()).as_bytes());
        bytes.extend_from_slice(&data);
        bytes.extend_from_slice(END);
        let used = bytes.len();
        bytes.extend_from_slice(&rest);
        let mode = StoreMode::Set;
        let request = Request::Store { mode, key: &key, flags, data: &data, is_quiet };
        prop_assert_eq!(parse(&bytes), Parsed::Request(request, used));
    }
}
