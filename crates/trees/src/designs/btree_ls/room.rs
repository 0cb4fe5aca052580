//! How much room the logs have: who may append what, which chunks are kept, when to collect.

use super::chunk::{self, Chunk};
use super::log::{LOGS, Log, Side, Spare, State, head_word};
use bristlecone_pmem::sync::Guard;
use bristlecone_pmem::{Corrupt, Medium, PmPtr, PmWord, Pool, PoolError};
use core::sync::atomic::Ordering::Relaxed;

/// Chunks that a log keeps for its next ones: two, and one for so many that it has.
const SPARES_SHARE: usize = 8;

impl<M: Medium> Log<M> {
    /// Lines of a chunk that records may take.
    fn room(&self) -> usize {
        self.lines - 1
    }

    /// Live lines that a log of so many chunks may have: see invariant 4 of `log`.
    fn live_max(&self, chunks: usize) -> usize {
        let whole = self.room() + 1 - self.widest;
        (chunks.saturating_sub(1) * whole).saturating_sub(self.widest)
    }

    /// Makes sure that a log may have so many live lines more, or else that they are no more than those
    /// that go; takes chunks from the pool for it.
    pub(super) fn admit(
        &self,
        pool: &Pool<M>,
        side: &Side,
        lines: usize,
        replaced: usize,
    ) -> Result<(), PoolError> {
        if lines <= replaced && replaced > 0 {
            return Ok(());
        }
        let live = (side.live.load(Relaxed) + lines).saturating_sub(replaced);
        if live <= self.live_max(side.linked.load(Relaxed)) {
            return Ok(());
        }
        loop {
            let chunks = {
                let state = side.state.lock();
                state.chunks.len() + state.spares.len()
            };
            if live <= self.live_max(chunks) {
                return Ok(());
            }
            let at = pool.reserve(chunk::bytes(self.lines))?;
            side.state.lock().spares.push(Spare { at, uses: 0 });
        }
    }

    /// A chunk to be linked, and whether it is the last one, which only a collector gets.
    pub(super) fn take_spare(
        &self,
        pool: &Pool<M>,
        side: &Side,
        is_collected: bool,
    ) -> Result<(Spare, bool), PoolError> {
        let taken = {
            let mut state = side.state.lock();
            let is_free = state.spares.len() > 1 || state.chunks.is_empty();
            if is_free { state.spares.pop() } else { None }
        };
        if let Some(spare) = taken {
            return Ok((spare, false));
        }
        let full = match pool.reserve(chunk::bytes(self.lines)) {
            Ok(at) => return Ok((Spare { at, uses: 0 }, false)),
            Err(full) => full,
        };
        let last = if is_collected { side.state.lock().spares.pop() } else { None };
        last.map(|spare| (spare, true)).ok_or(full)
    }

    /// Unlinks the oldest chunk, in which nothing is live any more. Durable at return. For who collects,
    /// who has fenced the copies.
    ///
    /// ```text
    /// C oldest of the log = the next chunk   8 B
    /// F that word |                          -> then the chunk is used anew, or free
    /// ```
    pub(super) fn unlink_oldest(
        &self,
        pool: &Pool<M>,
        root: &[PmWord],
        log: usize,
        guard: &Guard,
    ) -> Result<(), Corrupt> {
        let side = &self.sides[log];
        let _held = self.latched(log);
        let (oldest, next) = {
            let state = side.state.lock();
            let at = |index: usize| state.chunks.get(index).copied().unwrap_or(PmPtr::NULL);
            (at(0), at(1))
        };
        let uses = Chunk::open(pool, oldest, self.lines)?.uses;
        let word = head_word(root, log);
        pool.medium().store(word, next.offset());
        let _ = pool.medium().persist(core::slice::from_ref(word));
        side.linked.fetch_sub(1, Relaxed);
        side.cursor.store(1, Relaxed);
        side.is_kept.store(false, Relaxed);
        let mut state = side.state.lock();
        state.chunks.pop_front();
        state.spares.push(Spare { at: oldest, uses });
        self.trim(pool, side, &mut state, guard);
        Ok(())
    }

    /// Gives all chunks of a log back in which nothing is live. For who collects.
    ///
    /// ```text
    /// C oldest of the log = 0   8 B
    /// F that word |             -> then the chunks are free
    /// ```
    pub(super) fn clear(&self, pool: &Pool<M>, root: &[PmWord], log: usize, guard: &Guard) {
        let side = &self.sides[log];
        let _held = self.latched(log);
        if side.live.load(Relaxed) > 0 || side.linked.load(Relaxed) == 0 {
            return;
        }
        let word = head_word(root, log);
        pool.medium().store(word, 0);
        let _ = pool.medium().persist(core::slice::from_ref(word));
        side.open.store(0, Relaxed);
        side.linked.store(0, Relaxed);
        side.cursor.store(1, Relaxed);
        let mut state = side.state.lock();
        let spares = core::mem::take(&mut state.spares).into_iter().map(|spare| spare.at);
        let chunks = core::mem::take(&mut state.chunks).into_iter().chain(spares);
        for at in chunks {
            pool.retire(at, chunk::bytes(self.lines), guard);
        }
    }

