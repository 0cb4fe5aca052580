//! Parses lines of `load`. A line that is read is written and read again alike.

use bristlecone_cli::format::Format;

/// The first byte of `data` selects the format; the rest are lines.
pub(crate) fn load_lines(data: &[u8]) {
    const FORMATS: [Format; 3] = [Format::Tsv, Format::Jsonl, Format::Lines];
    let Some((&kind, rest)) = data.split_first() else { return };
    let format = FORMATS[usize::from(kind) % FORMATS.len()];
    for line in rest.split(|&byte| byte == b'\n') {
        let Ok((key, value)) = format.read(line) else { continue };
        let mut written = Vec::new();
        format.write(&mut written, &key, &value).expect("a pair of one line");
        assert_eq!(written.pop(), Some(b'\n'));
        assert!(!written.contains(&b'\n'), "a pair is one line");
        assert_eq!(format.read(&written), Ok((key, value)));
    }
}
