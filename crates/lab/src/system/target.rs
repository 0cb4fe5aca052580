//! Names of systems, and the one match from a name to a system.

use super::boxed::BoxedSystem;
use super::design::DesignTree;
use super::floor::{LineArray, Overlap};
use super::peers::{Peer, Site};
use crate::error::{LabError, Result};
use crate::workload::{Keys, Render};
use bristlecone::Store;
use bristlecone_pmem::{Medium, Simulated};
use bristlecone_registry::{DesignEntry, FormKey, Forms, Memory, is_built};
use bristlecone_trees::spec::Spec;
use bristlecone_trees::{ErasedDesign, Key, Text, names};
use core::fmt;

/// A system that can be measured, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A map, store or library that others have made.
    Peer(Peer),
    /// Bristlecone's store, called `bristlecone`.
    Store,
    /// The least accesses of an operation, called `floor-serial` or `floor-pipelined`.
    Floor(Overlap),
    /// A design of the registry at one node size.
    Design {
        /// The name of the design.
        name: String,
        /// The bytes of a node.
        node_bytes: usize,
        /// `true` if the tree survives the end of its process.
        persistent: bool,
    },
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peer(peer) => peer.fmt(f),
            Self::Store => f.write_str("bristlecone"),
            Self::Floor(overlap) => overlap.fmt(f),
            Self::Design { name, .. } => f.write_str(name),
        }
    }
}

/// A system in a pool on a medium of type `M`.
#[expect(
    clippy::large_enum_variant,
    reason = "a run moves its system once, before the clock starts"
)]
pub(crate) enum AnySystem<M: Medium, K: Key> {
    Design(DesignTree<M, K>),
    Store(Store<M>),
    Floor(LineArray<M>),
}

/// A design, the store or the floor, before it is on a medium.
pub(crate) enum Opener<M: Medium, K: Key> {
    Design(ErasedDesign<M, K>),
    Store,
    Floor(Overlap),
}

impl<M: Medium, K: Key> Opener<M, K> {
    /// Creates the system, empty, in a new pool on `medium`.
    pub(crate) fn create(&self, medium: M) -> Result<AnySystem<M, K>> {
        Ok(match self {
            Self::Design(design) => AnySystem::Design(DesignTree::create(design, medium)?),
            Self::Store => AnySystem::Store(Store::create_on(medium)?),
            Self::Floor(overlap) => AnySystem::Floor(LineArray::create(medium, *overlap)?),
        })
    }

    /// Opens the system in the pool on `medium`. The floor keeps nothing, so it is created again.
    pub(crate) fn open(&self, medium: M) -> Result<AnySystem<M, K>> {
        Ok(match self {
            Self::Design(design) => AnySystem::Design(DesignTree::open(design, medium)?),
            Self::Store => AnySystem::Store(Store::open_on(medium)?),
            Self::Floor(_) => self.create(medium)?,
        })
    }
}

impl Target {
    /// Returns the bytes of a node, or `None` if the system has no choice of node sizes.
    pub fn node_bytes(&self) -> Option<usize> {
        match self {
            Self::Peer(_) | Self::Store | Self::Floor(_) => None,
            Self::Design { node_bytes, .. } => Some(*node_bytes),
        }
    }

    /// Returns `true` if opening the system again can be measured. The files of a peer are its own.
    pub fn is_persistent(&self) -> bool {
        match self {
            Self::Peer(_) | Self::Floor(_) => false,
            Self::Store => true,
            Self::Design { persistent, .. } => *persistent,
        }
    }

    /// Returns `true` if the flushes and fences of an operation are known.
    pub fn is_counted(&self) -> bool {
        match self {
            Self::Peer(peer) => peer.is_counted(),
            Self::Store | Self::Floor(_) | Self::Design { .. } => true,
        }
    }

    /// Returns the description of the design and its form for keys of kind `K`. `keys` names the
    /// set of keys in an error.
    ///
    /// # Errors
    /// The system is no design, or does not take such keys at its node size.
    pub(crate) fn form<M: FormMedium, K: FormKey>(
        &self,
        keys: &Keys,
    ) -> Result<(Spec, ErasedDesign<M, K>)> {
        let Self::Design { name, node_bytes, .. } = self else {
            return Err(LabError::Asked(format!("{self} is no design")));
        };
        let entry = bristlecone_registry::with_size(name, *node_bytes)?;
        let design = K::form(M::forms(entry)).ok_or_else(|| wrong_size(&entry.spec, keys))?;
        Ok((entry.spec, design))
    }

    /// Returns what creates and opens the system. `keys` names the set of keys in an error.
    ///
    /// # Errors
    /// The system is a peer, which has no medium, or does not take keys of kind `K`. The floor
    /// takes keys of 8 B.
    pub(crate) fn opener<M: FormMedium, K: FormKey>(&self, keys: &Keys) -> Result<Opener<M, K>> {
        match self {
            Self::Peer(peer) => Err(LabError::Asked(format!("{peer} has no pool"))),
            Self::Store => Ok(Opener::Store),
            Self::Floor(_) if keys.are_bytes() => {
                Err(bytes_refused(keys, "the floor is measured with keys of 8 B"))
            }
            Self::Floor(overlap) => Ok(Opener::Floor(*overlap)),
            Self::Design { .. } => Ok(Opener::Design(self.form(keys)?.1)),
        }
    }
}

