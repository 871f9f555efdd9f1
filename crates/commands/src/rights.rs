//! Rights: what a caller may do. Each command names the one it needs; each surface passes who asks.

use loom::plan::NewText;
use loom::{Author, AuthorKind, Role, Seq, Trust};
use serde::{Deserialize, Serialize};
use store::{Principal, Scope};
use tools::WaitedTime;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    Read,
    Write,
    /// Asks a model, runs something.
    Act,
    /// Answers a question of the agent.
    Approve,
    /// Changes the home, removes for good, takes in or gives out.
    Admin,
}

/// Who asks, and with which rights.
#[derive(Debug, Clone)]
pub struct Asker {
    /// What the store lets them see.
    pub principal: Principal,
    /// Author of what they write.
    pub author: Author,
    /// Trust of what they write.
    pub trust: Trust,
    /// The turn of an agent in which a tool of it asks.
    pub(crate) turn: Option<ToolTurn>,
    rights: Vec<Right>,
    /// Whether it is a tool of an agent, which runs the commands that are marked for it alone.
    is_agent: bool,
}

/// The turn that a change by a tool belongs to.
#[derive(Debug, Clone)]
pub(crate) struct ToolTurn {
    /// The operation that began it; none for a change of another tree.
    pub(crate) first: Option<Seq>,
    /// Name of the turn in the budgets.
    pub(crate) spending: String,
    /// How long it waited for people.
    pub(crate) waited: WaitedTime,
}

impl Asker {
    fn of(principal: Principal, rights: Vec<Right>) -> Self {
        Self {
            author: principal.author(),
            trust: principal.trust(),
            turn: None,
            principal,
            rights,
            is_agent: false,
        }
    }

    /// The owner at their own terminal: everything.
    pub fn owner() -> Self {
        use Right::{Act, Admin, Approve, Read, Write};
        Self::of(Principal::Owner, vec![Read, Write, Act, Approve, Admin])
    }

    /// A token, by its scope. A full one approves and administers only if it was made so.
    pub fn token(name: impl Into<String>, scope: Scope, approve: bool, admin: bool) -> Self {
        let mut rights = vec![Right::Read];
        match &scope {
            Scope::Full => {
                rights.extend([Right::Write, Right::Act]);
                rights.extend(approve.then_some(Right::Approve));
                rights.extend(admin.then_some(Right::Admin));
            }
            Scope::ChatSession(_) => rights.push(Right::Act),
            Scope::ReadTree { .. } => {}
        }
        Self::of(Principal::Token { name: name.into(), scope }, rights)
    }

    /// The agent's own tools, in a session of the owner: the commands that are marked for them, never to approve or
    /// administer.
    pub fn agent(agent: impl Into<String>) -> Self {
        let rights = vec![Right::Read, Right::Write, Right::Act];
        let author = Author { kind: AuthorKind::Model, id: agent.into(), profile: None };
        Self { author, trust: Trust::Agent, is_agent: true, ..Self::of(Principal::Owner, rights) }
    }

    /// This asker in a turn whose request held text of this trust.
    pub(crate) fn in_turn(self, trust: Trust, turn: ToolTurn) -> Self {
        Self { turn: Some(turn), ..self.trusted_at_most(trust) }
    }

    /// This asker for what says no more than a text of this trust.
    pub(crate) fn trusted_at_most(self, trust: Trust) -> Self {
        Self { trust: trust.min(self.trust), ..self }
    }

    /// A client that only looks, as MCP does.
    pub fn reader() -> Self {
        Self::of(Principal::Owner, vec![Right::Read])
    }

    /// A text they give.
    pub fn text(&self, text: impl Into<String>, role: Option<Role>) -> NewText {
        NewText { author: self.author.clone(), trust: self.trust, ..NewText::owner(text, role) }
    }

    /// Whether it is a tool of an agent.
    pub(crate) const fn is_agent(&self) -> bool {
        self.is_agent
    }

    /// Whether a right is held.
    pub fn has(&self, right: Right) -> bool {
        self.rights.contains(&right)
    }
}
