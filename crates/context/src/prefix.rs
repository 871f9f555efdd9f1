//! What stands above the cache boundary, fitted into its share of the window and then frozen (spec: context §2, §3).
//!
//! The order is fixed: tools, identity, files, skills, handover, memory. Everything together takes at most a fifth
//! of the window, so that a new session starts green; what gives way, and in which order, is fixed too, and each
//! step stands in the manifest and is said to the owner. Once fitted it is sent unchanged, byte for byte, until it
//! is activated anew ([`crate::activation`]): so it is a value that is kept with the requests it was sent in.

use loom::{PositionId, Trust};
use model::{PartId, TextPart, ToolSchema};
use serde::{Deserialize, Serialize};

use crate::bootstrap::{Bootstrap, IDENTITY, SystemPrompt};
use crate::document::Build;
use crate::estimate::Estimator;
use crate::piece::RequestPiece;
use crate::prefix_builder::PrefixBuilder;
use crate::segment::{Kind, SegmentOutcome, Source};
use crate::skills::{RefusedSkill, names_file};
use crate::target::TargetModel;
use crate::tools::ToolSpec;

/// The part of the window, one in so many, that may stand above the cache boundary.
pub const FIXED_SHARE: u64 = 5;

/// What stands above the cache boundary, as it is sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Prefix {
    /// Where the view's window started when it was activated; none for the top.
    pub start: Option<PositionId>,
    /// The tools, sorted.
    pub tools: Vec<ToolSpec>,
    /// The texts, in order.
    pub texts: Vec<FrozenText>,
    /// What is not in it, with why.
    pub left_out: Vec<NotSent>,
    /// What gave way, a line each.
    pub notices: Vec<String>,
}

/// A text above the boundary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrozenText {
    pub kind: Kind,
    pub source: Source,
    pub reason: String,
    /// How far it is believed.
    pub trust: Trust,
    pub decision: SegmentOutcome,
    /// The text, as it is sent.
    pub text: String,
}

impl FrozenText {
    fn is_of_workspace(&self) -> bool {
        self.kind == Kind::File || self.trust == Trust::Workspace
    }
}

/// Something that is not above the boundary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NotSent {
    pub kind: Kind,
    pub source: Source,
    /// Why it is not sent.
    pub why: String,
}

impl Prefix {
    /// What of `boot` stands above the boundary in a window of so many tokens.
    pub fn fit(boot: &Bootstrap, window: u64, target: &TargetModel, estimator: &Estimator) -> Self {
        PrefixBuilder::new(boot, window, target, estimator).fitted()
    }

    /// What stands above a document: a system prompt alone.
    pub(crate) fn of_document(system: &SystemPrompt) -> Self {
        let text = FrozenText {
            kind: Kind::Identity,
            source: Source::Product { name: system.source.clone() },
            reason: system.reason.clone(),
            trust: Trust::Owner,
            decision: SegmentOutcome::Sent,
            text: system.text.clone(),
        };
        Self { texts: vec![text], ..Self::default() }
    }

    /// The system prompt of the owner's in it.
    pub fn system(&self) -> Option<SystemPrompt> {
        self.texts.iter().find_map(|frozen| match &frozen.source {
            Source::Product { name } if frozen.kind == Kind::Identity && name != IDENTITY => {
                let (source, reason, text) = (name.clone(), frozen.reason.clone(), frozen.text.clone());
                Some(SystemPrompt { source, reason, text })
            }
            _ => None,
        })
    }

    /// Tokens of it, estimated.
    pub fn tokens(&self, estimator: &Estimator) -> u64 {
        let tools: u64 = self.tools.iter().map(|tool| tool.tokens(estimator)).sum();
        let texts: u64 = self.texts.iter().map(|text| estimator.of(&text.text)).sum();
        tools + texts + estimator.of_messages(self.texts.len())
    }

    /// The lowest trust of what is in it.
    pub(crate) fn trust(&self) -> Trust {
        self.texts.iter().map(|text| text.trust).min().unwrap_or(Trust::Owner)
    }

    /// Whether a text of a workspace is in it.
    pub(crate) fn has_workspace(&self) -> bool {
        self.texts.iter().any(FrozenText::is_of_workspace)
    }

    /// The prefix without texts of a workspace.
    pub(crate) fn without_workspace(&self) -> Self {
        let texts = self.texts.iter().filter(|text| !text.is_of_workspace()).cloned().collect();
        Self { texts, ..self.clone() }
    }

    /// The list of skills in it.
    pub fn skills_list(&self) -> Option<&str> {
        self.texts.iter().find(|text| text.kind == Kind::SkillsIndex).map(|list| &*list.text)
    }

    /// Files of skills, of those given, that its list names.
    pub(crate) fn skills_among<'a>(&self, skills: &'a [RefusedSkill]) -> Vec<&'a RefusedSkill> {
        let list = self.skills_list();
        let is_named = |skill: &&RefusedSkill| list.is_some_and(|list| names_file(list, &skill.path));
        skills.iter().filter(is_named).collect()
    }

    /// Schemas and texts of the prefix; their pieces are added to `build`.
    pub(crate) fn parts(&self, build: &mut Build<'_>) -> (Vec<ToolSchema>, Vec<TextPart>) {
        let schemas = self.schemas(build);
        let mut texts = Vec::new();
        for text in &self.texts {
            texts.push(build.part(
                text.kind,
                text.source.clone(),
                &text.reason,
                Some(text.trust),
                &text.text,
            ));
            if let Some(piece) = build.pieces.last_mut() {
                piece.decision = text.decision.clone();
            }
        }
        for not in &self.left_out {
            build.pieces.push(RequestPiece::left_out(not.kind, not.source.clone(), &not.why));
        }
        for piece in &mut build.pieces {
            piece.stable = true;
        }
        (schemas, texts)
    }

    /// The schemas, which are one piece.
    fn schemas(&self, build: &mut Build<'_>) -> Vec<ToolSchema> {
        let first = build.next;
        let schema = |(id, tool): (u32, &ToolSpec)| ToolSchema {
            id: PartId(id),
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        };
        let schemas: Vec<ToolSchema> = (first..).zip(&self.tools).map(schema).collect();
        build.next += schemas.len() as u32;
        if !schemas.is_empty() {
            build.pieces.push(RequestPiece {
                parts: (first..build.next).map(PartId).collect(),
                kind: Kind::Schemas,
                source: Source::Tools { names: self.tools.iter().map(|tool| tool.name.clone()).collect() },
                reason: "the tools of this session".to_owned(),
                chars: self.tools.iter().map(ToolSpec::chars).sum(),
                tokens: self.tools.iter().map(|tool| tool.tokens(build.estimator)).sum(),
                stable: true,
                trust: Some(Trust::Owner),
                decision: SegmentOutcome::Sent,
                tools: Vec::new(),
            });
        }
        schemas
    }
}
