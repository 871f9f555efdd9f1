//! Sessions in memory.

use crate::error::StoreError;
use crate::memory::state::State;
use crate::principal::Principal;
use crate::session::{NewSession, Session, SessionFilter, SessionId};

impl State {
    pub(super) fn begin_session(&mut self, who: &Principal, new: NewSession) -> Result<(), StoreError> {
        if !who.sees_all() {
            return Err(StoreError::Denied("sessions"));
        }
        let taken = |other: &Session| {
            other.id == new.id
                || !other.archived && other.workspace == new.workspace && other.name == new.name
        };
        if self.sessions.iter().any(taken) {
            return Err(StoreError::Exists("session"));
        }
        self.sessions.push(Session {
            id: new.id,
            workspace: new.workspace,
            name: new.name,
            kind: new.kind,
            archived: false,
            created_at: new.at,
            trees: Vec::new(),
        });
        Ok(())
    }

    pub(super) fn sessions(&self, who: &Principal, filter: &SessionFilter) -> Vec<Session> {
        let held = self.sessions.iter().filter(|session| {
            filter.holds(&session.workspace, &session.name, session.archived)
                && (who.sees_all() || who.session() == Some(session.id.0.as_str()))
        });
        let mut found: Vec<Session> = held.cloned().collect();
        for session in &mut found {
            let own = self.seen(who).filter(|tree| tree.session.as_deref() == Some(session.id.0.as_str()));
            session.trees = own.filter(|tree| !tree.purged).map(Self::entry).collect();
            session.trees.sort_by_key(|tree| tree.id);
        }
        found.sort_by(|a, b| b.updated_at().cmp(&a.updated_at()).then_with(|| b.id.cmp(&a.id)));
        found
    }

    pub(super) fn rename_session(
        &mut self,
        who: &Principal,
        id: &SessionId,
        name: String,
    ) -> Result<(), StoreError> {
        let workspace = self.session_mut(who, id)?.workspace.clone();
        let filter = SessionFilter { workspace: Some(workspace), name: Some(name.clone()), archived: false };
        if self.sessions(who, &filter).iter().any(|other| other.id != *id) {
            return Err(StoreError::Exists("session"));
        }
        self.session_mut(who, id)?.name = name;
        Ok(())
    }

    pub(super) fn archive_session(
        &mut self,
        who: &Principal,
        id: &SessionId,
        archived: bool,
    ) -> Result<(), StoreError> {
        let session = self.session_mut(who, id)?.clone();
        let filter =
            SessionFilter { workspace: Some(session.workspace), name: Some(session.name), archived: false };
        if !archived && self.sessions(who, &filter).iter().any(|other| other.id != *id) {
            return Err(StoreError::Exists("session"));
        }
        self.session_mut(who, id)?.archived = archived;
        Ok(())
    }

    pub(super) fn remove_session(&mut self, who: &Principal, id: &SessionId) -> Result<(), StoreError> {
        self.session_mut(who, id)?;
        let own = |session: &Option<String>| session.as_deref() == Some(id.0.as_str());
        if self.trees.values().any(|tree| own(&tree.session) && !tree.purged) {
            return Err(StoreError::Exists("tree of the session"));
        }
        self.sessions.retain(|session| session.id != *id);
        Ok(())
    }

    fn session_mut(&mut self, who: &Principal, id: &SessionId) -> Result<&mut Session, StoreError> {
        if !who.sees_all() {
            return Err(StoreError::NotFound("session"));
        }
        self.sessions.iter_mut().find(|session| session.id == *id).ok_or(StoreError::NotFound("session"))
    }
}
