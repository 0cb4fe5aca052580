use super::*;

fn profile(change: impl FnOnce(&mut Profile)) -> Profile {
    let mut profile = Profile::named("optane-100").unwrap();
    profile.media.dimms = 1;
    change(&mut profile);
    profile.check().unwrap();
    profile
}

fn dimms(profile: &Profile) -> Dimms {
    let mut dimms = Dimms::new(profile);
    dimms.grow(1 << 20);
    dimms
}

const WORDS: LineWords = [7; LINE_WORDS];

#[test]
fn a_unit_that_is_written_in_part_costs_a_read() {
    let profile = profile(|profile| profile.buffer.write_units = 1);
    for (lines, reads) in [(4, 0), (2, 1)] {
        let mut dimms = dimms(&profile);
        for line in (0..lines).chain(4..8) {
            let _ = dimms.write(line, &WORDS, None, 0);
        }
        let Traffic { writes, completions, flips, .. } = dimms.traffic;
        assert_eq!((writes, completions), (1, reads), "{lines} lines");
        assert_eq!(flips, u64::from(lines) * 8 * 3);
        assert_eq!(dimms.media.wear_of_units()[..3], [1, 0, 0]);
    }
}

#[test]
fn writes_of_a_unit_meet_in_the_buffer_up_to_its_capacity() {
    let profile = profile(|profile| profile.buffer.write_units = 8);
    let media_writes = |units: u32| {
        let mut dimms = dimms(&profile);
        for round in 0..100 {
            for unit in 0..units {
                let _ = dimms.write(unit * 4 + round % 4, &WORDS, None, 0);
            }
        }
        dimms.traffic.writes
    };
    assert_eq!(media_writes(8), 0);
    assert_eq!(media_writes(9), 900 - 8);
}

#[test]
fn a_unit_counts_for_the_file_that_flushed_its_first_line() {
    for write_units in [0, 1] {
        let mut dimms = dimms(&profile(|profile| profile.buffer.write_units = write_units));
        let lines = [(0, Some("a.rs")), (1, Some("b.rs")), (4, Some("b.rs")), (8, None)];
        for (line, origin) in lines {
            let _ = dimms.write(line, &WORDS, origin, 0);
        }
        dimms.settle(0);
        // Without a buffer each line is a write.
        let of_b = if write_units == 0 { 2 } else { 1 };
        assert_eq!(dimms.writes_by_file, BTreeMap::from([("a.rs", 1), ("b.rs", of_b)]));
        assert_eq!(dimms.traffic.writes, 2 + of_b);
        dimms.reset_counts();
        assert!(dimms.writes_by_file.is_empty());
    }
}

#[test]
fn a_full_queue_makes_the_next_line_wait() {
    let profile = profile(|profile| {
        profile.buffer.write_units = 1;
        profile.queue.lines = 3;
    });
    let mut dimms = dimms(&profile);
    let accepted: Vec<Time> = (0..6).map(|unit| dimms.write(unit * 4, &WORDS, None, 10)).collect();
    assert_eq!(accepted[..3], [10; 3]);
    assert!(accepted[3] > 10 && accepted[3] < accepted[4] && accepted[4] < accepted[5]);
}

#[test]
fn loads_find_what_was_read_or_written_last() {
    let profile = profile(|_| ());
    let mut dimms = dimms(&profile);
    let (media, buffer) = (time(profile.media.read_ns), time(profile.buffer.read_ns));
    assert_eq!(dimms.read(0, 0), media);
    assert_eq!(dimms.read(3, 1000), 1000 + buffer);
    let _ = dimms.write(64, &WORDS, None, 0);
    assert_eq!(dimms.read(64, 2000), 2000 + buffer);
    let later = 10 * media;
    assert_eq!(dimms.read(65, later), later + media, "of that unit one line alone is there");
    assert_eq!((dimms.traffic.reads, dimms.traffic.buffered_reads), (2, 2));
}

#[test]
fn chunks_go_round_the_dimms() {
    let mut profile = profile(|_| ());
    profile.media.dimms = 6;
    let mut dimms = dimms(&profile);
    for chunk in 0..13 {
        let _ = dimms.read(chunk * 64, 0);
    }
    let unit = time(256.0 / profile.media.read_gb_per_s);
    let reads: Vec<Time> = dimms.work().map(|work| work.read / unit).collect();
    assert_eq!(reads, [3, 2, 2, 2, 2, 2]);
}

#[test]
fn where_the_media_alone_are_safe_a_write_takes_as_long_as_they_do() {
    let mut profile = Profile::named("pcm").unwrap();
    profile.domain = Persistence::Media;
    profile.buffer.write_units = 0;
    let mut dimms = dimms(&profile);
    let write = time(profile.media.write_ns);
    assert_eq!(dimms.write(0, &WORDS, None, 500), 500 + write);
    assert!(dimms.write(1, &WORDS, None, 500) > 500 + write, "the server writes one at a time");
    assert_eq!(dimms.traffic.completions, 0);
}
