//! How a request departs from plainly going on where a tree stands.

use std::sync::Arc;

use context::{ContextError, Manifest, Previous, ReplayConstraints, Strategy, TargetModel};
use loom::render::Passage;
use loom::{PositionId, RowError, TreeReader, ViewName};

/// How a request departs from plainly going on.
#[derive(Debug, Clone, Default)]
pub struct RequestVariant {
    /// How a conversation that is too long is cut.
    pub strategy: Strategy,
    /// What would be said next, behind all of it: a look at a request that is not made.
    pub said: Option<Passage>,
    /// The request that this one repeats, for another model.
    pub again: Option<Arc<Manifest>>,
}

impl RequestVariant {
    /// What is held to of the request that is repeated, if one is.
    pub(crate) fn again(
        &self,
        rows: &dyn TreeReader,
        view: &ViewName,
        at: PositionId,
    ) -> Result<Option<ReplayConstraints>, ContextError> {
        self.again.as_ref().map(|manifest| ReplayConstraints::of(rows, view, at, manifest)).transpose()
    }

    /// What stood above the request that is repeated, and was cut in it; none if none is.
    pub(crate) fn previous(
        &self,
        rows: &dyn TreeReader,
        target: &TargetModel,
    ) -> Result<Option<Previous>, ContextError> {
        let Some(manifest) = &self.again else { return Ok(None) };
        let mut previous = Previous {
            calls: manifest.runs.iter().flat_map(|run| run.calls.clone()).collect(),
            ..Previous::default()
        };
        if let Some(digest) = manifest.prefix {
            let bytes = rows.body(digest)?.ok_or(ContextError::Changed)?;
            let mut prefix: context::Prefix =
                serde_json::from_slice(&bytes).map_err(|error| RowError::Store(Box::new(error)))?;
            if !target.tools {
                prefix.tools.clear();
            }
            previous.prefix = Some(prefix);
        }
        Ok(Some(previous))
    }
}
