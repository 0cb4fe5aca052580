//! The pages of working memory that records have changed since their last checkpoint: a bit for
//! each. Only the thread that writes to the disk knows them: it marks the page of a record when it
//! drains the record, and a checkpoint starts behind the records that are drained.

use core::ops::Range;

/// The size of a page, in bytes: what a checkpoint copies at a time.
pub(super) const PAGE_BYTES: u64 = 4096;

/// The pages that changed since the last checkpoint, a bit each.
#[derive(Debug, Default)]
pub(super) struct Pages {
    bits: Vec<u64>,
}

impl Pages {
    fn place(page: u64) -> (usize, u64) {
        ((page / 64) as usize, 1 << (page % 64))
    }

    /// Marks a page as changed.
    #[inline]
    pub(super) fn mark(&mut self, page: u64) {
        let (word, bit) = Self::place(page);
        if word >= self.bits.len() {
            self.bits.resize(word + 1, 0);
        }
        self.bits[word] |= bit;
    }

    /// Clears the mark of a page.
    pub(super) fn clear(&mut self, page: u64) {
        let (word, bit) = Self::place(page);
        self.bits[word] &= !bit;
    }

    /// Returns the first marked page from `from` on.
    pub(super) fn next(&self, from: u64) -> Option<u64> {
        let (mut word, _) = Self::place(from);
        let mut bits = self.bits.get(word)? >> (from % 64) << (from % 64);
        while bits == 0 {
            word += 1;
            bits = *self.bits.get(word)?;
        }
        Some(64 * word as u64 + u64::from(bits.trailing_zeros()))
    }

    /// Returns the first marked ones of `pages` that lie side by side: at most `max`.
    pub(super) fn next_run(&self, pages: Range<u64>, max: u64) -> Option<Range<u64>> {
        let first = self.next(pages.start).filter(|first| max > 0 && *first < pages.end)?;
        let is_marked = |page: &u64| self.next(*page) == Some(*page);
        let others = first + 1..pages.end.min(first + max);
        let more = others.take_while(is_marked).count() as u64;
        Some(first..first + 1 + more)
    }

    /// Returns a number above that of each page that was ever marked.
    pub(super) fn end(&self) -> u64 {
        64 * self.bits.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marked_pages_are_found_in_order_until_they_are_cleared() {
        let mut pages = Pages::default();
        assert_eq!(pages.next(0), None);
        let marked = [3, 63, 64, 200];
        for page in marked {
            pages.mark(page);
        }
        let all = |pages: &Pages| {
            let mut found = vec![];
            while let Some(page) = pages.next(found.last().map_or(0, |last| last + 1)) {
                found.push(page);
            }
            found
        };
        assert_eq!(all(&pages), marked);
        assert_eq!(pages.next_run(4..u64::MAX, 2), Some(63..65));
        assert_eq!(pages.next_run(4..u64::MAX, 1), Some(63..64));
        assert_eq!(pages.next_run(4..64, 9), Some(63..64));
        assert_eq!(
            (pages.next_run(65..201, 9), pages.next_run(65..200, 9)),
            (Some(200..201), None)
        );
        assert_eq!((pages.next_run(201..u64::MAX, 9), pages.end()), (None, 256));
        pages.clear(63);
        pages.clear(200);
        assert_eq!(all(&pages), [3, 64]);
    }
}
