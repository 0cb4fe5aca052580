//! The designs: each a composition, its constants, its budget.

mod bristlecone;
mod btree;
mod btree_log;
mod btree_shadow;
pub mod ccl_btree;
pub mod fast_fair;
pub mod fptree;
mod unsorted_bitmap_log;
mod unsorted_bitmap_shadow;
mod unsorted_leaf;
mod unsorted_leaf_log;
mod unsorted_leaf_shadow;
mod wb_tree;
mod wb_tree_bitmap_leaf;
mod wb_tree_r;
mod wb_tree_slot_only;
mod wo_tree;
mod wo_tree_r;

pub use bristlecone::Bristlecone;
pub use btree::BTree;
pub use btree_log::BTreeLog;
pub use btree_shadow::BTreeShadow;
pub use ccl_btree::CclBTree;
pub use fast_fair::{FastFair, FastFairSp};
pub use fptree::FpTree;
pub use unsorted_bitmap_log::UnsortedBitmapLog;
pub use unsorted_bitmap_shadow::UnsortedBitmapShadow;
pub use unsorted_leaf::UnsortedLeaf;
pub use unsorted_leaf_log::UnsortedLeafLog;
pub use unsorted_leaf_shadow::UnsortedLeafShadow;
pub use wb_tree::WbTree;
pub use wb_tree_bitmap_leaf::WbTreeBitmapLeaf;
pub use wb_tree_r::WbTreeR;
pub use wb_tree_slot_only::WbTreeSlotOnly;
pub use wo_tree::WoTree;
pub use wo_tree_r::WoTreeR;
