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
                let hint = match self.nearest_tree(asker, name).await? {
                    Some(meant) => format!("did you mean {meant}? `drawloom tree list` shows the trees"),
                    None => "`drawloom tree list` shows the trees".to_owned(),
                };
                Err(CommandError::not_found("tree", name, hint))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The tree that someone may have meant: by its title, else those whose short id is one typing error away.
    async fn nearest_tree(&self, asker: &Asker, name: &str) -> Result<Option<String>, CommandError> {
        let store = &self.runtime.store;
        let page = |after| store.trees(&asker.principal, TreeFilter::Current, after, LIST_PAGE);
        let trees = all_pages(TreeEntry::place, page).await?;
        if let Some(title) = nearest(trees.iter().map(|tree| tree.title.clone()), name) {
            return Ok(Some(format!("{title:?}")));
        }
        let typed = name.to_lowercase();
        let is_near = |tree: &&TreeEntry| {
            tree.short_id.len() == typed.len() && strsim::damerau_levenshtein(&tree.short_id, &typed) == 1
        };
        let near = trees.iter().filter(is_near).take(NEAR_NODES).map(|tree| match tree.title.as_str() {
            "" => tree.short_id.clone(),
            title => format!("{} ({title:?})", tree.short_id),
        });
        let near = near.collect::<Vec<_>>().join(" or ");
        Ok((!near.is_empty()).then_some(near))
    }

    /// That a tree has no node of this name, with those that are one typing error away.
    async fn no_node(&self, asker: &Asker, tree: Option<TreeId>, name: &str) -> CommandError {
        let mut near = Vec::new();
        if let Some(tree) = tree {
            for other in one_error_away(&name.to_lowercase()) {
                let found = self.runtime.store.resolve_node(&asker.principal, Some(tree), &other).await;
                near.extend(found.ok().map(|found| found.short_id));
                if near.len() == NEAR_NODES {
                    break;
                }
            }
        }
        let shows = "`drawloom tree show TREE` shows the nodes with their short ids";
        let hint = match near.as_slice() {
            [] => shows.to_owned(),
            near => format!("did you mean {}? {shows}", near.join(" or ")),
        };
        CommandError::not_found("node", name, hint)
    }

    /// An error as people are told it: with the short ids of nodes in place of their ids, which they cannot read, and
    /// known secrets masked, which somebody may have typed.
    pub async fn told(&self, asker: &Asker, mut error: CommandError) -> CommandError {
        for text in [&mut error.message, &mut error.hint] {
            *text = self.runtime.masker.mask(text).text.into_owned();
        }
        let words = error.message.split(|c: char| !c.is_ascii_alphanumeric());
        let is_id = |word: &&str| word.len() == LETTERS_OF_ID && word.parse::<NodeId>().is_ok();
        let ids: Vec<String> = words.filter(is_id).map(str::to_owned).collect();
        for id in ids {
            // What names nothing here is what somebody typed.
            if let Ok(found) = self.runtime.store.resolve_node(&asker.principal, None, &id).await {
                error.message = error.message.replace(&id, &found.short_id);
            }
        }
        error
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
        let found = match self.runtime.store.resolve_node(&asker.principal, tree, name).await {
            Err(store::StoreError::NotFound(_)) => return Err(self.no_node(asker, tree, name).await),
            found => found?,
        };
        if tree.is_some_and(|tree| tree != found.tree) {
            return Err(self.no_node(asker, tree, name).await);
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

/// Nodes that are named where none is called so.
const NEAR_NODES: usize = 3;
/// Letters and digits of a whole id.
const LETTERS_OF_ID: usize = 26;
/// Letters of the longest short id that is looked for with a typing error.
const LONGEST_ID: usize = 8;

/// The name that someone may have meant: the same in other letters, else one with a typing error or two. With more
/// than every third letter wrong it is another name: S2 is not S1.
pub(crate) fn nearest(names: impl Iterator<Item = String>, typed: &str) -> Option<String> {
    let wanted = typed.to_lowercase();
    let most = (wanted.chars().count() / 4).max(1);
    let near = names.filter(|name| name.chars().count() > most).filter_map(|name| {
        let errors = strsim::damerau_levenshtein(&name.to_lowercase(), &wanted);
        let longer = name.chars().count().max(wanted.chars().count());
        (errors <= most && errors * 3 <= longer).then_some((errors, name))
    });
    near.min().map(|(_, name)| name)
}

/// Short ids that differ from a word by two letters that changed places, or by one letter.
fn one_error_away(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    if letters.len() > LONGEST_ID || !letters.iter().all(char::is_ascii_alphanumeric) {
        return Vec::new();
    }
    let swapped = (1..letters.len()).filter(|place| letters[place - 1] != letters[*place]).map(|place| {
        let mut letters = letters.clone();
        letters.swap(place - 1, place);
        letters.into_iter().collect()
    });
    let other = (0..letters.len()).flat_map(|place| {
        let letters = &letters;
        let others = loom::short_id::ALPHABET.chars().filter(move |letter| *letter != letters[place]);
        others.map(move |letter| {
            let mut letters = letters.clone();
            letters[place] = letter;
            letters.into_iter().collect()
        })
    });
    swapped.chain(other).collect()
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
