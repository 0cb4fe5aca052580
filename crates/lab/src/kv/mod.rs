//! The key-value store behind a server, and its clients: two papers measure their trees so.
//!
//! The server speaks memcached's text protocol over TCP or a Unix socket. Its store is a
//! [`KvStore`](bristlecone_trees::kv::KvStore) over any design. The clients run the workloads of
//! this crate, each over a connection of its own, with one request under way at a time.
//!
//! 1. A reply that acknowledges a change is written after the change is durable. So a kill of the
//!    server undoes no acknowledged change.
//! 2. A request of hostile bytes costs bounded memory: a line has at most
//!    [`LINE_BYTES_MAX`] bytes, a value at most 1 MiB, and a reply leaves in pieces.
//! 3. The server of a measurement is a process of its own, on other processors than the clients, if
//!    there are two. So no client finds what it asks for in its own cache.
//!
//! | module | contents |
//! | --- | --- |
//! | `request`, `reply` | the protocol: bytes to requests, and the texts of replies |
//! | `address` | addresses, listeners and streams of both kinds of sockets |
//! | `service` | a store by the name of its design, and the execution of requests |
//! | `server`, `process` | connections, one thread each; the server as a process |
//! | `client`, `session` | a connection of a client; clients as a system under test |
//! | `run` | one repetition of a workload |

mod address;
mod client;
mod process;
mod reply;
mod request;
mod run;
mod server;
mod service;
mod session;

pub use address::{Address, AddressError};
pub use client::{Client, ClientError};
pub use process::{Serve, ServerProcess};
pub use request::{KEY_BYTES_MAX, LINE_BYTES_MAX, VALUE_BYTES_MAX};
pub use run::{KvMeasured, KvRun, KvTimes, Socket};
pub use server::Server;
pub use service::{Place, Service};
pub use session::OpLatencies;

#[cfg(test)]
mod tests;
