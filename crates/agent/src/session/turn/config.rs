//! How a turn asks a model, and what tells one way of asking from another.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use context::{Bootstrap, Strategy};
use loom::{Digest, PositionId, Purpose, TreeId, ViewName};
use model::{Model, ModelPlace, Params};
use serde::{Deserialize, Serialize};
use tools::ToolRegistry;

use crate::request::{GenerationRequest, PathRequest};
use crate::variant::RequestVariant;

/// How a turn asks a model.
#[derive(Clone)]
pub struct TurnConfig {
    /// Turn, or the turn of a session that another one began.
    pub purpose: Purpose,
    pub model: Arc<dyn Model>,
    /// The agent that is the author of the answers.
    pub agent: String,
    /// Digest of its profile.
    pub profile: Option<Digest>,
    pub params: Params,
    /// What stands above the cache boundary.
    pub bootstrap: Arc<Bootstrap>,
    /// How a conversation that is too long is cut.
    pub strategy: Strategy,
    /// Whether calls that change something are refused.
    pub plan: bool,
    /// The tools it may call; what the model is told of them stands in the bootstrap.
    pub tools: Option<Arc<ToolRegistry>>,
}

/// What makes two inputs parts of one turn: the tree they are said in, the model that answers, where it is, and how
/// it is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnIdentity {
    pub tree: TreeId,
    pub model: String,
    pub place: ModelPlace,
    /// Digest of agent, its profile, sampling parameters, schema, system prompt, tools and the folders they reach, plan mode
    /// and strategy.
    pub settings: Digest,
}

impl TurnConfig {
    /// The request that continues a view of a tree.
    pub fn request(&self, tree: TreeId, view: &ViewName) -> GenerationRequest {
        self.request_from(tree, view, None)
    }

    pub(super) fn request_from(
        &self,
        tree: TreeId,
        view: &ViewName,
        from: Option<PositionId>,
    ) -> GenerationRequest {
        let path = PathRequest {
            view: view.clone(),
            from,
            follow: true,
            bootstrap: Arc::clone(&self.bootstrap),
            plan: self.plan,
            folders: self.folders(),
            instructions: self.tools.as_ref().map(|tools| tools.folder_instructions()).unwrap_or_default(),
            workspace: self.tools.as_ref().and_then(|tools| tools.workspace().map(Path::to_owned)),
            variant: RequestVariant { strategy: self.strategy, ..RequestVariant::default() },
            ..PathRequest::default()
        };
        GenerationRequest {
            purpose: self.purpose,
            tree,
            source: path.into(),
            model: Arc::clone(&self.model),
            agent: self.agent.clone(),
            profile: self.profile,
            params: self.params.clone(),
            part_of: None,
            guards: Vec::new(),
        }
    }

    /// The folders and servers that its tools reach beside the workspace, in words.
    fn folders(&self) -> String {
        self.tools.as_ref().map(|tools| tools.further_reach()).unwrap_or_default()
    }

    /// What tells turns of this configuration from others.
    pub fn identity(&self, tree: TreeId) -> TurnIdentity {
        let info = self.model.info();
        let Params { temperature, top_p, min_p, max_tokens, stop, ends_at, seed, logprobs, thinking, .. } =
            &self.params;
        let schema = self.params.schema.as_ref().map(|schema| &schema.schema);
        let settings = serde_json::json!([
            self.agent,
            self.profile,
            temperature,
            top_p,
            min_p,
            max_tokens,
            stop,
            ends_at,
            seed,
            logprobs,
            thinking,
            schema,
            self.bootstrap.system.as_ref().map(|system| &system.text),
            self.bootstrap.tools,
            self.folders(),
            self.plan,
            format!("{:?}", self.strategy)
        ]);
        TurnIdentity {
            tree,
            model: info.full_name(),
            place: info.place,
            settings: Digest::of(settings.to_string().as_bytes()),
        }
    }
}

impl fmt::Debug for TurnConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnConfig").field("model", &self.model.info().full_name()).finish_non_exhaustive()
    }
}
