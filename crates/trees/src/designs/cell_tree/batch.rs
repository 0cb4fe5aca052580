use super::CellTreeIndex;
use crate::{CommittedPairs, PairChange, Record, TreeError};
use bristlecone_pmem::Medium;
impl<M: Medium, const BYTES: usize> CellTreeIndex<M, Record, BYTES> {
    /// Stub.
    pub fn commit_pairs(
        &self,
        changes: &[PairChange<'_>],
    ) -> Result<Option<CommittedPairs>, TreeError> {
        let mut formers = Vec::new();
        for change in changes {
            let found = self.get_pair(change.key)?;
            if change.expected.is_some_and(|expected| expected.value() != found) {
                return Ok(None);
            }
        }
        for change in changes {
            let Some(new) = change.new else { continue };
            let former = match new.value() {
                Some(value) => self.upsert_pair(change.key, value)?,
                None => self.remove_pair(change.key)?,
            };
            formers.extend(former.filter(|former| !Record::is_inline(former.encoding)));
        }
        Ok(Some(CommittedPairs { formers, posted: Ok(()) }))
    }
}
