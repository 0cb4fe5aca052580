//! The requests of memcached's text protocol: a pure function from bytes to requests.
//!
//! A command is a line; `set`, `add`, `replace` and `patch` have a block of data behind it. Lines
//! end with `\n`, and a `\r` before it is dropped. Words are separated by spaces.
//!
//! `patch KEY OFFSET BYTES` is this server's own: it replaces a part of a value, as the update of
//! the Isle-Tree paper does. Its data and its replies are those of `replace`.

use super::reply;
use bristlecone_trees::kv;

/// The longest key, in bytes: that of memcached.
pub const KEY_BYTES_MAX: usize = 250;
/// The size of the flags with which the store keeps a value, in bytes.
pub(super) const FLAGS_BYTES: usize = 4;
/// The longest value, in bytes.
pub const VALUE_BYTES_MAX: usize = kv::VALUE_BYTES_MAX - FLAGS_BYTES;
/// The longest line, in bytes: a `get` of some 250 keys of the greatest length.
pub const LINE_BYTES_MAX: usize = 64 << 10;
/// The end of a line and of a block of data.
const END: &[u8] = b"\r\n";

/// The way in which a request stores its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreMode {
    /// The request stores the value in any case.
    Set,
    /// The request stores the value if the key is absent.
    Add,
    /// The request stores the value if the key is present.
    Replace,
    /// The request overwrites the present value from this byte on.
    Patch(usize),
}

/// A request, whose words lie in the bytes that were parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request<'a> {
    /// `get` or, with `is_unique`, `gets`. `keys` are words, each no longer than a key.
    Get { keys: &'a [u8], is_unique: bool },
    /// A request with data.
    Store { mode: StoreMode, key: &'a [u8], flags: u32, data: &'a [u8], is_quiet: bool },
    /// `delete`.
    Delete { key: &'a [u8], is_quiet: bool },
    /// `stats`.
    Stats,
    /// `version`.
    Version,
    /// `verbosity`, which changes nothing.
    Verbosity { is_quiet: bool },
    /// `quit`.
    Quit,
}

/// The meaning of the first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// The begin of a request.
    Incomplete,
    /// A request, and the number of its bytes.
    Request(Request<'a>, usize),
    /// A line that is refused with `reply`, which is empty if the client wants none. `bytes` from
    /// the begin of the line on are no request; there may be more of them than have arrived.
    Refused { reply: &'static str, bytes: usize },
    /// A line without an end: the connection has to be closed after the reply.
    Endless(&'static str),
}

/// Returns the words of `line`.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ').filter(|word| !word.is_empty())
}

/// Returns what `bytes` begin with.
pub(crate) fn parse(bytes: &[u8]) -> Parsed<'_> {
    let window = &bytes[..bytes.len().min(LINE_BYTES_MAX)];
    let Some(end) = window.iter().position(|&byte| byte == b'\n') else {
        let is_endless = bytes.len() >= LINE_BYTES_MAX;
        return if is_endless { Parsed::Endless(reply::LONG_LINE) } else { Parsed::Incomplete };
    };
    let line = &bytes[..end];
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let (rest, line_bytes) = (&bytes[end + 1..], end + 1);
    let refused = |reply| Parsed::Refused { reply, bytes: line_bytes };
    let mut given = words(line);
    let Some(command) = given.next() else { return refused(reply::ERROR) };
    let request = match command {
        b"get" | b"gets" => get(line, command),
        b"set" | b"add" | b"replace" | b"patch" => return store(line, line_bytes, rest),
        b"delete" => delete(given),
        b"stats" => Ok(Request::Stats),
        b"version" => Ok(Request::Version),
        b"verbosity" => Ok(Request::Verbosity { is_quiet: is_quiet(given.last()) }),
        b"quit" => Ok(Request::Quit),
        _ => Err(reply::ERROR),
    };
    match request {
        Ok(request) => Parsed::Request(request, line_bytes),
        Err(reply) => refused(reply),
    }
}

fn get<'a>(line: &'a [u8], command: &[u8]) -> Result<Request<'a>, &'static str> {
    // Spaces may stand before the command.
    let start = line.iter().position(|&byte| byte != b' ').unwrap_or(0) + command.len();
    let keys = &line[start..];
    if words(keys).next().is_none() {
        return Err(reply::ERROR);
    }
    if words(keys).any(|key| key.len() > KEY_BYTES_MAX) {
        return Err(reply::BAD_FORMAT);
    }
    Ok(Request::Get { keys, is_unique: command == b"gets" })
}

