//! Experiments that need designs outside the roster, or trees in a particular state.
//!
//! | module | experiment |
//! | --- | --- |
//! | [`buffered_upserts`] | media writes of an upsert, by the size of CCL-BTree's buffers |
//! | [`log_tuning`] | btree-ls by its logs, log GC and the pointers of its mapping table |
//! | [`inner_shift`] | lines that the shift of entries flushes in a node |
//! | [`operation_costs`] | Table 3 of the wB+-Tree study: words, lines and fences of an operation |
//! | [`filled_leaves`] | inserts into leaves that are all equally full |

pub mod buffered_upserts;
pub mod filled_leaves;
pub mod inner_shift;
pub mod log_tuning;
pub mod operation_costs;

mod form;

use form::integer_form;
