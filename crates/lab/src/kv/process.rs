//! The server as a process: its arguments, start and end.

use super::address::Address;
use super::service::Place;
use crate::error::{LabError, Result};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The first word of the line that a server prints as soon as it listens; its address follows.
pub(super) const LISTENING: &str = "listening";

/// A server to be started: its design, its address and the place of its store.
#[derive(Clone, Debug)]
pub struct Serve {
    /// The name of the design of the index.
    pub design: String,
    /// The address at which the server listens.
    pub address: Address,
    /// The place of the store.
    pub place: Place,
}

impl Serve {
    /// Returns the line that a server prints as soon as it listens at `address`.
    pub fn line(address: &Address) -> String {
        format!("{LISTENING} {address}")
    }

    /// Returns the arguments of `bristlecone-lab` for a server that ends with its standard input.
    fn arguments(&self) -> Vec<String> {
        let Place { pool, bytes, domain, flushing, delays } = &self.place;
        let (flush, fence) = (delays.flush.as_nanos(), delays.fence.as_nanos());
        vec![
            "kv".into(),
            "--until-eof".into(),
            format!("--design={}", self.design),
            format!("--serve={}", self.address),
            format!("--pool={}", pool.display()),
            format!("--pool-bytes={bytes}"),
            format!("--domain={domain}"),
            format!("--flush={}", flushing.name()),
            format!("--delay-ns={flush},{fence}"),
        ]
    }
}

/// A process that serves. It is killed when this value is dropped.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    address: Address,
}

impl ServerProcess {
    /// Starts `program`, a `bristlecone-lab`, as a server, and waits until it listens. It runs on
    /// the processors of the calling thread, and ends if this process does.
    ///
    /// # Errors
    /// The program cannot be run, or has ended with an error, which standard error shows.
    pub fn start(program: &Path, serve: &Serve) -> Result<Self> {
        let failed = |source| LabError::File { path: program.to_owned(), source };
        let mut command = Command::new(program);
        command.args(serve.arguments()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().map_err(failed)?;
        let mut server = Self { child, address: serve.address.clone() };
        let mut line = String::new();
        if let Some(output) = server.child.stdout.as_mut() {
            BufReader::new(output).read_line(&mut line).map_err(failed)?;
        }
        let address =
            line.trim_end().strip_prefix(LISTENING).and_then(|rest| rest.trim().parse().ok());
        let silent =
            || LabError::Server("the process of the server has not begun to listen".into());
        server.address = address.ok_or_else(silent)?;
        Ok(server)
    }

    /// Returns the address at which clients connect.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Lets the server close its store and end.
    ///
    /// # Errors
    /// The server has failed, or was killed.
    pub fn stop(mut self) -> Result<()> {
        drop(self.child.stdin.take());
        let status = self.child.wait().map_err(|error| LabError::Server(error.to_string()))?;
        if status.success() {
            return Ok(());
        }
        Err(LabError::Server(format!("the process of the server ended: {status}")))
    }

    /// Ends the server as a crash of its process does.
    ///
    /// # Errors
    /// The process cannot be ended.
    pub fn kill(mut self) -> Result<()> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map(|_| ()).map_err(|error| LabError::Server(error.to_string()))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Both fail if the process has ended, which is what they are for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
