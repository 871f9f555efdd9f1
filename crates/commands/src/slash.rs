//! Slash commands: what a person types into a conversation that is no text for the model (spec: agent §7).
//!
//! A slash command is a row of the one table of commands ([`Command`]), or acts on the conversation itself. This
//! table adds what typing needs: name, arguments, help and what completes them. A surface hands an input line of a
//! person to [`parse`] and runs what comes of it with [`App::slash`](crate::App::slash), where rights are checked. No other text is ever read as a command: not a file, not standard input, not what another
//! process or a model says (spec: security §5).

mod complete;
mod export;
mod input;
mod note;
mod run;
mod status;
mod table;

pub use complete::{Candidates, CompletionNames, complete};
pub(crate) use input::nearest;
pub use input::{Input, as_text, parse};
pub use run::SlashOutcome;
pub use table::TABLE;

use std::path::PathBuf;

use serde::Serialize;
use store::{OutcomeId, OutcomeKind};

use crate::args::approvals::Holds;
use crate::args::chat::Setting;
use crate::args::think::Think;
use crate::args::tree::FormatArg;
use crate::results::slash::ContextForm;
use crate::rights::Right;
use crate::table::Command;

/// A slash command with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub enum SlashCommand {
    /// A command of the table, which the row of this name runs.
    Run(&'static str, Box<Command>),
    /// What commands there are; one of them or a section, if named.
    Help {
        /// Name of the command or section, without the slash.
        topic: Option<String>,
    },
    Status,
    /// What the model was sent last and would be sent next.
    Context {
        form: ContextForm,
    },
    /// Begins anew, in this session or in another one.
    New {
        /// The other one, which must not be there yet.
        name: Option<String>,
    },
    /// Gives the session another name.
    Rename {
        to: String,
    },
    /// Goes on in another session, or in a fork.
    Switch {
        /// Name of the session, `SESSION:FORK` for a fork.
        name: String,
    },
    /// Goes on beside what is here, which stays as it is.
    Fork {
        name: Option<String>,
    },
    /// Says something said before in other words.
    Edit {
        /// The node of what was said; the last thing said, if none.
        node: Option<String>,
        text: String,
    },
    /// Asks again what was said last.
    Retry,
    /// Asks again for the answer the conversation is at.
    Regenerate {
        /// How many answers are asked for.
        number: u32,
    },
    /// The siblings of the last passage that has any.
    Siblings,
    /// Goes to one of them.
    Reach {
        next: bool,
        /// The one of this number, if one is named.
        number: Option<usize>,
    },
    /// The last exchanges.
    History {
        number: usize,
    },
    /// Gives the terminal the last answer for its clipboard.
    Copy {
        /// Only its first code block.
        code: bool,
    },
    /// Notes something in the session's ledger; shows it, if there is nothing to note.
    Note {
        note: Option<NoteArgument>,
    },
    /// Hands the session over.
    Wrap,
    /// Takes that back.
    UndoWrap,
    /// What tools changed in files.
    Diff {
        of: DiffArgument,
    },
    /// Has a file, or a folder, be what it was before tools changed it.
    Restore {
        file: PathBuf,
        /// The node before whose turn it was so; before the last change, if none.
        node: Option<String>,
        yes: bool,
    },
    /// Takes the last thing back.
    Undo,
    /// Gives back what tools changed in files in the last turn that changed any.
    UndoFiles,
    Redo,
    /// Takes the last giving-back of files again.
    RedoFiles,
    /// Answers for texts from outside, or no more; lists what taints.
    Trust {
        nodes: Vec<String>,
        off: bool,
        yes: bool,
    },
    /// Has what was said early leave the window.
    Compact {
        /// The node the window starts at; half of what is sent leaves, if none.
        to: Option<String>,
    },
    /// Reads the files above the conversation anew at the next request.
    Reload,
    /// Sends a file along with the next thing that is said; takes back those that wait, if none is named.
    File {
        path: Option<PathBuf>,
    },
    /// Asks another model from now on; shows the present one, if none is named.
    Model {
        name: Option<String>,
    },
    /// Has the model think more or less from now on; shows how much it does, if nothing is said.
    Think {
        think: Option<Think>,
    },
    /// Turns plan mode on or off; shows it, if nothing is said.
    Plan {
        plan: Option<bool>,
    },
    /// Lists the tools that the agent may call.
    Tools,
    /// Says that a skill is to be followed.
    RunSkill {
        name: String,
        /// What it is to be followed for; may be empty.
        text: String,
    },
    Subagents,
    /// Lists the rules, and what is allowed in the session; `reset` takes that back first.
    Policy {
        reset: bool,
    },
    /// Gives the session a system prompt; shows it, if there is no text.
    System {
        text: Option<String>,
    },
    /// Changes the sampling of the session; shows it, if there is nothing to change.
    Set {
        settings: Vec<Setting>,
    },
    /// How full the window is, and what fills it.
    Zone,
    Verify,
    /// Writes the conversation to a new file.
    Export {
        /// How; as the file's ending says, else Markdown, if none.
        format: Option<FormatArg>,
        /// Where; named after the session, if none.
        file: Option<PathBuf>,
    },
    /// Says yes to a question of running work.
    Approve {
        /// The question; the one that stands in this session, if none.
        id: Option<String>,
        /// How long the answer holds.
        holds: Option<Holds>,
    },
    /// Says no to a question of running work.
    Deny {
        /// The question, and why not; without a question the one that stands in this session.
        id_and_reason: String,
    },
    /// Stops the answer that is coming.
    Stop,
    /// Says something once what is under way is done.
    Queue {
        text: String,
    },
    Quit,
}

