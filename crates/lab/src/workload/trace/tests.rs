//! Texts of traces, good and hostile.

use super::text::word;
use super::*;
use crate::workload::{Recipe, Workload};
use proptest::prelude::*;

fn read(text: &[u8]) -> Result<Trace, (usize, &'static str)> {
    Ok(Trace::new("t".into(), &parse::parse(text)?))
}

/// Answers without their tokens.
fn answers(trace: &Trace) -> Vec<String> {
    let answer = |step: &Replayed| match *step {
        Replayed::Get { value, .. } => value.map_or("none".into(), |value| value.to_string()),
        Replayed::Put { value, .. } => format!("put {value}"),
        Replayed::Delete { present, .. } => format!("del {present}"),
        Replayed::Scan { count, .. } => format!("scan {count:?}"),
    };
    trace.steps.iter().map(answer).collect()
}

#[test]
fn answers_are_those_of_a_map() {
    let text = "# a comment\n\nload b 1\nload d 2\r\nget a\nget b d\nput a 3\nscan a 9\nscan c 1\n\
                del b\ndel b\nget b\nscan %62 9\n";
    let trace = read(text.as_bytes()).unwrap();
    assert!(trace.keys().are_bytes() && trace.records() == 2);
    assert_eq!((trace.left(0), trace.left(4), trace.left(u64::MAX)), (2, 3, 2));
    let scans = ["scan Some(3)", "scan Some(1)", "del true", "del false", "none", "scan Some(1)"];
    assert_eq!(answers(&trace), [&["none", "1", "2", "put 3"], &scans[..]].concat());
}

#[test]
fn keys_that_are_all_numbers_are_in_the_order_of_numbers() {
    let trace = read(b"put 10 1\nput 9 2\nscan 10 5\n").unwrap();
    assert!(!trace.keys().are_bytes());
    assert_eq!(answers(&trace)[2], "scan Some(1)");
    let trace = read(b"put 10 1\nput 9 2\nscan 10 5\nget x\n").unwrap();
    assert_eq!(answers(&trace)[2], "scan Some(2)", "as texts, 10 is below 9");
}

#[test]
fn the_text_of_memcached_is_read() {
    let text = b"set a 0 -1 5\r\nx\r\ny\n\r\nget a b\r\nset b 7 0 0 noreply\r\n\r\n\
                 set a 0 0 2\n42\ngets a\ndelete a noreply\r\ndelete a\r\nget a\r\n";
    let trace = read(text).unwrap();
    let first = word(b"x\r\ny\n").to_string();
    let all = [&format!("put {first}"), &first, "none", &format!("put {}", word(b""))];
    let all = [&all[..], &["put 42", "42", "del true", "del false", "none"]].concat();
    assert_eq!(answers(&trace), all);
}

#[test]
fn a_refusal_names_the_line() {
    let long = format!("get a\nget {}\n", "k".repeat(4097));
    for (text, line, what) in [
        (&b""[..], 1, "no operation"),
        (b"# nothing\nload a 1\n", 2, "no operation"),
        (b"get a\nfly a\n", 2, "is no operation"),
        (b"get\n", 1, "words"),
        (b"put a\n", 1, "words"),
        (b"get a\n\nput a 1 2\n", 3, "words"),
        (b"get a\nload a 1\n", 2, "in front"),
        (b"load a 1\nload %61 1\nget a\n", 2, "second time"),
        (b"scan a 0\n", 1, "1 to 65535"),
        (b"scan a 65536\n", 1, "1 to 65535"),
        (b"set a 0 0 6\r\nabc\r\n", 1, "as many bytes"),
        (b"set a 0 0 2\r\nabc\r\n", 1, "as many bytes"),
        (b"set a 0 0 99999999999999999999\r\nabc\r\n", 1, "length"),
        (b"set a 0 0 18446744073709551615\r\nabc\r\n", 1, "as many bytes"),
        (b"set a x 0 3\r\nabc\r\n", 1, "flags"),
        (b"set a 0 0 3\r\na\nc\r\nfly\r\n", 4, "is no operation"),
        (long.as_bytes(), 2, "4096"),
        (b"\xFF\xFE\n", 1, "is no operation"),
    ] {
        let (found, why) = read(text).unwrap_err();
        assert!(found == line && why.contains(what), "{text:?}: line {found} {why}");
    }
}

