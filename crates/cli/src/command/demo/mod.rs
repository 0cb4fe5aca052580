//! `demo`: the main job on real data. A child process loads English words with several threads and
//! is killed again and again; after each kill the store is opened and compared with what the child
//! had acknowledged.

mod expect;
mod job;
mod kill;
mod speed;

pub(crate) use job::{Args, run};
