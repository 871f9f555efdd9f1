//! The table of slash commands, a row each, and how their arguments are read.

use std::path::PathBuf;

use store::{OutcomeId, OutcomeKind};

use super::{Candidates, DiffArgument, NoteArgument, Section, SlashCommand, SlashSpec, export};
use crate::args::approvals::Holds;
use crate::args::chat::{SessionsCommand, Setting};
use crate::args::cost::Cost;
use crate::args::maintenance::{Doctor, Search};
use crate::args::mcp::McpCommand;
use crate::args::skills::SkillsCommand;
use crate::args::think::Think;
use crate::generate::MAX_SIBLINGS;
use crate::results::slash::ContextForm;
use crate::rights::Right;
use crate::table::Command;

/// Every slash command, in the order in which they are completed.
pub const TABLE: [SlashSpec; 48] = [
    HELP, STATUS, CONTEXT, SESSIONS, NEW, WRAP, SWITCH, RENAME, FORK, EDIT, RETRY, REGENERATE, SIBLINGS,
    NEXT, PREV, UNDO, REDO, HISTORY, COPY, COMPACT, RELOAD, FILE, MODEL, THINK, PLAN, SYSTEM, SET, ZONE,
    COST, SEARCH, VERIFY, DIFF, RESTORE, NOTE, EXPORT, DOCTOR, TOOLS, SKILLS, SUBAGENTS, MCP, POLICY, TRUST,
    APPROVE, DENY, QUEUE, STOP, QUIT, EXIT,
];

