//! The records of allocations: `AllocNode`, one word a block.
//!
//! They lie in the lines of the records of fresh words, in logs of trees that have none of those: a
//! line for each level of the tree.
//!
//! | offset | bytes | field | class | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0, 8 | 8 | block | hint | offset of a block (48 bits), check (16); 0: none |
//!
//! 1. What the roots reach is in use, everything else is free: a record decides nothing. It names
//!    what an interrupted operation may have written, and recovery checks that these are nodes.
//! 2. A record is one word, so it is never torn. A wrong check is damage.

use super::checked;
use crate::error::Corrupt;
use crate::line::LINE_WORDS;
use crate::medium::{Medium, offset_of};
use crate::word::{PmPtr, PmWord};

/// The most blocks of a line.
const LINE_BLOCKS: usize = 2;
/// The bits of a record that hold the offset of a block.
const OFFSET_MASK: u64 = (1 << super::CHECK_SHIFT) - 1;

/// Writes the records of `blocks`. Durable after the next fence.
///
/// ```text
/// W blocks
/// F line     budget: 1 line
/// ```
pub(super) fn write<M: Medium>(medium: &M, lines: &[PmWord], line: usize, blocks: &[PmPtr]) {
    assert!(blocks.len() <= LINE_BLOCKS, "a level has two new nodes at the most");
    let line = line.min(lines.len() / LINE_WORDS - 1); // Higher levels share the last line.
    let words = &lines[line * LINE_WORDS..][..LINE_BLOCKS];
    for (word, block) in words.iter().zip(blocks) {
        medium.store(word, checked(block.offset(), []));
    }
    medium.flush(words);
}

/// Returns the recorded blocks.
///
/// # Errors
/// A record is damaged.
pub(in crate::log) fn read<M: Medium>(medium: &M, lines: &[PmWord]) -> Result<Vec<PmPtr>, Corrupt> {
    let words = lines.chunks_exact(LINE_WORDS).flat_map(|line| &line[..LINE_BLOCKS]);
    let mut blocks = Vec::new();
    for word in words {
        let found = medium.load(word);
        if found == 0 {
            continue;
        }
        let expected = checked(found & OFFSET_MASK, []);
        if found != expected {
            let at = offset_of(medium, word).offset();
            return Err(Corrupt { at, what: "check of a record of a block", expected, found });
        }
        blocks.push(PmPtr::new(found & OFFSET_MASK));
    }
    Ok(blocks)
}
