//! The names of peers, and the match from a name to a peer.

use super::btreemap::{Alone, Locked, MapKey};
use super::congee::Congee;
#[cfg(feature = "peers")]
use super::disk;
use super::pibench::Library;
use super::site::Site;
use super::skiplist::SkipList;
use super::tree_index::TreeIndex;
use crate::error::{LabError, Result};
use crate::system::boxed::BoxedSystem;
use bristlecone_trees::Text;
use core::fmt;
use std::path::PathBuf;

/// A map, store or library that others have made, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer(PeerKind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum PeerKind {
    BTreeMap,
    SkipList,
    TreeIndex,
    Congee,
    #[cfg(feature = "peers")]
    OnDisk(disk::Engine, disk::Promise),
    Library(PathBuf),
}

/// The maps in DRAM, which every build has.
const IN_DRAM: [(&str, PeerKind); 4] = [
    ("btreemap", PeerKind::BTreeMap),
    ("skiplist", PeerKind::SkipList),
    ("tree-index", PeerKind::TreeIndex),
    ("congee", PeerKind::Congee),
];

/// The stores in files, and the feature that builds each in.
const ON_DISK: [(&str, &str); 5] = [
    ("lmdb", "peers"),
    ("redb", "peers"),
    ("fjall", "peers"),
    ("sled", "peers"),
    ("rocksdb", "peer-rocksdb"),
];

/// The prefix of the name of a peer among the names of systems.
const PREFIX: &str = "peer:";
/// The suffix of the name of a store that does not wait for the disk.
const NO_SYNC: &str = "-nosync";

impl Peer {
    /// std's map, under its name without the prefix.
    pub(crate) const BTREEMAP: Self = Self(PeerKind::BTreeMap);

    /// Parses the name of a peer. Returns `None` if it has no prefix, and so names no peer.
    ///
    /// # Errors
    /// No peer has the name, or it is not in this build.
    pub fn named(name: &str) -> Result<Option<Self>> {
        let Some(rest) = name.strip_prefix(PREFIX) else { return Ok(None) };
        if rest.contains('/') {
            let path = PathBuf::from(rest);
            let found = std::fs::metadata(&path);
            return match found {
                Ok(_) => Ok(Some(Self(PeerKind::Library(path)))),
                Err(source) => Err(LabError::File { path, source }),
            };
        }
        if let Some(peer) = Self::built_in().into_iter().find(|peer| peer.name() == rest) {
            return Ok(Some(peer));
        }
        let store = rest.strip_suffix(NO_SYNC).unwrap_or(rest);
        Err(match ON_DISK.iter().find(|(name, _)| *name == store) {
            Some((_, feature)) => LabError::PeerNotBuilt { name: rest.into(), feature },
            None => LabError::UnknownPeer { name: rest.into(), known: known() },
        })
    }

    /// Returns all peers of this build.
    pub fn built_in() -> Vec<Self> {
        let peers = IN_DRAM.into_iter().map(|(_, kind)| kind);
        #[cfg(feature = "peers")]
        let peers = peers.chain(disk::Engine::ALL.iter().flat_map(|&engine| {
            disk::Promise::ALL.map(|promise| PeerKind::OnDisk(engine, promise))
        }));
        peers.map(Self).collect()
    }

    /// Returns `true` if the flushes of the peer are known: a map in DRAM has none.
    pub fn is_counted(&self) -> bool {
        IN_DRAM.iter().any(|(_, kind)| *kind == self.0)
    }

    /// Returns the name without the prefix.
    fn name(&self) -> String {
        match &self.0 {
            PeerKind::BTreeMap | PeerKind::SkipList | PeerKind::TreeIndex | PeerKind::Congee => {
                let found = IN_DRAM.iter().find(|(_, kind)| *kind == self.0);
                found.map_or_else(String::new, |(name, _)| (*name).to_owned())
            }
            #[cfg(feature = "peers")]
            PeerKind::OnDisk(engine, disk::Promise::Durable) => engine.name().to_owned(),
            #[cfg(feature = "peers")]
            PeerKind::OnDisk(engine, disk::Promise::NoSync) => {
                format!("{}{NO_SYNC}", engine.name())
            }
            PeerKind::Library(path) => path.display().to_string(),
        }
    }

    /// Creates an empty peer for integer keys.
    ///
    /// # Errors
    /// The peer cannot be created at `site`.
    pub(crate) fn create(&self, site: &Site<'_>) -> Result<BoxedSystem<u64>> {
        Ok(match &self.0 {
            PeerKind::BTreeMap => return Ok(std_map(site)),
            PeerKind::SkipList => Box::new(SkipList::default()),
            PeerKind::TreeIndex => Box::new(TreeIndex::default()),
            PeerKind::Congee => Box::new(Congee::default()),
            #[cfg(feature = "peers")]
            PeerKind::OnDisk(engine, promise) => engine.create(*promise, site.requested)?,
            PeerKind::Library(path) => Box::new(Library::load(path, site)?),
        })
    }

    /// Creates an empty peer for byte strings as keys, or returns `None` if the peer takes none.
    pub(crate) fn create_for_bytes(&self, site: &Site<'_>) -> Option<BoxedSystem<Text>> {
        self.takes_bytes().then(|| std_map(site))
    }

    /// Returns `true` if the peer is run with byte strings as keys, which only std's map is.
    pub(crate) fn takes_bytes(&self) -> bool {
        self.0 == PeerKind::BTreeMap
    }
}

/// Creates std's map: without a lock for one thread, behind a lock for several.
fn std_map<K: MapKey>(site: &Site<'_>) -> BoxedSystem<K> {
    if site.threads == 1 { Box::new(Alone::default()) } else { Box::new(Locked::<K>::default()) }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            // Results from before there were other peers have this name.
            PeerKind::BTreeMap => f.write_str("btreemap"),
            _ => write!(f, "{PREFIX}{}", self.name()),
        }
    }
}

/// Returns the names of all peers, of this build or not.
fn known() -> String {
    let in_dram = IN_DRAM.map(|(name, _)| name.to_owned());
    let on_disk = ON_DISK.map(|(name, _)| format!("{name}, {name}{NO_SYNC}"));
    let names: Vec<String> = in_dram.into_iter().chain(on_disk).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_is_found_by_its_name() {
        for peer in Peer::built_in() {
            let name = format!("{PREFIX}{}", peer.name());
            assert_eq!(Peer::named(&name).unwrap(), Some(peer));
        }
        assert_eq!(Peer::named("fptree").unwrap(), None, "a design is no peer");
    }

    #[test]
    fn what_is_no_peer_is_told_from_what_is_not_built() {
        let error = Peer::named("peer:nosuch").unwrap_err();
        assert!(matches!(&error, LabError::UnknownPeer { known, .. } if known.contains("redb")));
        let error = Peer::named("peer:/no/such/lib.so").unwrap_err();
        assert!(matches!(error, LabError::File { .. }));
        for (store, feature) in ON_DISK {
            for name in [format!("peer:{store}"), format!("peer:{store}{NO_SYNC}")] {
                match Peer::named(&name) {
                    Ok(peer) => assert_eq!(peer.unwrap().to_string(), name),
                    Err(error) => {
                        assert!(matches!(error, LabError::PeerNotBuilt { .. }));
                        assert!(error.to_string().contains(&format!("--features {feature}")));
                    }
                }
            }
        }
    }
}
