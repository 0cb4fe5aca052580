//! From one thread to many: what the busiest part of the machine lets through.
//!
//! One thread alone takes `T` for an operation, of which it asks `D` of the busiest server: a DIMM's
//! queue, its reads of the media, or its writes. By the laws of operational analysis `N` threads, each on
//! a core of its own, do at the most
//!
//! ```text
//! X(N) = min(N / T, 1 / D)    operations in a unit of time
//! ```
//!
//! whatever the order in which they come. It is a bound: latches, threads that push each other's lines
//! out of cache and buffers, and queues that are neither empty nor full, all cost more.

use serde::Serialize;

/// What an operation asks of the machine, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Demand {
    /// Of one thread that is alone: all of its time.
    pub alone_ns: f64,
    /// Of the queue of the busiest DIMM.
    pub queue_ns: f64,
    /// Of the media, to read, at the busiest DIMM.
    pub read_ns: f64,
    /// Of the media, to write, at the busiest DIMM.
    pub write_ns: f64,
}

/// What so many threads can do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Projection {
    /// Threads.
    pub threads: u32,
    /// Operations a second, at the most.
    pub ops_per_second: f64,
    /// What it is that allows no more.
    pub bound: Bound,
}

/// What allows no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// There are no more threads.
    Threads,
    /// A queue.
    Queue,
    /// Reading the media.
    Reads,
    /// Writing the media.
    Writes,
}

impl Bound {
    /// The name that programs and people read.
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
    /// The most that `threads` threads can do.
    pub fn project(&self, threads: u32) -> Projection {
        const NS_PER_SECOND: f64 = 1e9;
        // A share of no time is no operation, not infinitely many.
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

    /// The number of threads from which on more of them do no more.
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
