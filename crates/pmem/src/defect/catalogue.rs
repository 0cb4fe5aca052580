//! The records of all defects, in the order of the enumeration.

use super::about::{known, own, own_threads, printed, threads};
use super::{
    About, Defect, all_pm, ccl_btree, fast_fair, isle_tree_all, kv, lb_tree, nv_tree, wo_tree,
};

/// The catalogue. `Defect::ALL` asserts that the order is that of the enumeration.
pub(super) const CATALOGUE: [(Defect, About); 118] = [
    (
        Defect::DeleteFlush,
        printed(
            "fast-fair",
            "delete-flush",
            "delete flushes a line when its first entry is written, not its last",
            "FAST & FAIR (FAST 2018), authors' code",
        ),
    ),
    (
        Defect::DeleteFront,
        printed(
            "fast-fair",
            "delete-front",
            "delete of the first entry writes null there first, which ends the array",
            "FAST & FAIR (FAST 2018), algorithm and code",
        ),
    ),
    (
        Defect::KeyBeforeValue,
        printed(
            "fast-fair",
            "key-before-value",
            "the compiler drops or moves the store that keeps a new entry invalid",
            "FAST & FAIR (FAST 2018), authors' code: plain stores",
        ),
    ),
    (
        Defect::DuplicateLeft,
        printed(
            "fast-fair",
            "duplicate-left",
            "delete after a crash inside an insert removes only the duplicate",
            "FAST & FAIR (FAST 2018), lazy recovery that is not there",
        ),
    ),
    (
        Defect::SplitUnrepaired,
        printed(
            "fast-fair",
            "split-unrepaired",
            "an interrupted split is never completed; writers continue beside stale copies",
            "FAST & FAIR (FAST 2018), lazy recovery described, not coded",
        ),
    ),
    (
        Defect::RootSibling,
        printed(
            "fast-fair",
            "root-sibling",
            "a crash between linking the root's sibling and publishing the new root",
            "FAST & FAIR, as found by RECIPE (SOSP 2019)",
        ),
    ),
    (
        Defect::NoTerminator,
        printed(
            "fast-fair",
            "no-terminator",
            "a split copies only the entries into the new node, not their terminator",
            "FAST & FAIR (FAST 2018), authors' code",
        ),
    ),
    (
        Defect::LatchKept,
        known(
            "wb-tree",
            "latch-kept",
            "a persisted latch word is never released",
            "FPTree (SIGMOD 2016), public C++ port; P-ART and others (RECIPE)",
        ),
    ),
    (
        Defect::PoolCreation,
        known(
            "pool",
            "pool-creation",
            "the magic number is written before the rest of the header, and a crash keeps it",
            "persistent-memory allocators: a crash at any point of creation",
        ),
    ),
    (
        Defect::LogUnmarked,
        printed(
            "wb-tree",
            "log-unmarked",
            "the redo log of a split has no defined commit mark",
            "wB+-Tree (VLDB 2015), split",
        ),
    ),
    (
        Defect::LogKept,
        printed(
            "wb-tree",
            "log-kept",
            "the redo log is never truncated: a replay overwrites later changes",
            "wB+-Tree (VLDB 2015), split",
        ),
    ),
    (
        Defect::LogWithNode,
        printed(
            "wb-tree",
            "log-with-node",
            "the new node and the log that links it are in one fence group",
            "wB+-Tree (VLDB 2015), split and merge",
        ),
    ),
    (
        Defect::SlotsUnrepaired,
        printed(
            "wb-tree",
            "slots-unrepaired",
            "a crash leaves a slot array invalid, and searches rely on it",
            "wB+-Tree (VLDB 2015), search",
        ),
    ),
    (
        Defect::ValidUnordered,
        About {
            node_bytes: Some(1024), // In smaller nodes one line holds both.
            ..printed(
                "wb-tree",
                "valid-unordered",
                "a repair sets the valid bit without ordering it after the slot array",
                "wB+-Tree (VLDB 2015), recovery of a node",
            )
        },
    ),
    (
        Defect::RootLate,
        known(
            "wb-tree",
            "root-late",
            "a crash between the split of the root and the new root pointer",
            "P-Masstree, as found by RECIPE (SOSP 2019) and later checkers",
        ),
    ),
    (
        Defect::TokenFirst,
        known(
            "wb-tree-bitmap-leaf",
            "token-first",
            "the token is set before the pair is persistent",
            "level hashing (OSDI 2018), code",
        ),
    ),
    (
        Defect::LinkBeforeFill,
        printed(
            "fptree",
            "link-before-fill",
            "the new leaf is allocated into the chain before bitmap and next are set",
            "FPTree (SIGMOD 2016), public C++ port",
        ),
    ),
    (
        Defect::OldNeighbour,
        printed(
            "fptree",
            "old-neighbour",
            "the micro-log names the old right neighbour as the new leaf; recovery resets its bits",
            "FPTree (SIGMOD 2016), public C++ port",
        ),
    ),
    (
        Defect::EmptyLeafLeaked,
        known(
            "fptree-r",
            "empty-leaf-leaked",
            "an empty leaf is unlinked at recovery and never freed",
            "FPTree variants, found by checkers",
        ),
    ),
    (
        Defect::SlotsApart,
        printed(
            "wo-tree",
            "slots-apart",
            "bitmap and slot array persist one after the other; nothing says whether they agree",
            "WO-tree (JCST 2021), insertion and deletion in a leaf",
        ),
    ),
    (
        Defect::HalfUncounted,
        printed(
            "wo-tree",
            "half-uncounted",
            "a split copies from the middle to the last entry inclusive, and counts half of them",
            "WO-tree (JCST 2021), split of a leaf",
        ),
    ),
    (
        Defect::CutBeforeLink,
        printed(
            "wo-tree",
            "cut-before-link",
            "the old leaf's lines are flushed in no order: its cut may persist before its link",
            "WO-tree (JCST 2021), split of a leaf",
        ),
    ),
    (
        Defect::ValuesEqual,
        printed(
            "isle-tree",
            "values-equal",
            "recovery mistakes two equal values in a line for an interrupted shift, and drops one",
            "Isle-Tree, recovery of a leaf",
        ),
    ),
    (
        Defect::HeadVolatile,
        ccl_btree::public_code(
            "head-volatile",
            "the pointer to the chunks of a log is not persistent: logged writes are lost",
        ),
    ),
    (
        Defect::StampFirst,
        ccl_btree::public_code(
            "stamp-first",
            "a leaf's header is copied in no order: its timestamp may precede its bitmap",
        ),
    ),
    (
        Defect::StampAtSplit,
        ccl_btree::public_code(
            "stamp-at-split",
            "a split sets the leaf's new timestamp before the buffered writes are in the leaf",
        ),
    ),
    (
        Defect::ChildCount,
        known(
            "toy-items",
            "child-count",
            "children are persistent without their count",
            "P-ART, as found by RECIPE (SOSP 2019) and later checkers",
        ),
    ),
    (
        Defect::CasVolatile,
        known(
            "toy-items",
            "cas-volatile",
            "the CAS id is not persistent: numbers are issued twice",
            "memcached on persistent memory",
        ),
    ),
    (
        Defect::TimeLate,
        known(
            "toy-items",
            "time-late",
            "the timestamp of an item is set after linking, so that it counts as expired",
            "memcached on persistent memory",
        ),
    ),
    (
        Defect::PathApart,
        known(
            "toy-prefixed",
            "path-apart",
            "parent pointer and compressed path are not changed atomically",
            "WOART (FAST 2017)",
        ),
    ),
    (
        Defect::DepthFirst,
        known(
            "toy-directory",
            "depth-first",
            "the global depth is updated before the directory",
            "CCEH (FAST 2019), code",
        ),
    ),
    (
        Defect::FreedTwice,
        known(
            "toy-cells",
            "freed-twice",
            "a free is repeated after a crash, and a block is allocated twice",
            "persistent-memory allocators",
        ),
    ),
    (
        Defect::SumFirst,
        known(
            "toy-summed",
            "sum-first",
            "recovery re-checksums a torn slot; a second crash promotes it",
            "checksummed slots, nested crashes",
        ),
    ),
    (
        Defect::LatchEarly,
        About {
            as_printed: true,
            ..threads(
                "lb-tree",
                "latch-early",
                "the store that commits also unlocks, before the flush: readers see what a crash loses",
                "LB+-Tree (VLDB 2020), authors' code",
            )
        },
    ),
    (
        Defect::LeafStale,
        threads(
            "fptree",
            "leaf-stale",
            "keys are missing after inserts by several threads",
            "uTree (VLDB 2020), authors' code",
        ),
    ),
    (
        Defect::WrongParent,
        threads(
            "fast-fair",
            "wrong-parent",
            "a separator is put into the wrong node by a concurrent split of inner nodes",
            "FAST & FAIR (FAST 2018), authors' code",
        ),
    ),
    (
        Defect::WrongChild,
        threads(
            "fast-fair",
            "wrong-child",
            "a search of an inner node follows a wrong child during a shift",
            "FAST & FAIR (FAST 2018), authors' code",
        ),
    ),
    (
        Defect::LinkLate,
        threads(
            "fast-fair",
            "link-late",
            "a writer follows a link that is not persistent yet, and inserts behind it",
            "FAST & FAIR, as found by concurrency checkers",
        ),
    ),
    (
        Defect::HopMissed,
        threads(
            "fast-fair",
            "hop-missed",
            "a search that should follow the sibling link reports the key as absent",
            "optimistic coupling, B-link trees",
        ),
    ),
    (
        Defect::RootStale,
        threads(
            "fast-fair",
            "root-stale",
            "the root is split over a node that is no longer the root",
            "optimistic coupling",
        ),
    ),
    (
        Defect::CountStale,
        threads(
            "wb-tree",
            "count-stale",
            "the root is republished from a stale count",
            "optimistic coupling",
        ),
    ),
    (
        Defect::SlotStale,
        threads(
            "wb-tree",
            "slot-stale",
            "a writer uses a slot that an earlier insert has moved",
            "optimistic coupling",
        ),
    ),
    (
        Defect::LatchVouches,
        own(
            "fptree-r",
            "latch-vouches",
            "recovery believes a persisted latch word: it repairs a split only where the word is held",
            "latch words read by recovery",
        ),
    ),
    (
        Defect::UnlatchedUnrepaired,
        own(
            "wb-tree",
            "unlatched-unrepaired",
            "recovery rebuilds a slot array only in nodes whose persisted latch word is held",
            "latch words read by recovery",
        ),
    ),
    (
        Defect::FormerLatch,
        own(
            "fptree-r",
            "former-latch",
            "a new leaf keeps the latch word of the leaf that had its block before",
            "blocks used again in one life",
        ),
    ),
    (
        Defect::ScanUnpinned,
        own_threads(
            "fptree-r",
            "scan-unpinned",
            "a scan reads the records of a copied leaf after it has unpinned",
            "blocks used again in one life",
        ),
    ),
    (
        Defect::MergeLeaks,
        own(
            "fptree-r",
            "merge-leaks",
            "a merge never frees the leaf that it unlinks; only a recovery does",
            "leaks that a recovery hides",
        ),
    ),
    (
        Defect::NodeLeaks,
        own(
            "wb-tree",
            "node-leaks",
            "a merge never frees the node that it unlinks; only a recovery does",
            "leaks that a recovery hides",
        ),
    ),
    (
        Defect::ScanLinkFirst,
        own_threads(
            "fptree-r",
            "scan-link-first",
            "a scan reads the link to the next leaf before the version that guards it",
            "scans and batches beside writers",
        ),
    ),
    (
        Defect::BatchUnchecked,
        own_threads(
            "fptree-r",
            "batch-unchecked",
            "a batch of lookups reads its leaves without checking their versions",
            "scans and batches beside writers",
        ),
    ),
    (
        Defect::WalkTrusted,
        own(
            "nv-tree",
            "walk-trusted",
            "recovery joins a guessed walk of the chain whole, with leaves that no link reaches",
            "code that begins beyond a scale",
        ),
    ),
    (
        Defect::PartUnbounded,
        own(
            "fptree-r",
            "part-unbounded",
            "recovery in parts does not drop what an interrupted split left in the last leaf of a part",
            "code that begins beyond a scale",
        ),
    ),
    (
        Defect::FingerprintLineUnflushed,
        own(
            "fptree-r",
            "fingerprint-line-unflushed",
            "an insert flushes only the line of the bitmap, not that of the fingerprints",
            "headers of two lines",
        ),
    ),
    (
        Defect::SlotLineUnflushed,
        own(
            "wb-tree",
            "slot-line-unflushed",
            "an insert flushes only the first of the two lines of a slot array",
            "headers of two lines",
        ),
    ),
    (
        Defect::NumbersRestart,
        own(
            "pool",
            "numbers-restart",
            "transaction numbers begin again, and old lines with the same numbers stay",
            "numbers near their bounds",
        ),
    ),
    (
        Defect::StampTruncated,
        own(
            "ccl-btree",
            "stamp-truncated",
            "recovery compares 32 of the 47 bits of a log entry's stamp",
            "numbers near their bounds",
        ),
    ),
    (
        Defect::GrowthEarly,
        own_threads(
            "fptree-r",
            "growth-early",
            "other threads get blocks of a growth that is not durable yet",
            "growth and a full pool",
        ),
    ),
    (
        Defect::CutWithoutRoom,
        own(
            "fptree-r",
            "cut-without-room",
            "a split in a full pool drops the upper half that it could not move",
            "growth and a full pool",
        ),
    ),
    (
        Defect::UndoForward,
        own(
            "pool",
            "undo-forward",
            "a rollback restores a word that changed twice to its value between the changes",
            "a word that changes twice",
        ),
    ),
    (
        Defect::RedoFirst,
        own(
            "pool",
            "redo-first",
            "a redo log applies the first, not the last, of two changes of a word",
            "a word that changes twice",
        ),
    ),
    (
        Defect::ReplayKept,
        own(
            "wb-tree",
            "replay-kept",
            "an open replays a log and keeps it: the open after a second crash replays it over later changes",
            "damage that a second life shows",
        ),
    ),
    (
        Defect::IndexReplayKept,
        own(
            "btree-log",
            "index-replay-kept",
            "an open replays the log of an index and keeps it for the open after a second crash",
            "damage that a second life shows",
        ),
    ),
    (
        Defect::LeftUnlatched,
        threads(
            "isle-tree",
            "left-unlatched",
            "a leaf is replaced under its parent's locks: its left neighbour may be replaced at once",
            "Isle-Tree, split and merge",
        ),
    ),
    (
        Defect::FreshUnfenced,
        own(
            "isle-tree",
            "fresh-unfenced",
            "the link to two new leaves may persist before the leaves",
            "replacement of a leaf",
        ),
    ),
    (
        Defect::ParentFirst,
        own_threads(
            "isle-tree",
            "parent-first",
            "inner nodes lead to new leaves whose link a crash can still lose",
            "replacement of a leaf",
        ),
    ),
    (
        Defect::ObsoleteUnmarked,
        own_threads(
            "isle-tree",
            "obsolete-unmarked",
            "a thread that waited for a replaced leaf takes it for the left neighbour of another",
            "replacement of a leaf",
        ),
    ),
    (
        Defect::LogEndsEarly,
        own(
            "wb-tree",
            "log-ends-early",
            "one fence covers the words of a transaction and the end of its log",
            "insert and splits in one transaction",
        ),
    ),
    (
        Defect::ParentEarly,
        own(
            "wb-tree",
            "parent-early",
            "the parent shows the new node before the log of the split is sealed",
            "insert and splits in one transaction",
        ),
    ),
    (
        Defect::PairUnlogged,
        own(
            "wb-tree",
            "pair-unlogged",
            "the logged bitmap of a split shows the new pair, which the log does not hold",
            "insert and splits in one transaction",
        ),
    ),
    (
        Defect::ReplayValid,
        own(
            "wb-tree",
            "replay-valid",
            "a replay sets the valid bit and does not restore the slot array",
            "insert and splits in one transaction",
        ),
    ),
    (
        Defect::CommitBitEarly,
        own(
            "btree-log",
            "commit-bit-early",
            "the commit of an undo-redo log is in a record that is not the last",
            "the end of an undo-redo log",
        ),
    ),
    (
        Defect::UndoEndsEarly,
        own(
            "btree-log",
            "undo-ends-early",
            "one fence covers the words of a transaction and the end of its undo-redo log",
            "the end of an undo-redo log",
        ),
    ),
    (
        Defect::RecordUnfenced,
        own(
            "wo-tree",
            "record-unfenced",
            "the log record of a leaf is stored and not flushed: the leaf may change durably without it",
            "a record without which bitmap and slots may disagree",
        ),
    ),
    (
        Defect::ShiftKeyFirst,
        own(
            "wo-tree",
            "shift-key-first",
            "a shift in an inner node stores a key before the child: an entry counts with the next one's key",
            "the order of two stores in a line",
        ),
    ),
    (
        Defect::PointerNotDoubled,
        own(
            "wo-tree",
            "pointer-not-doubled",
            "an insert into an inner node does not double the pointer first: a key changes under a child that counts",
            "a store that looks dead",
        ),
    ),
    (
        Defect::InnerLinkWithCut,
        printed(
            "wo-tree",
            "inner-link-with-cut",
            "the lines of a split inner node are flushed under one fence: its cut may persist before its link",
            "WO-tree (JCST 2021), split of an inner node",
        ),
    ),
    (
        Defect::ChildTwice,
        own_threads(
            "wo-tree",
            "child-twice",
            "a search loads the child of an inner node again after it compared the key: it may be null",
            "a race between skip and load",
        ),
    ),
    (
        Defect::LowUnchecked,
        own_threads(
            "wo-tree",
            "low-unchecked",
            "a search does not compare its key with the low key of the node that it reaches",
            "a race between skip and load",
        ),
    ),
    (
        Defect::RightLeafOpen,
        own_threads(
            "wo-tree",
            "right-leaf-open",
            "the right leaf of a split takes inserts before the link to it is durable",
            "a split that another thread uses too early",
        ),
    ),
    (
        Defect::RightEarly,
        own_threads(
            "fptree",
            "right-early",
            "a thread writes to the new leaf of a split whose micro-log a replay still completes",
            "micro-logs beside other threads",
        ),
    ),
    (
        Defect::LeftEarly,
        own_threads(
            "fptree",
            "left-early",
            "a thread writes to the full leaf of a split whose micro-log a replay still completes",
            "micro-logs beside other threads",
        ),
    ),
    (
        Defect::LogCurrentFirst,
        own(
            "fptree",
            "log-current-first",
            "a crash inside the reset of a micro-log leaves a leaf that the next split takes over",
            "micro-logs beside other threads",
        ),
    ),
    (
        Defect::BlockEarly,
        own_threads(
            "fptree",
            "block-early",
            "a thread reuses the block of a deleted leaf that a micro-log still names",
            "micro-logs beside other threads",
        ),
    ),
    (
        Defect::NeighbourEarly,
        own_threads(
            "fptree",
            "neighbour-early",
            "a thread changes the left neighbour of a deleted leaf that a micro-log still names",
            "micro-logs beside other threads",
        ),
    ),
    lb_tree::DEFECTS[0],
    lb_tree::DEFECTS[1],
    lb_tree::DEFECTS[2],
    lb_tree::DEFECTS[3],
    lb_tree::DEFECTS[4],
    lb_tree::DEFECTS[5],
    lb_tree::DEFECTS[6],
    fast_fair::DEFECTS[0],
    fast_fair::DEFECTS[1],
    fast_fair::DEFECTS[2],
    fast_fair::DEFECTS[3],
    fast_fair::DEFECTS[4],
    ccl_btree::DEFECTS[0],
    ccl_btree::DEFECTS[1],
    ccl_btree::DEFECTS[2],
    ccl_btree::DEFECTS[3],
    ccl_btree::DEFECTS[4],
    ccl_btree::DEFECTS[5],
    all_pm::DEFECTS[0],
    all_pm::DEFECTS[1],
    all_pm::DEFECTS[2],
    isle_tree_all::DEFECTS[0],
    isle_tree_all::DEFECTS[1],
    isle_tree_all::DEFECTS[2],
    isle_tree_all::DEFECTS[3],
    wo_tree::DEFECTS[0],
    wo_tree::DEFECTS[1],
    wo_tree::DEFECTS[2],
    wo_tree::DEFECTS[3],
    kv::DEFECTS[0],
    kv::DEFECTS[1],
    kv::DEFECTS[2],
    nv_tree::DEFECTS[0],
    nv_tree::DEFECTS[1],
];
