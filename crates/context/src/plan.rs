//! The plan that a model keeps of its work, and how it stays in sight when what set it leaves the window (spec: agent
//! §3 `plan`, context §2 *Injections*).
//!
//! Nothing of it is stored beside the tree: the newest call on the path that was answered is the plan.

use std::collections::HashSet;
use std::fmt;
use std::ops::RangeInclusive;

use loom::path::ViewOverrides;
use loom::render::{Pages, Passage};
use loom::{
    Block, CellKey, CellValue, NodeId, OpTarget, PositionId, Role, RowError, ToolStatus, TreeReader, Trust,
    ViewName, resolve,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::history::Shown;
use crate::injection::Offer;
use crate::tools::unwrapped;

/// The name of the tool that sets it.
pub const PLAN: &str = "plan";

/// Steps that a plan has at most.
pub const MOST_STEPS: usize = 20;

/// Characters of a step at most.
const STEP: usize = 200;

/// The topic of plans that are shown again.
const TOPIC: &str = "steps";

/// What stands above the steps where they are shown again.
const SHOWN_AGAIN: &str = "[The plan, as you set it last:";

/// Nodes that are read at a time.
const PAGE: u32 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepState {
    Pending,
    Active,
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanStep {
    /// What is to be done, in a few words.
    #[schemars(length(min = 1, max = STEP))]
    pub step: String,
    pub state: StepState,
}

/// The arguments of a call of `plan`: all steps, in order. It takes the place of the one before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// All steps, in order; none when there is nothing left to plan.
    #[schemars(length(max = MOST_STEPS))]
    pub steps: Vec<PlanStep>,
}

impl StepState {
    const ALL: [Self; 3] = [Self::Pending, Self::Active, Self::Done];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Done => "done",
        }
    }
}

impl Plan {
    /// That which a call sets; none of a call of another tool.
    pub fn of_call(tool: &str, arguments: &Value) -> Option<Self> {
        let (tool, arguments) = unwrapped(tool, arguments);
        if tool != PLAN {
            return None;
        }
        Self::deserialize(arguments).ok().map(Self::tidy).filter(Self::is_kept)
    }

    /// Whether it is within its bounds, and each step says something.
    fn is_kept(&self) -> bool {
        let says = |step: &PlanStep| (1..=STEP).contains(&step.step.chars().count());
        self.steps.len() <= MOST_STEPS && self.steps.iter().all(says)
    }

    /// The plan with each step on one line.
    fn tidy(mut self) -> Self {
        for step in &mut self.steps {
            step.step = step.step.split_whitespace().collect::<Vec<_>>().join(" ");
        }
        self
    }

    /// Steps in this state.
    fn count(&self, state: StepState) -> usize {
        self.steps.iter().filter(|step| step.state == state).count()
    }

    /// How many steps are how far: nothing of what they say.
    pub fn counts(&self) -> String {
        if self.steps.is_empty() {
            return "nothing is planned".to_owned();
        }
        let counts = StepState::ALL.map(|state| format!("{} {}", self.count(state), state.as_str()));
        counts.join(", ")
    }

    /// How far it is, on one line: `2 of 5 steps done; now: run the tests`.
    pub fn in_short(&self) -> String {
        if self.steps.is_empty() {
            return "nothing is planned".to_owned();
        }
        let (done, all) = (self.count(StepState::Done), self.steps.len());
        let s = if all == 1 { "" } else { "s" };
        let active = self.steps.iter().filter(|step| step.state == StepState::Active);
        let now = active.map(|step| step.step.as_str()).collect::<Vec<_>>().join(" · ");
        let now = if now.is_empty() { now } else { format!("; now: {now}") };
        format!("{done} of {all} step{s} done{now}")
    }

    /// The plan that was shown again in these words.
    fn of_text(text: &str) -> Option<Self> {
        let lines =
            text.strip_prefix(SHOWN_AGAIN)?.strip_suffix(']')?.lines().filter(|line| !line.is_empty());
        let steps = lines.map(|line| {
            let (state, step) = line.split_once(". ")?.1.split_once(": ")?;
            let state = StepState::ALL.into_iter().find(|known| known.as_str() == state)?;
            Some(PlanStep { step: step.to_owned(), state })
        });
        Some(Self { steps: steps.collect::<Option<_>>()? })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, PlanStep { step, state }) in (1..).zip(&self.steps) {
            writeln!(f, "{number}. {}: {step}", state.as_str())?;
        }
        Ok(())
    }
}