const HELP: SlashSpec = SlashSpec {
    name: "help",
    section: Section::Looking,
    arguments: "[SECTION|COMMAND]",
    right: Right::Read,
    help: "show the commands, those of a section with what they do, or one of them",
    candidates: Candidates::Commands,
    read: |rest| {
        Ok(SlashCommand::Help { topic: word(rest)?.map(|name| name.trim_start_matches('/').to_owned()) })
    },
};
const STATUS: SlashSpec = SlashSpec {
    name: "status",
    section: Section::Looking,
    arguments: "",
    right: Right::Read,
    help: "show the session, its model, how full the window is, and text from outside in it",
    candidates: Candidates::None,
    read: |rest| nothing(rest, SlashCommand::Status),
};
const CONTEXT: SlashSpec = SlashSpec {
    name: "context",
    section: Section::Looking,
    arguments: "[detail|map|json]",
    right: Right::Read,
    help: "show what was sent to the model last, and what would be sent next",
    candidates: Candidates::Words(&["detail", "map", "json"]),
    read: |rest| {
        let form = match rest {
            "" => ContextForm::Summary,
            "detail" => ContextForm::Detail,
            "map" => ContextForm::Map,
            "json" => ContextForm::Json,
            _ => return Err("it takes detail, map, json or nothing"),
        };
        Ok(SlashCommand::Context { form })
    },
};
const SESSIONS: SlashSpec = SlashSpec {
    name: "sessions",
    section: Section::Session,
    arguments: "",
    right: Right::Read,
    help: "list the sessions of this workspace, and their forks",
    candidates: Candidates::None,
    read: |rest| nothing(rest, sessions(SESSIONS.name)),
};
const NEW: SlashSpec = SlashSpec {
    name: "new",
    section: Section::Session,
    arguments: "[NAME]",
    right: Right::Write,
    help: "start a new conversation in this session, which hands over first, or in a new session NAME",
    candidates: Candidates::None,
    read: |rest| Ok(SlashCommand::New { name: word(rest)? }),
};
const WRAP: SlashSpec = SlashSpec {
    name: "wrap",
    section: Section::Session,
    arguments: "[undo]",
    right: Right::Write,
    help: "hand this session over: write its handoff, and start a new conversation from it; undo takes that back",
    candidates: Candidates::Words(&["undo"]),
    read: |rest| match rest {
        "" => Ok(SlashCommand::Wrap),
        "undo" => Ok(SlashCommand::UndoWrap),
        _ => Err("it takes `undo` or nothing"),
    },
};
const SWITCH: SlashSpec = SlashSpec {
    name: "switch",
    section: Section::Session,
    arguments: "[SESSION[:FORK]]",
    right: Right::Read,
    help: "continue in another session or fork; without a name, list them",
    candidates: Candidates::Sessions,
    read: |rest| Ok(word(rest)?.map_or_else(|| sessions(SWITCH.name), |name| SlashCommand::Switch { name })),
};
const RENAME: SlashSpec = SlashSpec {
    name: "rename",
    section: Section::Session,
    arguments: "NAME",
    right: Right::Write,
    help: "give this session another name",
    candidates: Candidates::None,
    read: |rest| Ok(SlashCommand::Rename { to: word(rest)?.ok_or("it takes the new name")? }),
};
const FORK: SlashSpec = SlashSpec {
    name: "fork",
    section: Section::Moving,
    arguments: "[NAME]",
    right: Right::Write,
    help: "fork the session here: a second line of the same conversation",
    candidates: Candidates::None,
    read: |rest| Ok(SlashCommand::Fork { name: word(rest)? }),
};
const EDIT: SlashSpec = SlashSpec {
    name: "edit",
    section: Section::Saying,
    arguments: "[@NODE] TEXT",
    right: Right::Act,
    help: "change your last message, or that of NODE, and get a new answer",
    candidates: Candidates::None,
    read: |rest| {
        let (node, text) = match rest.strip_prefix('@') {
            None => (None, rest),
            Some(named) => match named.split_once(char::is_whitespace) {
                Some((node, text)) if !node.is_empty() => (Some(node.to_owned()), text.trim_start()),
                _ => return Err("a text must follow @NODE"),
            },
        };
        let text = some(text)?;
        Ok(SlashCommand::Edit { node, text })
    },
};
const RETRY: SlashSpec = SlashSpec {
    name: "retry",
    section: Section::Saying,
    arguments: "",
    right: Right::Act,
    help: "ask your last message again; an earlier answer stays beside the new one",
    candidates: Candidates::None,
    read: |rest| nothing(rest, SlashCommand::Retry),
};
const REGENERATE: SlashSpec = SlashSpec {
    name: "regenerate",
    section: Section::Saying,
    arguments: "[-n N]",
    right: Right::Act,
    help: "ask for one more answer beside the one you are at, or for N to choose from",
    candidates: Candidates::None,
    read: |rest| {
        let number = match rest.strip_prefix("-n") {
            None if rest.is_empty() => Ok(1),
            Some(number) => number.trim().parse(),
            None => return Err("it takes -n N or nothing"),
        };
        match number {
            Ok(number @ 1..=MAX_SIBLINGS) => Ok(SlashCommand::Regenerate { number }),
            _ => Err("it takes a number from 1 to 64"),
        }
    },
};
const SIBLINGS: SlashSpec = SlashSpec {
    name: "siblings",
    section: Section::Moving,
    arguments: "",
    right: Right::Read,
    help: "list the answers (or messages) that stand beside the last one, with numbers",
    candidates: Candidates::None,
    read: |rest| nothing(rest, SlashCommand::Siblings),
};
const NEXT: SlashSpec = SlashSpec {
    name: "next",
    section: Section::Moving,
    arguments: "[N]",
    right: Right::Write,
    help: "go to the next of them, or to that with number N; what was said after it comes back",
    candidates: Candidates::None,
    read: |rest| match word(rest)?.map(|number| number.parse()).transpose() {
        Ok(number) if number != Some(0) => Ok(SlashCommand::Reach { next: true, number }),
        _ => Err("it takes a number from 1, as /siblings lists them"),
    },
};
const PREV: SlashSpec = SlashSpec {
    name: "prev",
    section: Section::Moving,
    arguments: "",
    right: Right::Write,
    help: "go to the one before",
    candidates: Candidates::None,
    read: |rest| nothing(rest, SlashCommand::Reach { next: false, number: None }),
};
const HISTORY: SlashSpec = SlashSpec {
    name: "history",
    section: Section::Looking,
    arguments: "[N]",
    right: Right::Read,
    help: "show the last exchanges: 5, or N",
    candidates: Candidates::None,
    read: |rest| match word(rest)?.map_or(Ok(HISTORY_SHOWN), |number| number.parse()) {
        Ok(number @ 1..) => Ok(SlashCommand::History { number }),
        _ => Err("it takes a number from 1"),
    },
};
const COPY: SlashSpec = SlashSpec {
    name: "copy",
    section: Section::Looking,
    arguments: "[code]",
    right: Right::Read,
    help: "copy the last answer, or its first code block, to the clipboard of the terminal",
    candidates: Candidates::Words(&["code"]),
    read: |rest| match rest {
        "" => Ok(SlashCommand::Copy { code: false }),
        "code" => Ok(SlashCommand::Copy { code: true }),
        _ => Err("it takes `code` or nothing"),
    },
};
const UNDO: SlashSpec = SlashSpec {
    name: "undo",
    section: Section::Moving,
    arguments: "[--files]",
    right: Right::Write,
    help: "undo the last step: a turn, an edit; or give back the files that the last turn changed",
    candidates: Candidates::Words(&["--files"]),
    read: |rest| match rest {
        "" => Ok(SlashCommand::Undo),
        "--files" => Ok(SlashCommand::UndoFiles),
        _ => Err("it takes `--files` or nothing"),
    },
};
const DIFF: SlashSpec = SlashSpec {
    name: "diff",
    section: Section::Looking,
    arguments: "[@NODE|session]",
    right: Right::Read,
    help: "show what tools changed in files here, in the turn of NODE, or in the whole session",
    candidates: Candidates::Words(&["session"]),
    read: |rest| {
        let of = match word(rest)?.as_deref() {
            None => DiffArgument::Conversation,
            Some("session") => DiffArgument::Session,
            Some(node) => DiffArgument::Node(node.strip_prefix('@').unwrap_or(node).to_owned()),
        };
        Ok(SlashCommand::Diff { of })
    },
};
const RESTORE: SlashSpec = SlashSpec {
    name: "restore",
    section: Section::Moving,
    arguments: "FILE [@NODE] [--yes]",
    right: Right::Write,
    help: "make a file or folder what it was before the last change by a tool, or before the turn of NODE",
    candidates: Candidates::None,
    read: |rest| {
        let mut words = shlex::split(rest).ok_or("a quote is not closed")?;
        let yes = words.iter().position(|word| word == "--yes").map(|at| words.remove(at)).is_some();
        let (file, node) = match words.as_slice() {
            [file] => (file, None),
            [file, node] => (file, Some(node.strip_prefix('@').unwrap_or(node).to_owned())),
            _ => return Err("it takes a file (in quotes, if it has spaces), and a node"),
        };
        Ok(SlashCommand::Restore { file: PathBuf::from(file), node, yes })
    },
};
const NOTE: SlashSpec = SlashSpec {
    name: "note",
    section: Section::Session,
    arguments: "[KIND] [@ID] TEXT",
    right: Right::Write,
    help: "note a decision, outcome, correction, question or step for later; @ID corrects one; without a text, list them",
    candidates: Candidates::Words(&["decision", "outcome", "correction", "question", "step"]),
    read: |rest| Ok(SlashCommand::Note { note: note(rest)? }),
};
const REDO: SlashSpec = SlashSpec {
    name: "redo",
    section: Section::Moving,
    arguments: "[--files]",
    right: Right::Write,
    help: "redo the last step that was undone, or the last giving-back of files",
    candidates: Candidates::Words(&["--files"]),
    read: |rest| match rest {
        "" => Ok(SlashCommand::Redo),
        "--files" => Ok(SlashCommand::RedoFiles),
        _ => Err("it takes `--files` or nothing"),
    },
};
const COMPACT: SlashSpec = SlashSpec {
    name: "compact",
    section: Section::Settings,
    arguments: "[@NODE]",
    right: Right::Write,
    help: "move the early half (or all above NODE) out of the context window; /undo brings it back",
    candidates: Candidates::None,
    read: |rest| match word(rest)? {
        None => Ok(SlashCommand::Compact { to: None }),
        Some(named) => match named.strip_prefix('@') {
            Some(node) if !node.is_empty() => Ok(SlashCommand::Compact { to: Some(node.to_owned()) }),
            _ => Err("it takes @NODE or nothing"),
        },
    },
};
const RELOAD: SlashSpec = SlashSpec {
    name: "reload",
    section: Section::Settings,
    arguments: "",
    right: Right::Write,
    help: "read your files again for the next request, and show what that costs the cache",
    candidates: Candidates::None,
    read: |rest| nothing(rest, SlashCommand::Reload),
};
const FILE: SlashSpec = SlashSpec {
    name: "file",
    section: Section::Saying,
    arguments: "[PATH]",
    right: Right::Admin,
    help: "attach a text, a picture or a sound to your next message; without a path, remove the files that wait",
    candidates: Candidates::None,
    read: |rest| {
        // Terminals put what is dropped on them between quotes.
        let quoted = |quote: char| rest.strip_prefix(quote)?.strip_suffix(quote);
        let path = quoted('\'').or_else(|| quoted('"')).unwrap_or(rest);
        Ok(SlashCommand::File { path: (!path.is_empty()).then(|| PathBuf::from(path)) })
    },
};
const MODEL: SlashSpec = SlashSpec {
    name: "model",
    section: Section::Settings,
    arguments: "[NAME]",
    right: Right::Act,
    help: "use another model in this session from now on; without a name, show the model",
    candidates: Candidates::Models,
    read: |rest| Ok(SlashCommand::Model { name: word(rest)? }),
};
const THINK: SlashSpec = SlashSpec {
    name: "think",
    section: Section::Settings,
    arguments: "[off|low|high]",
    right: Right::Act,
    help: "set how much the model thinks in this session; without a word, show it",
    candidates: Candidates::Words(&Think::WORDS),
    read: |rest| match (rest, Think::parse(rest)) {
        ("", _) => Ok(SlashCommand::Think { think: None }),
        (_, Some(think)) => Ok(SlashCommand::Think { think: Some(think) }),
        _ => Err("it takes off, low or high"),
    },
};
const PLAN: SlashSpec = SlashSpec {
    name: "plan",
    section: Section::Settings,
    arguments: "[on|off]",
    right: Right::Act,
    help: "let tools only look in this session, or change things again; without a word, show it",
    candidates: Candidates::Words(&["on", "off"]),
    read: |rest| match rest {
        "" => Ok(SlashCommand::Plan { plan: None }),
        "on" => Ok(SlashCommand::Plan { plan: Some(true) }),
        "off" => Ok(SlashCommand::Plan { plan: Some(false) }),
        _ => Err("it takes on, off or nothing"),
    },
};
const SYSTEM: SlashSpec = SlashSpec {
    name: "system",
    section: Section::Settings,
    arguments: "[TEXT|off]",
    right: Right::Act,
    help: "give this session a system prompt; `off` brings the built-in one back; without a text, show it",
    candidates: Candidates::Words(&["off"]),
    read: |rest| {
        let text = match rest {
            "" => None,
            "off" => Some(String::new()),
            text => Some(text.to_owned()),
        };
        Ok(SlashCommand::System { text })
    },
};
const SET: SlashSpec = SlashSpec {
    name: "set",
    section: Section::Settings,
    arguments: "[KEY=VALUE]...",
    right: Right::Act,
    help: "set temperature, max_tokens, seed or preset of this session (`KEY=` takes one back); without a key, show them",
    candidates: Candidates::Words(&Setting::WORDS),
    read: |rest| {
        let settings = rest.split_whitespace().map(Setting::parse).collect::<Result<_, _>>()?;
        Ok(SlashCommand::Set { settings })
    },
};
const ZONE: SlashSpec = SlashSpec {
    name: "zone",
    section: Section::Looking,
    arguments: "",
    right: Right::Read,
    help: "show how full the window is, what fills it, and whether a new session would help",
    candidates: Candidates::None,
    read: |rest| nothing(rest, SlashCommand::Zone),
};
const COST: SlashSpec = SlashSpec {
    name: "cost",
    section: Section::Looking,
    arguments: "[today|month|all] [by model|purpose|session]",
    right: Right::Read,
    help: "show what was spent, and the limits",
    candidates: Candidates::Words(&["today", "month", "all", "by"]),
    read: |rest| {
        let cost =
            Cost::parse(rest).ok_or("it takes today, month or all, and by model, purpose or session")?;
        Ok(run(COST.name, Command::Cost(cost)))
    },
};
const SEARCH: SlashSpec = SlashSpec {
    name: "search",
    section: Section::Looking,
    arguments: "QUERY",
    right: Right::Read,
    help: "search the text of all trees",
    candidates: Candidates::None,
    read: |rest| {
        let search = Search { query: some(rest)?, tree: None, limit: SEARCHED };
        Ok(run(SEARCH.name, Command::Search(search)))
    },
};
const VERIFY: SlashSpec = SlashSpec {
    name: "verify",
    section: Section::Looking,
    arguments: "",
    right: Right::Read,
    help: "check this session against its hashes",
    candidates: Candidates::None,
    read: |rest| nothing(rest, SlashCommand::Verify),
};
const EXPORT: SlashSpec = SlashSpec {
    name: "export",
    section: Section::Session,
    arguments: "[FORMAT] [FILE]",
    right: Right::Admin,
    help: "write this conversation to a new file; the format is Markdown, or FORMAT, or that of the file's ending",
    candidates: Candidates::Words(&export::FORMATS),
    read: export::read,
};
const DOCTOR: SlashSpec = SlashSpec {
    name: "doctor",
    section: Section::Looking,
    arguments: "",
    right: Right::Read,
    help: "check the installation; opens no connection",
    candidates: Candidates::None,
    read: |rest| nothing(rest, run(DOCTOR.name, Command::Doctor(Doctor { quick: true }))),
};
const TOOLS: SlashSpec = SlashSpec {
    name: "tools",
    section: Section::Looking,
    arguments: "",
    right: Right::Read,
    help: "list the tools the model may call",
    candidates: Candidates::None,
    read: |rest| nothing(rest, SlashCommand::Tools),
};
const SKILLS: SlashSpec = SlashSpec {
    name: "skills",
    section: Section::Saying,
    arguments: "[run NAME [TEXT]]",
    right: Right::Read,
    help: "list the skills, or have the model follow one",
    candidates: Candidates::Words(&["run"]),
    read: |rest| {
        if rest.is_empty() {
            return Ok(SlashCommand::Run(SKILLS.name, Box::new(Command::Skills(SkillsCommand::List))));
        }
        let named = rest.strip_prefix("run").filter(|rest| rest.starts_with(char::is_whitespace));
        let named = named.map(str::trim).ok_or("it takes nothing, or run and the name of a skill")?;
        let (name, text) = named.split_once(char::is_whitespace).unwrap_or((named, ""));
        Ok(SlashCommand::RunSkill { name: name.to_owned(), text: text.trim().to_owned() })
    },
};
const SUBAGENTS: SlashSpec = SlashSpec {
    name: "subagents",
    section: Section::Session,
    arguments: "",
    right: Right::Read,
    help: "list the subagents of this session: state and cost",
    candidates: Candidates::None,
    read: |rest| nothing(rest, SlashCommand::Subagents),
};
const MCP: SlashSpec = SlashSpec {
    name: "mcp",
    section: Section::Settings,
    arguments: "",
    right: Right::Read,
    help: "list the servers of tools, and their tools",
    candidates: Candidates::None,
    read: |rest| nothing(rest, run(MCP.name, Command::Mcp(McpCommand::List))),
};
const POLICY: SlashSpec = SlashSpec {
    name: "policy",
    section: Section::Looking,
    arguments: "[reset]",
    right: Right::Admin,
    help: "list your rules on calls of tools, and what is allowed in this session; `reset` takes that back",
    candidates: Candidates::Words(&["reset"]),
    read: |rest| match rest {
        "" => Ok(SlashCommand::Policy { reset: false }),
        "reset" => Ok(SlashCommand::Policy { reset: true }),
        _ => Err("it takes reset, or nothing"),
    },
};
const TRUST: SlashSpec = SlashSpec {
    name: "trust",
    section: Section::Settings,
    arguments: "[NODE…] [--off] [--yes]",
    right: Right::Admin,
    help: "answer for the text of nodes from outside, or no more; without a node, list what taints",
    candidates: Candidates::None,
    read: |rest| {
        let mut nodes: Vec<&str> = rest.split_whitespace().collect();
        let mut takes = |flag: &str| {
            let before = nodes.len();
            nodes.retain(|word| *word != flag);
            nodes.len() < before
        };
        let (off, yes) = (takes("--off"), takes("--yes"));
        if nodes.iter().any(|word| word.starts_with('-')) || nodes.is_empty() && (off || yes) {
            return Err("it takes nodes, with --off or --yes behind them, or nothing");
        }
        let nodes = nodes.iter().map(|node| node.strip_prefix('@').unwrap_or(node).to_owned()).collect();
        Ok(SlashCommand::Trust { nodes, off, yes })
    },
};
const APPROVE: SlashSpec = SlashSpec {
    name: "approve",
    section: Section::Saying,
    arguments: "[ID] [once|session|always]",
    right: Right::Approve,
    help: "answer yes to the open question of this session, or to question ID; for this call, this session or for good",
    candidates: Candidates::Words(&Holds::WORDS),
    read: approval,
};
const DENY: SlashSpec = SlashSpec {
    name: "deny",
    section: Section::Saying,
    arguments: "[ID] [REASON]",
    right: Right::Approve,
    help: "answer no to the open question of this session, or to question ID",
    candidates: Candidates::None,
    read: |rest| Ok(SlashCommand::Deny { id_and_reason: rest.to_owned() }),
};
const QUEUE: SlashSpec = SlashSpec {
    name: "queue",
    section: Section::Saying,
    arguments: "TEXT",
    right: Right::Act,
    help: "while an answer comes: send TEXT after the turn, not in it",
    candidates: Candidates::None,
    read: |rest| Ok(SlashCommand::Queue { text: some(rest)? }),
};
const STOP: SlashSpec = SlashSpec {
    name: "stop",
    section: Section::Saying,
    arguments: "",
    right: Right::Act,
    help: "while an answer comes: stop the turn, as Ctrl-C does; the part received is kept",
    candidates: Candidates::None,
    read: |rest| nothing(rest, SlashCommand::Stop),
};
const QUIT: SlashSpec = SlashSpec {
    name: "quit",
    section: Section::Session,
    arguments: "",
    right: Right::Read,
    help: "end the conversation, as Ctrl-D does",
    candidates: Candidates::None,
    read: |rest| nothing(rest, SlashCommand::Quit),
};

