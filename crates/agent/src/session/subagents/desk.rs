//! What calls of a turn reach of the subagents of its session: to begin one, to look at them, to stop one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use context::Bootstrap;
use loom::plan::NewTree;
use loom::render::window;
use loom::tree::{TreeOrigin, TreeOriginKind};
use loom::{Mode, NodeId, Op, Purpose, Role, TreeId, TreeReader, Trust, ViewName, path, render};
use model::{Cancel, Model, ModelPlace, Money, Params};
use store::{AttachedWrites, NewSession, Principal, SessionId, SessionKind};
use tokio::sync::Semaphore;
use tools::{CallPlace, SPAWN, SubagentTask, Subagents};

use super::work::SubagentWork;
use super::{Parent, RunningSubagent, SubagentEnd, SubagentRecord, SubagentState, SubagentTerms};
use crate::error::AgentError;
use crate::event::EventSink;
use crate::fallback::FoundModel;
use crate::runtime::Runtime;
use crate::session::turn::{TurnConfig, UsedByTurn, tool_author};
use crate::session::{Handle, SessionSettings};

/// What names of their sessions begin with.
const PREFIX: &str = "sub-";
/// Characters of the id of a tree that follow it: the random ones.
const ID_CHARS: usize = 10;
/// Characters of a label.
const LABEL: usize = 40;
/// Subagents of a session that have not ended, at most.
const MOST: usize = 64;
/// The file of a workspace that a subagent is sent.
const INSTRUCTIONS: &str = "AGENTS.md";

/// The subagents of a session, for a call of its turn.
pub(in crate::session) struct SubagentDesk {
    pub(in crate::session) runtime: Runtime,
    pub(in crate::session) handle: Handle,
    /// Whose subagent the session is itself, if it is one.
    pub(in crate::session) parent: Option<Parent>,
    /// How its turn asks, which is how a subagent does.
    pub(in crate::session) config: TurnConfig,
    /// The answer that calls.
    pub(in crate::session) answer: NodeId,
    /// Where its questions are asked.
    pub(in crate::session) events: Arc<dyn EventSink>,
    pub(in crate::session) answer_within: Option<Duration>,
    pub(in crate::session) hands_back: bool,
    /// What its turn used and was denied.
    pub(in crate::session) turn: UsedByTurn,
}

impl Subagents for SubagentDesk {
    fn spawn(&self, task: SubagentTask, place: &CallPlace) -> Result<String, String> {
        tokio::runtime::Handle::current().block_on(self.begin(task, place))
    }

    fn status(&self, id: Option<&str>) -> Result<(String, Trust), String> {
        tokio::runtime::Handle::current().block_on(self.told(id))
    }

    fn stop(&self, id: &str) -> Result<String, String> {
        let running = self.handle.subagents.find(id);
        let running =
            running.ok_or_else(|| format!("no subagent {id} runs here: subagent_status lists them"))?;
        running.stop.cancel();
        Ok(format!("{id} is being stopped"))
    }
}

