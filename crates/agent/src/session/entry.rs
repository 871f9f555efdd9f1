//! Sessions: which tree a conversation goes on in.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use loom::plan::NewTree;
use loom::{Digest, Mode, Op, TreeId, ViewName};
use store::home::HomeDir;
use store::instance::InstanceId;
use store::{
    AttachedWrites, LIST_PAGE, NewSession, Principal, Session, SessionFilter, SessionId, SessionKind,
    StoreError, all_pages,
};

use crate::blocking::on_disk;
use crate::error::AgentError;
use crate::runtime::Runtime;

/// What names of temporary sessions begin with.
const TEMPORARY: &str = "temp-";
/// Most characters of a session's name.
const MAX_NAME: usize = 64;

/// The name of a session: unique in its workspace, and good as the name of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// A name that was typed.
    ///
    /// # Errors
    /// [`AgentError::Name`] unless it has 1 to 64 letters, digits, `-`, `_` and `.`, and does not begin with a dot.
    pub fn new(name: &str) -> Result<Self, AgentError> {
        let fits = (1..=MAX_NAME).contains(&name.chars().count()) && !name.starts_with('.');
        if fits && name.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) {
            Ok(Self(name.to_owned()))
        } else {
            Err(AgentError::Name(text::terminal::one_line(name).into_owned()))
        }
    }

    /// A name of a temporary session, which says whose it is: once its process is gone it is forgotten.
    pub fn temporary(instance: InstanceId, id: TreeId) -> Self {
        Self(format!("{TEMPORARY}{instance}.{id}"))
    }

    /// The process a temporary session belongs to.
    fn holder(name: &str) -> Option<InstanceId> {
        name.strip_prefix(TEMPORARY)?.split_once('.')?.0.parse().ok()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Name {
    fn default() -> Self {
        Self("main".to_owned())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionChoice {
    /// The key of its workspace; empty for none.
    pub workspace: String,
    pub name: Name,
    /// What it is, if it begins now.
    pub kind: SessionKind,
}

/// Where a conversation goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSession {
    pub session: SessionId,
    pub name: String,
    /// The tree it goes on in.
    pub tree: TreeId,
    pub view: ViewName,
    /// Whether that tree was begun just now, by whoever asked.
    pub is_begun: bool,
}

impl Runtime {
    /// The session of this name, if there is one that is not archived.
    ///
    /// # Errors
    /// As the store says.
    pub async fn session(
        &self,
        who: &Principal,
        chosen: &SessionChoice,
    ) -> Result<Option<Session>, AgentError> {
        let filter = SessionFilter {
            workspace: Some(chosen.workspace.clone()),
            name: Some(chosen.name.to_string()),
            archived: false,
        };
        Ok(self.store.sessions(who, filter, None, 1).await?.into_iter().next())
    }

    /// The tree that a session goes on in; none before its first one.
    ///
    /// # Errors
    /// As the store says.
    pub(crate) async fn current_tree(
        &self,
        who: &Principal,
        id: &SessionId,
    ) -> Result<Option<TreeId>, AgentError> {
        Ok(self.store.session(who, id).await?.and_then(|session| session.tree()))
    }

    /// Where a session goes on: in its tree, or, if it has none, in a new one that is called after what is
    /// said first.
    ///
    /// # Errors
    /// As the store says.
    pub async fn enter(
        &self,
        who: &Principal,
        chosen: &SessionChoice,
        said: &str,
    ) -> Result<OpenedSession, AgentError> {
        loop {
            let found = self.session(who, chosen).await?;
            if let Some(session) = &found
                && let Some(tree) = session.tree()
            {
                return Ok(entered(session.id.clone(), session.name.clone(), tree, false));
            }
            let id = match &found {
                Some(session) => session.id.clone(),
                None => SessionId(self.new_id::<TreeId>()?.to_string()),
            };
            let begins = found.is_none().then(|| NewSession {
                id: id.clone(),
                workspace: chosen.workspace.clone(),
                name: chosen.name.to_string(),
                kind: chosen.kind,
                at: self.now(),
            });
            let with = AttachedWrites { begins, session: Some(id.0.clone()), ..AttachedWrites::nothing() };
            let tree = self.new_id::<TreeId>()?;
            let op =
                Op::Create(NewTree { mode: Mode::Dialogue, title: text::title::title(said), origin: None });
            match self.change(who, tree, &ViewName::default(), op, with).await {
                Ok(_) => return Ok(entered(id, chosen.name.to_string(), tree, true)),
                // Another process began it in this moment: it goes on in that one.
                Err(AgentError::Store(StoreError::Exists("session"))) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Forgets a temporary session with everything said in it.
    ///
    /// # Errors
    /// As the store says. Asked again, it goes on.
    pub async fn forget_session(&self, who: &Principal, chosen: &SessionChoice) -> Result<(), AgentError> {
        match self.session(who, chosen).await? {
            Some(session) => self.purge_session(who, &session).await,
            None => Ok(()),
        }
    }

    /// Forgets temporary sessions whose processes ended without doing so. Returns how many.
    ///
    /// # Errors
    /// As the store says. Asked again, it goes on.
    pub(crate) async fn forget_left(
        &self,
        who: &Principal,
        is_dead: impl Fn(InstanceId) -> bool,
    ) -> Result<u64, AgentError> {
        let filter = SessionFilter { workspace: None, name: None, archived: true };
        let mut forgotten = 0;
        let page = |after| self.store.sessions(who, filter.clone(), after, LIST_PAGE);
        for session in all_pages(Session::place, page).await? {
            let left =
                session.kind == SessionKind::Temporary && Name::holder(&session.name).is_some_and(&is_dead);
            if left {
                self.purge_session(who, &session).await?;
                forgotten += 1;
            }
        }
        if forgotten > 0 {
            self.sweep_blobs(who).await?;
        }
        Ok(forgotten)
    }

    /// Folder for the records of files that the commands of a process's temporary sessions change in the workspace or in a
    /// further root: it goes with them.
    ///
    /// # Errors
    /// The home has no place for it.
    pub fn private_records(
        &self,
        holder: InstanceId,
        further_root: Option<&Path>,
    ) -> Result<PathBuf, AgentError> {
        let records = self.home.dir(HomeDir::CheckpointCache).map_err(records_failed)?;
        let of_root =
            further_root.map(|root| format!(".{}", Digest::of(root.as_os_str().as_encoded_bytes())));
        Ok(records.join(format!("private-{holder}{}", of_root.unwrap_or_default())))
    }

    async fn purge_session(&self, who: &Principal, session: &Session) -> Result<(), AgentError> {
        if let Some(holder) = Name::holder(&session.name) {
            let records = self.private_records(holder, None)?;
            on_disk(move || tools::remove_records_of(&records)).await.map_err(records_failed)?;
        }
        for tree in &session.trees {
            self.purge(who, tree.id).await?;
        }
        self.store.remove_session(who, &session.id).await?;
        Ok(())
    }
}

/// What a command of a temporary session changed could not be removed, for this reason.
fn records_failed(error: impl std::error::Error + Send + Sync + 'static) -> AgentError {
    StoreError::Io { what: "the records of files".to_owned(), source: io::Error::other(error) }.into()
}

fn entered(session: SessionId, name: String, tree: TreeId, is_begun: bool) -> OpenedSession {
    OpenedSession { session, name, tree, view: ViewName::default(), is_begun }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_fit_for_a_file() {
        for good in ["main", "fix-3", "Überfahrt", "a.b_c"] {
            assert!(Name::new(good).is_ok(), "{good}");
        }
        for bad in ["", ".", "..", ".hidden", "a/b", "a b", "a\nb", "a:b", &"x".repeat(65)] {
            assert!(Name::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_temporary_name_says_whose_it_is() {
        let instance = InstanceId::generate(1).unwrap();
        let name = Name::temporary(instance, TreeId::from_bytes([1; 16]));
        assert_eq!(Name::new(name.as_str()).unwrap(), name);
        assert_eq!(Name::holder(name.as_str()), Some(instance));
        assert_eq!(Name::holder("main"), None);
    }
}
