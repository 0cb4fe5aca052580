//! Device profiles: the numbers of a device, their sources, and their valid ranges.
//!
//! A profile is a TOML file in which every number names its source. The built-in ones are in
//! `crates/lab/profiles`. The model has no number of its own.

use bristlecone_pmem::line::LINE_BYTES;
use serde::Deserialize;
use thiserror::Error;

/// A persistent-memory device and the processor that uses it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// The name for `--device`.
    pub name: String,
    /// The part of the machine that a power cut spares.
    pub domain: Persistence,
    /// The processor and its cache.
    pub cpu: Cpu,
    /// The write-pending queue of each DIMM.
    pub queue: Queue,
    /// The buffers of each DIMM.
    pub buffer: Buffer,
    /// The DIMMs and their media.
    pub media: Media,
    /// The energy of reads and writes of the media.
    pub energy: Energy,
}

/// The persistence domain: the place from which a power cut cannot take a write. A fence waits
/// until writes have reached it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Persistence {
    /// The media alone: a fence waits for the write to the media.
    Media,
    /// The write-pending queue and all behind it (ADR).
    Queue,
    /// The processor's cache and all behind it (eADR, a global flush at a power cut). Flushes do
    /// nothing.
    Cache,
}

/// The properties of a processor that persistent memory depends on.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// The size of the last-level cache in bytes.
    pub cache_bytes: u64,
    /// The number of ways of the cache, 1 to 16.
    pub cache_ways: usize,
    /// `true` if a flushed line stays in the cache.
    pub flush_keeps_line: bool,
    /// The time of an access to a word of the line that was accessed last.
    pub word_ns: f64,
    /// The time of an access to a word of another cached line.
    pub line_ns: f64,
    /// The time of a flush until the thread goes on.
    pub flush_ns: f64,
    /// The time of a fence that waits for no flush.
    pub fence_ns: f64,
    /// The time of an operation beside its accesses to persistent memory: DRAM, comparisons,
    /// branches.
    pub op_ns: f64,
    /// The greatest number of lines that a core can transfer at once, in both directions.
    pub outstanding: usize,
}

/// The write-pending queue (WPQ) of a DIMM.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// The number of lines that the queue holds.
    pub lines: usize,
    /// The time between two lines that leave the queue.
    pub line_ns: f64,
    /// The time from a write-back until its line is in an empty queue.
    pub flush_ns: f64,
    /// The time from a non-temporal store until its line is in an empty queue.
    pub stream_ns: f64,
}

/// The buffers of a DIMM.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// The number of media units whose writes are combined. 0: each line goes to the media by
    /// itself.
    pub write_units: usize,
    /// The number of recently read media units that are kept. 0: none.
    pub read_units: usize,
    /// The time of a load whose line is in one of the buffers.
    pub read_ns: f64,
}

/// The DIMMs and their media.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Media {
    /// The number of DIMMs.
    pub dimms: usize,
    /// The number of consecutive bytes on one DIMM.
    pub interleave_bytes: u64,
    /// The size of a media unit: the bytes that are read or written together.
    pub unit_bytes: usize,
    /// The time of a load that goes to the media.
    pub read_ns: f64,
    /// The time of a write until it is on the media.
    pub write_ns: f64,
    /// The read bandwidth of one DIMM, in bytes in a nanosecond.
    pub read_gb_per_s: f64,
    /// The write bandwidth of one DIMM, in bytes in a nanosecond.
    pub write_gb_per_s: f64,
}

/// The energy of the media.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// The energy of a read of 64 B.
    pub read_nj_per_line: f64,
    /// The energy of each bit of a written unit, changed or not.
    pub write_pj_per_bit: f64,
    /// The additional energy of each bit that a write changes.
    pub flip_pj_per_bit: f64,
}

/// The error type of profiles.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// No built-in profile has this name.
    #[error("no device is called {name:?}; there are: {known}")]
    Name {
        /// The name that was given.
        name: String,
        /// The names of the built-in profiles.
        known: String,
    },
    /// The text is not a profile in TOML.
    #[error("the profile cannot be read: {0}")]
    Syntax(#[from] toml::de::Error),
    /// The medium is larger than the model can be.
    #[error("the model has room for less than {limit} bytes, and the medium has {bytes}")]
    Bytes {
        /// The size of the medium in bytes.
        bytes: u64,
        /// The size that the medium must be below.
        limit: u64,
    },
    /// A number is outside its valid range.
    #[error("the profile's {field} must be {expected}")]
    Number {
        /// The path of the field in the profile.
        field: &'static str,
        /// The range of valid numbers.
        expected: &'static str,
    },
}

/// The built-in profiles, by name.
const BUILT_IN: &[(&str, &str)] = &[
    ("optane-100", include_str!("../../profiles/optane-100.toml")),
    ("optane-200", include_str!("../../profiles/optane-200.toml")),
    ("pcm", include_str!("../../profiles/pcm.toml")),
    ("stt-ram", include_str!("../../profiles/stt-ram.toml")),
    ("nvdimm-n", include_str!("../../profiles/nvdimm-n.toml")),
    ("cxl-nv", include_str!("../../profiles/cxl-nv.toml")),
    ("dram-300ns", include_str!("../../profiles/dram-300ns.toml")),
    ("ssd", include_str!("../../profiles/ssd.toml")),
];

/// The greatest number of buffer slots of one kind, of all DIMMs. Their numbers have 16 bits.
const SLOTS_MAX: usize = u16::MAX as usize;
/// The greatest number of ways. A set of tags fills at most one line of the host.
const WAYS_MAX: usize = 16;
/// The greatest size of a unit. A mask of 64 bits has a bit for each of its lines.
const UNIT_BYTES_MAX: usize = 64 * LINE_BYTES;

