//! Times of a store, called in this process.

use bristlecone_lab::bench::Flushing;
use bristlecone_lab::kv::Socket;
use bristlecone_lab::workload::Workload;
use bristlecone_reproduce::served::ServedWork;
use bristlecone_reproduce::speed::processors;
use bristlecone_reproduce::workbench::{RunScale, Workbench};

#[test]
fn a_client_takes_two_processors_and_a_run_is_made_once() {
    let silent = |_: &str| {};
    let mut bench = Workbench::new(RunScale { reps: 2, ..RunScale::QUICK }, 1, &silent);
    let processors = processors() as u64;
    let work = ServedWork {
        socket: Socket::None,
        clients: processors,
        records: 300,
        workloads: vec![(Workload::A, 200), (Workload::Insert, 100)],
        value_bytes: 100,
        delay_ns: 0,
        flushing: Flushing::Serial,
    };
    let served = bench.served(&["isle-tree", "wb-tree"], &work).unwrap();
    assert_eq!(served.len(), 2);
    for design in &served {
        let [mix, inserts] = &design.workloads[..] else { panic!("two workloads") };
        assert!(mix.inserts.is_none() && mix.updates.is_some());
        assert!(inserts.searches.is_none() && inserts.inserts.is_some());
        let searches = mix.searches.as_ref().unwrap();
        assert_eq!((searches.speeds().len(), design.load.speeds().len()), (2, 2));
        assert_eq!(searches.crowd(), Some([2 * processors, processors]));
    }
    let again = bench.served(&["isle-tree", "wb-tree"], &work).unwrap();
    assert_eq!(again[1].load, served[1].load, "two runs would take different times");
    assert!(bench.served(&["no such tree"], &work).is_err());
}
