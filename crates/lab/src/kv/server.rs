//! The server: one thread accepts connections, and each connection has a thread.

use super::address::{Address, Listener, Stream};
use super::reply;
use super::request::{Parsed, parse};
use super::service::{Flow, Service};
use crate::error::{LabError, Result};
use core::sync::atomic::{AtomicBool, Ordering};
use std::io::{self, BufWriter, Read, Write};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// The greatest number of connections: that of memcached.
const CONNECTIONS_MAX: usize = 1024;
/// The time after a connection that could not be accepted, such as for a lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// The bytes that are read at once.
const READ_BYTES: usize = 16 << 10;
/// The bytes of replies that leave at once.
const WRITE_BYTES: usize = 64 << 10;

/// A server that runs until [`stop`](Self::stop).
#[derive(Debug)]
pub struct Server {
    address: Address,
    shared: Arc<Shared>,
    acceptor: JoinHandle<Vec<Connection>>,
}

#[derive(Debug)]
struct Shared {
    service: Service,
    is_stopping: AtomicBool,
    /// Set by the thread that accepts connections once it takes no more, while it still listens.
    has_stopped: AtomicBool,
}

/// A connection, and its thread.
#[derive(Debug)]
struct Connection {
    stream: Stream,
    thread: JoinHandle<()>,
}

impl Server {
    /// Starts a server of `service` that listens at `address`.
    ///
    /// # Errors
    /// The address is in use, or the system refuses it.
    pub fn start(address: &Address, service: Service) -> Result<Self> {
        let refused = |source| LabError::Address { address: address.to_string(), source };
        let listener = Listener::bind(address).map_err(refused)?;
        let bound = listener.address(address).map_err(refused)?;
        let (is_stopping, has_stopped) = (AtomicBool::new(false), AtomicBool::new(false));
        let shared = Arc::new(Shared { service, is_stopping, has_stopped });
        let of_acceptor = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || accept(&listener, &of_acceptor));
        Ok(Self { address: bound, shared, acceptor })
    }

    /// Returns the address at which clients connect.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Ends all connections and returns the service, which no thread uses any more. A request that
    /// is under way is done first; its client may get no reply.
    ///
    /// # Errors
    /// A thread of the server has panicked, or the server cannot be reached to stop it.
    pub fn stop(self) -> Result<Service> {
        let panicked = |_| LabError::Server("a thread of the server panicked".into());
        self.shared.is_stopping.store(true, Ordering::Release);
        // The connection wakes the thread that waits for one, unless that of a client already has.
        if let Err(source) = Stream::connect(&self.address)
            && !self.shared.has_stopped.load(Ordering::Acquire)
        {
            return Err(LabError::Address { address: self.address.to_string(), source });
        }
        let connections = self.acceptor.join().map_err(panicked)?;
        for connection in &connections {
            connection.stream.shut();
        }
        for connection in connections {
            connection.thread.join().map_err(panicked)?;
        }
        if let Address::Unix(path) = &self.address {
            // If the socket is gone already, nothing is left to do.
            let _ = std::fs::remove_file(path);
        }
        let shared = Arc::into_inner(self.shared).expect("its threads have ended");
        Ok(shared.service)
    }
}

/// Accepts connections until the server stops, and returns those that may be open.
fn accept(listener: &Listener, shared: &Arc<Shared>) -> Vec<Connection> {
    let mut connections: Vec<Connection> = Vec::new();
    loop {
        let accepted = listener.accept();
        if shared.is_stopping.load(Ordering::Acquire) {
            shared.has_stopped.store(true, Ordering::Release);
            return connections;
        }
        connections.retain(|connection| !connection.thread.is_finished());
        let started = accepted.and_then(|mut stream| {
            if connections.len() >= CONNECTIONS_MAX {
                write!(stream, "{}\r\n", reply::CROWDED)?;
                return Ok(());
            }
            connections.push(start(stream, shared)?);
            Ok(())
        });
        if started.is_err() {
            std::thread::sleep(ACCEPT_PAUSE);
        }
    }
}

fn start(stream: Stream, shared: &Arc<Shared>) -> io::Result<Connection> {
    let (mut own, shared) = (stream.try_clone()?, Arc::clone(shared));
    let thread = std::thread::Builder::new().spawn(move || {
        shared.service.count_connection(1);
        // An error is that of a client that has gone, which cannot be told of it.
        let _ = converse(&mut own, &shared.service);
        shared.service.count_connection(-1);
        own.shut();
    })?;
    Ok(Connection { stream, thread })
}

/// Answers the requests of a connection until it ends.
fn converse(stream: &mut Stream, service: &Service) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(WRITE_BYTES, stream.try_clone()?);
    let (mut received, mut buffer) = (Vec::new(), Vec::new());
    // The bytes still to arrive that belong to no request.
    let mut skipped = 0;
    loop {
        let mut done = skipped.min(received.len());
        skipped -= done;
        while skipped == 0 {
            let used = match parse(&received[done..]) {
                Parsed::Incomplete => break,
                Parsed::Request(request, bytes) => {
                    if service.execute(&request, &mut buffer, &mut out)? == Flow::Close {
                        return out.flush();
                    }
                    bytes
                }
                Parsed::Refused { reply, bytes } => {
                    if !reply.is_empty() {
                        write!(out, "{reply}\r\n")?;
                    }
                    bytes
                }
                Parsed::Endless(reply) => {
                    write!(out, "{reply}\r\n")?;
                    return out.flush();
                }
            };
            let at_hand = used.min(received.len() - done);
            skipped = used - at_hand;
            done += at_hand;
        }
        out.flush()?;
        received.drain(..done);
        if read_more(stream, &mut received)? == 0 {
            return Ok(());
        }
    }
}

/// Appends the bytes that arrive next to `received` and returns their number, 0 at the end.
fn read_more(stream: &mut Stream, received: &mut Vec<u8>) -> io::Result<usize> {
    let kept = received.len();
    received.resize(kept + READ_BYTES, 0);
    loop {
        match stream.read(&mut received[kept..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            found => {
                let bytes = *found.as_ref().unwrap_or(&0);
                received.truncate(kept + bytes);
                return found;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::tests::place;

    #[test]
    fn a_server_stops_although_a_client_has_waked_it() {
        let folder = tempfile::tempdir().unwrap();
        let service = Service::open("isle-tree", &place(folder.path())).unwrap();
        let address = Address::Unix(folder.path().join("kv.socket"));
        let server = Server::start(&address, service).unwrap();
        server.shared.is_stopping.store(true, Ordering::Release);
        let _client = Stream::connect(&address).unwrap();
        while !server.acceptor.is_finished() {
            std::thread::yield_now();
        }
        server.stop().unwrap();
    }
}
