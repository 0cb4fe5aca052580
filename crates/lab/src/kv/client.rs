//! A connection of a client, with one request under way at a time.

use super::address::{Address, Stream};
use super::reply;
use super::request::{KEY_BYTES_MAX, LINE_BYTES_MAX, VALUE_BYTES_MAX, number, words};
use std::io::{self, BufRead, BufReader, Read, Write};
use thiserror::Error;

/// The error type of a client. After an error the connection is of no further use.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The connection cannot be made, or has ended.
    #[error("the connection to the server failed: {0}")]
    Io(#[from] io::Error),
    /// The protocol has no such key.
    #[error("the protocol takes keys of 1 to {KEY_BYTES_MAX} B without spaces and control bytes")]
    Key,
    /// The server has refused a request, or its reply is none of the protocol.
    #[error("the server answered {0:?}")]
    Answer(String),
}

type Result<T> = core::result::Result<T, ClientError>;

/// A connection to a server.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<Stream>,
    request: Vec<u8>,
    line: Vec<u8>,
}

impl Client {
    /// Connects to the server at `address`.
    ///
    /// # Errors
    /// No server listens there.
    pub fn connect(address: &Address) -> Result<Self> {
        let stream = BufReader::with_capacity(16 << 10, Stream::connect(address)?);
        Ok(Self { stream, request: Vec::new(), line: Vec::new() })
    }

    /// Replaces the contents of `value` by the value of `key` and returns `true`. Returns `false`
    /// if the key is absent.
    ///
    /// # Errors
    /// As all requests: the key is none, or the connection or the server failed.
    pub fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let mut is_found = false;
        self.get_many(&[key], |_, found| {
            value.clear();
            value.extend_from_slice(found);
            is_found = true;
        })?;
        Ok(is_found)
    }

    /// Calls `visit` with the index and the value of each of `keys` that is present.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn get_many(&mut self, keys: &[&[u8]], mut visit: impl FnMut(usize, &[u8])) -> Result<()> {
        self.begin(b"get");
        for key in keys {
            self.add_word(check(key)?);
        }
        self.send()?;
        let (mut at, mut value) = (0, Vec::new());
        while !self.read_value(&mut value)? {
            let Some(key) = words(&self.line).nth(1) else { return Err(self.unexpected()) };
            let found = keys[at..].iter().position(|wanted| *wanted == key);
            let Some(found) = found else { return Err(self.unexpected()) };
            at += found;
            visit(at, &value);
            at += 1;
        }
        Ok(())
    }

    /// Sets `key` to `value`, which is durable on return.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if self.store(b"set", key, b"0 0", value)? { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Adds `key` with `value` if it is absent and returns `true`; otherwise returns `false`.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.store(b"add", key, b"0 0", value)
    }

    /// Replaces the value of `key` if it is present and returns `true`; otherwise returns `false`.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn replace(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        self.store(b"replace", key, b"0 0", value)
    }

    /// Replaces the bytes of the value of `key` from `at` on by `field` and returns `true`, or
    /// returns `false` if the key is absent.
    ///
    /// # Errors
    /// As [`get`](Self::get), or the field does not lie within the value.
    pub fn patch(&mut self, key: &[u8], at: usize, field: &[u8]) -> Result<bool> {
        self.store(b"patch", key, at.to_string().as_bytes(), field)
    }

    /// Deletes `key` and returns `true`, or returns `false` if it is absent.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.begin(b"delete");
        self.add_word(check(key)?);
        self.send()?;
        self.either(reply::DELETED, reply::NOT_FOUND)
    }

    /// Returns the value of the counter `name` of the server's `stats`.
    ///
    /// # Errors
    /// As [`get`](Self::get), or there is no such counter.
    pub fn stat(&mut self, name: &str) -> Result<u64> {
        self.begin(b"stats");
        self.send()?;
        let mut found = None;
        loop {
            self.read_line()?;
            if self.line == reply::END.as_bytes() {
                return found.ok_or_else(|| self.unexpected());
            }
            let mut given = words(&self.line).skip(1);
            if given.next() == Some(name.as_bytes()) {
                found = given.next().and_then(number).map(|value| value as u64);
            }
        }
    }

    /// Sends a request with data, and reads its reply.
    fn store(&mut self, command: &[u8], key: &[u8], words: &[u8], data: &[u8]) -> Result<bool> {
        self.begin(command);
        self.add_word(check(key)?);
        self.add_word(words);
        self.add_word(data.len().to_string().as_bytes());
        self.request.extend_from_slice(b"\r\n");
        self.request.extend_from_slice(data);
        self.send()?;
        self.either(reply::STORED, reply::NOT_STORED)
    }

    fn begin(&mut self, command: &[u8]) {
        self.request.clear();
        self.request.extend_from_slice(command);
    }

    fn add_word(&mut self, word: &[u8]) {
        self.request.push(b' ');
        self.request.extend_from_slice(word);
    }

    fn send(&mut self) -> Result<()> {
        self.request.extend_from_slice(b"\r\n");
        Ok(self.stream.get_mut().write_all(&self.request)?)
    }

    /// Reads a line, without its end.
    fn read_line(&mut self) -> Result<()> {
        self.line.clear();
        let mut limited = self.stream.by_ref().take(LINE_BYTES_MAX as u64);
        limited.read_until(b'\n', &mut self.line)?;
        match self.line.strip_suffix(b"\r\n").map(<[u8]>::len) {
            Some(bytes) => self.line.truncate(bytes),
            None => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
        Ok(())
    }

    fn unexpected(&self) -> ClientError {
        ClientError::Answer(String::from_utf8_lossy(&self.line).into_owned())
    }

    /// Reads a reply that is `yes` or `no`.
    fn either(&mut self, yes: &str, no: &str) -> Result<bool> {
        self.read_line()?;
        match &self.line {
            line if line == yes.as_bytes() => Ok(true),
            line if line == no.as_bytes() => Ok(false),
            _ => Err(self.unexpected()),
        }
    }

    /// Reads a value of a reply to `get` and returns `false`, or its end and returns `true`.
    fn read_value(&mut self, value: &mut Vec<u8>) -> Result<bool> {
        self.read_line()?;
        if self.line == reply::END.as_bytes() {
            return Ok(true);
        }
        let mut given = words(&self.line);
        let is_value = given.next() == Some(b"VALUE");
        let bytes = given.nth(2).and_then(number).filter(|&bytes| bytes <= VALUE_BYTES_MAX);
        let Some(bytes) = bytes.filter(|_| is_value) else { return Err(self.unexpected()) };
        value.resize(bytes + 2, 0);
        self.stream.read_exact(value)?;
        value.truncate(bytes);
        Ok(false)
    }
}

fn check(key: &[u8]) -> Result<&[u8]> {
    let is_word = key.iter().all(|&byte| byte > b' ' && byte != 0x7F);
    if is_word && (1..=KEY_BYTES_MAX).contains(&key.len()) {
        Ok(key)
    } else {
        Err(ClientError::Key)
    }
}
