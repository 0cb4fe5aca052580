//! The one list of designs.
//!
//! The list is a macro, so that each crate makes of it what it needs: this one the descriptions,
//! the crate `registry` the table of compiled designs. A user of the store so compiles no other
//! tree.

use crate::index::Design;
use crate::spec::Spec;
use thiserror::Error;

/// A name, or a node size, that no design has.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UnknownDesign {
    /// No design has this name.
    #[error("no design is called {name:?}; there are: {known}")]
    Name {
        /// The requested name of a design.
        name: String,
        /// The names of all designs, separated by commas.
        known: String,
    },
    /// The design has no nodes of this size.
    #[error("{name} has no nodes of {node_bytes} B; its sizes are: {known}")]
    NodeBytes {
        /// The name of the design.
        name: String,
        /// The requested node size, in bytes.
        node_bytes: usize,
        /// The node sizes of the design in bytes, separated by commas.
        known: String,
    },
    /// The design exists, and this build does not have it.
    #[error(
        "{name} is not in this build: BRISTLECONE_DESIGNS named others, or the feature `all-sizes` \
         is missing, which `cargo lab` has"
    )]
    DesignNotBuilt {
        /// The name of the design.
        name: String,
    },
    /// The design has nodes of this size, and this build does not.
    #[error(
        "{name} with nodes of {node_bytes} B is not in this build, which has its smallest and its \
         default size; `cargo lab` builds and runs `bristlecone-lab` with all sizes"
    )]
    NotBuilt {
        /// The name of the design.
        name: String,
        /// The requested node size, in bytes.
        node_bytes: usize,
    },
}

