//! Which model a text came from, and what its author is called (spec: loom §4).

use crate::generation::{GenerationId, GenerationSettings};
use crate::node::{AuthorKind, Node};
use crate::reader::{AuthorSpan, RowError, TreeReader};

/// The agent that is asked where none is named.
pub const DEFAULT_AGENT: &str = "assistant";
/// What it was called before.
pub const EARLIER_DEFAULT_AGENT: &str = "main";
/// Versions gone back over to the one a model made.
const MAX_VERSIONS: usize = 1_000;

/// The model a node's text came from, as `PROVIDER/MODEL`: its own, else that of the version it was edited from.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn model_of(rows: &dyn TreeReader, node: &Node) -> Result<Option<String>, RowError> {
    Ok(origin_of(rows, node)?.map(|origin| origin.model))
}

/// Where the text of a model came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextOrigin {
    /// The model, as `PROVIDER/MODEL`.
    pub model: String,
    pub generation: Option<GenerationId>,
}

impl TextOrigin {
    /// How the model was asked, where that is known.
    ///
    /// # Errors
    /// [`RowError`] when the store fails.
    pub fn settings(&self, rows: &dyn TreeReader) -> Result<Option<GenerationSettings>, RowError> {
        let row = self.generation.map(|generation| rows.generation(generation)).transpose()?.flatten();
        Ok(row.and_then(|row| row.settings))
    }
}

/// Where a node's text came from, if a model made it, the version it was edited from, or the passage it begins as.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn origin_of(rows: &dyn TreeReader, node: &Node) -> Result<Option<TextOrigin>, RowError> {
    let origin = |node: &Node| {
        let model = node.source.as_ref().map(|source| format!("{}/{}", source.provider, source.model))?;
        Some(TextOrigin { model, generation: node.generation })
    };
    let above = |node: &Node| {
        let begins_as = node.quote.as_ref().filter(|quote| quote.at == 0).map(|quote| quote.node);
        node.edited_from.or(begins_as)
    };
    let (mut found, mut next) = (origin(node), above(node));
    for _ in 0..MAX_VERSIONS {
        let (None, Some(version)) = (&found, next) else { break };
        let Some(row) = rows.node(version)? else { break };
        (found, next) = (origin(&row.node), above(&row.node));
    }
    Ok(found)
}

/// Where a stretch of a node's text came from, if a model wrote it: what the version that introduced it says, which is
/// of another passage where the text was quoted.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn origin_of_span(
    rows: &dyn TreeReader,
    node: &Node,
    span: &AuthorSpan,
) -> Result<Option<TextOrigin>, RowError> {
    if span.kind != AuthorKind::Model {
        return Ok(None);
    }
    if span.node == node.id {
        return origin_of(rows, node);
    }
    match rows.node(span.node)? {
        Some(row) => origin_of(rows, &row.node),
        None => Ok(None),
    }
}

/// An author as people read of them: a model by its name, with the agent where another than the default one was asked.
pub fn label(kind: AuthorKind, author: &str, model: Option<&str>) -> String {
    let is_default = [DEFAULT_AGENT, EARLIER_DEFAULT_AGENT].contains(&author);
    match (kind, model) {
        (AuthorKind::Model, Some(model)) if is_default => model.to_owned(),
        (AuthorKind::Model, Some(model)) => format!("{author} ({model})"),
        (AuthorKind::Model, None) if is_default => DEFAULT_AGENT.to_owned(),
        _ => author.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_its_name_and_an_agent_only_where_it_says_something() {
        let model = |author| label(AuthorKind::Model, author, Some("openai/gpt-5.1"));
        assert_eq!(model("assistant"), "openai/gpt-5.1");
        assert_eq!(model("main"), "openai/gpt-5.1");
        assert_eq!(model("poet"), "poet (openai/gpt-5.1)");
        assert_eq!(
            model("import:1f2e/main"),
            "import:1f2e/main (openai/gpt-5.1)",
            "strangers are named as such"
        );
        assert_eq!(label(AuthorKind::Model, "main", None), "assistant");
        assert_eq!(label(AuthorKind::Human, "main", Some("openai/gpt-5.1")), "main");
    }
}
