//! Looking for a name in a list, while the compiler runs.

/// Returns whether `name` is one of the names in `list`, which commas separate.
pub const fn is_listed(list: &str, name: &str) -> bool {
    let (list, name) = (list.as_bytes(), name.as_bytes());
    let mut start = 0;
    while start <= list.len() {
        let mut end = start;
        while end < list.len() && list[end] != b',' {
            end += 1;
        }
        if end - start == name.len() && has_at(list, start, name) {
            return true;
        }
        start = end + 1;
    }
    false
}

const fn has_at(list: &[u8], start: usize, name: &[u8]) -> bool {
    let mut at = 0;
    while at < name.len() {
        if list[start + at] != name[at] {
            return false;
        }
        at += 1;
    }
    true
}

// The crate has no test build: it would compile every tree once more.
const _: () = {
    assert!(is_listed("fptree", "fptree"));
    assert!(is_listed("btree,fptree,wb-tree", "fptree"));
    assert!(is_listed("btree,fptree", "fptree"));
    assert!(!is_listed("fptree-r,wb-tree", "fptree"));
    assert!(!is_listed("x-fptree", "fptree"));
    assert!(!is_listed("", "fptree"));
};