    /// Gives chunks back that the log need not keep.
    fn trim(&self, pool: &Pool<M>, side: &Side, state: &mut State, guard: &Guard) {
        let keep = 2 + state.chunks.len() / SPARES_SHARE;
        let live = side.live.load(Relaxed);
        while state.spares.len() > keep
            && live <= self.live_max(state.chunks.len() + state.spares.len() - 1)
            && let Some(spare) = state.spares.pop()
        {
            pool.retire(spare.at, chunk::bytes(self.lines), guard);
        }
    }

    /// After an open: takes the chunks from the pool that invariant 4 of `log` asks for. What a crash took
    /// from the log it has given to the pool. Of a log of several chunks as many as there are will do:
    /// collecting makes more.
    ///
    /// # Errors
    /// There is no second chunk for a log that has one.
    pub(super) fn stock(&self, pool: &Pool<M>) -> Result<(), PoolError> {
        for side in &self.sides {
            if side.linked.load(Relaxed) == 0 {
                continue;
            }
            let is_short = || {
                let state = side.state.lock();
                let chunks = state.chunks.len() + state.spares.len();
                state.spares.is_empty() || side.live.load(Relaxed) > self.live_max(chunks)
            };
            while is_short() {
                let chunks = {
                    let state = side.state.lock();
                    state.chunks.len() + state.spares.len()
                };
                match pool.reserve(chunk::bytes(self.lines)) {
                    Ok(at) => side.state.lock().spares.push(Spare { at, uses: 0 }),
                    Err(_) if chunks > 1 => break,
                    Err(full) => return Err(full),
                }
            }
        }
        Ok(())
    }

    /// So many lines of a log are live no more.
    pub(super) fn drop_lines(&self, log: usize, lines: usize) {
        self.sides[log].live.fetch_sub(lines, Relaxed);
    }

    /// Whether no line of a log is live, though it has chunks.
    pub(super) fn is_dead(&self, log: usize) -> bool {
        let side = &self.sides[log];
        side.live.load(Relaxed) == 0 && side.linked.load(Relaxed) > 0
    }

    /// Whether at most half of the lines of the chunks that are full are live.
    pub(super) fn is_due(&self, log: usize) -> bool {
        let side = &self.sides[log];
        let linked = side.linked.load(Relaxed);
        linked > 1 && 2 * side.live.load(Relaxed) <= (linked - 1) * self.room()
    }

    /// Whether the chunk for collecting is being filled.
    pub(super) fn is_kept(&self, log: usize) -> bool {
        self.sides[log].is_kept.load(Relaxed)
    }

    /// Chunks that a log has linked.
    pub(super) fn linked(&self, log: usize) -> usize {
        self.sides[log].linked.load(Relaxed)
    }

    pub(super) fn live(&self, log: usize) -> usize {
        self.sides[log].live.load(Relaxed)
    }

    pub(super) fn lines(&self) -> usize {
        self.lines
    }

    /// Of the oldest chunk of a log, the line at which collecting goes on.
    pub(super) fn cursor(&self, log: usize) -> usize {
        self.sides[log].cursor.load(Relaxed).max(1)
    }

    pub(super) fn set_cursor(&self, log: usize, line: usize) {
        self.sides[log].cursor.store(line, Relaxed);
    }

    /// The index in the table of a leaf.
    pub(super) fn leaf(&self, leaf: u64) -> Option<usize> {
        M::turn();
        self.side_of(leaf).state.lock().leaves.get(&leaf).copied()
    }

    pub(super) fn add_leaf(&self, leaf: u64, index: usize) {
        M::turn();
        self.side_of(leaf).state.lock().leaves.insert(leaf, index);
    }

    pub(super) fn remove_leaf(&self, leaf: u64) {
        M::turn();
        self.side_of(leaf).state.lock().leaves.remove(&leaf);
    }

    fn side_of(&self, leaf: u64) -> &Side {
        &self.sides[super::log::log_of(leaf)]
    }

    /// The chunks of a log: linked ones, the oldest first, and others.
    pub(super) fn chunks(&self, log: usize) -> (Vec<PmPtr>, Vec<PmPtr>) {
        let state = self.sides[log].state.lock();
        (
            state.chunks.iter().copied().collect(),
            state.spares.iter().map(|spare| spare.at).collect(),
        )
    }

    /// Gives all chunks back that are not linked. Nobody may write meanwhile.
    pub(super) fn release_spares(&self, pool: &Pool<M>) {
        for log in 0..LOGS {
            for spare in core::mem::take(&mut self.sides[log].state.lock().spares) {
                if pool.is_block(spare.at, chunk::bytes(self.lines)) {
                    pool.release(spare.at, chunk::bytes(self.lines));
                }
            }
        }
    }
}
