//! The only list of designs. Tests, tools and figures all expand it.

use crate::designs::{
    BTree, BTreeGf, BTreeLog, BTreeLs, BTreeShadow, BTreeWal, Bristlecone, CclBTree, CircTree,
    FastFair, FastFairSp, FpTree, IsleTree, IsleTreeAll, IsleTreeR, NvTree, PersistentUnsorted,
    UnsortedBitmapLog, UnsortedBitmapShadow, UnsortedLeaf, UnsortedLeafLog, UnsortedLeafShadow,
    WbTree, WbTreeBitmapLeaf, WbTreeR, WbTreeSlotOnly, WoTree, WoTreeR,
};
use crate::index::Design;
use crate::spec::Spec;
use thiserror::Error;

/// Something to do with a design whose type is chosen at run time, once, outside any loop.
pub trait Visitor {
    /// What comes of it.
    type Output;
    /// Does it with `D`.
    fn visit<D: Design>(self) -> Self::Output;
}

/// A name, or a node size, that no design has.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UnknownDesign {
    /// No design of that name.
    #[error("no design is called {name:?}; there are: {known}")]
    Name {
        /// What was asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The design has no nodes of that size.
    #[error("{name} has no nodes of {node_bytes} B; its sizes are: {known}")]
    NodeBytes {
        /// The design.
        name: String,
        /// What was asked for.
        node_bytes: usize,
        /// The sizes there are.
        known: String,
    },
}

/// One row a design: its name, its type at the smallest node size, then at each size, the default
/// first.
macro_rules! designs {
    ($($name:literal => $smallest:ty, [$default:ty $(, $design:ty)* $(,)?]),* $(,)?) => {
        /// What every design says of itself, at every node size, the default size first.
        pub fn specs() -> Vec<Vec<Spec>> {
            vec![$(vec![<$default as Design>::SPEC $(, <$design as Design>::SPEC)*]),*]
        }

        /// Calls `visitor` with the design called `name`, at `node_bytes` or its default size.
        ///
        /// # Errors
        /// There is no such design, or not at that size.
        pub fn with_design<V: Visitor>(
            name: &str,
            node_bytes: Option<usize>,
            visitor: V,
        ) -> Result<V::Output, UnknownDesign> {
            $(
                if name == $name {
                    if node_bytes.is_none_or(|bytes| bytes == <$default as Design>::SPEC.node_bytes)
                    {
                        return Ok(visitor.visit::<$default>());
                    }
                    $(
                        if node_bytes == Some(<$design as Design>::SPEC.node_bytes) {
                            return Ok(visitor.visit::<$design>());
                        }
                    )*
                }
            )*
            let _ = visitor;
            Err(unknown(name, node_bytes))
        }

        /// Calls `visitor` with the design called `name` at its default node size. Code for the other
        /// sizes is not made, which matters where the visitor's is large.
        ///
        /// # Errors
        /// There is no such design.
        pub fn with_default<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, UnknownDesign> {
            match name {
                $($name => Ok(visitor.visit::<$default>()),)*
                _ => Err(unknown(name, None)),
            }
        }

        /// Calls `visitor` with the design called `name` at its smallest node size, as
        /// [`with_default`] does at the default one.
        ///
        /// # Errors
        /// There is no such design.
        pub fn with_smallest<V: Visitor>(name: &str, visitor: V) -> Result<V::Output, UnknownDesign> {
            match name {
                $($name => Ok(visitor.visit::<$smallest>()),)*
                _ => Err(unknown(name, None)),
            }
        }
    };
}

