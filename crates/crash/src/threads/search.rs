//! The search for the operations at which threads meet, by trial.

use crate::config::POOL_BYTES;
use crate::medium::scheduled::ScheduledMedium;
use crate::scenario::index::session::{IndexSession, Op};
use crate::subject::design::SubjectDesign;
use crate::subject::keys::SampleKey;
use crate::threads::scenario::{Room, ThreadScenario, touched};
use bristlecone_pmem::PoolError;
use bristlecone_pmem::medium::schedule::Conditions;
use bristlecone_trees::{TreeError, TreeStats};

/// The number of keys after which a case counts as one that the design does not have.
const KEYS_MAX: u64 = 900;
/// The distance of the sample keys, so that others fit between them.
pub(super) const STRIDE: u64 = 10;
/// The greatest number of threads of a scenario.
pub(crate) const THREADS_MAX: usize = 4;

/// An operation that a trial was looking for, by its key, and the operations before it.
pub(super) struct ThreadCase<K: SampleKey> {
    pub(super) before: Vec<Op<K>>,
    pub(super) number: u64,
}

pub(super) fn insert<K: SampleKey>(number: u64) -> Op<K> {
    Op::Insert(K::sample(number), number.wrapping_mul(3))
}

pub(super) fn remove<K: SampleKey>(number: u64) -> Op<K> {
    Op::Remove(K::sample(number))
}

pub(super) fn fresh<K: SampleKey>() -> Vec<Op<K>> {
    vec![Op::CreatePool, Op::Create]
}

/// Applies the operation that `make` returns for each number, after `setup`, until one changes the
/// statistics as `wanted`.
pub(super) fn until<K: SampleKey>(
    design: SubjectDesign<K>,
    setup: &[Op<K>],
    numbers: impl IntoIterator<Item = u64>,
    make: fn(u64) -> Op<K>,
    wanted: impl Fn(&TreeStats, &TreeStats) -> bool,
) -> Result<Option<ThreadCase<K>>, TreeError> {
    search(design, setup, &mut numbers.into_iter(), make, &wanted)
}

/// Searches as [`until`] does; it is compiled once for all cases.
fn search<K: SampleKey>(
    design: SubjectDesign<K>,
    setup: &[Op<K>],
    numbers: &mut dyn Iterator<Item = u64>,
    make: fn(u64) -> Op<K>,
    wanted: &dyn Fn(&TreeStats, &TreeStats) -> bool,
) -> Result<Option<ThreadCase<K>>, TreeError> {
    let medium = ScheduledMedium::new(POOL_BYTES, POOL_BYTES);
    let mut session = IndexSession::<K>::Closed;
    let mut before = setup.to_vec();
    for op in setup {
        session.apply(design, &(&medium).into(), op)?;
    }
    let stats = |session: &IndexSession<K>| match session {
        IndexSession::Index(index) => index.check(),
        IndexSession::Closed | IndexSession::Pool(_) => Ok(TreeStats::default()),
    };
    let mut was = stats(&session)?;
    for number in numbers.take(KEYS_MAX as usize) {
        match session.apply(design, &(&medium).into(), &make(number)) {
            Err(TreeError::Pool(PoolError::Full { .. })) => return Ok(None),
            done => done?,
        };
        let is = stats(&session)?;
        if wanted(&was, &is) {
            return Ok(Some(ThreadCase { before, number }));
        }
        was = is;
        before.push(make(number));
    }
    Ok(None)
}

/// Returns a scenario that begins after `before`. Each execution repeats the last `live` operations
/// of it, because inner nodes that an open builds differ from those that operations build. A
/// volatile design repeats all of them.
pub(super) fn thread_scenario<K: SampleKey>(
    design: SubjectDesign<K>,
    name: &str,
    mut before: Vec<Op<K>>,
    live: usize,
    threads: [Vec<Op<K>>; THREADS_MAX],
) -> ThreadScenario<K> {
    let kept = if design.form.spec.persistent { before.len() - live } else { 0 };
    let prelude = before.split_off(kept);
    let name = format!("{}/{name}", K::NAME);
    let (touched, room) = (touched(&threads), Room::Enough);
    let (threads, conditions) = (threads.into(), Conditions::USUAL);
    ThreadScenario { name, setup: before, prelude, threads, touched, room, conditions, design }
}
