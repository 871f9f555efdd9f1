//! A request: what is asked of a model, from a place in a tree or from a prompt, and whose every byte is accounted for
//! before it is sent.
//!
//! Where it comes from and what it is for decide only how it is assembled and whether its answer becomes nodes; from
//! [`crate::prepared_request::PreparedRequest`] on every request takes one way.

use std::path::PathBuf;
use std::sync::Arc;

use context::dialogue::{Dependencies, DialogueRequest, assemble};
use context::document::{DocumentRequest, document};
use context::{
    Assembled, Bootstrap, ContinuationForm, Estimator, FolderInstructions, GivenBackFiles, NothingRemembered,
    Prefix, ReplayConstraints, RequestPiece, TargetModel, TokenBudget, WorkspaceTrust, of_prompt,
};
use futures_util::future::BoxFuture;
use loom::{
    Digest, GenerationPlace, Millis, Mode, NodeId, PositionId, Purpose, RowError, Seq, TreeId, TreeReader,
    ViewName, render, resolve,
};
use model::{Model, ModelPlace, Params, Prompt, Thinking, ThinkingControl};
use store::{Guard, Principal};

use crate::error::AgentError;
use crate::given_back;
use crate::media::StoredMedia;
use crate::previous_request::PreviousRequest;
use crate::recent_requests::RecentRequest;
use crate::request_permit;
use crate::runtime::Runtime;
use crate::variant::RequestVariant;

/// Characters of a key by which a provider finds its cache.
const CACHE_KEY: usize = 32;

/// What is asked of a model, and in whose name.
#[derive(Clone)]
pub struct GenerationRequest {
    pub purpose: Purpose,
    /// The tree it works for: what it costs and sent stands there.
    pub tree: TreeId,
    pub source: RequestSource,
    pub model: Arc<dyn Model>,
    /// As which agent: the author of the answer.
    pub agent: String,
    /// Digest of the agent's profile; none where there is no agent that is configured.
    pub profile: Option<Digest>,
    pub params: Params,
    /// The operation that wrote the drafts or the message before it: the answer is undone together with it.
    pub part_of: Option<Seq>,
    /// Leases the work depends on: nothing is written once one is lost.
    pub guards: Vec<Guard>,
}

/// What a request is assembled from.
#[derive(Clone)]
pub enum RequestSource {
    /// A path whose answer becomes nodes.
    Path(Box<PathRequest>),
    /// A prompt whose answer becomes no node and goes to the caller.
    Prompt(Arc<PromptRequest>),
}

/// A path of the tree, with what is sent besides.
#[derive(Debug, Clone, Default)]
pub struct PathRequest {
    pub view: ViewName,
    /// Where to continue; the view's tip, if none.
    pub from: Option<PositionId>,
    /// Whether the view goes to the first node that is made.
    pub follow: bool,
    /// Whether drafts count as text: for a look ahead.
    pub drafts: bool,
    /// What stands above the cache boundary of a dialogue.
    pub bootstrap: Arc<Bootstrap>,
    /// Nodes sent besides the path, just before the newest turn or the document.
    pub context: Vec<NodeId>,
    /// Nodes sent besides the path, as instructions.
    pub instruction: Vec<NodeId>,
    /// Whether plan mode is on, which is told.
    pub plan: bool,
    /// What is told of the folders that tools reach beside the workspace; empty where there are none.
    pub folders: String,
    /// Instructions of folders that were worked in.
    pub instructions: Vec<FolderInstructions>,
    /// Folder whose files are told by paths below it.
    pub workspace: Option<PathBuf>,
    /// Whether it is told where the window of a document begins.
    pub window: WindowNotice,
    pub variant: RequestVariant,
}

/// How the owner is told where the window of a document begins, if it began elsewhere before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WindowNotice {
    /// As what the model sees.
    #[default]
    OfModel,
    /// As what this model sees, among several.
    ByName,
    /// Not at all: another request of this model tells it.
    Silent,
}

/// A prompt that was put together elsewhere, of one choice: what an observer, a wrap or a router asks.
#[derive(Debug, Clone)]
pub struct PromptRequest {
    /// Known secrets in its texts are masked before anything is counted or sent.
    pub prompt: Prompt,
    /// What its parts are made of; each part belongs to one piece.
    pub pieces: Vec<RequestPiece>,
    /// The place of the tree that it looks at, if it looks at one.
    pub at: Option<(ViewName, PositionId)>,
}

