//! Opening again: how long it takes until a pool of so many records can be used.
//!
//! What is timed is all of it: mapping the file, reading the pool, recovering or loading the index.
//! The file's pages are in memory, as they are after the death of a process; the new mapping has
//! none of them yet.

use super::run::{self, Measured, expect_none};
use super::subject::{Actor, Subject, Tree};
use super::target::{Bench, Memory};
use crate::error::Result;
use crate::workload::{Buffer, Recipe, Render, belongs};
use bristlecone::Store;
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::FileOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// A subject that can be closed.
pub(crate) trait Close: Subject + Sized {
    fn close(self) -> Result<()>;
}

impl Close for Tree<Memory, u64> {
    fn close(self) -> Result<()> {
        let pool = self.into_index().close()?;
        Ok(Arc::into_inner(pool).expect("nobody else has the pool of a subject").close()?)
    }
}

impl Close for Store<Memory> {
    fn close(self) -> Result<()> {
        Ok(Store::close(self)?)
    }
}

/// A file that is removed at the end.
#[derive(Debug)]
pub(crate) struct Named(pub(crate) PathBuf);

impl Named {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0); // Whoever removed it first has done our work.
    }
}

/// Loads `subject`, which is in `file`, ends its use cleanly or as a crash does, and opens it.
pub(crate) fn time<S: Close>(
    mut subject: S,
    open: impl FnOnce(Memory) -> Result<S>,
    file: &Named,
    bench: &Bench,
    recipe: &Recipe,
    clean: bool,
) -> Result<Measured> {
    run::load(&mut subject, recipe)?;
    if clean {
        subject.close()?;
    } else {
        drop(subject);
    }
    let start = Instant::now();
    let options = FileOptions { placement: bench.placement, ..FileOptions::default() };
    let medium = Mapped::open(file.path(), &options)?.emulate(bench.domain)?;
    let mut subject = open(bench.delays.on(medium))?;
    let elapsed = start.elapsed();
    verify(&mut subject, recipe)?;
    let nanoseconds = u32::try_from(elapsed.as_nanos()).unwrap_or(u32::MAX);
    Ok(Measured {
        ops: 1,
        seconds: elapsed.as_secs_f64().max(1e-9),
        samples: vec![nanoseconds],
        open: None,
        collectors: 0,
        pinned: false,
    })
}

/// Looks up some of the records.
fn verify<S: Subject>(subject: &mut S, recipe: &Recipe) -> Result<()> {
    const LOOKUPS: u64 = 1000;
    let (mut wrong, mut done, mut buffer) = (0, 0, Buffer::default());
    for actor in &mut subject.actors(1) {
        for index in (0..recipe.records).step_by((recipe.records / LOOKUPS).max(1) as usize) {
            let token = recipe.token(index);
            let key = u64::render(recipe.keys(), token, &mut buffer);
            wrong += u64::from(!actor.get(key)?.is_some_and(|value| belongs(token, value)));
            done += 1;
        }
    }
    expect_none(wrong, done)
}
