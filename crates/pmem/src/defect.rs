//! Published defects of persistent indexes, which tests inject into the code that avoids them.
//!
//! 1. A defect is a few lines beside the step that it breaks, under `M::INJECTS_DEFECTS &&
//!    medium.injects(Defect::X)`. [`INJECTS_DEFECTS`](crate::Medium::INJECTS_DEFECTS) is `true`
//!    only on the explorer's media. On every other medium those lines are not compiled.
//! 2. A defect has one home: its entry in the file of the design that it is injected into. The
//!    entry gives the variant, the name, the sentence and the origin. A new file gets its lines
//!    below.
//! 3. Every test that injects defects iterates over [`Defect::ALL`].
//!
//! A defect of a structure that no design here has is injected into one of the explorer's toys,
//! which have the relevant part of that structure.

mod about;
#[macro_use]
mod list;
#[macro_use]
mod all_pm;
#[macro_use]
mod bristlecone;
#[macro_use]
mod btree_ls;
#[macro_use]
mod btree_native;
#[macro_use]
mod ccl_btree;
#[macro_use]
mod cell_tree;
#[macro_use]
mod circ_tree;
#[macro_use]
mod fast_fair;
#[macro_use]
mod fast_fair_sp;
#[macro_use]
mod fptree;
#[macro_use]
mod fptree_r;
#[macro_use]
mod isle_tree;
#[macro_use]
mod kv;
#[macro_use]
mod lb_tree;
#[macro_use]
mod nv_tree;
#[macro_use]
mod pool;
#[macro_use]
mod store;
#[macro_use]
mod toys;
#[macro_use]
mod unit_tree;
#[macro_use]
mod wb_tree;
#[macro_use]
mod wo_tree;

use about::{
    known, own, own_on_disk, own_threads, own_threads_on_disk, printed, public_code, threads,
};

gather! {
    {} {}
    {
        fast_fair wb_tree fptree fptree_r wo_tree isle_tree ccl_btree lb_tree cell_tree unit_tree
        nv_tree bristlecone all_pm btree_native btree_ls circ_tree fast_fair_sp kv store pool toys
    }
}

/// The record of a defect: description, source, and how to reproduce it.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The name of the defect, as commands take and print it.
    pub name: &'static str,
    /// A sentence that says which step is wrong.
    pub what: &'static str,
    /// The paper, code or checker that the defect comes from.
    pub published: &'static str,
    /// The design into which the defect is injected. A name with the prefix `toy-` is a toy of the
    /// explorer.
    pub design: &'static str,
    /// The node size that shows the defect, in bytes; `None` if the smallest does.
    pub node_bytes: Option<usize>,
    /// `true` if only several threads can show the defect.
    pub threads: bool,
    /// `true` if only a disk with a journal can show the defect.
    pub on_disk: bool,
    /// `true` if a paper, or its authors' code, has the defect; `false` if a port or another
    /// implementation has it.
    pub as_printed: bool,
}
