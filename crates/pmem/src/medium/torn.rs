//! A medium for tests: records all accesses and makes the images that a crash can leave.
//!
//! A crash leaves of each line a prefix of its stores that includes everything that a fence has
//! guaranteed. The model stores the words of a fill in order, which is stricter than a fill; the
//! logs and the superblocks use no fill.

use super::{Domain, Fenced, Mapped, Medium, MediumError, words_at};
use crate::line::{LINE_BYTES, lines};
use crate::word::{PmPtr, PmWord, words_of};
use core::ptr::NonNull;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone, Copy)]
enum Event {
    Store(usize, u64),
    Flush(usize),
    Fence,
}

/// Anonymous memory that records its stores, flushes and fences. A clone is the same medium,
/// through which a test reads the record.
#[derive(Clone, Debug)]
pub(crate) struct Torn {
    inner: Arc<Mapped>,
    before: Arc<[u8]>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Torn {
    /// Returns a medium with the contents of `image`.
    pub(crate) fn new(image: &[u8]) -> Self {
        let inner = Arc::new(Mapped::anonymous(image.len() as u64).unwrap());
        let torn = Self { inner, before: image.into(), events: Arc::default() };
        for (at, bytes) in image.chunks(8).enumerate() {
            let value = u64::from_le_bytes(bytes.try_into().unwrap());
            if value != 0 {
                torn.inner.store(torn.word(at * 8), value);
            }
        }
        torn
    }

    fn word(&self, offset: usize) -> &PmWord {
        assert!(offset as u64 + 8 <= self.inner.len() && offset.is_multiple_of(8));
        #[expect(unsafe_code, reason = "the test's own mapping")]
        #[expect(clippy::cast_ptr_alignment, reason = "checked above")]
        // SAFETY: the mapping is as long as was just checked, and lives as long as `self`.
        unsafe {
            &*self.base().as_ptr().wrapping_add(offset).cast::<PmWord>()
        }
    }

    fn offset(&self, word: &PmWord) -> usize {
        core::ptr::from_ref(word) as usize - self.base().as_ptr() as usize
    }

    fn note_flush(&self, words: &[PmWord]) {
        let base = self.base().as_ptr() as usize;
        for line in lines(words.as_ptr() as usize, core::mem::size_of_val(words)) {
            self.events.lock().push(Event::Flush(line - base));
        }
    }

    /// Stores what a process that was killed had stored and not written back, so that the medium
    /// has `contents`.
    pub(crate) fn leave_in_caches(&self, contents: &[u8]) {
        for (at, bytes) in contents.chunks(8).enumerate() {
            let value = u64::from_le_bytes(bytes.try_into().unwrap());
            if self.load(self.word(at * 8)) != value {
                self.store(self.word(at * 8), value);
            }
        }
    }

    /// Returns the number of events so far.
    pub(crate) fn events(&self) -> usize {
        self.events.lock().len()
    }

    /// Returns the image that a crash after the first `count` events leaves. For each line,
    /// `choose` picks how many of its stores persist, between the least and the greatest possible
    /// number.
    pub(crate) fn crash(
        &self,
        count: usize,
        mut choose: impl FnMut(usize, usize) -> usize,
    ) -> Vec<u8> {
        let mut dirty: BTreeMap<usize, Dirty> = BTreeMap::new();
        for event in &self.events.lock()[..count] {
            match *event {
                Event::Store(at, value) => {
                    let line = dirty.entry(at / LINE_BYTES * LINE_BYTES).or_default();
                    line.stores.push((at, value));
                }
                Event::Flush(line) => {
                    let line = dirty.entry(line).or_default();
                    line.flushed = line.stores.len();
                }
                Event::Fence => dirty.values_mut().for_each(|line| line.kept = line.flushed),
            }
        }
        let mut image = self.before.to_vec();
        image.resize(self.inner.len() as usize, 0);
        for line in dirty.values() {
            let keep = choose(line.kept, line.stores.len());
            for &(at, value) in &line.stores[..keep] {
                image[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        image
    }

    /// Calls `visit` with images of a crash after each event: every line at its least, every line
    /// at its most, each line alone at the other extreme, and `samples` random choices.
    pub(crate) fn crashes(&self, samples: u64, mut visit: impl FnMut(usize, &[u8])) {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for count in 0..=self.events() {
            visit(count, &self.crash(count, |least, _| least));
            visit(count, &self.crash(count, |_, most| most));
            let mut free = 0;
            self.crash(count, |least, most| {
                free += usize::from(least < most);
                most
            });
            for (odd, most_alone) in (0..free).flat_map(|odd| [(odd, false), (odd, true)]) {
                let mut seen = 0;
                let image = self.crash(count, |least, most| {
                    seen += usize::from(least < most);
                    if (seen == odd + 1) == most_alone { most } else { least }
                });
                visit(count, &image);
            }
            for _ in 0..samples {
                let image = self.crash(count, |least, most| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    least + state as usize % (most - least + 1)
                });
                visit(count, &image);
            }
        }
    }
}

#[derive(Default)]
struct Dirty {
    stores: Vec<(usize, u64)>,
    flushed: usize,
    kept: usize,
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: everything is passed on to `inner`, which keeps the contract.
unsafe impl Medium for Torn {
    fn base(&self) -> NonNull<u8> {
        self.inner.base()
    }
    fn len(&self) -> u64 {
        self.inner.len()
    }
    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        self.inner.grow(bytes)
    }
    fn domain(&self) -> Domain {
        self.inner.domain()
    }
    fn load(&self, word: &PmWord) -> u64 {
        self.inner.load(word)
    }
    fn store(&self, word: &PmWord, value: u64) {
        self.events.lock().push(Event::Store(self.offset(word), value));
        self.inner.store(word, value);
    }
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        self.inner.cas_transient(word, old, new)?;
        self.events.lock().push(Event::Store(self.offset(word), new));
        Ok(())
    }
    fn fill(&self, target: &[PmWord], source: &[u8]) {
        for (word, value) in target.iter().zip(words_of(source)) {
            self.store(word, value);
        }
        self.note_flush(&target[..source.len().div_ceil(8)]);
    }
    fn flush(&self, words: &[PmWord]) {
        self.note_flush(words);
        self.inner.flush(words);
    }
    fn write_back_all(&self) -> Result<(), MediumError> {
        self.note_flush(words_at(self, PmPtr::NULL, self.len() as usize / 8).unwrap());
        let _ = self.fence();
        Ok(())
    }
    fn fence(&self) -> Fenced {
        self.events.lock().push(Event::Fence);
        self.inner.fence()
    }
}