const EXIT: SlashSpec = SlashSpec { name: "exit", help: "the same as /quit", ..QUIT };

/// Exchanges of `/history`.
const HISTORY_SHOWN: usize = 5;
/// Hits of `/search`.
const SEARCHED: usize = 20;

fn run(row: &'static str, command: Command) -> SlashCommand {
    SlashCommand::Run(row, Box::new(command))
}

/// `/sessions`, and `/switch` without a name.
fn sessions(row: &'static str) -> SlashCommand {
    run(row, Command::Sessions(SessionsCommand::List { archived: false, all: false }))
}

impl SlashCommand {
    /// Row of this command in the table.
    pub fn row(&self) -> SlashSpec {
        match self {
            Self::Run(name, _) => TABLE.into_iter().find(|row| row.name == *name).unwrap_or(HELP),
            Self::Help { .. } => HELP,
            Self::Status => STATUS,
            Self::Context { .. } => CONTEXT,
            Self::New { .. } => NEW,
            Self::Switch { .. } => SWITCH,
            Self::Rename { .. } => RENAME,
            Self::Fork { .. } => FORK,
            Self::Edit { .. } => EDIT,
            Self::Retry => RETRY,
            Self::Regenerate { .. } => REGENERATE,
            Self::Siblings => SIBLINGS,
            Self::Reach { next: true, .. } => NEXT,
            Self::Reach { next: false, .. } => PREV,
            Self::History { .. } => HISTORY,
            Self::Copy { .. } => COPY,
            Self::Undo | Self::UndoFiles => UNDO,
            Self::Wrap | Self::UndoWrap => WRAP,
            Self::Note { .. } => NOTE,
            Self::Diff { .. } => DIFF,
            Self::Trust { .. } => TRUST,
            Self::Restore { .. } => RESTORE,
            Self::Redo | Self::RedoFiles => REDO,
            Self::Compact { .. } => COMPACT,
            Self::Reload => RELOAD,
            Self::File { .. } => FILE,
            Self::Model { .. } => MODEL,
            Self::Think { .. } => THINK,
            Self::Plan { .. } => PLAN,
            Self::System { .. } => SYSTEM,
            Self::Set { .. } => SET,
            Self::Zone => ZONE,
            Self::Verify => VERIFY,
            Self::Export { .. } => EXPORT,
            Self::Tools => TOOLS,
            Self::RunSkill { .. } => SKILLS,
            Self::Subagents => SUBAGENTS,
            Self::Policy { .. } => POLICY,
            Self::Approve { .. } => APPROVE,
            Self::Deny { .. } => DENY,
            Self::Queue { .. } => QUEUE,
            Self::Stop => STOP,
            Self::Quit => QUIT,
        }
    }
}

