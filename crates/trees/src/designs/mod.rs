//! The designs: a folder or a file each.

pub mod fast_fair;
