//! What the owner gave back of the files that tools changed in a tree, as a model is told of it.

use std::path::{Path, PathBuf};

use context::GivenBackFiles;
use context::given_back::NAMED;
use loom::TreeId;
use store::{GivingBack, Principal};
use text::terminal::{explicit, one_line};

use crate::error::AgentError;
use crate::runtime::Runtime;

/// All of a tree, the oldest first, with paths as tools name them: relative below the workspace, absolute elsewhere.
pub(crate) async fn of_tree(
    runtime: &Runtime,
    who: &Principal,
    tree: TreeId,
    workspace: Option<&Path>,
) -> Result<Vec<GivenBackFiles>, AgentError> {
    let all = runtime.store.givings_back(who, tree, NAMED).await?;
    let shown = |(root, path): &(PathBuf, PathBuf)| {
        let path = if workspace == Some(root) { path.clone() } else { root.join(path) };
        let path = path.display().to_string();
        explicit(&one_line(&runtime.masker.mask(&path).text)).into_owned()
    };
    let told = |GivingBack { at, redone, paths, count, answers }| GivenBackFiles {
        at,
        redone,
        paths: paths.iter().map(shown).collect(),
        count,
        answers,
    };
    Ok(all.into_iter().map(told).collect())
}