fn nothing(rest: &str, command: SlashCommand) -> Result<SlashCommand, &'static str> {
    if rest.is_empty() { Ok(command) } else { Err("it takes no argument") }
}

/// One word, or nothing.
fn word(rest: &str) -> Result<Option<String>, &'static str> {
    match rest {
        "" => Ok(None),
        one if !one.contains(char::is_whitespace) => Ok(Some(one.to_owned())),
        _ => Err("it takes one word"),
    }
}

/// The question of an approval, and how long the answer holds: a word of these is no id.
fn approval(rest: &str) -> Result<SlashCommand, &'static str> {
    let holds = |word: &str| <Holds as clap::ValueEnum>::from_str(word, true).ok();
    let (id, holds) = match rest.split_whitespace().collect::<Vec<_>>()[..] {
        [] => (None, None),
        [word] => holds(word).map_or((Some(word), None), |holds| (None, Some(holds))),
        [id, word] => (Some(id), Some(holds(word).ok_or("it takes an id, and once, session or always")?)),
        _ => return Err("it takes an id, and once, session or always"),
    };
    Ok(SlashCommand::Approve { id: id.map(str::to_owned), holds })
}

/// A note: its kind, if the first word is one, what it corrects, if `@` and a number follow, and its text.
fn note(rest: &str) -> Result<Option<NoteArgument>, &'static str> {
    if rest.is_empty() {
        return Ok(None);
    }
    let split = |text: &str| {
        let (first, after) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        (first.to_owned(), after.trim_start().to_owned())
    };
    let (first, after) = split(rest);
    // A colon says that a kind is meant, however it is written.
    let labelled = first.strip_suffix(':').map(str::to_lowercase);
    let is_meant = |kind: &OutcomeKind| kind.word() == labelled.as_deref().unwrap_or(&first);
    let kind = OutcomeKind::ALL.into_iter().find(is_meant);
    let said = if kind.is_some() { after } else { rest.to_owned() };
    let (first, after) = split(&said);
    let corrects = match first.strip_prefix('@') {
        Some(number) if number.chars().all(|c| c.is_ascii_digit()) => {
            Some(OutcomeId(number.parse().map_err(|_| "behind @ stands the number of a note")?))
        }
        _ => None,
    };
    let text = if corrects.is_some() { after } else { said };
    Ok(Some(NoteArgument { kind, corrects, text: some(&text)? }))
}

fn some(rest: &str) -> Result<String, &'static str> {
    if rest.trim().is_empty() { Err("it takes a text") } else { Ok(rest.to_owned()) }
}