impl SlashCommand {
    /// Whether it only shows something, and leaves the conversation as and where it is.
    pub fn only_shows(&self) -> bool {
        match self {
            Self::Model { name: None }
            | Self::Think { think: None }
            | Self::Plan { plan: None }
            | Self::System { text: None }
            | Self::Policy { reset: false }
            | Self::Note { note: None } => true,
            Self::Set { settings } => settings.is_empty(),
            Self::Trust { nodes, .. } => nodes.is_empty(),
            Self::Switch { .. } | Self::RunSkill { .. } | Self::Quit => false,
            other => other.row().right == Right::Read,
        }
    }

    /// Whether it does not wait for the end of a turn that runs.
    pub fn is_at_once(&self) -> bool {
        let steers = matches!(
            self,
            Self::Stop | Self::Approve { .. } | Self::Deny { .. } | Self::Plan { plan: Some(_) }
        );
        steers || self.only_shows()
    }
}

/// What `/note` appends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteArgument {
    /// None where it is not said.
    pub kind: Option<OutcomeKind>,
    /// Entry that it corrects.
    pub corrects: Option<OutcomeId>,
    pub text: String,
}

/// Which changes `/diff` shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffArgument {
    Conversation,
    /// Changes of all conversations of this session.
    Session,
    /// Changes of the turn of a node.
    Node(String),
}

/// What the table says of a slash command.
#[derive(Debug, Clone, Copy)]
pub struct SlashSpec {
    /// Name of the command: letters only.
    pub name: &'static str,
    /// Where help shows it.
    pub section: Section,
    /// Arguments of the command, as help shows them.
    pub arguments: &'static str,
    pub right: Right,
    pub help: &'static str,
    /// What its argument may be.
    pub candidates: Candidates,
    read: fn(&str) -> Result<SlashCommand, &'static str>,
}

/// A part of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    Saying,
    Moving,
    Looking,
    Settings,
    Session,
    /// Commands that the owner wrote.
    Own,
}

impl Section {
    pub const ALL: [Self; 6] =
        [Self::Saying, Self::Moving, Self::Looking, Self::Settings, Self::Session, Self::Own];

    /// The word by which `/help` shows it alone.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Saying => "saying",
            Self::Moving => "moving",
            Self::Looking => "looking",
            Self::Settings => "settings",
            Self::Session => "session",
            Self::Own => "own",
        }
    }

    pub const fn title(self) -> &'static str {
        match self {
            Self::Saying => "Saying things",
            Self::Moving => "Going back and forth",
            Self::Looking => "Looking",
            Self::Settings => "Settings",
            Self::Session => "The session",
            Self::Own => "Your own",
        }
    }
}
#[cfg(test)]
mod tests {
    use super::{SlashCommand, TABLE};

    #[test]
    fn a_row_that_runs_a_command_needs_the_right_of_that_command() {
        let runs = |line: &str| match super::parse(line) {
            super::Input::Command(SlashCommand::Run(name, command)) => Some((name, command.spec().right)),
            _ => None,
        };
        let mut found = 0;
        for row in TABLE {
            for line in [format!("/{}", row.name), format!("/{} x", row.name)] {
                let Some((name, right)) = runs(&line) else { continue };
                let of_row = TABLE.iter().find(|row| row.name == name).unwrap().right;
                assert_eq!(of_row, right, "{line}");
                found += 1;
            }
        }
        assert!(found >= 4);
    }

    #[test]
    fn the_documentation_shows_the_table() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let docs = std::fs::read_to_string(docs).unwrap();
        let rows = TABLE.map(|row| {
            let usage = format!("/{} {}", row.name, row.arguments).trim_end().replace('|', "\\|");
            format!("| `{usage}` | {} | {} |", format!("{:?}", row.right).to_lowercase(), row.help)
        });
        assert!(docs.contains(&rows.join("\n")), "docs/cli.md should show:\n{}", rows.join("\n"));
    }
}
