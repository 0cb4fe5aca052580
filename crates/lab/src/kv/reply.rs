//! The texts of replies: those of memcached, where it has them.

/// The reply to a line that is no command, or lacks a word.
pub(crate) const ERROR: &str = "ERROR";
/// The reply to a line with a bad length, a bad number or a key that is too long.
pub(crate) const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";
/// The reply to a `delete` with further words.
pub(crate) const BAD_DELETE: &str =
    "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]";
/// The reply to data that do not end where their length says.
pub(crate) const BAD_DATA: &str = "CLIENT_ERROR bad data chunk";
/// The reply to a `patch` beyond the end of the value.
pub(crate) const NO_FIELD: &str = "CLIENT_ERROR the bytes lie outside the value";
/// The reply to a line without an end. The connection is closed.
pub(crate) const LONG_LINE: &str = "CLIENT_ERROR line too long";
/// The reply to a value that is too long.
pub(crate) const TOO_LARGE: &str = "SERVER_ERROR object too large for cache";
/// The reply to a change that finds no space.
pub(crate) const FULL: &str = "SERVER_ERROR out of memory storing object";
/// The reply to a value that shall expire, which no value of this store does.
pub(crate) const NO_EXPIRY: &str = "CLIENT_ERROR invalid exptime argument";
/// The reply to a connection beyond the greatest number. It is closed.
pub(crate) const CROWDED: &str = "ERROR Too many open connections";

pub(crate) const STORED: &str = "STORED";
pub(crate) const NOT_STORED: &str = "NOT_STORED";
pub(crate) const DELETED: &str = "DELETED";
pub(crate) const NOT_FOUND: &str = "NOT_FOUND";
pub(crate) const OK: &str = "OK";
pub(crate) const END: &str = "END";
