//! The NUMA node on which a thread runs.
//!
//! 1. The answer is a hint: the system may move the thread at any time. Only speed depends on it.
//! 2. A process reads the map from processors to nodes once.
#![expect(unsafe_code, reason = "the system's bindings name no safe way to ask for the processor")]

use super::NODE_NUMBERS;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::path::Path;
use std::sync::OnceLock;

/// The bound of processor numbers. A processor with a higher number has no known node.
const PROCESSORS_MAX: usize = 1 << 16;
/// Marks a processor that no node lists.
const UNKNOWN: u16 = u16::MAX;

thread_local! {
    static OVERRIDE: Cell<Option<u16>> = const { Cell::new(None) };
}

/// Overrides the node of the current thread until it is dropped.
#[derive(Debug)]
#[must_use = "dropping this ends the override"]
pub struct NodeOverride {
    previous: Option<u16>,
    /// Makes the type neither `Send` nor `Sync`: the override is a thread-local.
    thread: PhantomData<*const ()>,
}

/// Makes [`current_node`] return `node` on this thread: for tests and simulations. Overrides nest.
pub fn override_node(node: u16) -> NodeOverride {
    NodeOverride { previous: OVERRIDE.replace(Some(node)), thread: PhantomData }
}

impl Drop for NodeOverride {
    fn drop(&mut self) {
        OVERRIDE.set(self.previous);
    }
}

/// Returns the node on which this thread runs, or `None` if the system does not tell.
pub fn current_node() -> Option<u16> {
    OVERRIDE.get().or_else(|| {
        // SAFETY: the call has no arguments and returns a number.
        let processor = unsafe { libc::sched_getcpu() };
        let node = nodes_of_processors().get(usize::try_from(processor).ok()?).copied();
        node.filter(|&node| node != UNKNOWN)
    })
}

/// Returns the number of this thread: threads count from 0 in the order of their first call.
pub(super) fn thread_number() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// Returns the node of each processor, by its number; empty if the system does not tell.
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

/// Parses one entry of a processor list, `7` or `0-3`. Returns `None` for any other text.
fn range(entry: &str) -> Option<RangeInclusive<usize>> {
    let (first, last) = entry.split_once('-').unwrap_or((entry, entry));
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (last < PROCESSORS_MAX).then_some(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_lists_are_parsed() {
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
    fn an_override_holds_on_its_thread_until_it_is_dropped() {
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
