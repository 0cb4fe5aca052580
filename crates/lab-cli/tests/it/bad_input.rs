//! Arguments that are not valid: exit code 2, a reason on standard error, nothing on standard
//! output.

use crate::run;

#[test]
fn words_that_mean_nothing() {
    let bench = |more: &[&'static str]| -> Vec<&str> {
        [&["bench", "--design", "fptree", "--workload", "get"], more].concat()
    };
    let nothing: [Vec<&str>; 10] = [
        vec![],
        vec!["frobnicate"],
        vec!["bench", "--design", "no-such-tree", "--workload", "get"],
        vec!["bench", "--design", "btreemap", "--workload", "get", "--records", "0"],
        bench(&["--node-bytes", "100"]),
        bench(&["--device", "drum"]),
        bench(&["--device", "/no/such/profile.toml"]),
        bench(&["--sim-threads", "2"]),
        bench(&["--device", "pcm", "--sim-cache", "8"]),
        vec!["crash", "--design", "no-such-tree"],
    ];
    for arguments in nothing {
        run(&arguments, b"").refused(2);
    }
}