impl SubagentDesk {
    async fn begin(&self, asked: SubagentTask, place: &CallPlace) -> Result<String, String> {
        let SubagentTask { task, label, model, tools, budget } = asked;
        if task.trim().is_empty() {
            return Err("the task is empty".to_owned());
        }
        if self.handle.subagents.count() >= MOST {
            return Err(format!("{MOST} subagents have not ended yet: wait for some of them"));
        }
        let bounds = self.runtime.subagents;
        let depth = self.parent.as_ref().map_or(0, |parent| parent.depth) + 1;
        let own = self.config.tools.as_ref().ok_or("there are no tools here")?;
        let registry = Arc::new(own.of_subagent(tools.as_deref(), depth < bounds.depth)?);
        let model = match model {
            Some(name) => self.model(&name).await?,
            None => Arc::clone(&self.config.model),
        };
        let label = label.filter(|label| !label.trim().is_empty()).unwrap_or_else(|| task.clone());
        let label = self.runtime.masker.mask_entering(&text::title::title(&label)).text.into_owned();
        let label: String = label.chars().take(LABEL).collect();
        let label = self.handle.subagents.own_label(&label);
        let full = model.info().full_name();
        let other = Some(full).filter(|full| *full != self.config.model.info().full_name());
        let begun = self.begin_session(place, &label, other).await;
        let (session, name, tree) = begun.map_err(|error| format!("it could not be begun: {error}"))?;
        let bootstrap = Bootstrap {
            files: self
                .config
                .bootstrap
                .files
                .iter()
                .filter(|file| file.name == INSTRUCTIONS)
                .cloned()
                .collect(),
            left_out: Vec::new(),
            tools: registry.specs(),
            skills: None,
            refused_skills: Vec::new(),
            memory: None,
            reload: false,
            ..Bootstrap::clone(&self.config.bootstrap)
        };
        let config = TurnConfig {
            purpose: Purpose::Subagent,
            bootstrap: Arc::new(bootstrap),
            tools: Some(registry),
            params: self.params(&model),
            model: Arc::clone(&model),
            ..self.config.clone()
        };
        let (stop, cancel) = Cancel::new();
        let running = Arc::new(RunningSubagent {
            session,
            name: name.clone(),
            tree,
            stop,
            progress: Mutex::new(SubagentEnd::nothing_yet(SubagentState::Queued)),
        });
        let slots = self.handle.subagents.0.slots.get_or_init(|| Arc::new(Semaphore::new(bounds.at_once)));
        self.handle.subagents.add(Arc::clone(&running));
        // Stopped while it was begun.
        if place.cancel.is_cancelled() {
            running.stop.cancel();
        }
        let mut runtime = self.runtime.clone();
        runtime.turn_bounds.model_calls = bounds.model_calls;
        let events = Arc::clone(&self.events);
        let session = self.parent.as_ref().map_or(&self.handle.id, |parent| &parent.session).clone();
        let (spending, budget) = (place.spending.clone(), budget.map(Money::from_dollars));
        let turn = self.turn.clone();
        let above = self.parent.as_ref().map(|parent| Arc::clone(&parent.terms));
        let terms = Arc::new(SubagentTerms::new(label.clone(), budget, tree, above));
        let parent = Parent { terms, session, spending, turn, depth, events, running };
        let work = SubagentWork {
            runtime,
            begun_by: self.handle.clone(),
            parent,
            slots: Arc::clone(slots),
            cancel,
            config: Arc::new(config),
            task,
            trust: place.trust,
            place: (place.tree, place.view.clone()),
            answer: self.answer,
            answer_within: self.answer_within,
            hands_back: self.hands_back,
        };
        tokio::spawn(work.run());
        let on = match model.info() {
            info if info.full_name() == self.config.model.info().full_name() => String::new(),
            info if info.place == ModelPlace::Remote => format!(" on {} (remote)", info.full_name()),
            info => format!(" on {}", info.full_name()),
        };
        Ok(format!("{name} ({label}) has begun{on}; what it comes to is told to you"))
    }

    /// A model that the owner named for subagents, or the one of whoever begins it.
    async fn model(&self, name: &str) -> Result<Arc<dyn Model>, String> {
        let own = self.config.model.info().full_name();
        if name == own {
            return Ok(Arc::clone(&self.config.model));
        }
        let listed = self.runtime.subagent_models.found().await;
        let names: Vec<&str> = listed.iter().map(|(name, _)| name.as_str()).chain([own.as_str()]).collect();
        let refused = || {
            let names = names.join(", ");
            format!(
                "no subagent may have the model {name:?}: {names} may, and what the owner lists in model.subagents"
            )
        };
        let is_meant = |(listed, found): &&FoundModel| {
            listed == name || found.as_ref().is_ok_and(|model| model.info().full_name() == name)
        };
        let (_, found) = listed.iter().find(is_meant).ok_or_else(refused)?;
        let found = found.clone().map_err(|why| format!("{name} cannot be asked: {why}"))?;
        if self.runtime.subagent_models.allows(self.config.model.info(), found.info()) {
            return Ok(found);
        }
        Err(format!("{name} is not asked: text would leave this machine (model.subagent_remote allows it)"))
    }

    /// Parameters of a provider are for the model that its agent names.
    fn params(&self, model: &Arc<dyn Model>) -> Params {
        let is_own = model.info().full_name() == self.config.model.info().full_name();
        let provider = if is_own { self.config.params.provider.clone() } else { Default::default() };
        Params { provider, ..self.config.params.clone() }
    }

