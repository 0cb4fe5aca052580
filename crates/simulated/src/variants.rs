//! Designs with other options than the list has, for the experiments of two papers. They are
//! compiled with the feature `all-sizes` alone.

use super::is_built;
use bristlecone_pmem::Simulated;
use bristlecone_trees::ErasedDesign;
use bristlecone_trees::designs::btree_ls::{GC_OFF, LsChoice, LsOptions, LsUsual};
use bristlecone_trees::designs::ccl_btree::techniques::Chosen;
use bristlecone_trees::designs::{BTreeLs, CclBTree};

/// A form on a simulated medium with integer keys.
type Form = ErasedDesign<Simulated, u64>;

const fn has_variants(name: &str) -> bool {
    cfg!(feature = "all-sizes") && is_built(name)
}

/// `ccl-btree` with buffers of 0, 1, 2 .. 8 upserts (the paper's `N_batch`), in this order.
pub static CCL_BATCHES: &[Form] = if has_variants("ccl-btree") { &ALL_CCL_BATCHES } else { &[] };

const ALL_CCL_BATCHES: [Form; 9] = [
    Form::of::<CclBTree<0>>(),
    Form::of::<CclBTree<1>>(),
    Form::of::<CclBTree<2>>(),
    Form::of::<CclBTree<3>>(),
    Form::of::<CclBTree<4>>(),
    Form::of::<CclBTree<5>>(),
    Form::of::<CclBTree<6>>(),
    Form::of::<CclBTree<7>>(),
    Form::of::<CclBTree<8>>(),
];

/// `ccl-btree` without techniques of the paper.
#[derive(Debug)]
pub struct CclAblation {
    /// The technique that this form adds to the one before it.
    pub technique: &'static str,
    /// The compiled design.
    pub form: Form,
}

/// `ccl-btree` without a buffer, then with one technique more each; the last one has all.
pub static CCL_ABLATIONS: &[CclAblation] =
    if has_variants("ccl-btree") { &ALL_CCL_ABLATIONS } else { &[] };

const ALL_CCL_ABLATIONS: [CclAblation; 4] = [
    CclAblation { technique: "no buffer", form: Form::of::<CclBTree<0>>() },
    CclAblation { technique: "buffer", form: Form::of::<CclBTree<2, Chosen<false, false>>>() },
    CclAblation {
        technique: "write-conservative logging",
        form: Form::of::<CclBTree<2, Chosen<true, false>>>(),
    },
    CclAblation { technique: "locality-aware collection", form: Form::of::<CclBTree<2>>() },
];

/// `btree-ls` with other options than the list has.
#[derive(Debug)]
pub struct LsVariant {
    /// The number of logs.
    pub logs: usize,
    /// `true` if log GC runs.
    pub collects: bool,
    /// The number of records that a row of the mapping table points to.
    pub recent: usize,
    /// The compiled design, with nodes of 512 B.
    pub form: Form,
}

const fn variant<T: LsOptions>() -> LsVariant {
    LsVariant {
        logs: T::LOGS,
        collects: T::GARBAGE_KIB != GC_OFF,
        recent: T::RECENT,
        form: Form::of::<BTreeLs<512, T>>(),
    }
}

/// `btree-ls` as the list has it, then without log GC, by the number of logs and of pointers.
pub static LS_VARIANTS: &[LsVariant] =
    if has_variants("btree-ls") { &ALL_LS_VARIANTS } else { &[] };

const ALL_LS_VARIANTS: [LsVariant; 10] = [
    variant::<LsUsual>(),
    variant::<LsChoice<1, GC_OFF, 4>>(),
    variant::<LsChoice<2, GC_OFF, 4>>(),
    variant::<LsChoice<4, GC_OFF, 4>>(),
    variant::<LsChoice<8, GC_OFF, 4>>(),
    variant::<LsChoice<16, GC_OFF, 4>>(),
    variant::<LsChoice<48, GC_OFF, 4>>(),
    variant::<LsChoice<48, GC_OFF, 1>>(),
    variant::<LsChoice<48, GC_OFF, 2>>(),
    variant::<LsChoice<48, GC_OFF, 8>>(),
];
