//! What the processor executes is what is recorded; and a store, a flush or a fence that is not, is
//! noticed.

use crate::{objects, run};

/// What the witness says of a design, one object; nothing where the system does not let it look.
fn witness(design: &str, plant: Option<&str>, code: i32) -> Option<serde_json::Value> {
    let mut command = vec!["crash", "--design", design, "--witness", "--json"];
    command.extend(plant.iter().flat_map(|plant| ["--plant", plant]));
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
fn what_is_executed_is_what_is_recorded() {
    for design in ["pool", "fptree", "fast-fair", "store"] {
        let Some(object) = witness(design, None, 0) else { return };
        assert_eq!((&object["finish"], &object["reason"]), (&"agrees".into(), &().into()));
        let count = |name: &str| object[name].as_u64().unwrap();
        assert!(count("stores") > 100 && count("fences") > 40 && count("filled") > 100, "{object}");
        assert!(design == "pool" || count("splits").min(count("merges")) > 2, "{object}");
    }
}

#[test]
fn what_goes_around_the_medium_is_noticed() {
    // At the last word of the pool, which nothing else uses; at the first fence after it, if it is
    // no instruction.
    let plants = [
        ("store", "W 0x5fff8  0x1 "),
        ("same", "W 0x5fff8  0x0 "),
        ("write", "0x5fff8 holds 0x1,"),
        ("flush", "F 0x5ffc0 "),
        ("fence", "| "),
    ];
    for (plant, executed) in plants {
        let Some(object) = witness("fptree", Some(plant), 1) else { return };
        assert_eq!(object["finish"], "differs", "{plant}");
        let reason = object["reason"].as_str().unwrap();
        assert!(reason.contains(&format!("executed: {executed}")), "{plant}: {reason}");
    }
}
