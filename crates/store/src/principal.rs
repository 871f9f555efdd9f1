//! Who asks. Every method of a store takes a principal; there is no unscoped read (spec: security §17).

use loom::{Author, TreeId, Trust};

use crate::error::StoreError;

/// What a token may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    Full,
    /// The trees of one chat session, by the session's name.
    ChatSession(String),
    /// The nodes of one tree; no writing.
    ReadTree {
        tree: TreeId,
        /// Whether manifests and responses are shown as well: they hold files of the owner.
        with_context: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Principal {
    /// The owner of the home.
    Owner,
    /// A token the owner made.
    Token { name: String, scope: Scope },
}

impl Principal {
    pub(crate) const fn sees_all(&self) -> bool {
        matches!(self, Self::Owner | Self::Token { scope: Scope::Full, .. })
    }

    /// Whether a tree, bound to `session` if to any, is visible.
    pub(crate) fn sees(&self, tree: TreeId, session: Option<&str>) -> bool {
        match self {
            Self::Owner | Self::Token { scope: Scope::Full, .. } => true,
            Self::Token { scope: Scope::ChatSession(own), .. } => session == Some(own),
            Self::Token { scope: Scope::ReadTree { tree: own, .. }, .. } => tree == *own,
        }
    }

    /// Author of what is written for this principal, where nothing else is said of it.
    pub fn author(&self) -> Author {
        match self {
            Self::Owner => Author::owner(),
            Self::Token { name, .. } => Author { id: format!("token/{name}"), ..Author::owner() },
        }
    }

    /// Trust of what is written for this principal: what comes in through a token is from outside (spec: security §3).
    pub const fn trust(&self) -> Trust {
        match self {
            Self::Owner => Trust::Owner,
            Self::Token { .. } => Trust::Outside,
        }
    }

    /// Whether visible trees may be changed.
    pub const fn may_write(&self) -> bool {
        !matches!(self, Self::Token { scope: Scope::ReadTree { .. }, .. })
    }

    /// Whether manifests and responses of visible trees are shown.
    pub(crate) const fn sees_context(&self) -> bool {
        !matches!(self, Self::Token { scope: Scope::ReadTree { with_context: false, .. }, .. })
    }

    /// The chat session a tree made by this principal is bound to.
    pub fn session(&self) -> Option<&str> {
        match self {
            Self::Token { scope: Scope::ChatSession(own), .. } => Some(own),
            _ => None,
        }
    }

    /// Whether a lease of this name is this principal's business: a chat session's token has its own turn only.
    pub(crate) fn may_lease(&self, name: &str) -> bool {
        self.sees_all() || self.session().is_some_and(|own| name.strip_prefix("session/") == Some(own))
    }
}

/// Refuses whoever does not see everything: what follows reaches beyond single trees.
pub(crate) fn only_owner(who: &Principal, what: &'static str) -> Result<(), StoreError> {
    if who.sees_all() { Ok(()) } else { Err(StoreError::Denied(what)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_sees_its_own_and_nothing_else() {
        let (a, b) = (TreeId::from_bytes([1; 16]), TreeId::from_bytes([2; 16]));
        let read =
            Principal::Token { name: "r".into(), scope: Scope::ReadTree { tree: a, with_context: false } };
        assert!(read.sees(a, None) && !read.sees(b, None));
        assert!(!read.may_write() && !read.sees_context() && !read.sees_all());
        let chat = Principal::Token { name: "c".into(), scope: Scope::ChatSession("one".into()) };
        assert!(chat.sees(a, Some("one")) && !chat.sees(a, Some("two")) && !chat.sees(a, None));
        assert!(chat.may_lease("session/one") && !chat.may_lease("session/two") && !chat.may_lease("one"));
        assert!(Principal::Owner.sees(b, None) && Principal::Owner.may_lease("anything"));
    }
}
