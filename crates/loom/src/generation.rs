//! Generations: one request to a model, as far as the tree knows it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Number;
use text::cut::Boundary;
use ulid::Ulid;

use crate::digest::{Digest, PathDigest};
use crate::id::{NodeId, NotAnId, PositionId, TreeId, ViewName, id_type};

id_type!(
    /// One request to a model.
    GenerationId
);

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A turn of a conversation, or a continuation of a document.
    #[default]
    Turn,
    /// A turn of a session that another one began.
    Subagent,
    Observe,
    Reflect,
    Wrap,
    Route,
}

impl Purpose {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Subagent => "subagent",
            Self::Observe => "observe",
            Self::Reflect => "reflect",
            Self::Wrap => "wrap",
            Self::Route => "route",
        }
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A stretch of the path that stood in a request's window, from the upper position to the lower one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// First position, the upper one.
    pub from: PositionId,
    pub to: PositionId,
    /// Digest of what was shown on it.
    pub digest: PathDigest,
}

/// The place in a tree that a request was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GenerationPlace {
    /// The view it was read in, whose tip follows its nodes.
    pub view: ViewName,
    /// The position its nodes will hang under.
    pub parent: PositionId,
    /// The version shown there when the request was made: the nodes' origin.
    pub parent_node: NodeId,
}

/// How a model was asked: what is none was left to the server. It is known of a request, and no hash binds it but
/// that of the manifest, whose body says the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GenerationSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_p: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// `off`, `low` or `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking: Option<String>,
    /// Texts that end its answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Where its answers were cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Boundary>,
    /// Name of the preset they come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
}

impl GenerationSettings {
    /// How a model was asked, in few words each.
    pub fn words(&self) -> Vec<String> {
        let Self { temperature, top_p, min_p, max_tokens, seed, thinking, stop, ends_at, preset } = self;
        let mut words = Vec::new();
        words.extend(preset.as_ref().map(|name| format!("preset {}", text::terminal::one_line(name))));
        for (name, value) in [("temperature", temperature), ("top-p", top_p), ("min-p", min_p)] {
            words.extend(value.as_ref().map(|value| format!("{name} {value}")));
        }
        words.extend(seed.map(|seed| format!("seed {seed}")));
        words.extend(stop.iter().map(|stop| format!("to {:?}", text::terminal::one_line(stop))));
        words.extend(ends_at.map(|end| match end {
            Boundary::Sentence => "to the end of a sentence".to_owned(),
            Boundary::Paragraph => "to the end of a paragraph".to_owned(),
        }));
        words.extend(max_tokens.map(|most| format!("at most {most} tokens")));
        words.extend(thinking.as_ref().map(|how| format!("thinking {}", text::terminal::one_line(how))));
        words
    }
}

/// The row that is durable, with its manifest, before a request is sent (spec: loom §6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PlainRow", into = "PlainRow")]
pub struct GenerationRow {
    pub id: GenerationId,
    /// The tree in whose name it is sent.
    pub tree: TreeId,
    /// None for a request of a prompt that looked at no place.
    pub place: Option<GenerationPlace>,
    pub purpose: Purpose,
    /// Digest of the manifest, which is stored under it.
    pub manifest: Digest,
    /// Digest of the agent's profile.
    pub profile: Option<Digest>,
    /// The ids its nodes will have, one a choice; empty where it makes none.
    pub reserved: Vec<NodeId>,
    /// The runs of the path in its window.
    pub runs: Vec<Run>,
    /// How the model was asked; none in rows of earlier versions.
    pub settings: Option<GenerationSettings>,
}

/// A row as JSON: fields of the place stand among the others, in the order they always had.
#[derive(Clone, Serialize, Deserialize)]
struct PlainRow {
    id: GenerationId,
    tree: TreeId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    view: Option<ViewName>,
    purpose: Purpose,
    manifest: Digest,
    profile: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<PositionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_node: Option<NodeId>,
    reserved: Vec<NodeId>,
    runs: Vec<Run>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settings: Option<GenerationSettings>,
}

impl From<PlainRow> for GenerationRow {
    fn from(row: PlainRow) -> Self {
        let PlainRow {
            id,
            tree,
            view,
            purpose,
            manifest,
            profile,
            parent,
            parent_node,
            reserved,
            runs,
            settings,
        } = row;
        let place = match (view, parent, parent_node) {
            (Some(view), Some(parent), Some(parent_node)) => {
                Some(GenerationPlace { view, parent, parent_node })
            }
            _ => None,
        };
        Self { id, tree, place, purpose, manifest, profile, reserved, runs, settings }
    }
}

impl From<GenerationRow> for PlainRow {
    fn from(row: GenerationRow) -> Self {
        let GenerationRow { id, tree, place, purpose, manifest, profile, reserved, runs, settings } = row;
        let (view, parent, parent_node) = match place {
            Some(place) => (Some(place.view), Some(place.parent), Some(place.parent_node)),
            None => (None, None, None),
        };
        Self { id, tree, view, purpose, manifest, profile, parent, parent_node, reserved, runs, settings }
    }
}

impl GenerationRow {
    /// Whether its answer becomes nodes.
    pub const fn makes_nodes(&self) -> bool {
        self.place.is_some() && !self.reserved.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_without_a_place_is_read_back_and_one_with_it_is_as_it_always_was() {
        let (position, node) = (PositionId::from_bytes([2; 16]), NodeId::from_bytes([2; 16]));
        let place = GenerationPlace { view: ViewName::default(), parent: position, parent_node: node };
        let row = GenerationRow {
            id: GenerationId::from_bytes([1; 16]),
            tree: TreeId::from_bytes([3; 16]),
            place: Some(place),
            purpose: Purpose::Subagent,
            manifest: Digest::ZERO,
            profile: None,
            reserved: vec![node],
            runs: Vec::new(),
            settings: None,
        };
        let json = serde_json::to_value(&row).unwrap();
        assert_eq!((&json["view"], &json["purpose"]), (&"main".into(), &"subagent".into()));
        assert_eq!(json["parent"], serde_json::to_value(position).unwrap());
        assert_eq!(serde_json::from_value::<GenerationRow>(json).unwrap(), row);
        assert!(row.makes_nodes());
        let row = GenerationRow { place: None, reserved: Vec::new(), ..row };
        let json = serde_json::to_string(&row).unwrap();
        assert_eq!(serde_json::from_str::<GenerationRow>(&json).unwrap(), row);
        assert!(!row.makes_nodes() && !json.contains("parent") && !json.contains("settings"));
    }
}