/// A request before it is encoded, with what was read for it in one snapshot.
pub(crate) struct AssembledRequest {
    pub(crate) assembled: Assembled,
    pub(crate) place: Option<GenerationPlace>,
    pub(crate) base: Option<PreviousRequest>,
    /// Whether it may hold texts of a workspace that the owner's record trusts.
    pub(crate) trusts_by_record: bool,
}

impl From<PathRequest> for RequestSource {
    fn from(path: PathRequest) -> Self {
        Self::Path(Box::new(path))
    }
}

impl From<PromptRequest> for RequestSource {
    fn from(prompt: PromptRequest) -> Self {
        Self::Prompt(Arc::new(prompt))
    }
}

impl RequestSource {
    /// The path it is assembled from, if it is from one.
    pub fn path_mut(&mut self) -> Option<&mut PathRequest> {
        match self {
            Self::Path(path) => Some(path),
            Self::Prompt(_) => None,
        }
    }
}

impl GenerationRequest {
    pub(crate) fn assemble<'a>(
        &'a self,
        runtime: &'a Runtime,
        who: &'a Principal,
        budget: TokenBudget,
        estimator: &'a Estimator,
    ) -> BoxFuture<'a, Result<AssembledRequest, AgentError>> {
        Box::pin(async move {
            match &self.source {
                RequestSource::Path(path) => {
                    let (mut path, now, fit) = (path.clone(), runtime.now(), estimator.clone());
                    // It may have been withdrawn since the turn began.
                    if path.bootstrap.workspace == WorkspaceTrust::ByRecord
                        && runtime.distrusts_workspace(who, self.tree).await?
                    {
                        let read = Bootstrap::clone(&path.bootstrap);
                        path.bootstrap = Arc::new(Bootstrap { workspace: WorkspaceTrust::Withdrawn, ..read });
                    }
                    let trusts_by_record = path.bootstrap.workspace == WorkspaceTrust::ByRecord;
                    let target = TargetModel::of(self.model.info());
                    let way = ContinuationForm::of(self.model.info());
                    let stored = StoredMedia::of(Arc::clone(&runtime.home));
                    let given_back =
                        given_back::of_tree(runtime, who, self.tree, path.workspace.as_deref()).await?;
                    let recent = runtime.recent_request(who, self.tree).await?;
                    let read = move |rows: &dyn TreeReader| {
                        let base = recent.as_deref();
                        path.read(rows, base, (target, way, given_back), budget, now, (&fit, &stored))
                    };
                    let read = runtime.read(who, self.tree, read).await?;
                    let (assembled, place, base) = (read.assembled?, Some(read.place), read.base);
                    Ok(AssembledRequest { assembled, place, base, trusts_by_record })
                }
                RequestSource::Prompt(asked) => {
                    let mut prompt = asked.prompt.clone();
                    for (_, text) in prompt.texts_mut() {
                        *text = runtime.masker.mask(text).text.into_owned();
                    }
                    let assembled = of_prompt(prompt, asked.pieces.clone(), budget, estimator)?;
                    let place = match asked.at.clone() {
                        Some((view, parent)) => {
                            let shown = move |rows: &dyn TreeReader| {
                                let parent_node = resolve::shown(rows, &view, parent)?;
                                Ok(GenerationPlace { view, parent, parent_node })
                            };
                            Some(runtime.read(who, self.tree, shown).await?)
                        }
                        None => None,
                    };
                    Ok(AssembledRequest { assembled, place, base: None, trusts_by_record: false })
                }
            }
        })
    }

    /// How it is asked: for no more than was kept for the answer, so that request and answer fit the window together,
    /// and to think where it can be told to. A beginning of the answer that is given leaves no place to think in, and raw
    /// text none to say it.
    pub(crate) fn sampling(&self, prompt: &Prompt, budget: TokenBudget) -> Params {
        let reserved = u32::try_from(budget.reserved_output).unwrap_or(u32::MAX);
        let can_be_told = self.model.info().thinks != ThinkingControl::Untold;
        let thinking = self.params.thinking.filter(|_| can_be_told).and_then(|thinking| match prompt {
            Prompt::Raw(_) => None,
            Prompt::Chat(chat) if chat.prefill.is_some() => Some(Thinking::Off),
            Prompt::Chat(_) => Some(thinking),
        });
        // What runs here keeps its cache by itself.
        let cache_key = (self.model.info().place == ModelPlace::Remote).then(|| cache_key(self.tree));
        let (max_tokens, n) = (Some(reserved), if self.makes_nodes() { self.params.n } else { 1 });
        Params { max_tokens, thinking, cache_key, n, ..self.params.clone() }
    }

    /// How many answers are asked for, at least 1.
    pub(crate) fn choices(&self) -> u32 {
        if self.makes_nodes() { self.params.n.max(1) } else { 1 }
    }

    const fn makes_nodes(&self) -> bool {
        matches!(self.source, RequestSource::Path(_))
    }

    /// Whether a view goes to the first node that is made.
    pub(crate) fn follows(&self) -> bool {
        matches!(&self.source, RequestSource::Path(path) if path.follow)
    }
}

