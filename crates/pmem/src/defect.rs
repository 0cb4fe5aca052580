//! Published defects of persistent indexes, to be put back into the code that avoids them.
//!
//! 1. A defect is a few lines beside the step that it breaks, under
//!    `M::SEEDED && medium.seeded(Defect::X)`. [`Medium::SEEDED`](crate::Medium::SEEDED) is false on
//!    every medium but the explorer's, so elsewhere those lines are not compiled.
//! 2. The list is here and nowhere else: what tries the defects goes by [`Defect::ALL`].
//!
//! A defect of a structure that has no counterpart here is seeded in one of the explorer's toys,
//! which have the essential shape of it.

/// A published defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Defect {
    /// A removal flushes a line when its first entry is written, not its last.
    DeleteFlush,
    /// A removal of the first entry hides the whole leaf meanwhile.
    DeleteFront,
    /// The key of a new entry is stored before its value.
    KeyBeforeValue,
    /// Recovery leaves the duplicate of an insert that a crash cut off.
    DuplicateLeft,
    /// Recovery does not end a split that a crash cut off.
    SplitUnrepaired,
    /// Nobody looks for a sibling of the root.
    RootSibling,
    /// A new node ends where its block was zero before.
    NoTerminator,
}

/// What is known about a defect.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// A short name.
    pub name: &'static str,
    /// What is wrong.
    pub what: &'static str,
    /// Where it was published.
    pub published: &'static str,
    /// The design into which it is put.
    pub design: &'static str,
    /// Bytes of the design's nodes, where the defect does not show in the smallest.
    pub node_bytes: Option<usize>,
    /// Whether this is how a paper, or its authors' code, has it; else a known defect of a port.
    pub as_printed: bool,
}

const FAST_FAIR: About = About {
    name: "",
    what: "",
    published: "",
    design: "fast-fair",
    node_bytes: None,
    as_printed: true,
};

impl Defect {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::DeleteFlush,
        Self::DeleteFront,
        Self::KeyBeforeValue,
        Self::DuplicateLeft,
        Self::SplitUnrepaired,
        Self::RootSibling,
        Self::NoTerminator,
    ];

    /// What is known about it.
    pub const fn about(self) -> About {
        match self {
            Self::DeleteFlush => About {
                name: "delete-flush",
                what: "delete flushes a line when its first entry is written, not its last",
                published: "FAST & FAIR (FAST 2018), authors' code",
                ..FAST_FAIR
            },
            Self::DeleteFront => About {
                name: "delete-front",
                what: "delete of the first entry writes null there first, which ends the array",
                published: "FAST & FAIR (FAST 2018), algorithm and code",
                ..FAST_FAIR
            },
            Self::KeyBeforeValue => About {
                name: "key-before-value",
                what: "the compiler drops or moves the store that keeps a new entry invalid",
                published: "FAST & FAIR (FAST 2018), authors' code: plain stores",
                ..FAST_FAIR
            },
            Self::DuplicateLeft => About {
                name: "duplicate-left",
                what: "delete after a crash inside an insert removes only the duplicate",
                published: "FAST & FAIR (FAST 2018), lazy recovery that is not there",
                ..FAST_FAIR
            },
            Self::SplitUnrepaired => About {
                name: "split-unrepaired",
                what: "a split that a crash cut off is never ended; writers go on beside stale copies",
                published: "FAST & FAIR (FAST 2018), lazy recovery described, not coded",
                ..FAST_FAIR
            },
            Self::RootSibling => About {
                name: "root-sibling",
                what: "crash between linking the root's sibling and publishing the new root",
                published: "FAST & FAIR, as found by RECIPE (SOSP 2019)",
                ..FAST_FAIR
            },
            Self::NoTerminator => About {
                name: "no-terminator",
                what: "only the entries are copied into a new node, not what ends them",
                published: "FAST & FAIR (FAST 2018), authors' code",
                ..FAST_FAIR
            },
        }
    }
}
