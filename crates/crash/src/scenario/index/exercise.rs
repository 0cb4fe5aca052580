//! Operations on a recovered index around the key of the crash. Several published defects show only
//! there.

use crate::outcome::Finding;
use crate::scenario::index::session::{ModelState, Op, apply};
use crate::subject::design::Index;
use bristlecone_trees::Key;

/// Operations with their right answers, and the pairs after them. Computed once for each state, not
/// for each crash.
pub(crate) struct Exercise<K: Key> {
    steps: Vec<(Op<K>, Option<u64>)>,
    /// The pairs that the index must have afterwards.
    pub(crate) after: Vec<(K::Owned, u64)>,
}

impl<K: Key> Exercise<K> {
    /// Returns the operations around `keys` for an index in `state`.
    pub(crate) fn new(state: &ModelState<K>, keys: &[K::Owned]) -> Self {
        let mut model = state.clone();
        let mut steps = Vec::new();
        for (number, key) in (1_u64 << 40..).zip(keys) {
            let key = || key.clone();
            let ops = match number % 3 {
                0 => [Op::Get(key()), Op::Remove(key()), Op::Insert(key(), number)],
                1 => [Op::Upsert(key(), number), Op::Get(key()), Op::Remove(key())],
                _ => [Op::Insert(key(), number), Op::Update(key(), number + 7), Op::Get(key())],
            };
            for op in ops {
                let answer = model.apply(&op);
                steps.push((op, answer));
            }
        }
        let after = match model {
            ModelState::Index(pairs) => pairs.into_iter().collect(),
            ModelState::NoPool | ModelState::NoIndex => Vec::new(),
        };
        Self { steps, after }
    }

    /// Runs the operations and checks their answers.
    pub(crate) fn run(&self, index: &Index<K>) -> Result<(), Finding> {
        for (op, expected) in &self.steps {
            let what = "after recovery an operation gives a wrong answer";
            match apply(index, op) {
                Ok(found) if found == *expected => {}
                Ok(found) => {
                    let expected = format!("{op}: {expected:?}");
                    return Err(Finding::new(what, expected, format!("{found:?}")));
                }
                Err(error) => {
                    let what = "after recovery an operation fails";
                    return Err(Finding::new(what, op.to_string(), error.to_string()));
                }
            }
        }
        Ok(())
    }
}
