//! Where a call is made: the conversation, its turn, and where that goes on.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use context::elicitation::Elicit;
use loom::{NodeId, PositionId, Seq, TreeId, Trust, ViewName};
use model::{Cancel, Model};
use text::mask::Masker;

use crate::subagents::Subagents;
use crate::waited_time::WaitedTime;

/// The conversation a call is made in.
#[derive(Clone)]
pub struct CallPlace {
    pub tree: TreeId,
    pub view: ViewName,
    /// The lowest trust its request sent, and the agent's at most: that of what it writes.
    pub trust: Trust,
    /// Known secrets, which are masked in what is read of trees.
    pub masker: Arc<Masker>,
    /// Answer that makes the call; none where no model made it.
    pub answer: Option<NodeId>,
    /// Number of the session's lease that its turn holds; none where no turn does.
    pub fence: Option<u64>,
    /// The operation that began its turn, which what it changes is undone together with.
    pub turn: Option<Seq>,
    pub next: NextPlace,
    /// The model of the turn, which further answers are asked of; none where no model made the call.
    pub model: Option<Arc<dyn Model>>,
    /// The turn's name in the budgets.
    pub spending: String,
    /// How long the turn waited for people.
    pub waited: WaitedTime,
    /// Stops the turn.
    pub cancel: Cancel,
    /// List of skills that its request sent; none where that had none, or a call has nothing to do with it.
    pub skills_list: Option<String>,
    /// The subagents of its session; none where a call has nothing to do with them.
    pub subagents: Option<Arc<dyn Subagents>>,
    /// Who answers what a server asks meanwhile; none where a call has nothing to do with one.
    pub person: Option<Arc<dyn Elicit>>,
}

impl CallPlace {
    /// A text with known secrets masked. It is masked whole, and cut afterwards: a part of a secret is found nowhere.
    pub fn masked(&self, text: &str) -> String {
        self.masker.mask(text).text.into_owned()
    }
}

impl fmt::Debug for CallPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallPlace")
            .field("tree", &self.tree)
            .field("view", &self.view)
            .field("trust", &self.trust)
            .finish_non_exhaustive()
    }
}

/// Where the view goes once the turn has ended, as its tools said last. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct NextPlace(Arc<Mutex<Option<PositionId>>>);

impl NextPlace {
    pub fn set(&self, to: PositionId) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(to);
    }

    pub fn take(&self) -> Option<PositionId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
