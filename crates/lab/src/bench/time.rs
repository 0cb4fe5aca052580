//! The timed pass: one repetition of a workload on a system.

use super::once::{Once, once};
use super::options::Bench;
use super::reopen;
use super::room::room_bytes;
use crate::error::Result;
use crate::system::{AnySystem, Site, SystemKey, Target, bytes_refused};
use crate::workload::{Plan, Recipe};
use bristlecone_registry::Memory;
use bristlecone_trees::Text;

impl Bench {
    /// Runs one timed repetition of `recipe` on `target`. If `weighs`, also finds the memory for
    /// each key. `plans` are those of `recipe`.
    ///
    /// # Errors
    /// The system failed, gave a wrong answer, or does not take the keys of `recipe`.
    pub fn time(
        &self,
        target: &Target,
        recipe: &Recipe,
        plans: &[Plan],
        weighs: bool,
    ) -> Result<Once> {
        let (are_bytes, reopens) = (recipe.keys().are_bytes(), recipe.workload.reopens());
        match reopens {
            Some(_) if are_bytes => Err(bytes_refused(
                recipe.keys(),
                "opening again is timed with keys of 8 B: leave out --keys",
            )),
            Some(clean) => {
                let measured = reopen::time(self, target, recipe, clean)?;
                Ok(Once { measured, memory: None })
            }
            None if are_bytes => self.time_keys::<Text>(target, recipe, plans, weighs),
            None => self.time_keys::<u64>(target, recipe, plans, weighs),
        }
    }

    fn time_keys<K: SystemKey>(
        &self,
        target: &Target,
        recipe: &Recipe,
        plans: &[Plan],
        weighs: bool,
    ) -> Result<Once> {
        if let Target::Peer(peer) = target {
            let site = Site {
                requested: self.pool.as_deref(),
                pool: self.pool_path(),
                pool_bytes: room_bytes(target, recipe),
                threads: recipe.threads,
            };
            return once(K::create_peer(peer, &site, recipe.keys())?, recipe, plans, weighs);
        }
        let opener = target.opener::<Memory, K>(recipe.keys())?;
        let (medium, file) = self.medium(target, recipe)?;
        drop(file);
        match opener.create(self.delays.on(medium))? {
            AnySystem::Design(tree) => once(tree, recipe, plans, weighs),
            AnySystem::Store(store) => once::<K, _>(store, recipe, plans, weighs),
            AnySystem::Floor(lines) => once::<K, _>(lines, recipe, plans, weighs),
        }
    }
}