designs! {
    "btree" => BTree<256>, [BTree<512>, BTree<256>, BTree<1024>, BTree<2048>, BTree<4096>],
    "unsorted-leaf" => UnsortedLeaf<256>, [
        UnsortedLeaf<512>, UnsortedLeaf<256>, UnsortedLeaf<1024>, UnsortedLeaf<2048>,
        UnsortedLeaf<4096>,
    ],
    "btree-log" => BTreeLog<256>, [BTreeLog<512>, BTreeLog<256>, BTreeLog<1024>],
    "unsorted-leaf-log" => UnsortedLeafLog<256>, [
        UnsortedLeafLog<512>, UnsortedLeafLog<256>, UnsortedLeafLog<1024>,
    ],
    "unsorted-bitmap-log" => UnsortedBitmapLog<256>, [
        UnsortedBitmapLog<512>, UnsortedBitmapLog<256>, UnsortedBitmapLog<1024>,
    ],
    "btree-shadow" => BTreeShadow<256>, [BTreeShadow<512>, BTreeShadow<256>, BTreeShadow<1024>],
    "unsorted-leaf-shadow" => UnsortedLeafShadow<256>, [
        UnsortedLeafShadow<512>, UnsortedLeafShadow<256>, UnsortedLeafShadow<1024>,
    ],
    "unsorted-bitmap-shadow" => UnsortedBitmapShadow<256>, [
        UnsortedBitmapShadow<512>, UnsortedBitmapShadow<256>, UnsortedBitmapShadow<1024>,
    ],
    "btree-gf" => BTreeGf<256>, [BTreeGf<512>, BTreeGf<256>, BTreeGf<1024>],
    "btree-wal" => BTreeWal<256>, [BTreeWal<512>, BTreeWal<256>, BTreeWal<1024>],
    "persistent-unsorted" => PersistentUnsorted<256>, [
        PersistentUnsorted<512>, PersistentUnsorted<256>, PersistentUnsorted<1024>,
    ],
    "wb-tree" => WbTree<256>, [WbTree<512>, WbTree<256>, WbTree<1024>],
    "wb-tree-bitmap-leaf" => WbTreeBitmapLeaf<256>, [WbTreeBitmapLeaf<512>, WbTreeBitmapLeaf<256>, WbTreeBitmapLeaf<1024>],
    "wb-tree-slot-only" => WbTreeSlotOnly<128>, [WbTreeSlotOnly<128>],
    "wb-tree-r" => WbTreeR<256>, [WbTreeR<512>, WbTreeR<256>],
    "fast-fair" => FastFair<256>, [
        FastFair<512>, FastFair<256>, FastFair<1024>, FastFair<2048>, FastFair<4096>,
    ],
    "fast-fair-sp" => FastFairSp<256>, [
        FastFairSp<512>, FastFairSp<256>, FastFairSp<1024>, FastFairSp<2048>, FastFairSp<4096>,
    ],
    "wo-tree" => WoTree<256>, [WoTree<1024>, WoTree<256>, WoTree<512>, WoTree<2048>],
    "wo-tree-r" => WoTreeR<256>, [WoTreeR<1024>, WoTreeR<256>, WoTreeR<512>, WoTreeR<2048>],
    "fptree" => FpTree<256>, [FpTree<512>, FpTree<256>, FpTree<1024>],
    "isle-tree" => IsleTree<256>, [IsleTree<512>, IsleTree<256>, IsleTree<1024>, IsleTree<2048>],
    "isle-tree-r" => IsleTreeR<256>, [IsleTreeR<512>, IsleTreeR<256>, IsleTreeR<1024>, IsleTreeR<2048>],
    "isle-tree-all" => IsleTreeAll<256>, [
        IsleTreeAll<512>, IsleTreeAll<256>, IsleTreeAll<1024>, IsleTreeAll<2048>,
    ],
    "ccl-btree" => CclBTree<2>, [CclBTree<2>],
    "nv-tree" => NvTree<256>, [NvTree<512>, NvTree<256>, NvTree<1024>],
    "circ-tree" => CircTree<256>, [CircTree<512>, CircTree<256>, CircTree<1024>],
    "btree-ls" => BTreeLs<256>, [BTreeLs<512>, BTreeLs<256>, BTreeLs<1024>],
    "bristlecone" => Bristlecone, [Bristlecone],
}

fn unknown(name: &str, node_bytes: Option<usize>) -> UnknownDesign {
    let specs = specs();
    let list = |words: Vec<String>| words.join(", ");
    if let Some((sizes, node_bytes)) =
        specs.iter().find(|sizes| sizes[0].name == name).zip(node_bytes)
    {
        let known = list(sizes.iter().map(|spec| spec.node_bytes.to_string()).collect());
        return UnknownDesign::NodeBytes { name: name.into(), node_bytes, known };
    }
    let known = list(specs.iter().map(|sizes| sizes[0].name.to_string()).collect());
    UnknownDesign::Name { name: name.into(), known }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NodeBytes;

    impl Visitor for NodeBytes {
        type Output = (&'static str, usize);
        fn visit<D: Design>(self) -> Self::Output {
            (D::SPEC.name, D::SPEC.node_bytes)
        }
    }

    #[test]
    fn every_row_is_about_one_design_and_names_its_smallest_size() {
        for sizes in specs() {
            let name = sizes[0].name;
            for spec in &sizes {
                let found = with_design(name, Some(spec.node_bytes), NodeBytes).unwrap();
                assert_eq!(found, (name, spec.node_bytes));
            }
            assert_eq!(with_default(name, NodeBytes).unwrap(), (name, sizes[0].node_bytes));
            let smallest = sizes.iter().map(|spec| spec.node_bytes).min().unwrap();
            assert_eq!(with_smallest(name, NodeBytes).unwrap(), (name, smallest));
            assert!(with_design(name, Some(7), NodeBytes).is_err());
        }
        assert!(with_design("no such tree", None, NodeBytes).is_err());
    }
}
