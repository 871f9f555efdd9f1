//! Trees and nodes by the names people give them.

use std::collections::BTreeSet;

use loom::{NodeId, PositionId, TreeId, ViewName};
use store::{LIST_PAGE, TreeEntry, TreeFilter, all_pages, split_name};

use super::App;
use crate::args::{NodeArg, TreeArg};
use crate::error::CommandError;
use crate::rights::Asker;
use crate::tree::tree_argument;

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
        self.tree_of(asker, name, TreeFilter::Current).await
    }

    /// The tree of this name, for a command on archived trees: where there is none, archived ones are offered.
    ///
    /// # Errors
    /// As [`Self::tree_named`].
    pub(crate) async fn archived_tree(&self, asker: &Asker, name: &str) -> Result<TreeId, CommandError> {
        self.tree_of(asker, name, TreeFilter::Archived).await
    }

    /// The tree of this name; where there is none, what is offered is one of `offered`.
    async fn tree_of(&self, asker: &Asker, name: &str, offered: TreeFilter) -> Result<TreeId, CommandError> {
        match self.runtime.store.resolve(&asker.principal, name).await {
            Ok(tree) => Ok(tree),
            Err(store::StoreError::NotFound(_)) => {
                let near = self.near_trees(asker, name, offered).await?;
                Err(CommandError::not_found("tree", name, did_you_mean(&near, trees_are_shown(offered))))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The trees that someone may have meant: by title, else those whose short id is one typing error away.
    async fn near_trees(
        &self,
        asker: &Asker,
        name: &str,
        offered: TreeFilter,
    ) -> Result<Vec<String>, CommandError> {
        let store = &self.runtime.store;
        let page = |after| store.trees(&asker.principal, offered, after, LIST_PAGE);
        let trees = all_pages(TreeEntry::place, page).await?;
        if let Some(title) = nearest(trees.iter().map(|tree| tree.title.clone()), name) {
            return Ok(vec![format!("{title:?}")]);
        }
        let typed = name.to_lowercase();
        let is_near = |tree: &&TreeEntry| {
            tree.short_id.len() == typed.len() && strsim::damerau_levenshtein(&tree.short_id, &typed) == 1
        };
        let near = trees.iter().filter(is_near).take(MOST_OFFERED).map(|tree| match tree.title.as_str() {
            "" => tree.short_id.clone(),
            title => format!("{} ({title:?})", tree.short_id),
        });
        Ok(near.collect())
    }

    /// The nodes one typing error away from this name, in `tree` or anywhere.
    async fn near_nodes(&self, asker: &Asker, tree: Option<TreeId>, name: &str) -> Vec<String> {
        let (of, node) = split_name(name);
        let mut near = Vec::new();
        for other in one_error_away(&node.to_lowercase()) {
            let other = of.map_or_else(|| other.clone(), |of| format!("{of}:{other}"));
            match self.runtime.store.resolve_node(&asker.principal, tree, &other).await {
                Ok(found) if tree.is_none_or(|tree| tree == found.tree) => {
                    near.push(of.map_or(found.short_id, |_| other));
                }
                // As it must be typed where several trees have one.
                Err(store::StoreError::Ambiguous(names)) => near.extend(names),
                _ => {}
            }
            if near.len() >= MOST_OFFERED {
                near.truncate(MOST_OFFERED);
                break;
            }
        }
        near
    }

    /// That there is no node of this name, with those that may be meant.
    async fn no_node(&self, asker: &Asker, tree: Option<TreeId>, name: &str) -> CommandError {
        let near = self.near_nodes(asker, tree, name).await;
        let named = match tree {
            Some(tree) => tree_argument(self, asker, tree).await.ok(),
            None => None,
        };
        let named = named.as_deref().unwrap_or("TREE");
        let shows = format!("`drawloom tree show {named}` shows the nodes with their short ids");
        CommandError::not_found("node", name, did_you_mean(&near, &shows))
    }

    /// That neither a node nor a tree has this name: the error of the node, with the trees that may be meant.
    pub(crate) async fn no_node_and_no_tree(
        &self,
        asker: &Asker,
        name: &str,
        of_node: CommandError,
    ) -> Result<CommandError, CommandError> {
        let trees = self.near_trees(asker, name, TreeFilter::Current).await?;
        if trees.is_empty() {
            return Ok(of_node);
        }
        let near = [self.near_nodes(asker, None, name).await, trees].concat();
        let hint = did_you_mean(&near, trees_are_shown(TreeFilter::Current));
        Ok(CommandError { hint, ..of_node })
    }

    /// An error as people are told it: with the short ids of nodes in place of their ids, which they cannot read, and
    /// known secrets masked, which somebody may have typed.
    pub async fn told(&self, asker: &Asker, mut error: CommandError) -> CommandError {
        for text in [&mut error.message, &mut error.hint] {
            *text = self.runtime.masker.mask(text).text.into_owned();
        }
        let words = [&error.message, &error.hint]
            .into_iter()
            .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()));
        let is_id = |word: &&str| word.len() == LETTERS_OF_ID && word.parse::<NodeId>().is_ok();
        let ids: BTreeSet<String> = words.filter(is_id).map(str::to_owned).collect();
        for id in ids {
            // What names nothing here is what somebody typed.
            if let Ok(found) = self.runtime.store.resolve_node(&asker.principal, None, &id).await {
                for text in [&mut error.message, &mut error.hint] {
                    *text = text.replace(&id, &found.short_id);
                }
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
            Err(store::StoreError::NotFound(_)) => {
                if let (Some(of), _) = split_name(name) {
                    self.tree_named(asker, of).await?;
                }
                return Err(self.no_node(asker, tree, name).await);
            }
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

/// Names that are offered where nothing is called so.
const MOST_OFFERED: usize = 3;
/// Letters and digits of a whole id.
const LETTERS_OF_ID: usize = 26;
/// Letters of the longest short id that is looked for with a typing error.
const LONGEST_ID: usize = 8;

/// A hint of what may be meant, before the command that shows what there is.
fn did_you_mean(near: &[String], shows: &str) -> String {
    match near {
        [] => shows.to_owned(),
        near => format!("did you mean {}? {shows}", near.join(" or ")),
    }
}

const fn trees_are_shown(offered: TreeFilter) -> &'static str {
    match offered {
        TreeFilter::Archived => "`drawloom tree list --archived` shows the trees",
        TreeFilter::Current | TreeFilter::All => "`drawloom tree list` shows the trees",
    }
}

/// The name that someone may have meant: the same in other letters, else one with a typing error or two. With more
/// than every third letter wrong it is another name: S2 is not S1.
pub fn nearest(names: impl Iterator<Item = String>, typed: &str) -> Option<String> {
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
