use bristlecone_pmem::medium::FileOptions;
use bristlecone_pmem::*;
use bristlecone_trees::{designs::FpTree, *};
use std::sync::Arc;
use std::time::Instant;
fn mix(i: u64) -> u64 {
    let mut x = i.wrapping_mul(0x9E3779B97F4A7C15);
    x ^= x >> 32;
    x = x.wrapping_mul(0xD6E8FEB86659FD93);
    x ^= x >> 29;
    x
}
fn main() {
    let n: u64 = std::env::args().nth(1).map(|s| s.parse().unwrap()).unwrap_or(10_000_000);
    let p = std::path::Path::new("/dev/shm/q.pool");
    let _ = std::fs::remove_file(p);
    let m = Mapped::create(
        p,
        40 * n.max(1 << 20),
        &FileOptions { prefault: true, ..Default::default() },
    )
    .unwrap()
    .emulate(Domain::Adr)
    .unwrap();
    let pool = Arc::new(Pool::create(m).unwrap());
    let t = <FpTree<256> as Design>::Index::<Mapped, u64>::create(pool, "t").unwrap();
    let c = Instant::now();
    for i in 0..n {
        t.insert(mix(i), i).unwrap();
    }
    println!("insert {:.3} M/s", n as f64 / c.elapsed().as_secs_f64() / 1e6);
    let c = Instant::now();
    let mut s = 0;
    for i in 0..n {
        s += t.get(mix(mix(i) % n)).unwrap().unwrap();
    }
    println!("get {:.3} M/s {s}", n as f64 / c.elapsed().as_secs_f64() / 1e6);
    let c = Instant::now();
    let mut out = [None; 16];
    for i in 0..n / 16 {
        let k: [u64; 16] = core::array::from_fn(|j| mix(mix(i * 16 + j as u64) % n));
        t.multi_get(&k, &mut out).unwrap();
        s += out[3].unwrap();
    }
    println!("multi {:.3} M/s {s}", n as f64 / c.elapsed().as_secs_f64() / 1e6);
    let c = Instant::now();
    for i in 0..n {
        t.update(mix(mix(i) % n), i).unwrap();
    }
    println!("update {:.3} M/s", n as f64 / c.elapsed().as_secs_f64() / 1e6);
    let c = Instant::now();
    let census = t.check().unwrap();
    println!("check {:?} {:?}", c.elapsed(), census);
    println!(
        "pm {:.1} dram {:.1}",
        census.pm_bytes as f64 / n as f64,
        census.dram_bytes as f64 / n as f64
    );
    drop(t);
    let c = Instant::now();
    let (pool, o) = Pool::open(Mapped::open(p, &FileOptions::default()).unwrap()).unwrap();
    let t = <FpTree<256> as Design>::Index::<Mapped, u64>::open(Arc::new(pool), "t", o).unwrap();
    println!("crash open {:?}", c.elapsed());
    let c = Instant::now();
    Arc::into_inner(t.close().unwrap()).unwrap().close().unwrap();
    println!("close {:?}", c.elapsed());
    let c = Instant::now();
    let (pool, o) = Pool::open(Mapped::open(p, &FileOptions::default()).unwrap()).unwrap();
    let t = <FpTree<256> as Design>::Index::<Mapped, u64>::open(Arc::new(pool), "t", o).unwrap();
    println!("clean open {:?} {o:?}", c.elapsed());
    let c = Instant::now();
    for i in 0..n {
        t.remove(mix(i)).unwrap();
    }
    println!("remove {:.3} M/s", n as f64 / c.elapsed().as_secs_f64() / 1e6);
    println!("{:?}", t.check().unwrap());
    std::fs::remove_file(p).unwrap();
}
