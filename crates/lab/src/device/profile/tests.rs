use super::*;

#[test]
fn every_built_in_profile_is_sound_and_has_its_own_name() {
    for name in Profile::names() {
        let profile = Profile::named(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(profile.name, name);
    }
    assert!(matches!(Profile::named("drum"), Err(ProfileError::Name { .. })));
}

#[test]
fn every_number_of_a_built_in_profile_says_where_it_is_from() {
    for (name, text) in BUILT_IN {
        for line in text.lines().filter(|line| line.contains('=') && !line.starts_with('#')) {
            let source = line.split_once('#').map(|(_, source)| source.trim());
            let is_told = source.is_some_and(|source| source.len() > 3);
            assert!(is_told || line.starts_with("name"), "{name}: {line}");
        }
    }
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let sound = Profile::named("optane-100").unwrap();
    let refused = |change: fn(&mut Profile)| {
        let mut profile = sound.clone();
        change(&mut profile);
        assert!(matches!(profile.check(), Err(ProfileError::Number { .. })), "{profile:?}");
    };
    refused(|profile| profile.media.unit_bytes = 96);
    refused(|profile| profile.media.dimms = 0);
    refused(|profile| profile.media.interleave_bytes = 128);
    refused(|profile| profile.media.write_gb_per_s = 0.0);
    refused(|profile| profile.media.read_ns = f64::NAN);
    refused(|profile| profile.cpu.word_ns = -1.0);
    refused(|profile| profile.cpu.cache_ways = 17);
    refused(|profile| profile.cpu.outstanding = 0);
    refused(|profile| profile.queue.lines = 0);
    refused(|profile| profile.buffer.write_units = 1 << 16);
    refused(|profile| profile.domain = Persistence::Media);
    assert!(matches!(Profile::parse("name = 3"), Err(ProfileError::Syntax(_))));
}
