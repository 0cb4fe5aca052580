//! Designs with other options than the list has, for the experiments of two papers. They are
//! compiled with the feature `all-sizes` alone.

use super::is_built;
use bristlecone_pmem::Simulated;
use bristlecone_trees::ErasedDesign;
use bristlecone_trees::designs::btree_ls_r::{Standard, Tuned, Tuning};
use bristlecone_trees::designs::{BTreeLsR, CclBTree};

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

/// `btree-ls-r` with one of its options changed.
#[derive(Debug)]
pub struct LsVariant {
    /// The number of logs.
    pub logs: usize,
    /// The percentage of live lines at or below which a log is collected.
    pub live_percent: usize,
    /// The greatest number of deltas in a chain.
    pub deltas: usize,
    /// The compiled design, with nodes of 512 B.
    pub form: Form,
}

const fn variant<T: Tuning>() -> LsVariant {
    LsVariant {
        logs: T::LOGS,
        live_percent: T::LIVE_PERCENT,
        deltas: T::DELTAS,
        form: Form::of::<BTreeLsR<512, T>>(),
    }
}

/// `btree-ls-r` as the list has it, then with one option changed.
pub static LS_VARIANTS: &[LsVariant] =
    if has_variants("btree-ls-r") { &ALL_LS_VARIANTS } else { &[] };

const ALL_LS_VARIANTS: [LsVariant; 12] = [
    variant::<Standard>(),
    variant::<Tuned<1, 50, 8>>(),
    variant::<Tuned<2, 50, 8>>(),
    variant::<Tuned<4, 50, 8>>(),
    variant::<Tuned<16, 50, 8>>(),
    variant::<Tuned<48, 50, 8>>(),
    variant::<Tuned<8, 25, 8>>(),
    variant::<Tuned<8, 75, 8>>(),
    variant::<Tuned<8, 90, 8>>(),
    variant::<Tuned<8, 50, 1>>(),
    variant::<Tuned<8, 50, 2>>(),
    variant::<Tuned<8, 50, 4>>(),
];
