//! A processor for each thread, if the process may use as many.

/// Returns a processor for each of `threads` threads, or none if the process may not use as many.
/// The system's scheduler then does better than a fixed assignment.
pub(super) fn processors(threads: usize) -> Vec<usize> {
    let usable = usable();
    if usable.len() < threads { Vec::new() } else { usable[..threads].to_vec() }
}

/// Returns the processors that the calling thread may use.
#[cfg(target_os = "linux")]
pub(crate) fn usable() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    let of = |set: CpuSet| (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect();
    sched_getaffinity(None).map(of).unwrap_or_default()
}

/// Keeps the calling thread on `processor` from now on. Returns `false` if the system refuses.
pub(super) fn pin(processor: usize) -> bool {
    confine(&[processor])
}

/// Keeps the calling thread, and what it starts, on `processors` from now on. Returns `false` if
/// the system refuses.
#[cfg(target_os = "linux")]
pub(crate) fn confine(processors: &[usize]) -> bool {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    for &processor in processors {
        set.set(processor);
    }
    sched_setaffinity(None, &set).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn usable() -> Vec<usize> {
    Vec::new()
}

/// Other systems have no such simple call.
#[cfg(not(target_os = "linux"))]
pub(crate) fn confine(_: &[usize]) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_pinned() {
        let all = usable();
        assert!(!all.is_empty());
        assert_eq!(processors(all.len()), all);
        assert!(processors(all.len() + 1).is_empty());
        let last = *all.last().unwrap();
        let alone = std::thread::spawn(move || (pin(last), usable())).join().unwrap();
        assert_eq!(alone, (true, vec![last]));
        assert_eq!(usable(), all, "other threads are where they were");
    }
}
