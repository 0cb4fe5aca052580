//! NodeOverride which node a thread runs.
//!
//! 1. What the system says is a hint: a thread may be moved right after it asked. Nothing but speed
//!    depends on it.
//! 2. Which processor is of which node is read once in the life of a process.
#![expect(unsafe_code, reason = "the system's bindings name no safe way to ask for the processor")]

use super::NODE_NUMBERS;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::path::Path;
use std::sync::OnceLock;

/// Processors have numbers below this; one that has not is of no known node.
const PROCESSORS_MAX: usize = 1 << 16;
/// The node of a processor that none lists.
const UNKNOWN: u16 = u16::MAX;

thread_local! {
    static PRETENDED: Cell<Option<u16>> = const { Cell::new(None) };
}

/// While it lives, its thread passes for one that runs on a certain node.
#[derive(Debug)]
#[must_use = "the thread is where it was as soon as this is dropped"]
pub struct NodeOverride {
    former: Option<u16>,
    /// It belongs to its thread.
    thread: PhantomData<*const ()>,
}

/// Lets this thread pass for one that runs on `node`: for tests and simulations.
pub fn override_node(node: u16) -> NodeOverride {
    NodeOverride { former: PRETENDED.replace(Some(node)), thread: PhantomData }
}

impl Drop for NodeOverride {
    fn drop(&mut self) {
        PRETENDED.set(self.former);
    }
}

/// The node that this thread runs on; `None` where the system does not tell.
pub fn current_node() -> Option<u16> {
    PRETENDED.get().or_else(|| {
        // SAFETY: it takes nothing and gives a number.
        let processor = unsafe { libc::sched_getcpu() };
        let node = nodes_of_processors().get(usize::try_from(processor).ok()?).copied();
        node.filter(|&node| node != UNKNOWN)
    })
}

/// A number of this thread, from 0 on in the order in which threads ask.
pub(super) fn thread_number() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// The node of each processor; nothing where the system does not tell.
fn nodes_of_processors() -> &'static [u16] {
    static NODES: OnceLock<Vec<u16>> = OnceLock::new();
    NODES.get_or_init(|| read_nodes(Path::new("/sys/devices/system/node")))
}

fn read_nodes(folder: &Path) -> Vec<u16> {
    let mut nodes = Vec::new();
    for node in 0..NODE_NUMBERS {
        let list = folder.join(format!("node{node}/cpulist"));
        let Ok(list) = std::fs::read_to_string(list) else { continue };
        for processor in list.trim().split(',').filter_map(range).flatten() {
            if nodes.len() <= processor {
                nodes.resize(processor + 1, UNKNOWN);
            }
            nodes[processor] = node;
        }
    }
    nodes
}

/// The processors of one entry of a list: `7` or `0-3`. Nothing of one that nobody understands.
fn range(entry: &str) -> Option<RangeInclusive<usize>> {
    let (first, last) = entry.split_once('-').unwrap_or((entry, entry));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (last < PROCESSORS_MAX).then_some(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_processors_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let lists =
            [("node0", "0-1,4\n"), ("node3", "2,9999999,6-5,x\n"), ("node2", "\n"), ("has", "7")];
        for (node, list) in lists {
            std::fs::create_dir(dir.path().join(node)).unwrap();
            std::fs::write(dir.path().join(node).join("cpulist"), list).unwrap();
        }
        assert_eq!(read_nodes(dir.path()), [0, 0, 3, UNKNOWN, 0]);
        assert_eq!(read_nodes(&dir.path().join("missing")), [0; 0]);
    }

    #[test]
    fn a_thread_is_where_it_says_it_is() {
        let truth = std::fs::read_to_string("/sys/devices/system/node/online");
        if truth.is_ok_and(|online| online.trim() == "0") {
            assert_eq!(current_node(), Some(0));
        }
        let real = current_node();
        let outer = override_node(5);
        assert_eq!(current_node(), Some(5));
        {
            let _inner = override_node(6);
            assert_eq!(current_node(), Some(6));
        }
        assert_eq!(current_node(), Some(5));
        std::thread::scope(|scope| {
            scope.spawn(|| assert_ne!(current_node(), Some(5), "another thread"));
        });
        drop(outer);
        assert_eq!(current_node().is_some(), real.is_some());
    }
}
