//! The identity of this boot of the machine, and its randomness.

use rustix::rand::{GetRandomFlags, getrandom};
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the id that the kernel drew when the machine started. If the system does not tell, as
/// where `/proc` is not mounted, each process gets an id of its own: a pool that was not closed
/// then counts as one of another boot.
pub(super) fn boot_id() -> [u64; 2] {
    static ID: LazyLock<[u64; 2]> = LazyLock::new(|| known_or_drawn(known_boot_id()));
    *ID
}

/// Returns the id that the kernel drew when the machine started, or `None` if the system does not
/// tell.
pub(crate) fn known_boot_id() -> Option<[u64; 2]> {
    static ID: LazyLock<Option<[u64; 2]>> = LazyLock::new(|| {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        id.ok().as_deref().and_then(parse)
    });
    *ID
}

fn known_or_drawn(known: Option<[u64; 2]>) -> [u64; 2] {
    known.unwrap_or_else(|| [draw(), draw() | 1])
}

/// Returns the two halves of a UUID in its text form, or `None` if `text` is none.
fn parse(text: &str) -> Option<[u64; 2]> {
    let digits: String = text.trim().chars().filter(|&c| c != '-').collect();
    let id = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)?;
    Some([(id >> 64) as u64, id as u64])
}

/// Returns a random number of the system. While the system has none, early in a boot, the number
/// comes from the clock and the seed of the standard library's hash tables.
pub(crate) fn draw() -> u64 {
    let mut bytes = [0; 8];
    if getrandom(&mut bytes, GetRandomFlags::NONBLOCK) == Ok(bytes.len()) {
        return u64::from_le_bytes(bytes);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos());
    RandomState::new().hash_one((now, std::process::id()))
}

/// Returns the memory that this process can use at most, in bytes: what the machine has, or what
/// its control groups allow if that is less. If the system does not tell, returns `u64::MAX`.
pub(crate) fn memory_bytes() -> u64 {
    let read = |path: String| std::fs::read_to_string(path).ok();
    let machine = read("/proc/meminfo".into()).and_then(|text| total(&text));
    let groups = read("/proc/self/cgroup".into()).unwrap_or_default();
    // "max" is no limit.
    let limits = limit_files(&groups).filter_map(|path| read(path)?.trim().parse().ok());
    limits.chain(machine).min().unwrap_or(u64::MAX)
}

/// Returns the files with the memory limits of the control groups, as `/proc/self/cgroup` names
/// these. Each group bounds those below it.
fn limit_files(groups: &str) -> impl Iterator<Item = String> {
    let found = groups.lines().filter_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        match controllers {
            "" => Some(("", group, "memory.max")), // version 2
            "memory" => Some(("/memory", group, "memory.limit_in_bytes")), // version 1
            _ => None,
        }
    });
    found.flat_map(|(mount, group, name)| {
        std::path::Path::new(group).ancestors().map(move |folder| {
            let folder = folder.display();
            format!("/sys/fs/cgroup{mount}{folder}/{name}")
        })
    })
}

/// Returns the memory of the machine, in bytes, as `/proc/meminfo` tells it.
fn total(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_id_has_two_halves_and_anything_else_is_unknown() {
        let id = parse("00000000-0000-0001-8000-0000000000ff\n");
        assert_eq!(id, Some([1, 0x8000_0000_0000_00ff]));
        for text in ["", "\n", "0123", "g0000000-0000-0001-8000-0000000000ff"] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert_eq!(boot_id(), boot_id());
    }

    /// Zeros would say that all pages of the pool were durable.
    #[test]
    fn a_boot_id_that_is_not_known_is_drawn_and_never_met_again() {
        let drawn = [None; 2].map(known_or_drawn);
        assert!(drawn.iter().all(|id| *id != [0; 2]) && drawn[0] != drawn[1], "{drawn:x?}");
        assert_eq!(known_or_drawn(Some([1, 2])), [1, 2]);
    }

    #[test]
    fn the_memory_of_a_machine_is_read_in_kilobytes() {
        assert_eq!(total("MemTotal:       24684100 kB\nMemFree: 1 kB\n"), Some(24_684_100 << 10));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert!(memory_bytes() > 1 << 20);
    }

    #[test]
    fn the_limits_of_both_versions_of_control_groups_are_read() {
        let groups = "12:cpu,cpuacct:/a\n4:memory:/docker/1\n0::/b\n";
        let [v1, v2] = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"];
        let files: Vec<_> = limit_files(groups).collect();
        assert_eq!(
            files,
            [
                format!("{v1}/docker/1/memory.limit_in_bytes"),
                format!("{v1}/docker/memory.limit_in_bytes"),
                format!("{v1}//memory.limit_in_bytes"),
                format!("{v2}/b/memory.max"),
                format!("{v2}//memory.max"),
            ]
        );
    }

    #[test]
    fn drawn_numbers_differ() {
        let drawn: std::collections::HashSet<u64> = (0..100).map(|_| draw()).collect();
        assert_eq!(drawn.len(), 100);
    }
}
