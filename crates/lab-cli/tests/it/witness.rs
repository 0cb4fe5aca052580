//! The processor executes what the recorder notes; an injected store, flush or fence is detected.

use crate::{objects, run};

/// Returns the object of a design, or `None` where the system does not let a process be traced.
fn witness(design: &str, injection: Option<&str>, code: i32) -> Option<serde_json::Value> {
    let mut command = vec!["crash", "--design", design, "--witness", "--json"];
    command.extend(injection.iter().flat_map(|injection| ["--inject", injection]));
    let done = run(&command, b"");
    let text = String::from_utf8(done.output.clone()).unwrap();
    let object = objects(&text).into_iter().next().expect(&done.complaint);
    if object["finish"] == "skipped" {
        eprintln!("skipped: {}", object["reason"]);
        return None;
    }
    done.expect(code);
    Some(object)
}

#[test]
fn the_processor_executes_what_is_recorded() {
    for design in ["pool", "fptree", "fast-fair", "store"] {
        let Some(object) = witness(design, None, 0) else { return };
        assert_eq!((&object["finish"], &object["reason"]), (&"agrees".into(), &().into()));
        let count = |name: &str| object[name].as_u64().unwrap();
        assert!(count("stores") > 100 && count("fences") > 40 && count("filled") > 100, "{object}");
        assert!(design == "pool" || count("splits").min(count("merges")) > 2, "{object}");
    }
}

#[test]
fn an_access_around_the_medium_is_detected() {
    // The injections go to the last word of the pool, which nothing else uses. One that is no
    // instruction shows at the next fence.
    let injections = [
        ("store", "W 0x5fff8  0x1 "),
        ("same", "W 0x5fff8  0x0 "),
        ("write", "0x5fff8 holds 0x1,"),
        ("flush", "F 0x5ffc0 "),
        ("fence", "| "),
    ];
    for (injection, executed) in injections {
        let Some(object) = witness("fptree", Some(injection), 1) else { return };
        assert_eq!(object["finish"], "differs", "{injection}");
        let reason = object["reason"].as_str().unwrap();
        assert!(reason.contains(&format!("executed: {executed}")), "{injection}: {reason}");
    }
}
