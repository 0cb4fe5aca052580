//! What a device is: the numbers of a profile, where they come from, and what makes no sense.
//!
//! A profile is a TOML file in which every number says its source. The built-in ones are in
//! `crates/lab/profiles`. The model has no number of its own.

use bristlecone_pmem::line::LINE_BYTES;
use serde::Deserialize;
use thiserror::Error;

/// A device and the processor before it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// What `--device` calls it.
    pub name: String,
    /// Where a write is safe from a power cut.
    pub domain: Persistence,
    /// The processor.
    pub cpu: Cpu,
    /// The write-pending queue of each DIMM.
    pub queue: Queue,
    /// The buffers of each DIMM.
    pub buffer: Buffer,
    /// The DIMMs and what is behind their buffers.
    pub media: Media,
    /// What reading and writing the media take.
    pub energy: Energy,
}

/// Where a write is safe from a power cut, and so what a fence waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Persistence {
    /// On the media alone: a fence waits for the write itself.
    Media,
    /// From the write-pending queue on (ADR).
    Queue,
    /// From the processor's cache on (eADR, a global flush at a power cut): flushes do nothing.
    Cache,
}

/// The processor, as far as persistent memory sees it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Bytes of the last cache before memory.
    pub cache_bytes: u64,
    /// Its ways.
    pub cache_ways: usize,
    /// Whether a line that is flushed stays in the cache.
    pub flush_keeps_line: bool,
    /// A word of the line that was accessed last.
    pub word_ns: f64,
    /// A word of another line that is in the cache.
    pub line_ns: f64,
    /// A flush, before the thread goes on.
    pub flush_ns: f64,
    /// A fence that has nothing to wait for.
    pub fence_ns: f64,
    /// What an operation does besides: DRAM, comparisons, branches.
    pub op_ns: f64,
    /// Lines that a core can have under way, in either direction.
    pub outstanding: usize,
}

/// The write-pending queue of a DIMM.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Lines that it holds.
    pub lines: usize,
    /// Time between two lines that leave it.
    pub line_ns: f64,
    /// From a write-back until its line is in an empty queue.
    pub flush_ns: f64,
    /// The same for a store that goes past the cache.
    pub stream_ns: f64,
}

/// The buffers of a DIMM.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    /// Units whose writes are combined; 0 where each line goes to the media by itself.
    pub write_units: usize,
    /// Units that were read last; 0 where nothing is kept.
    pub read_units: usize,
    /// A load whose line is in one of these.
    pub read_ns: f64,
}

/// The DIMMs and their media.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Media {
    /// DIMMs.
    pub dimms: usize,
    /// Consecutive bytes on one DIMM.
    pub interleave_bytes: u64,
    /// Bytes that are read or written together.
    pub unit_bytes: usize,
    /// A load that goes to the media.
    pub read_ns: f64,
    /// A write, until it is on the media.
    pub write_ns: f64,
    /// Bytes in a nanosecond that one DIMM reads.
    pub read_gb_per_s: f64,
    /// Bytes in a nanosecond that one DIMM writes.
    pub write_gb_per_s: f64,
}

/// Energy at the media.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Energy {
    /// For each 64 B that are read.
    pub read_nj_per_line: f64,
    /// For each bit of a unit that is written, changed or not.
    pub write_pj_per_bit: f64,
    /// For each bit that a write changes, in addition.
    pub flip_pj_per_bit: f64,
}

/// Why a profile is none.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// No built-in profile of that name.
    #[error("no device is called {name:?}; there are: {known}")]
    Name {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// Not a profile in TOML.
    #[error("the profile cannot be read: {0}")]
    Syntax(#[from] toml::de::Error),
    /// More memory than the model has room for.
    #[error("the model has room for less than {limit} bytes, and the medium has {bytes}")]
    Bytes {
        /// Of the medium.
        bytes: u64,
        /// Of which the model has less.
        limit: u64,
    },
    /// A number that the model cannot work with.
    #[error("the profile's {field} must be {expected}")]
    Number {
        /// The number.
        field: &'static str,
        /// What it must be.
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
];

/// Slots of the buffers of one kind, of all DIMMs: their numbers have 16 bits.
const SLOTS_MAX: usize = u16::MAX as usize;
/// Ways of the cache: a set is at most a line of the machine that runs the model.
const WAYS_MAX: usize = 16;
/// Lines of a unit are the bits of a word.
const UNIT_BYTES_MAX: usize = 64 * LINE_BYTES;

impl Profile {
    /// The names of the built-in profiles.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The built-in profile called `name`.
    ///
    /// # Errors
    /// There is none.
    pub fn named(name: &str) -> Result<Self, ProfileError> {
        let found = BUILT_IN.iter().find(|(known, _)| *known == name);
        let (_, text) = found.ok_or_else(|| ProfileError::Name {
            name: name.to_owned(),
            known: Self::names().collect::<Vec<_>>().join(", "),
        })?;
        Self::parse(text)
    }

    /// The profile that `text` spells in TOML.
    ///
    /// # Errors
    /// It is none, or a number in it makes no sense.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let profile: Self = toml::from_str(text)?;
        profile.check()?;
        Ok(profile)
    }

    /// The device as one of so many threads sees it: each has its part of the buffers of the DIMMs, and a
    /// unit of them at the least. Lines that one thread writes one after the other no longer meet in a buffer
    /// when those of all the others come between; that is what many threads cost beyond bandwidth.
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

    /// Whether the model can work with these numbers.
    ///
    /// # Errors
    /// It cannot; the error says with which.
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

/// Slower or faster than this is no memory.
const RATE_MIN: f64 = 1e-3;
const RATE_MAX: f64 = 1e6;

fn is_positive(rate: f64) -> bool {
    (RATE_MIN..=RATE_MAX).contains(&rate)
}

fn is_amount(number: f64) -> bool {
    (0.0..=1e6).contains(&number)
}

/// Virtual time: picoseconds, so that sums are exact and the same on every machine.
pub(super) type Time = u64;

/// Picoseconds of a nanosecond.
pub(super) const PS_PER_NS: Time = 1000;

/// `nanoseconds` in virtual time.
#[expect(clippy::cast_sign_loss, reason = "a profile has no negative numbers")]
pub(super) fn time(nanoseconds: f64) -> Time {
    (nanoseconds * PS_PER_NS as f64).round() as Time
}

#[cfg(test)]
mod tests;
