//! The speed of the device model on this machine: operations in a second on a tree of a million
//! keys.

#![expect(clippy::print_stdout, reason = "it is what this program is for")]

use bristlecone_lab::device::{Device, Profile};
use bristlecone_pmem::{Mapped, Pool};
use bristlecone_trees::designs::FpTree;
use bristlecone_trees::{Design, PmIndex};
use std::sync::Arc;
use std::time::Instant;

const KEYS: u64 = 1_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for name in Profile::names() {
        let device = Device::new(Mapped::anonymous(128 << 20)?, Profile::named(name)?)?;
        let pool = Arc::new(Pool::create(device)?);
        let tree = <FpTree<512> as Design>::Index::<_, u64>::create(Arc::clone(&pool), "tree")?;
        let key = |index: u64| index.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let insert = timed(|index| tree.insert(key(index), index).map(drop), &pool)?;
        let get = timed(|index| tree.get(key(index * 7 % KEYS)).map(drop), &pool)?;
        let update = timed(|index| tree.update(key(index * 7 % KEYS), index).map(drop), &pool)?;
        println!("{name:10} insert {insert:.2}, get {get:.2}, update {update:.2} M operations/s");
    }
    Ok(())
}

/// Returns the speed of `operation` in millions in a second.
fn timed<E>(
    mut operation: impl FnMut(u64) -> Result<(), E>,
    pool: &Pool<Device<Mapped>>,
) -> Result<f64, E> {
    let start = Instant::now();
    for index in 0..KEYS {
        operation(index)?;
        pool.medium().end_op(16);
    }
    Ok(KEYS as f64 / start.elapsed().as_secs_f64() / 1e6)
}
