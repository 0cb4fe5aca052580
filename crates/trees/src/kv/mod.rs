//! The key-value store over a design: the index maps string keys to the offsets of value records.
//!
//! This is the store with which two papers measure their trees from end to end: any design is its
//! index, and all else is the same. Keys are the key records of [`Text`](crate::Text).
//!
//! 1. A value record is durable before the index begins to store its offset, and never changes
//!    after that. So a reader sees one whole value, and one store of 8 B replaces it.
//! 2. A thread pins its epoch before it takes an offset out of the index, and unpins after it has
//!    read the record. A record is retired after the index has stopped pointing to it. So no thread
//!    reads a record that was freed.
//! 3. The index returns a displaced or removed offset to exactly one writer, which retires the
//!    record.
//! 4. Recovery marks the value records of all entries that count ([`KvKey`]) and frees the others,
//!    so a crash leaks nothing.
//! 5. A writer that replaces or removes a value holds the latch of its key's hash. So an update of
//!    one field, which reads the value that it replaces, loses no other update. An insert takes no
//!    latch: it replaces nothing.
//!
//! | module | contents |
//! | --- | --- |
//! | `value_record` | the layout of a value record |
//! | `layer` | the key layer that marks value records |
//! | `store` | the operations |
//!
//! It does not guarantee that damage is found: a value record has no checksum.

mod layer;
mod store;
mod value_record;

pub use layer::KvKey;
pub use store::{KvError, KvStore};
pub use value_record::VALUE_BYTES_MAX;

#[cfg(test)]
mod tests;