    /// Begins the session of one, with its tree.
    async fn begin_session(
        &self,
        place: &CallPlace,
        label: &str,
        model: Option<String>,
    ) -> Result<(SessionId, String, TreeId), AgentError> {
        let (runtime, who, parent) = (&self.runtime, &Principal::Owner, &self.handle.id);
        let tree = runtime.new_id::<TreeId>()?;
        let id = tree.to_string().to_lowercase();
        let name = format!("{PREFIX}{}", id.chars().skip(id.len() - ID_CHARS).collect::<String>());
        let session = SessionId(runtime.new_id::<TreeId>()?.to_string());
        let workspace = runtime.store.session(who, parent).await?.map(|parent| parent.workspace);
        let begins = NewSession {
            id: session.clone(),
            workspace: workspace.unwrap_or_default(),
            name: name.clone(),
            kind: SessionKind::Isolated,
            at: runtime.now(),
        };
        let with = AttachedWrites {
            begins: Some(begins),
            session: Some(session.0.clone()),
            ..AttachedWrites::nothing()
        };
        let origin = TreeOrigin { tree: place.tree, node: Some(self.answer), kind: TreeOriginKind::Spawn };
        let new = NewTree { mode: Mode::Dialogue, title: label.to_owned(), origin: Some(origin) };
        let author = tool_author(SPAWN);
        let writer = (who, &author, place.trust);
        runtime.change_as(writer, tree, &ViewName::default(), Op::Create(new), with).await?;
        let owner = runtime.instance.to_string();
        let (parent_id, label) = (parent.clone(), label.to_owned());
        let record = SubagentRecord { parent: parent_id, label, model, owner, ended: None };
        let settings = SessionSettings { subagent: Some(record), ..SessionSettings::default() };
        runtime.store.set_session_settings(who, &session, "", &settings.text()?).await?;
        runtime.change_settings_of(parent, |settings| settings.awaited.push(session.clone())).await?;
        Ok((session, name, tree))
    }

    async fn told(&self, id: Option<&str>) -> Result<(String, Trust), String> {
        let all = self.runtime.subagents_of(&self.handle.id, &self.handle.subagents).await;
        let all = all.map_err(|error| format!("they could not be read: {error}"))?;
        let Some(id) = id else {
            let lines: Vec<String> = all.iter().map(ToString::to_string).collect();
            let told = if lines.is_empty() { "you have no subagents".to_owned() } else { lines.join("\n") };
            // A label is as far believed as whatever named it was.
            let mut trust = Trust::Agent;
            for one in &all {
                let sent = self.runtime.read(&Principal::Owner, one.tree, said_last).await;
                trust = trust.min(sent.map_or(Trust::Outside, |(_, trust)| trust));
            }
            return Ok((told, trust));
        };
        let one = all.into_iter().find(|one| one.name == id);
        let one = one.ok_or_else(|| format!("there is no subagent {id}"))?;
        let said = self.runtime.read(&Principal::Owner, one.tree, said_last).await;
        Ok(match said.map_err(|error| format!("what it said could not be read: {error}"))? {
            (Some(said), trust) => (format!("{one}\nIt said last:\n{said}"), trust.min(Trust::Agent)),
            (None, trust) => (one.to_string(), trust.min(Trust::Agent)),
        })
    }
}

/// What the agent of a subagent's tree said last, and the lowest trust of all that stands there: of what it was sent.
pub(super) fn said_last(rows: &dyn TreeReader) -> Result<(Option<String>, Trust), loom::RowError> {
    let view = ViewName::default();
    let end = render::tip(rows, &view)?;
    let depth = path::position(rows, end)?.depth;
    let path = path::ViewOverrides::read(rows, &view, end)?;
    let passages = window(rows, &view, &path, Some(depth), usize::try_from(depth).unwrap_or(usize::MAX))?;
    let trust = passages.iter().map(|passage| passage.row.node.trust).min().unwrap_or(Trust::Owner);
    let said = passages.into_iter().rfind(|passage| {
        passage.position.role == Some(Role::Assistant) && !passage.excluded && !passage.row.purged
    });
    Ok((said.map(|passage| passage.row.node.said().into_owned()), trust))
}