/// Calls the macro `$with` with one row for each design: its name, its type at the smallest node
/// size, and its types at all sizes, the default size first.
#[macro_export]
macro_rules! for_each_design {
    ($with:ident) => {
        $with! {
            "btree" => $crate::designs::BTree<64>, [
                $crate::designs::BTree<512>,
                $crate::designs::BTree<64>,
                $crate::designs::BTree<128>,
                $crate::designs::BTree<256>,
                $crate::designs::BTree<1024>,
                $crate::designs::BTree<2048>,
                $crate::designs::BTree<4096>,
            ],
            "btree-linear" => $crate::designs::BTreeLinear<128>, [
                $crate::designs::BTreeLinear<512>,
                $crate::designs::BTreeLinear<128>,
                $crate::designs::BTreeLinear<256>,
                $crate::designs::BTreeLinear<1024>,
                $crate::designs::BTreeLinear<2048>,
                $crate::designs::BTreeLinear<4096>,
            ],
            "unsorted-leaf" => $crate::designs::UnsortedLeaf<128>, [
                $crate::designs::UnsortedLeaf<512>,
                $crate::designs::UnsortedLeaf<128>,
                $crate::designs::UnsortedLeaf<256>,
                $crate::designs::UnsortedLeaf<1024>,
                $crate::designs::UnsortedLeaf<2048>,
                $crate::designs::UnsortedLeaf<4096>,
            ],
            "btree-log" => $crate::designs::BTreeLog<64>, [
                $crate::designs::BTreeLog<512>,
                $crate::designs::BTreeLog<64>,
                $crate::designs::BTreeLog<128>,
                $crate::designs::BTreeLog<256>,
                $crate::designs::BTreeLog<1024>,
            ],
            "btree-native" => $crate::designs::BTreeNative<256>, [
                $crate::designs::BTreeNative<1024>,
                $crate::designs::BTreeNative<256>,
                $crate::designs::BTreeNative<512>,
                $crate::designs::BTreeNative<2048>,
            ],
            "unsorted-leaf-log" => $crate::designs::UnsortedLeafLog<64>, [
                $crate::designs::UnsortedLeafLog<512>,
                $crate::designs::UnsortedLeafLog<64>,
                $crate::designs::UnsortedLeafLog<128>,
                $crate::designs::UnsortedLeafLog<256>,
                $crate::designs::UnsortedLeafLog<1024>,
            ],
            "unsorted-bitmap-log" => $crate::designs::UnsortedBitmapLog<64>, [
                $crate::designs::UnsortedBitmapLog<512>,
                $crate::designs::UnsortedBitmapLog<64>,
                $crate::designs::UnsortedBitmapLog<128>,
                $crate::designs::UnsortedBitmapLog<256>,
                $crate::designs::UnsortedBitmapLog<1024>,
            ],
            "btree-shadow" => $crate::designs::BTreeShadow<64>, [
                $crate::designs::BTreeShadow<512>,
                $crate::designs::BTreeShadow<64>,
                $crate::designs::BTreeShadow<128>,
                $crate::designs::BTreeShadow<256>,
                $crate::designs::BTreeShadow<1024>,
            ],
            "unsorted-leaf-shadow" => $crate::designs::UnsortedLeafShadow<64>, [
                $crate::designs::UnsortedLeafShadow<512>,
                $crate::designs::UnsortedLeafShadow<64>,
                $crate::designs::UnsortedLeafShadow<128>,
                $crate::designs::UnsortedLeafShadow<256>,
                $crate::designs::UnsortedLeafShadow<1024>,
            ],
            "unsorted-bitmap-shadow" => $crate::designs::UnsortedBitmapShadow<64>, [
                $crate::designs::UnsortedBitmapShadow<512>,
                $crate::designs::UnsortedBitmapShadow<64>,
                $crate::designs::UnsortedBitmapShadow<128>,
                $crate::designs::UnsortedBitmapShadow<256>,
                $crate::designs::UnsortedBitmapShadow<1024>,
            ],
            "btree-gf" => $crate::designs::BTreeGf<256>, [
                $crate::designs::BTreeGf<512>,
                $crate::designs::BTreeGf<256>,
                $crate::designs::BTreeGf<1024>,
            ],
            "btree-wal" => $crate::designs::BTreeWal<256>, [
                $crate::designs::BTreeWal<512>,
                $crate::designs::BTreeWal<256>,
                $crate::designs::BTreeWal<1024>,
            ],
            "persistent-unsorted" => $crate::designs::PersistentUnsorted<128>, [
                $crate::designs::PersistentUnsorted<512>,
                $crate::designs::PersistentUnsorted<128>,
                $crate::designs::PersistentUnsorted<256>,
                $crate::designs::PersistentUnsorted<1024>,
                $crate::designs::PersistentUnsorted<2048>,
                $crate::designs::PersistentUnsorted<4096>,
            ],
            "wb-tree" => $crate::designs::WbTree<256>, [
                $crate::designs::WbTree<512>,
                $crate::designs::WbTree<256>,
                $crate::designs::WbTree<1024>,
                $crate::designs::WbTree<2048>,
            ],
            "wb-tree-bitmap-leaf" => $crate::designs::WbTreeBitmapLeaf<256>, [
                $crate::designs::WbTreeBitmapLeaf<512>,
                $crate::designs::WbTreeBitmapLeaf<256>,
                $crate::designs::WbTreeBitmapLeaf<1024>,
            ],
            "wb-tree-slot-only" => $crate::designs::WbTreeSlotOnly<64>, [
                $crate::designs::WbTreeSlotOnly<128>,
                $crate::designs::WbTreeSlotOnly<64>,
            ],
            "wb-tree-words" => $crate::designs::WbTreeWords<256>, [
                $crate::designs::WbTreeWords<512>,
                $crate::designs::WbTreeWords<256>,
                $crate::designs::WbTreeWords<1024>,
                $crate::designs::WbTreeWords<2048>,
            ],
            "wb-tree-r" => $crate::designs::WbTreeR<256>, [
                $crate::designs::WbTreeR<512>,
                $crate::designs::WbTreeR<256>,
            ],
            "fast-fair" => $crate::designs::FastFair<256>, [
                $crate::designs::FastFair<512>,
                $crate::designs::FastFair<256>,
                $crate::designs::FastFair<1024>,
                $crate::designs::FastFair<2048>,
                $crate::designs::FastFair<4096>,
            ],
            "fast-fair-r" => $crate::designs::FastFairR<256>, [
                $crate::designs::FastFairR<512>,
                $crate::designs::FastFairR<256>,
            ],
            "fast-fair-wide" => $crate::designs::FastFairWide<256>, [
                $crate::designs::FastFairWide<512>,
                $crate::designs::FastFairWide<256>,
            ],
            "fast-fair-sp" => $crate::designs::FastFairSp<256, 32>, [
                $crate::designs::FastFairSp<512, 64>,
                $crate::designs::FastFairSp<256, 32>,
                $crate::designs::FastFairSp<1024, 128>,
                $crate::designs::FastFairSp<2048, 256>,
                $crate::designs::FastFairSp<4096, 512>,
            ],
            "fast-fair-sp-r" => $crate::designs::FastFairSpR<256>, [
                $crate::designs::FastFairSpR<512>,
                $crate::designs::FastFairSpR<256>,
            ],
            "wo-tree" => $crate::designs::WoTree<256>, [
                $crate::designs::WoTree<1024>,
                $crate::designs::WoTree<256>,
                $crate::designs::WoTree<512>,
                $crate::designs::WoTree<2048>,
            ],
            "wo-tree-r" => $crate::designs::WoTreeR<256>, [
                $crate::designs::WoTreeR<1024>,
                $crate::designs::WoTreeR<256>,
                $crate::designs::WoTreeR<512>,
                $crate::designs::WoTreeR<2048>,
            ],
            "fptree" => $crate::designs::FpTree<256>, [
                $crate::designs::FpTree<512>,
                $crate::designs::FpTree<256>,
                $crate::designs::FpTree<1024>,
            ],
            "fptree-r" => $crate::designs::FpTreeR<256>, [
                $crate::designs::FpTreeR<512>,
                $crate::designs::FpTreeR<256>,
                $crate::designs::FpTreeR<1024>,
            ],
            "isle-tree" => $crate::designs::IsleTree<256>, [
                $crate::designs::IsleTree<512>,
                $crate::designs::IsleTree<256>,
                $crate::designs::IsleTree<1024>,
                $crate::designs::IsleTree<2048>,
            ],
            "isle-tree-r" => $crate::designs::IsleTreeR<256>, [
                $crate::designs::IsleTreeR<512>,
                $crate::designs::IsleTreeR<256>,
                $crate::designs::IsleTreeR<1024>,
                $crate::designs::IsleTreeR<2048>,
            ],
            "isle-tree-all" => $crate::designs::IsleTreeAll<256>, [
                $crate::designs::IsleTreeAll<512>,
                $crate::designs::IsleTreeAll<256>,
                $crate::designs::IsleTreeAll<1024>,
                $crate::designs::IsleTreeAll<2048>,
            ],
            "ccl-btree" => $crate::designs::CclBTree<2>, [
                $crate::designs::CclBTree<2>,
            ],
            "lb-tree" => $crate::designs::LbTree, [
                $crate::designs::LbTree,
            ],
            "nv-tree" => $crate::designs::NvTree<256>, [
                $crate::designs::NvTree<512>,
                $crate::designs::NvTree<256>,
                $crate::designs::NvTree<1024>,
                $crate::designs::NvTree<2048>,
            ],
            "nv-tree-r" => $crate::designs::NvTreeR<256>, [
                $crate::designs::NvTreeR<512>,
                $crate::designs::NvTreeR<256>,
                $crate::designs::NvTreeR<1024>,
            ],
            "circ-tree" => $crate::designs::CircTree<256>, [
                $crate::designs::CircTree<512>,
                $crate::designs::CircTree<256>,
                $crate::designs::CircTree<1024>,
                $crate::designs::CircTree<2048>,
            ],
            "circ-tree-r" => $crate::designs::CircTreeR<256>, [
                $crate::designs::CircTreeR<512>,
                $crate::designs::CircTreeR<256>,
                $crate::designs::CircTreeR<1024>,
                $crate::designs::CircTreeR<2048>,
            ],
            "btree-ls" => $crate::designs::BTreeLs<256>, [
                $crate::designs::BTreeLs<512>,
                $crate::designs::BTreeLs<256>,
                $crate::designs::BTreeLs<1024>,
            ],
            "btree-ls-r" => $crate::designs::BTreeLsR<256>, [
                $crate::designs::BTreeLsR<512>,
                $crate::designs::BTreeLsR<256>,
                $crate::designs::BTreeLsR<1024>,
            ],
            "cell-tree" => $crate::designs::CellTree<256>, [
                $crate::designs::CellTree<1024>,
                $crate::designs::CellTree<256>,
                $crate::designs::CellTree<512>,
            ],
            "unit-tree" => $crate::designs::UnitTree<512>, [
                $crate::designs::UnitTree<1024>,
                $crate::designs::UnitTree<512>,
            ],
            "bristlecone" => $crate::designs::Bristlecone, [
                $crate::designs::Bristlecone,
            ],
        }
    };
}