impl Profile {
    /// Returns the names of the built-in profiles.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Returns the built-in profile called `name`.
    ///
    /// # Errors
    /// No built-in profile has this name.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        let found = BUILT_IN.iter().find(|(known, _)| *known == name);
        let (_, text) = found.ok_or_else(|| ProfileError::Name {
            name: name.to_owned(),
            known: Self::names().collect::<Vec<_>>().join(", "),
        })?;
        Self::parse(text)
    }

    /// Parses a profile in TOML.
    ///
    /// # Errors
    /// The text is not a profile, or a number is outside its valid range.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let profile: Self = toml::from_str(text)?;
        profile.check()?;
        Ok(profile)
    }

    /// Returns the device as each of `threads` threads sees it: with an equal part of the buffers,
    /// at least one unit. The lines that one thread writes one after the other no longer meet in a
    /// buffer if the lines of all other threads come between. That is a cost of many threads beyond
    /// bandwidth.
    #[must_use]
    pub fn crowded(&self, threads: u32) -> Self {
        let part = |units: usize| match units {
            0 => 0,
            units => (units / threads.max(1) as usize).max(1),
        };
        let mut profile = self.clone();
        profile.buffer.write_units = part(self.buffer.write_units);
        profile.buffer.read_units = part(self.buffer.read_units);
        profile
    }

    /// Checks that all numbers are in their valid ranges.
    ///
    /// # Errors
    /// The first number that is not.
    pub fn check(&self) -> Result<(), ProfileError> {
        let Self { cpu, queue, buffer, media, energy, .. } = self;
        let is_unit = |bytes: usize| {
            bytes.is_power_of_two() && (LINE_BYTES..=UNIT_BYTES_MAX).contains(&bytes)
        };
        let is_small = |units: usize| units.saturating_mul(media.dimms) <= SLOTS_MAX;
        let set_bytes = (cpu.cache_ways * LINE_BYTES) as u64;
        let rules = [
            ("cpu.cache_ways", "1 to 16", (1..=WAYS_MAX).contains(&cpu.cache_ways)),
            ("cpu.cache_bytes", "a set of lines at the least", cpu.cache_bytes >= set_bytes),
            ("cpu.outstanding", "1 to 64", (1..=64).contains(&cpu.outstanding)),
            ("queue.lines", "1 to 65536", (1..=1 << 16).contains(&queue.lines)),
            ("media.dimms", "1 to 1024", (1..=1024).contains(&media.dimms)),
            ("media.unit_bytes", "a power of two, 64 to 4096", is_unit(media.unit_bytes)),
            (
                "media.interleave_bytes",
                "a multiple of the unit, and no 0",
                media.interleave_bytes > 0
                    && media.interleave_bytes.is_multiple_of(media.unit_bytes as u64),
            ),
            ("buffer.write_units", "65535 at most, of all DIMMs", is_small(buffer.write_units)),
            ("buffer.read_units", "65535 at most, of all DIMMs", is_small(buffer.read_units)),
            (
                "buffer.write_units",
                "0 where only the media are safe",
                self.domain != Persistence::Media || buffer.write_units == 0,
            ),
            ("media.read_gb_per_s", "above 0", is_positive(media.read_gb_per_s)),
            ("media.write_gb_per_s", "above 0", is_positive(media.write_gb_per_s)),
        ];
        let times = [
            ("cpu.word_ns", cpu.word_ns),
            ("cpu.line_ns", cpu.line_ns),
            ("cpu.flush_ns", cpu.flush_ns),
            ("cpu.fence_ns", cpu.fence_ns),
            ("cpu.op_ns", cpu.op_ns),
            ("queue.line_ns", queue.line_ns),
            ("queue.flush_ns", queue.flush_ns),
            ("queue.stream_ns", queue.stream_ns),
            ("buffer.read_ns", buffer.read_ns),
            ("media.read_ns", media.read_ns),
            ("media.write_ns", media.write_ns),
            ("energy.read_nj_per_line", energy.read_nj_per_line),
            ("energy.write_pj_per_bit", energy.write_pj_per_bit),
            ("energy.flip_pj_per_bit", energy.flip_pj_per_bit),
        ];
        let times = times.map(|(field, number)| (field, "0 to a million", is_amount(number)));
        match rules.into_iter().chain(times).find(|(_, _, holds)| !holds) {
            Some((field, expected, _)) => Err(ProfileError::Number { field, expected }),
            None => Ok(()),
        }
    }
}

/// The slowest and the fastest rate that a memory can have, in bytes in a nanosecond.
const RATE_MIN: f64 = 1e-3;
const RATE_MAX: f64 = 1e6;

fn is_positive(rate: f64) -> bool {
    (RATE_MIN..=RATE_MAX).contains(&rate)
}

fn is_amount(number: f64) -> bool {
    (0.0..=1e6).contains(&number)
}

/// Virtual time in picoseconds. Integers make sums exact and equal on every machine.
pub(super) type Time = u64;

/// The number of picoseconds in a nanosecond.
pub(super) const PS_PER_NS: Time = 1000;

/// Converts `nanoseconds` to virtual time.
#[expect(clippy::cast_sign_loss, reason = "a profile has no negative numbers")]
pub(super) fn time(nanoseconds: f64) -> Time {
    (nanoseconds * PS_PER_NS as f64).round() as Time
}

#[cfg(test)]
mod tests;
