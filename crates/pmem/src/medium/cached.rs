//! A medium for tests: the page cache of a plain file, and the device below it.
//!
//! A sync makes the pages of the device those of the cache. A power cut leaves each page as the
//! device had it, or as the cache had it at the moment of the cut, because the system may write any
//! page at any time.

use super::{Domain, Fenced, Mapped, Medium, MediumError, words_at};
use crate::word::{PmPtr, PmWord};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot::Mutex;
use std::sync::Arc;

/// The unit in which this system writes a file, in bytes.
const PAGE_BYTES: usize = 4096;

/// Pages of a file that is opened in boot number `boot`. A clone is the same file, through which a
/// test reads the device.
#[derive(Clone, Debug)]
pub(crate) struct Cached {
    cache: Arc<Mapped>,
    boot: u64,
    domain: Domain,
    refuses: Arc<AtomicBool>,
    device: Arc<Mutex<Device>>,
}

#[derive(Debug)]
struct Device {
    pages: Vec<u8>,
    /// The device and the cache at each moment: after each fence, and around each sync.
    moments: Vec<[Vec<u8>; 2]>,
}

impl Cached {
    /// Returns a file with the contents of `image`, all of them on the device.
    pub(crate) fn new(image: &[u8], boot: u64) -> Self {
        let cache = Arc::new(Mapped::anonymous(image.len() as u64).unwrap());
        let words = words_at(&*cache, PmPtr::NULL, image.len() / 8).unwrap();
        for (word, bytes) in words.iter().zip(image.chunks_exact(8)) {
            cache.store(word, u64::from_le_bytes(bytes.try_into().unwrap()));
        }
        let device = Device { pages: image.to_vec(), moments: Vec::new() };
        let refuses = Arc::new(AtomicBool::new(false));
        let device = Arc::new(Mutex::new(device));
        Self { cache, boot, domain: Domain::ProcessCrash, refuses, device }
    }

    /// Returns the same file as if its file system had `domain`.
    pub(crate) fn with_domain(self, domain: Domain) -> Self {
        Self { domain, ..self }
    }

    /// Sets whether the device refuses the pages of a sync. The system then drops them.
    pub(crate) fn refuse_syncs(&self, refuses: bool) {
        self.refuses.store(refuses, Ordering::Relaxed);
    }

    /// Returns the pages of the cache.
    pub(crate) fn contents(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.cache.len() as usize];
        let words = words_at(&*self.cache, PmPtr::NULL, bytes.len() / 8).unwrap();
        self.cache.copy_out(words, &mut bytes);
        bytes
    }

    /// Returns the number of moments so far.
    pub(crate) fn moments(&self) -> usize {
        self.device.lock().moments.len()
    }

    /// Returns what a power cut at a moment leaves: seed 0 all old pages, 1 all new ones, any other
    /// a mixture.
    pub(crate) fn cut(&self, moment: usize, seed: u64) -> Vec<u8> {
        let device = self.device.lock();
        let [old, new] = &device.moments[moment];
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut image = old.clone();
        for (target, source) in image.chunks_mut(PAGE_BYTES).zip(new.chunks(PAGE_BYTES)) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if seed == 1 || (seed > 1 && state >> 40 & 1 == 0) {
                target.copy_from_slice(source);
            }
        }
        image
    }

    fn note(&self) {
        let contents = self.contents();
        let mut device = self.device.lock();
        let moment = [device.pages.clone(), contents];
        device.moments.push(moment);
    }
}

#[expect(unsafe_code, reason = "Medium is an unsafe trait")]
// SAFETY: everything is passed on to `cache`, which keeps the contract.
unsafe impl Medium for Cached {
    fn base(&self) -> NonNull<u8> {
        self.cache.base()
    }
    fn len(&self) -> u64 {
        self.cache.len()
    }
    fn grow(&self, bytes: u64) -> Result<(), MediumError> {
        self.cache.grow(bytes)
    }
    fn domain(&self) -> Domain {
        self.domain
    }
    fn sync(&self) -> Result<(), MediumError> {
        self.sync_front(self.len())
    }
    fn sync_front(&self, bytes: u64) -> Result<(), MediumError> {
        if self.refuses.load(Ordering::Relaxed) {
            let error = std::io::Error::other("the device refuses");
            return Err(MediumError::system("write the file to the device", error));
        }
        self.note();
        let contents = self.contents();
        self.device.lock().pages[..bytes as usize].copy_from_slice(&contents[..bytes as usize]);
        self.note();
        Ok(())
    }
    fn boot_id(&self) -> [u64; 2] {
        [0, self.boot]
    }
    fn load(&self, word: &PmWord) -> u64 {
        self.cache.load(word)
    }
    fn store(&self, word: &PmWord, value: u64) {
        self.cache.store(word, value);
    }
    fn cas_transient(&self, word: &PmWord, old: u64, new: u64) -> Result<(), u64> {
        self.cache.cas_transient(word, old, new)
    }
    fn fill(&self, target: &[PmWord], source: &[u8]) {
        self.cache.fill(target, source);
    }
    fn flush(&self, words: &[PmWord]) {
        self.cache.flush(words);
    }
    fn fence(&self) -> Fenced {
        self.note();
        self.cache.fence()
    }
}