#[test]
fn all_operations_of_a_key_are_of_one_thread_in_their_order() {
    let line = |i| format!("put {} {i}\nget {}\n", i % 37, i % 41);
    let lines: Vec<String> = (0..1000).map(line).collect();
    let trace = read(lines.concat().as_bytes()).unwrap();
    let plans = trace.plans(3, u64::MAX);
    let mut seen = Vec::new();
    let mut total = 0;
    for plan in &plans {
        let Plan::Replay(steps) = plan else { panic!("not a replay") };
        total += steps.len();
        let mut tokens: Vec<u64> = steps.iter().map(Replayed::token).collect();
        let own = |step: &&Replayed| tokens.contains(&step.token());
        assert!(trace.steps.iter().filter(own).eq(steps));
        tokens.sort_unstable();
        tokens.dedup();
        seen.extend(tokens);
    }
    assert_eq!((total, seen.len()), (2000, 41));
    assert_eq!(trace.plans(1, 7)[0].ops(), 7);
}

#[test]
fn a_workload_that_is_written_is_read_as_what_it_does() {
    let mix = "get:30+insert:20+update:10+upsert:10+rmw:10+delete:10+scan:10";
    for keys in [Keys::Numbers, Keys::Digits, Keys::Prefixed, Keys::Various] {
        for threads in [1, 3] {
            let workload: Workload = mix.parse().unwrap();
            let recipe = Recipe { workload, keys: keys.clone(), threads, ..Recipe::default() };
            let plans = recipe.plans().unwrap();
            let mut text = Vec::new();
            recipe.write_trace(&plans, &mut text).unwrap();
            let trace = read(&text).unwrap();
            assert_eq!(trace.records(), recipe.records);
            assert_eq!(trace.keys().are_bytes(), keys.are_bytes());
            assert!(trace.ops() > recipe.ops, "a read-modify-write is two operations");
            let missed = |step: &Replayed| match step {
                Replayed::Get { value, .. } => value.is_none(),
                Replayed::Delete { present, .. } => !present,
                _ => false,
            };
            assert!(!trace.steps.iter().any(missed), "a plan names only keys that are there");
        }
    }
}

/// Lines that are nearly right.
fn line() -> impl Strategy<Value = String> {
    let verb = prop::sample::select(vec![
        "load", "get", "put", "del", "scan", "set", "delete", "gets", "#", "",
    ]);
    let word = prop_oneof!["[0-9]{1,20}", "[a-c%]{1,4}", "%[0-9A-F]{2}", "noreply", "-1"];
    (verb, prop::collection::vec(word, 0..6), prop::bool::ANY).prop_map(
        |(verb, words, carriage)| {
            format!("{verb} {}{}\n", words.join(" "), if carriage { "\r" } else { "" })
        },
    )
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err((line, _)) = read(&bytes) {
            prop_assert!(line >= 1 && line <= 1 + bytes.len());
        }
    }

    #[test]
    fn no_lines_make_the_parser_panic(lines in prop::collection::vec(line(), 0..20)) {
        let text = lines.concat();
        if let Err((line, _)) = read(text.as_bytes()) {
            prop_assert!(line >= 1 && line <= 1 + lines.len());
        }
    }

    #[test]
    fn what_is_written_is_read(
        steps in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 1..6), 0_u8..4, 1_u16..50), 1..50),
    ) {
        let mut text = TraceText::default();
        for (key, kind, number) in steps {
            let next = text.keys.len();
            let index = text.keys.iter().position(|known| *known == key).unwrap_or(next);
            if index == next {
                text.keys.push(key);
            }
            let step = match kind {
                0 => TraceStep::Get,
                1 => TraceStep::Put(u64::from(number)),
                2 => TraceStep::Delete,
                _ => TraceStep::Scan(number),
            };
            text.steps.push((index, step));
        }
        let trace = Trace::new("t".into(), &text);
        let (ops, records) = (trace.ops(), trace.records());
        let workload = Workload::Replay(Arc::new(trace));
        let recipe = Recipe { workload, records, ops, ..Recipe::default() };
        let mut written = Vec::new();
        recipe.write_trace(&recipe.plans().unwrap(), &mut written).unwrap();
        let again = Workload::Replay(Arc::new(read(&written).unwrap()));
        prop_assert_eq!(again, recipe.workload);
    }
}
