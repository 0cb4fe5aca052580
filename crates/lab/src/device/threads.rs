//! Projection from one thread to many: the limit that the busiest part of the machine sets.
//!
//! One thread alone takes `T` for an operation. Of that, it asks `D` of the busiest server: the
//! queue of a DIMM, its reads of the media, or its writes. By the laws of operational analysis, `N`
//! threads on cores of their own do at most
//!
//! ```text
//! X(N) = min(N / T, 1 / D)    operations in a unit of time
//! ```
//!
//! in any order of arrival. It is an upper bound. Latches, threads that evict each other's lines
//! from cache and buffers, and queues that are neither empty nor full all cost more.

use serde::Serialize;

/// The time that an operation asks of each part of the machine, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Demand {
    /// The whole time of an operation of one thread that is alone.
    pub alone_ns: f64,
    /// The time of the queue of the busiest DIMM.
    pub queue_ns: f64,
    /// The time of reads of the media at the busiest DIMM.
    pub read_ns: f64,
    /// The time of writes of the media at the busiest DIMM.
    pub write_ns: f64,
}

/// An upper bound of the speed of some number of threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Projection {
    /// The number of threads.
    pub threads: u32,
    /// The greatest number of operations in a second.
    pub ops_per_second: f64,
    /// The part of the machine that sets the limit.
    pub bound: Bound,
}

/// The part of the machine that limits the speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The threads: more of them would do more.
    Threads,
    /// The write-pending queue of a DIMM.
    Queue,
    /// The reads of the media.
    Reads,
    /// The writes of the media.
    Writes,
}

impl Bound {
    /// Returns the name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Queue => "queue",
            Self::Reads => "reads",
            Self::Writes => "writes",
        }
    }
}

impl Demand {
    /// Returns the upper bound for `threads` threads.
    pub fn project(&self, threads: u32) -> Projection {
        const NS_PER_SECOND: f64 = 1e9;
        // A demand of no time means that nothing was done, so the speed is 0, not infinite.
        let least_ns = self.alone_ns / f64::from(threads.max(1));
        let servers = [
            (self.queue_ns, Bound::Queue),
            (self.read_ns, Bound::Reads),
            (self.write_ns, Bound::Writes),
        ];
        let first = (least_ns, Bound::Threads);
        let (ns, bound) =
            servers.into_iter().fold(first, |most, next| if next.0 > most.0 { next } else { most });
        let ops_per_second = if ns > 0.0 { NS_PER_SECOND / ns } else { 0.0 };
        Projection { threads, ops_per_second, bound }
    }

    /// Returns the number of threads from which on more threads do no more.
    pub fn knee(&self) -> f64 {
        let busiest = self.queue_ns.max(self.read_ns).max(self.write_ns);
        if busiest > 0.0 { self.alone_ns / busiest } else { f64::INFINITY }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up_until_a_server_is_busy_all_the_time() {
        let demand = Demand { alone_ns: 1000.0, queue_ns: 5.0, read_ns: 50.0, write_ns: 100.0 };
        let at = |threads| {
            let Projection { ops_per_second, bound, .. } = demand.project(threads);
            (ops_per_second.round(), bound)
        };
        assert_eq!(at(1), (1e6, Bound::Threads));
        assert_eq!(at(9), (9e6, Bound::Threads));
        assert_eq!(at(11), (1e7, Bound::Writes));
        assert_eq!(at(64), (1e7, Bound::Writes));
        assert!((demand.knee() - 10.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_done_is_no_speed() {
        let demand = Demand { alone_ns: 0.0, queue_ns: 0.0, read_ns: 0.0, write_ns: 0.0 };
        assert!(demand.project(8).ops_per_second.abs() < 1e-9 && demand.knee().is_infinite());
    }
}
