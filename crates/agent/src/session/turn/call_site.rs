//! Where the calls of a turn are made.

use std::sync::Arc;

use loom::{NodeId, Seq, TreeId, Trust, ViewName};
use tools::{CallPlace, NextPlace, WaitedTime};

use super::TurnConfig;
use crate::call::Call;
use crate::lease::SessionLease;
use crate::runtime::Runtime;

pub(super) struct CallSite<'a> {
    pub(super) held: &'a SessionLease,
    pub(super) tree: TreeId,
    pub(super) view: &'a ViewName,
    pub(super) call: &'a Call,
    pub(super) config: &'a TurnConfig,
    /// The turn's name in the budgets.
    pub(super) spending: &'a str,
    /// Where the view goes once the turn has ended.
    pub(super) next: &'a NextPlace,
    /// Whether what others say meanwhile is theirs.
    pub(super) hands_back: bool,
}

impl CallSite<'_> {
    /// The place of a call of an answer, which has this trust, in the turn that an operation began.
    pub(super) fn call_place(
        &self,
        runtime: &Runtime,
        (answer, trust, turn): (NodeId, Trust, Option<Seq>),
        waited: WaitedTime,
    ) -> CallPlace {
        CallPlace {
            tree: self.tree,
            view: self.view.clone(),
            trust,
            masker: Arc::clone(&runtime.masker),
            answer: Some(answer),
            fence: Some(self.held.fence().0),
            turn,
            next: self.next.clone(),
            model: Some(Arc::clone(&self.config.model)),
            spending: self.spending.to_owned(),
            waited,
            cancel: self.held.cancel(),
            skills_list: None,
            subagents: None,
            person: None,
        }
    }
}
