//! The designs: each a composition, its constants, its budget.

mod bristlecone;
mod btree;
pub mod ccl_btree;
pub mod fast_fair;
pub mod fptree;
mod wb_tree;
mod wb_tree_bitmap_leaf;
mod wb_tree_slot_only;
mod wo_tree;
mod wo_tree_r;

pub use bristlecone::Bristlecone;
pub use btree::BTree;
pub use ccl_btree::CclBTree;
pub use fast_fair::{FastFair, FastFairSp};
pub use fptree::FpTree;
pub use wb_tree::WbTree;
pub use wb_tree_bitmap_leaf::WbTreeBitmapLeaf;
pub use wb_tree_slot_only::WbTreeSlotOnly;
pub use wo_tree::WoTree;
pub use wo_tree_r::WoTreeR;
