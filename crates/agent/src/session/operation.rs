//! Operations: what is asked of a session.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use loom::plan::NewText;
use loom::{Author, PositionId, Role, TreeId, Trust, ViewName};
use serde::{Deserialize, Serialize};
use tools::TurnSkills;

use super::turn::TurnConfig;
use crate::event::SayId;
use crate::questions::{Decision, QuestionId};

/// One operation (spec: agent §1).
#[derive(Debug)]
pub enum SessionOperation {
    /// Says something: a turn of its own, or a part of the one under way if that is of the same tree, model and
    /// settings.
    Say(Box<Say>),
    /// Says something in the turn under way, whatever its settings: it is answered by the next model call.
    Steer(FollowUp),
    /// Says something once the turn under way is done.
    Queue(FollowUp),
    /// Stops the turn under way; what came is kept.
    Stop,
    Answer {
        question: QuestionId,
        decision: Decision,
    },
    /// Ends the task once what is under way is done.
    Close,
}

/// Something said, and how it is to be answered.
#[derive(Debug)]
pub struct Say {
    pub key: SayId,
    pub input: TurnInput,
    pub tree: TreeChoice,
    /// View of the tree in which it is said.
    pub view: ViewName,
    pub config: Arc<TurnConfig>,
    /// The position under which it is said: where the tip is elsewhere by then, as a branch. None for the tip.
    pub reply_to: Option<PositionId>,
    /// Author of what is written for it.
    pub author: Author,
    /// Trust of what is written for it.
    pub trust: Trust,
    /// How long somebody may take to answer a question; none where nobody answers.
    pub answer_within: Option<Duration>,
    /// Whether the turn ends with its answer: what other processes said meanwhile, and no call of a model took along, is
    /// given back, and they take the session themselves, and commands in the background are ended.
    pub hands_back: bool,
    /// Skills whose texts it says. It is answered in a turn of its own then, which follows them.
    pub skills: TurnSkills,
}

/// A text that is said as the turn before was asked.
#[derive(Debug, Clone)]
pub struct FollowUp {
    pub key: SayId,
    pub text: String,
    pub view: ViewName,
    /// Author of what is written for it.
    pub author: Author,
    /// Trust of what is written for it.
    pub trust: Trust,
}

/// The tree something is said in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeChoice {
    /// The newest of the session.
    Current,
    /// This one of the session, whichever the session goes on in by then.
    Named(TreeId),
    /// A new one, which the session goes on in.
    New { title: String },
}

/// What a turn begins with.
#[derive(Clone)]
pub enum TurnInput {
    /// Texts, each a node of its own: the last is what is said, those before it are sent along. Their author is who
    /// says them, and their trust that of who says them at most.
    New {
        texts: Vec<NewText>,
        /// The pictures and sounds they show.
        media: Vec<Bytes>,
        /// Files among the texts that wait in the session's settings. What another message took along meanwhile, or
        /// was taken back, is left out.
        waiting: Vec<WaitingFile>,
    },
    /// Something said before, in other words: a sibling of it that is answered anew.
    Instead { of: PositionId, text: String },
    /// What was said at a position, asked again: a first answer, or a sibling of those it has.
    Again { of: PositionId },
}

/// A text sent along that is a file of the session's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingFile {
    /// Which of the texts it is, from 0.
    pub text: usize,
    /// As the settings have it.
    pub path: PathBuf,
}

impl TurnInput {
    /// A text that is said.
    pub fn text(text: impl Into<String>) -> Self {
        let texts = vec![NewText::owner(text, Some(Role::User))];
        Self::New { texts, media: Vec::new(), waiting: Vec::new() }
    }

    /// What is said, without what is sent along.
    pub(super) fn said(&self) -> String {
        match self {
            Self::New { texts, .. } => texts
                .last()
                .map(|text| loom::content::plain_text(&text.content).into_owned())
                .unwrap_or_default(),
            Self::Instead { text, .. } => text.clone(),
            Self::Again { .. } => String::new(),
        }
    }
}

impl fmt::Debug for TurnInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TurnInput").field(&self.said()).finish()
    }
}
