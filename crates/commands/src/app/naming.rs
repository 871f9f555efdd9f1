//! Trees and nodes by the names people give them.

use loom::{NodeId, PositionId, TreeId, ViewName};
use store::{LIST_PAGE, TreeEntry, TreeFilter, all_pages};

use super::App;
use crate::args::{NodeArg, TreeArg};
use crate::error::CommandError;
use crate::rights::Asker;

impl App {
    /// The tree and view an argument names.
    ///
    /// # Errors
    /// Not found, or ambiguous with the candidates.
    pub async fn tree(&self, asker: &Asker, arg: &TreeArg) -> Result<(TreeId, ViewName), CommandError> {
        Ok((self.tree_named(asker, &arg.tree).await?, arg.view.name()?))
    }

    /// The tree of this name.
    ///
    /// # Errors
    /// Not found, or ambiguous with the candidates.
    pub(crate) async fn tree_named(&self, asker: &Asker, name: &str) -> Result<TreeId, CommandError> {
        match self.runtime.store.resolve(&asker.principal, name).await {
            Ok(tree) => Ok(tree),
            Err(store::StoreError::NotFound(_)) => {
                let hint = match self.nearest_title(asker, name).await? {
                    Some(title) => format!("did you mean {title:?}? `drawloom tree list` shows the trees"),
                    None => "`drawloom tree list` shows the trees".to_owned(),
                };
                Err(CommandError::not_found("tree", name, hint))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The title that someone may have meant: the same in other letters, else one with a typing error or two.
    async fn nearest_title(&self, asker: &Asker, name: &str) -> Result<Option<String>, CommandError> {
        let wanted = name.to_lowercase();
        let trees = {
            let store = &self.runtime.store;
            let page = |after| store.trees(&asker.principal, TreeFilter::Current, after, LIST_PAGE);
            all_pages(TreeEntry::place, page).await?
        };
        let near = trees.into_iter().filter(|tree| !tree.title.is_empty()).filter_map(|tree| {
            let errors = strsim::damerau_levenshtein(&tree.title.to_lowercase(), &wanted);
            (errors <= wanted.chars().count() / 4).then_some((errors, tree.title))
        });
        Ok(near.min().map(|(_, title)| title))
    }

    /// The node an argument names.
    ///
    /// # Errors
    /// Not found, or ambiguous.
    pub async fn node(&self, asker: &Asker, arg: &NodeArg) -> Result<NamedNode, CommandError> {
        let (tree, view) = self.tree(asker, &arg.tree).await?;
        let found = self.node_anywhere(asker, Some(tree), &arg.node).await?;
        Ok(NamedNode { view, ..found })
    }

    /// The node of this name, in `tree` or anywhere.
    ///
    /// # Errors
    /// Not found, or ambiguous.
    pub(crate) async fn node_named(
        &self,
        asker: &Asker,
        tree: Option<TreeId>,
        name: &str,
    ) -> Result<(NodeId, PositionId), CommandError> {
        let found = self.node_anywhere(asker, tree, name).await?;
        Ok((found.node, found.position))
    }

    /// The node of this name with its tree, shown in `main`. `TREE:SHORT` must agree with `tree`, if that is given.
    ///
    /// # Errors
    /// Not found, or ambiguous.
    pub(crate) async fn node_anywhere(
        &self,
        asker: &Asker,
        tree: Option<TreeId>,
        name: &str,
    ) -> Result<NamedNode, CommandError> {
        let missing = || {
            let hint = "`drawloom tree show TREE` shows the nodes with their short ids";
            CommandError::not_found("node", name, hint)
        };
        let found = self.runtime.store.resolve_node(&asker.principal, tree, name).await;
        let found = found.map_err(|error| match error {
            store::StoreError::NotFound(_) => missing(),
            other => other.into(),
        })?;
        if tree.is_some_and(|tree| tree != found.tree) {
            return Err(missing());
        }
        let view = ViewName::default();
        Ok(NamedNode {
            tree: found.tree,
            view,
            node: found.node,
            position: found.position,
            short_id: found.short_id,
        })
    }
}

/// A node that was named, with its tree and view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedNode {
    pub tree: TreeId,
    pub view: ViewName,
    pub node: NodeId,
    pub position: PositionId,
    pub short_id: String,
}
