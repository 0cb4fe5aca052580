//! What an operation writes back, counted.

use bristlecone::Store;
use bristlecone_pmem::Mapped;
use bristlecone_pmem::medium::Count;

#[test]
fn reads_write_nothing() {
    let store = Store::create_on(Count::new(Mapped::anonymous(1 << 20).unwrap())).unwrap();
    store.put("k", "v").unwrap();
}