/// What is read of a path in one snapshot.
struct PathRead {
    assembled: Result<Assembled, AgentError>,
    place: GenerationPlace,
    base: Option<PreviousRequest>,
}

impl PathRequest {
    /// Instructions of folders; none of a workspace whose texts may not be sent.
    fn instructions(&self) -> Vec<FolderInstructions> {
        match self.bootstrap.workspace {
            WorkspaceTrust::Withdrawn => Vec::new(),
            WorkspaceTrust::ByRecord | WorkspaceTrust::Granted => self.instructions.clone(),
        }
    }

    fn read(
        &self,
        rows: &dyn TreeReader,
        recent: Option<&RecentRequest>,
        (target, way, given_back): (TargetModel, ContinuationForm, Vec<GivenBackFiles>),
        budget: TokenBudget,
        now: Millis,
        (estimator, pictures): (&Estimator, &StoredMedia),
    ) -> Result<PathRead, RowError> {
        let parent = match self.from {
            Some(from) => from,
            None => render::tip(rows, &self.view)?,
        };
        let (view, from) = (self.view.clone(), self.from);
        let parent_node = resolve::shown(rows, &view, parent)?;
        let place = GenerationPlace { view: view.clone(), parent, parent_node };
        let base = PreviousRequest::read(rows, parent, recent)?;
        let (context, instruction) = (self.context.clone(), self.instruction.clone());
        // What is pruned leaves the context, and with it what stands below.
        if let Some(refusal) = request_permit::hidden(rows, parent, &[&context[..], &instruction].concat())? {
            return Ok(PathRead { assembled: Err(refusal.into()), place, base });
        }
        let repeated = self.variant.again(rows, &view, parent);
        let repeated = repeated.and_then(|again| Ok((again, self.variant.previous(rows, &target)?)));
        let (again, previous) = match repeated {
            Ok(repeated) => repeated,
            Err(error) => return Ok(PathRead { assembled: Err(error.into()), place, base }),
        };
        let assembled = match rows.tree()?.mode {
            Mode::Buffer => {
                // What is repeated has what it had.
                let system = match &previous {
                    Some(previous) => previous.prefix.as_ref().and_then(Prefix::system),
                    None => self.bootstrap.system.clone(),
                };
                let (drafts, before) = (self.drafts, base.as_ref().and_then(PreviousRequest::begins));
                let asked = DocumentRequest {
                    view,
                    from,
                    way,
                    budget,
                    drafts,
                    system,
                    context,
                    instruction,
                    again,
                    before,
                };
                document(rows, &asked, estimator)
            }
            Mode::Dialogue => {
                let going_on = || base.as_ref().map(|earlier| earlier.previous(&target, now));
                let previous = previous.or_else(going_on).unwrap_or_default();
                let request = DialogueRequest {
                    from,
                    bootstrap: Arc::clone(&self.bootstrap),
                    previous,
                    strategy: again.as_ref().map_or(self.variant.strategy, ReplayConstraints::strategy),
                    context,
                    instruction,
                    said: self.variant.said.clone(),
                    plan: self.plan,
                    folders: self.folders.clone(),
                    instructions: self.instructions(),
                    given_back,
                    again,
                    ..DialogueRequest::new(view, target, budget)
                };
                let around = Dependencies { estimator, coverage: &NothingRemembered, pictures };
                assemble(rows, &request, &around)
            }
        };
        Ok(PathRead { assembled: assembled.map_err(AgentError::from), place, base })
    }
}

/// Names a tree to a provider that routes by it. It is the same for as long as the tree is there, and says neither
/// which tree it is nor when it began.
fn cache_key(tree: TreeId) -> String {
    let mut key = Digest::of(format!("cache key of {tree}").as_bytes()).to_string();
    key.truncate(CACHE_KEY);
    key
}