fn delete<'a>(mut given: impl Iterator<Item = &'a [u8]>) -> Result<Request<'a>, &'static str> {
    let Some(key) = given.next() else { return Err(reply::ERROR) };
    if key.len() > KEY_BYTES_MAX {
        return Err(reply::BAD_FORMAT);
    }
    // An old form has a time, of which memcached takes 0 alone.
    let is_quiet = match [given.next(), given.next(), given.next()] {
        [None | Some(b"0"), None, None] => false,
        [Some(b"noreply"), None, None] | [Some(b"0"), Some(b"noreply"), None] => true,
        _ => return Err(reply::BAD_DELETE),
    };
    Ok(Request::Delete { key, is_quiet })
}

fn is_quiet(last: Option<&[u8]>) -> bool {
    last == Some(b"noreply")
}

/// The line of a request with data, except its command.
struct Head<'a> {
    key: &'a [u8],
    /// The mode and the flags, or the reply to a line that has no valid ones.
    meaning: Result<(StoreMode, u32), &'static str>,
    data_bytes: usize,
    is_quiet: bool,
}

/// Reads a request with data. If the length of the data is known, data of a line that is refused
/// are no requests.
fn store<'a>(line: &'a [u8], line_bytes: usize, rest: &'a [u8]) -> Parsed<'a> {
    let Head { key, meaning, data_bytes, is_quiet } = match head(line) {
        Ok(head) => head,
        Err(reply) => return Parsed::Refused { reply, bytes: line_bytes },
    };
    let refused = |reply| {
        let reply = if is_quiet { "" } else { reply };
        Parsed::Refused { reply, bytes: line_bytes + data_bytes + END.len() }
    };
    let (mode, flags) = match meaning {
        Err(reply) => return refused(reply),
        Ok(_) if data_bytes > VALUE_BYTES_MAX => return refused(reply::TOO_LARGE),
        Ok(meaning) => meaning,
    };
    let Some((block, _)) = rest.split_at_checked(data_bytes + END.len()) else {
        return Parsed::Incomplete;
    };
    let Some(data) = block.strip_suffix(END) else { return refused(reply::BAD_DATA) };
    let request = Request::Store { mode, key, flags, data, is_quiet };
    Parsed::Request(request, line_bytes + block.len())
}

/// Reads the line of a request with data.
///
/// # Errors
/// The reply to a line that lacks a word, or has no length.
fn head(line: &[u8]) -> Result<Head<'_>, &'static str> {
    /// The longest data of which memcached reads the length.
    const LENGTH_MAX: usize = i32::MAX as usize - END.len();
    let mut given = words(line);
    let command = given.next();
    let mut next = || given.next().ok_or(reply::ERROR);
    let is_patch = command == Some(b"patch");
    let (key, second) = (next()?, next()?);
    let expiry = if is_patch { None } else { Some(next()?) };
    let length = next()?;
    let is_quiet = match [given.next(), given.next()] {
        [None, None] => false,
        [last, None] if is_quiet(last) => true,
        _ => return Err(reply::ERROR),
    };
    let data_bytes = number(length).filter(|&bytes| bytes <= LENGTH_MAX);
    let data_bytes = data_bytes.ok_or(reply::BAD_FORMAT)?;
    let mode = match command {
        Some(b"set") => Some(StoreMode::Set),
        Some(b"add") => Some(StoreMode::Add),
        Some(b"replace") => Some(StoreMode::Replace),
        _ => number(second).map(StoreMode::Patch),
    };
    let flags =
        if is_patch { Some(0) } else { number(second).map(u32::try_from).and_then(Result::ok) };
    let meaning = match (mode.zip(flags), expiry.map_or(Some(0), number)) {
        (Some(meaning), Some(0)) if key.len() <= KEY_BYTES_MAX => Ok(meaning),
        (Some(_), Some(1..)) if key.len() <= KEY_BYTES_MAX => Err(reply::NO_EXPIRY),
        _ => Err(reply::BAD_FORMAT),
    };
    Ok(Head { key, meaning, data_bytes, is_quiet })
}

/// Returns the number that `word` has in decimal digits, and `None` if it has others or too many.
pub(super) fn number(word: &[u8]) -> Option<usize> {
    /// The digits of 2^63.
    const DIGITS_MAX: usize = 19;
    let is_number = (1..=DIGITS_MAX).contains(&word.len()) && word.iter().all(u8::is_ascii_digit);
    is_number.then(|| str::from_utf8(word).ok()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
