//! A command's session with a store: open, use, close.

use bristlecone::{Domain, Durability, Error, Options, Stats, Store};
use bristlecone_console::progress::waiting;
use bristlecone_console::values;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The options of each command that opens a store.
#[derive(Debug, clap::Args)]
pub(crate) struct OpenArgs {
    /// Wait up to SECONDS while the store is open elsewhere.
    #[arg(long, value_name = "SECONDS", default_value = "0", value_parser = values::seconds)]
    wait: Duration,
    /// Open a store that a power cut may have torn, or a copy of one that was not closed. Its
    /// answers may be wrong, and it may hang: save what is needed, and then make a new store. A
    /// copy that was made while no process had the store open is whole.
    #[arg(long)]
    open_torn: bool,
    #[command(flatten)]
    durability: DurabilityArgs,
}

impl OpenArgs {
    /// Returns the options of the open.
    pub(crate) fn options(&self) -> Options {
        self.durability.options().wait(self.wait).open_torn(self.open_torn)
    }
}

/// The option that says when a write survives a power cut.
#[derive(Debug, clap::Args)]
pub(crate) struct DurabilityArgs {
    /// The moment from which a write to a plain file survives a power cut: when it returns, within
    /// 0.4 s, or once the store is closed [default: interval; process in memory].
    #[arg(long, value_name = "commit|interval|process")]
    pub(crate) durability: Option<Promise>,
}

impl DurabilityArgs {
    /// Returns the options of a store with this durability.
    pub(crate) fn options(&self) -> Options {
        let options = Store::options();
        match self.durability {
            Some(promise) => options.durability(promise.durability()),
            None => options,
        }
    }
}

/// The durability of a store on a plain file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Promise {
    /// A write that has returned survives a power cut.
    Commit,
    /// A thread syncs every 100 ms.
    Interval,
    /// A store without a journal: a power cut may lose any page until it is closed.
    Process,
}

impl Promise {
    /// Returns the durability.
    pub(crate) fn durability(self) -> Durability {
        match self {
            Self::Commit => Durability::Commit,
            Self::Interval => Durability::DEFAULT,
            Self::Process => Durability::Process,
        }
    }

    /// Returns the name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Interval => "interval",
            Self::Process => "process",
        }
    }
}

/// Opens the store at `path`, calls `run`, and closes the store, also after an error.
pub(crate) fn with<R>(
    options: &Options,
    path: &Path,
    run: impl FnOnce(&Store) -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    let store = waiting("opening the store", || options.open(path))?;
    let result = run(&store);
    let closed = close(store);
    let value = result?;
    closed.map(|()| value)
}

/// Closes `store`. Reports damage but does not fail: all writes are durable, and the next open
/// recovers.
///
/// # Errors
/// The file was removed or moved, or the device did not take its pages or its journal: the path of
/// the store may not lead to the writes, or a power cut may lose them.
pub(crate) fn close(store: Store) -> anyhow::Result<()> {
    match store.close() {
        Ok(()) => {}
        Err(error) if !is_damage(&error) => return Err(error.into()),
        Err(error) => {
            let _ = writeln!(
                std::io::stderr(),
                "bristlecone: cannot close the store cleanly, so the next open takes longer: \
                 {error}"
            );
        }
    }
    Ok(())
}

/// Returns what helps a user whose store is damaged, if `error` says that it is.
pub(crate) fn advice(error: &anyhow::Error) -> Option<&'static str> {
    let error = error.chain().find_map(|cause| cause.downcast_ref::<Error>())?;
    match error {
        Error::Damaged { .. } | Error::Superblocks { .. } | Error::CutShort { .. } => Some(
            "a copy that was made while the store was open may be damaged like this: copy it again \
             with the store closed. Else restore a backup, or save the pairs that are whole with \
             `bristlecone salvage DAMAGED INTO`",
        ),
        _ => None,
    }
}

/// Returns a key or value of the command line, byte for byte.
pub(crate) fn bytes(argument: &OsStr) -> &[u8] {
    argument.as_bytes()
}

/// Returns the crashes that a write to a store survives, in words.
pub(crate) fn survives(stats: &Stats) -> String {
    let durability = stats.journal.as_ref().map(|journal| journal.durability);
    match (stats.domain, durability) {
        (Domain::Disk, Some(Durability::Interval(time))) => {
            format!("a kill of the process; a power cut once it is synced, every {time:?}")
        }
        (Domain::Disk, _) => "a power cut (each write is synced)".into(),
        (Domain::Adr, _) => "a power cut (lines are flushed)".into(),
        (Domain::Eadr, _) => "a power cut (caches are safe)".into(),
        (Domain::ProcessCrash, _) => "a kill of the process, not a power cut".into(),
        (Domain::Volatile, _) => "nothing".into(),
    }
}

/// Returns `true` if `error` says that the store itself is damaged.
pub(crate) fn is_damage(error: &Error) -> bool {
    error.kind() == bristlecone::ErrorKind::Damaged
}

#[cfg(test)]
mod tests {
    use super::*;
    use bristlecone_pmem::journal::{DiskFiles, DiskTrace};
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A device that refuses each sync once this is `true`.
    #[derive(Debug, Default)]
    struct Device(AtomicBool);

    impl DiskTrace for Device {
        fn begin(&self, _: DiskFiles) {}
        fn write(&self, _: Option<u64>, _: u64, _: &[u8]) -> io::Result<()> {
            Ok(())
        }
        fn written(&self, _: Option<u64>) {}
        fn sync(&self, _: Option<u64>) -> io::Result<()> {
            let refuses = self.0.load(Ordering::Relaxed);
            if refuses { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
        }
        fn synced(&self, _: Option<u64>) {}
        fn grow(&self, _: u64) -> io::Result<()> {
            Ok(())
        }
        fn grown(&self, _: u64) {}
    }

    /// The thread of the journal may meet the refusal first.
    fn is_of_device(error: &Error) -> bool {
        matches!(error, Error::System { .. } | Error::WritesEnded { .. })
    }

    /// Puts a pair into a store on a device that refuses each sync from then on. Returns the error
    /// of the close.
    fn refused_close(syncs_before: bool) -> Error {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pool");
        Store::options().durability(Durability::Process).create(&path).unwrap().close().unwrap();
        let options = Store::options().durability(Durability::Interval(Duration::from_secs(3600)));
        let options = options.journal_bytes(1 << 20).trust_file_system(true);
        let device = Arc::new(Device::default());
        let store = options.open_traced(&path, device.clone()).unwrap();
        store.put("a", "1").unwrap();
        device.0.store(true, Ordering::Relaxed);
        if syncs_before {
            let error = store.sync().unwrap_err();
            assert!(is_of_device(&error), "{error:?}");
        }
        close(store).unwrap_err().downcast().unwrap()
    }

    #[test]
    fn a_close_after_a_sync_that_failed_is_an_error() {
        let error = refused_close(true);
        assert!(matches!(error, Error::WritesEnded { .. }), "{error:?}");
    }

    /// A command once succeeded whose close had found the file system read-only, as ext4 makes it
    /// after an error: its writes were not on the device.
    #[test]
    fn a_close_on_a_file_system_that_became_read_only_is_an_error() {
        let error = refused_close(false);
        assert!(is_of_device(&error), "{error:?}");
    }
}
