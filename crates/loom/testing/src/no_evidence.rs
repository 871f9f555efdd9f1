use loom::verify::{Evidence, Gap, Reread};
use loom::{Digest, ModelSource, NodeRow, RowError};

/// No manifest and no response: for trees that name none.
#[derive(Debug, Clone, Copy)]
pub struct NoEvidence;

impl Evidence for NoEvidence {
    fn manifest(&self, _: Digest) -> Result<Result<Digest, Gap>, RowError> {
        Ok(Err(Gap::Missing))
    }

    fn reread(&self, _: &NodeRow, _: &ModelSource) -> Result<Reread, RowError> {
        Ok(Reread::Gap { digest: None, gap: Gap::Missing })
    }

    fn has_checked_records(&self) -> bool {
        false
    }
}
