//! The paper's techniques beside the buffer. The registry has both; the lab leaves them out.

/// A choice of techniques. The budgets in `SPEC` and `MAINTENANCE` hold for [`Published`] only. The
/// pool's contents have the same meaning under each choice.
pub trait Techniques: Send + Sync + 'static {
    /// Write-conservative logging: a write that settles a buffer is not logged.
    const CONSERVATIVE: bool;
    /// Locality-aware collection: buffered writes are logged again. Else they settle.
    const LOCAL: bool;
}

/// A choice of techniques.
#[derive(Debug)]
pub struct Chosen<const CONSERVATIVE: bool, const LOCAL: bool>;

/// The choice of the registry's `ccl-btree`.
pub type Published = Chosen<true, true>;

impl<const CONSERVATIVE: bool, const LOCAL: bool> Techniques for Chosen<CONSERVATIVE, LOCAL> {
    const CONSERVATIVE: bool = CONSERVATIVE;
    const LOCAL: bool = LOCAL;
}