macro_rules! specs {
    ($($name:literal => $smallest:ty, [$($design:ty),* $(,)?]),* $(,)?) => {
        /// Returns the descriptions of all designs: for each design those of its node sizes, the
        /// default size first.
        pub fn specs() -> Vec<Vec<Spec>> {
            vec![$(vec![$(<$design as Design>::SPEC),*]),*]
        }

        #[cfg(test)]
        fn rows() -> Vec<(&'static str, Spec)> {
            vec![$(($name, <$smallest as Design>::SPEC)),*]
        }
    };
}

for_each_design!(specs);

impl UnknownDesign {
    /// Creates the error for a name that was not found, or for a node size of a design that was.
    pub fn new(name: &str, node_bytes: Option<usize>) -> Self {
        let specs = specs();
        let list = |words: Vec<String>| words.join(", ");
        if let Some(sizes) = specs.iter().find(|sizes| sizes[0].name == name) {
            let Some(node_bytes) = node_bytes else {
                return Self::DesignNotBuilt { name: name.into() };
            };
            if sizes.iter().any(|spec| spec.node_bytes == node_bytes) {
                return Self::NotBuilt { name: name.into(), node_bytes };
            }
            let known = list(sizes.iter().map(|spec| spec.node_bytes.to_string()).collect());
            return Self::NodeBytes { name: name.into(), node_bytes, known };
        }
        let known = list(specs.iter().map(|sizes| sizes[0].name.to_string()).collect());
        Self::Name { name: name.into(), known }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_of_one_design_and_names_its_smallest_size() {
        for (sizes, (name, smallest)) in specs().iter().zip(rows()) {
            assert!(sizes.iter().chain([&smallest]).all(|spec| spec.name == name), "{name}");
            let least = sizes.iter().map(|spec| spec.node_bytes).min();
            assert_eq!(least, Some(smallest.node_bytes), "{name}");
        }
    }

    #[test]
    fn errors_list_what_there_is() {
        let text = UnknownDesign::new("fptree", Some(7)).to_string();
        assert_eq!(text, "fptree has no nodes of 7 B; its sizes are: 512, 256, 1024");
        let text = UnknownDesign::new("fptree", None).to_string();
        assert!(text.starts_with("fptree is not in this build"), "{text}");
        let text = UnknownDesign::new("no such tree", None).to_string();
        assert!(text.starts_with("no design is called \"no such tree\"; there are: btree, "));
    }
}