/// The plan that holds at the end of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingPlan {
    pub plan: Plan,
    trust: Trust,
    /// The node whose call set it.
    set_by: NodeId,
    /// Depth of the node with which it was set, or shown again last.
    pub(crate) depth: u32,
    /// The call that set it, by its position and its number; none where it was shown again since.
    pub(crate) call: Option<(PositionId, u32)>,
}

impl StandingPlan {
    pub const fn trust(&self) -> Trust {
        self.trust
    }

    /// The plan as it is shown again.
    pub(crate) fn offer(&self) -> Offer {
        Offer {
            topic: TOPIC.to_owned(),
            version: self.set_by.to_string(),
            trust: self.trust,
            text: format!("{SHOWN_AGAIN}\n{}]", self.plan),
        }
    }
}

/// The plan that holds where a path ends, looked for upwards within these depths; none where none was set there.
///
/// # Errors
/// [`RowError`] when the store fails.
pub fn standing(
    rows: &dyn TreeReader,
    view: &ViewName,
    path: &ViewOverrides,
    depths: RangeInclusive<u32>,
) -> Result<Option<StandingPlan>, RowError> {
    let (mut pages, (top, mut to)) = (Pages::default(), depths.into_inner());
    let mut answered = HashSet::new();
    let mut shown = Shown::default();
    loop {
        let page = pages.read(rows, view, path, top.max(to.saturating_sub(PAGE - 1))..=to)?;
        let Some(first) = page.first().map(|first| first.position.clone()) else { return Ok(None) };
        shown.read(rows, &first)?;
        for passage in page.iter().rev().filter(|passage| !passage.excluded && !passage.row.purged) {
            let along = shown.by_node.remove(&passage.row.node.id).unwrap_or_default();
            let again = along.iter().rev().find_map(|shown| {
                let version = shown.source.strip_prefix(TOPIC)?.strip_prefix('#')?;
                let (plan, set_by) = (Plan::of_text(&shown.text)?, version.parse().ok()?);
                Some(StandingPlan {
                    plan,
                    trust: shown.trust,
                    set_by,
                    depth: passage.position.depth,
                    call: None,
                })
            });
            let again = match again {
                Some(again) if holds(rows, view, again.set_by)? => Some(again),
                _ => None,
            };
            if let Some(found) = again.or_else(|| set_here(passage, &mut answered)) {
                return Ok(Some(found));
            }
        }
        match first.depth.checked_sub(1).filter(|next| *next >= top) {
            Some(next) => to = next,
            None => return Ok(None),
        }
    }
}

/// Whether a node that set a plan is what stands at its place.
fn holds(rows: &dyn TreeReader, view: &ViewName, set_by: NodeId) -> Result<bool, RowError> {
    let Some(row) = rows.node(set_by)?.filter(|row| !row.purged) else { return Ok(false) };
    let target = OpTarget::Position(row.node.position);
    let is_excluded = rows.cell(&CellKey::Excluded { target })?.value == CellValue::Set;
    Ok(!is_excluded && resolve::shown(rows, view, row.node.position)? == set_by)
}

/// The plan that the last call of a node which was answered sets. `answered` holds the calls that are answered below.
fn set_here(passage: &Passage, answered: &mut HashSet<String>) -> Option<StandingPlan> {
    let node = &passage.row.node;
    for block in node.content.iter() {
        if let Block::ToolResult { call_id, status: ToolStatus::Ok, .. } = block {
            answered.insert(call_id.clone());
        }
    }
    if passage.position.role != Some(Role::Assistant) {
        return None;
    }
    let calls = node.content.iter().filter_map(|block| match block {
        Block::ToolCall { id, name, arguments } => Some((id, name, arguments)),
        _ => None,
    });
    let set = (0..).zip(calls).filter(|(_, (id, ..))| answered.contains(*id));
    let plans =
        set.filter_map(|(number, (_, name, arguments))| Some((number, Plan::of_call(name, arguments)?)));
    let found = plans.last().map(|(number, plan)| StandingPlan {
        plan,
        trust: node.trust,
        set_by: node.id,
        depth: passage.position.depth,
        call: Some((passage.position.id, number)),
    });
    // Results belong to the newest answer above them.
    answered.clear();
    found
}
