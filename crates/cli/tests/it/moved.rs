//! Commands that are in `bristlecone-lab` now: the old command names the new one.

use crate::run;

#[test]
fn a_command_of_the_laboratory_is_named_in_one_line() {
    let commands: [&[&str]; 7] = [
        &["designs"],
        &["bench", "--design", "fptree", "--workload", "get", "--json"],
        &["reproduce", "--quick"],
        &["advise", "--workload", "get", "--device", "pcm"],
        &["crash", "--design", "all", "--witness"],
        &["--json", "crash", "--catalogue"],
        &["bench", "--help"],
    ];
    for arguments in commands {
        let complaint = run(arguments, b"").refused(2);
        let name = arguments.iter().find(|word| !word.starts_with('-')).unwrap();
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
        assert!(complaint.contains(&format!("`cargo lab {name} ..`")), "{complaint}");
        assert!(complaint.contains(&format!("`bristlecone-lab {name} ..`")), "{complaint}");
    }
}