/// Returns the error for `keys` that a design does not take at the node size of `spec`.
fn wrong_size(spec: &Spec, keys: &Keys) -> LabError {
    let Spec { name, node_bytes, .. } = spec;
    let default = bristlecone_registry::default_size(name);
    let default = default.map_or(*node_bytes, |entry| entry.spec.node_bytes);
    if !keys.are_bytes() {
        return LabError::Asked(format!(
            "{name} of {node_bytes} B is not built in, only of {default} B; `cargo lab` builds \
             and runs the laboratory with all sizes"
        ));
    }
    if default == *node_bytes {
        return bytes_refused(
            keys,
            &format!("{name} is not built in with them; `cargo lab` builds all designs with them"),
        );
    }
    bytes_refused(
        keys,
        &format!("{name} takes them in nodes of {default} B only, not of {node_bytes} B"),
    )
}

/// Returns the error for a measurement that `keys`, which are byte strings, do not allow.
pub(crate) fn bytes_refused(keys: &Keys, why: &str) -> LabError {
    LabError::Asked(format!("keys {keys} are byte strings; {why}"))
}

/// A medium that the registry has forms for.
pub(crate) trait FormMedium: Medium {
    /// Returns the compiled forms of `entry` on this medium.
    fn forms(entry: &DesignEntry) -> &Forms<Self>
    where
        Self: Sized;
}

impl FormMedium for Memory {
    fn forms(entry: &DesignEntry) -> &Forms<Self> {
        &entry.memory
    }
}

impl FormMedium for Simulated {
    fn forms(entry: &DesignEntry) -> &Forms<Self> {
        &entry.simulated
    }
}

/// A kind of key that systems are measured with.
pub(crate) trait SystemKey: FormKey + Render {
    /// Creates an empty `peer` for keys of this kind, of which `keys` names the set.
    ///
    /// # Errors
    /// The peer does not take such keys, or failed.
    fn create_peer(peer: &Peer, site: &Site<'_>, keys: &Keys) -> Result<BoxedSystem<Self>>
    where
        Self: Sized;

    /// Checks that `peer` takes keys of this kind, of which `keys` names the set.
    ///
    /// # Errors
    /// It does not.
    fn expect_peer(peer: &Peer, keys: &Keys) -> Result<()>;
}

impl SystemKey for u64 {
    fn create_peer(peer: &Peer, site: &Site<'_>, _: &Keys) -> Result<BoxedSystem<Self>> {
        peer.create(site)
    }
    fn expect_peer(_: &Peer, _: &Keys) -> Result<()> {
        Ok(())
    }
}

impl SystemKey for Text {
    fn create_peer(peer: &Peer, site: &Site<'_>, keys: &Keys) -> Result<BoxedSystem<Self>> {
        peer.create_for_bytes(site).ok_or_else(|| peer_refused(peer, keys))
    }
    fn expect_peer(peer: &Peer, keys: &Keys) -> Result<()> {
        if peer.takes_bytes() { Ok(()) } else { Err(peer_refused(peer, keys)) }
    }
}

fn peer_refused(peer: &Peer, keys: &Keys) -> LabError {
    bytes_refused(keys, &format!("{peer} is run with keys of 8 B"))
}

/// Returns the targets that `names` name. `all` stands for std's map, the designs that have nodes
/// of `node_bytes` bytes, and the store. `floor` stands for the serial and the pipelined floor.
/// `peers` stands for the peers that are built in and that no
/// earlier name named.
///
/// # Errors
/// No design has the name, or none at that node size; or no peer has it.
pub fn parse(names: &[String], node_bytes: Option<usize>) -> Result<Vec<Target>> {
    let specs = names::specs();
    let mut targets = Vec::new();
    for name in names {
        match name.as_str() {
            "all" => {
                targets.push(Target::Peer(Peer::BTREEMAP));
                for sizes in &specs {
                    let fits = |bytes| sizes.iter().any(|spec| spec.node_bytes == bytes);
                    if node_bytes.is_none_or(fits) && is_built(sizes[0].name) {
                        targets.push(design(sizes[0].name, node_bytes)?);
                    }
                }
                targets.push(Target::Store);
            }
            "bristlecone" => targets.push(Target::Store),
            "floor" => {
                targets.extend([Overlap::Serial, Overlap::Pipelined].map(Target::Floor));
            }
            "btreemap" => targets.push(Target::Peer(Peer::BTREEMAP)),
            "peers" => {
                for peer in Peer::built_in().into_iter().map(Target::Peer) {
                    if !targets.contains(&peer) {
                        targets.push(peer);
                    }
                }
            }
            name => targets.push(match Peer::named(name)? {
                Some(peer) => Target::Peer(peer),
                None => design(name, node_bytes)?,
            }),
        }
    }
    Ok(targets)
}

/// Returns the design called `name`, with nodes of `node_bytes` bytes or of its default size.
///
/// # Errors
/// No design has the name, or none at that node size.
pub fn design(name: &str, node_bytes: Option<usize>) -> Result<Target> {
    let entry = match node_bytes {
        Some(node_bytes) => bristlecone_registry::with_size(name, node_bytes)?,
        None => bristlecone_registry::default_size(name)?,
    };
    let Spec { node_bytes, persistent, .. } = entry.spec;
    Ok(Target::Design { name: name.to_owned(), node_bytes, persistent })
}
