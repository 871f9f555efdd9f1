//! The default table (spec: agent §4), a row for each of its cases.
//!
//! Several rows may apply to one call (a command with hosts while tainted); the strictest decides. A call that no row knows
//! is asked, and denied where nobody is there.

use workspace::RelativePath;
use workspace::protected::{Protection, ProtectionMatch, touches, touches_anywhere};

use crate::call::{
    Attendance, CallFacts, CallMark, Effect, PathAccess, PathPlace, PathUse, SandboxLevel, SessionFacts,
};
use crate::decision::{Decision, Repeat};

/// Name of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RowId {
    Administration,
    PrivateFile,
    ProtectedNever,
    ReadOnlyRoot,
    PlanWrite,
    PlanMessage,
    PlanNetwork,
    PlanPublish,
    PlanSandbox,
    TaintedNetworkExec,
    TaintedWeb,
    TaintedMessage,
    TaintedServer,
    TaintedInstruction,
    ProtectedAsk,
    ExecNone,
    ExecPartial,
    ExecOpen,
    ExecPublish,
    ExecHosts,
    ServerTool,
    ServerRead,
    Message,
    MessageOwnTarget,
    WriteNotKept,
    ExecFull,
    Web,
    Write,
    Read,
    Other,
}

/// Whether an allow rule may answer a row's question in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loosening {
    ByRule,
    Never,
}

/// One row of the table.
#[derive(Debug)]
pub struct Row {
    pub id: RowId,
    /// Decision where somebody can answer.
    pub attended: Decision,
    pub unattended: Decision,
    pub loosening: Loosening,
    pub repeat: Repeat,
    /// Reason of a question or of a refusal, for the model and the owner.
    pub reason: &'static str,
    applies: fn(&CallFacts, &SessionFacts) -> bool,
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Row {}

impl Row {
    /// Decision for a session.
    pub fn decision(&self, session: &SessionFacts) -> Decision {
        match session.attendance {
            Attendance::Attended => self.attended,
            Attendance::Unattended => self.unattended,
        }
    }

    const fn new(
        id: RowId,
        (attended, unattended): (Decision, Decision),
        loosening: Loosening,
        applies: fn(&CallFacts, &SessionFacts) -> bool,
        reason: &'static str,
    ) -> Self {
        Self { id, attended, unattended, loosening, repeat: Repeat::AsAnswered, reason, applies }
    }

    const fn repeat(self, repeat: Repeat) -> Self {
        Self { repeat, ..self }
    }
}

const ALLOW: (Decision, Decision) = (Decision::Allow, Decision::Allow);
const ASK: (Decision, Decision) = (Decision::Ask, Decision::Deny);
const DENY: (Decision, Decision) = (Decision::Deny, Decision::Deny);

use Loosening::{ByRule, Never};

/// The table. Of rows with one decision the first gives the reason, so what cannot be loosened stands first.
pub const TABLE: &[Row] = &[
    Row::new(
        RowId::Administration,
        DENY,
        Never,
        |call, _| call.mark == Some(CallMark::Administration),
        "configuration, policy, keys, servers, trust and approvals are the owner's: no tool reaches them",
    ),
    Row::new(
        RowId::PrivateFile,
        DENY,
        Never,
        |call, _| call.paths.iter().any(|path| path.place == PathPlace::Private),
        "key files and the store are closed to tools",
    ),
    Row::new(
        RowId::ProtectedNever,
        DENY,
        Never,
        |call, _| call.written().any(|path| protection(path) == Some(Protection::Never)),
        "folders of git (`.git`, and any that it takes for one), `.drawloom` and recorded observations are never written by \
         a tool: git changes its own files, and its configuration and hooks are the owner's",
    ),
    Row::new(
        RowId::ReadOnlyRoot,
        DENY,
        Never,
        |call, _| call.written().any(|path| path.place == PathPlace::ReadOnlyRoot),
        "this folder is open for reading only",
    ),
    Row::new(
        RowId::PlanWrite,
        DENY,
        Never,
        |call, session| session.plan_mode && call.has(Effect::Write),
        "plan mode is on: nothing is written until the owner ends it",
    ),
    Row::new(
        RowId::PlanMessage,
        DENY,
        Never,
        |call, session| session.plan_mode && call.has(Effect::Message),
        "plan mode is on: no message is sent until the owner ends it",
    ),
    Row::new(
        RowId::PlanNetwork,
        DENY,
        Never,
        |call, session| session.plan_mode && call.has(Effect::Exec) && call.has(Effect::Net),
        "plan mode is on: commands have no network until the owner ends it",
    ),
    Row::new(
        RowId::PlanPublish,
        DENY,
        Never,
        |call, session| session.plan_mode && call.publishes(),
        "plan mode is on: no port is published until the owner ends it",
    ),
    Row::new(
        RowId::PlanSandbox,
        DENY,
        Never,
        |call, session| session.plan_mode && at(call, session, |level| level < SandboxLevel::Full),
        "plan mode is on, and the sandbox of this machine cannot keep a command from writing",
    ),
    Row::new(
        RowId::TaintedNetworkExec,
        ASK,
        Never,
        |call, session| session.tainted && call.has(Effect::Exec) && call.has(Effect::Net),
        "text from outside is in view: a command with network could follow it and send something away",
    )
    .repeat(Repeat::EachTime),
    Row::new(
        RowId::TaintedWeb,
        ASK,
        Never,
        |call, session| session.tainted && is_web(call) && call.mark != Some(CallMark::ShownUrl),
        "text from outside is in view, and this address does not stand in the owner's text or in a result",
    )
    .repeat(Repeat::EachTime),
    Row::new(
        RowId::TaintedMessage,
        ASK,
        Never,
        |call, session| session.tainted && call.has(Effect::Message),
        "text from outside is in view: a message could carry out what it says",
    )
    .repeat(Repeat::EachTime),
    Row::new(
        RowId::TaintedServer,
        ASK,
        Never,
        |call, session| session.tainted && call.server.as_ref().is_some_and(|server| server.is_online),
        "text from outside is in view: a call to a server with network could follow it and send something away",
    )
    .repeat(Repeat::EachTime),
    Row::new(
        RowId::TaintedInstruction,
        ASK,
        Never,
        |call, session| session.tainted && call.mark == Some(CallMark::StandingInstruction),
        "text from outside is in view, and this would instruct later sessions",
    )
    .repeat(Repeat::EachTime),
    Row::new(
        RowId::ProtectedAsk,
        ASK,
        Never,
        |call, _| call.command.is_none() && writes_protected(call),
        "this file runs, steers or remembers something, so a person sees its difference first",
    )
    .repeat(Repeat::EachTime),
    // What a command makes of a file is known to nobody beforehand.
    Row::new(
        RowId::ProtectedAsk,
        ASK,
        Never,
        |call, _| call.command.is_some() && writes_protected(call),
        "a file that the command touches runs, steers or remembers something, so a person allows it first",
    )
    .repeat(Repeat::EachTime),
    Row::new(
        RowId::ExecNone,
        ASK,
        Never,
        |call, session| at(call, session, |level| level == SandboxLevel::None),
        "there is no sandbox here, so a command may do whatever its owner may",
    )
    .repeat(Repeat::EachTime),
    Row::new(
        RowId::ExecPartial,
        ASK,
        Never,
        |call, session| at(call, session, |level| level == SandboxLevel::Partial),
        "the sandbox of this machine is partial: protected files are restored after a command, not kept from it",
    )
    .repeat(Repeat::OncePerSession),
    Row::new(
        RowId::ExecOpen,
        ASK,
        Never,
        |call, _| call.has(Effect::Exec) && call.is_open(),
        "the command asks for any host, the local network included",
    )
    .repeat(Repeat::EachTime),
    Row::new(
        RowId::ExecPublish,
        ASK,
        Never,
        |call, _| call.publishes(),
        "the command asks for a port of this machine: what it shows in your browser runs with your network",
    )
    .repeat(Repeat::EachTime),
    Row::new(
        RowId::ExecHosts,
        ASK,
        ByRule,
        |call, _| call.has(Effect::Exec) && call.has(Effect::Net) && !call.is_open(),
        "the command asks for network, and no rule allows all of its commands and hosts",
    ),
    Row::new(
        RowId::ServerTool,
        ASK,
        ByRule,
        |call, _| call.reads_of_server() == Some(false),
        "the tool belongs to a server, and no rule allows it",
    ),
    Row::new(
        RowId::ServerRead,
        ASK,
        ByRule,
        |call, _| call.reads_of_server() == Some(true),
        "the tool is a reading one of a server, and neither a rule nor an answer for the session allows its reading tools",
    )
    .repeat(Repeat::OncePerServer),
    Row::new(
        RowId::Message,
        ASK,
        ByRule,
        |call, session| {
            call.has(Effect::Message)
                && call.mark != Some(CallMark::OwnTarget)
                && session.attendance == Attendance::Attended
        },
        "a message leaves the machine",
    ),
    // Where nobody is there, the job's own target is all that may be written to, whatever a rule says.
    Row::new(
        RowId::Message,
        DENY,
        Never,
        |call, session| {
            call.has(Effect::Message)
                && call.mark != Some(CallMark::OwnTarget)
                && session.attendance == Attendance::Unattended
        },
        "a message leaves the machine and nobody is there to be asked: a job sends messages only to the target that it \
         names itself",
    ),
    Row::new(
        RowId::MessageOwnTarget,
        (Decision::Ask, Decision::Allow),
        ByRule,
        |call, _| call.has(Effect::Message) && call.mark == Some(CallMark::OwnTarget),
        "a message leaves the machine",
    ),
    Row::new(
        RowId::WriteNotKept,
        ASK,
        ByRule,
        |call, session| !session.keeps_old_bytes && call.written().next().is_some(),
        "what this replaces is not kept, so it could not be given back",
    ),
    Row::new(
        RowId::ExecFull,
        ALLOW,
        ByRule,
        |call, session| at(call, session, |level| level == SandboxLevel::Full) && !call.has(Effect::Net),
        "the command runs in the full sandbox, without network",
    ),
    Row::new(RowId::Web, ALLOW, ByRule, |call, _| is_web(call), "web tools are allowed"),
    Row::new(
        RowId::Write,
        ALLOW,
        ByRule,
        |call, _| call.has(Effect::Write) && call.server.is_none(),
        "writing is allowed where the old bytes are kept",
    ),
    Row::new(
        RowId::Read,
        ALLOW,
        ByRule,
        |call, _| (call.has(Effect::Read) || call.effects.is_empty()) && call.server.is_none(),
        "reading is allowed",
    ),
];

/// Decision on a call that no row of the table knows: safety fails closed.
pub(crate) static OTHER: Row =
    Row::new(RowId::Other, ASK, ByRule, |_, _| true, "no rule and no default knows this call");

/// Rows of the table that apply to a call.
pub(crate) fn rows(call: &CallFacts, session: &SessionFacts) -> Vec<&'static Row> {
    TABLE.iter().filter(|row| (row.applies)(call, session)).collect()
}

/// First of the strictest rows.
pub(crate) fn strictest<'a>(
    rows: impl Iterator<Item = &'a &'static Row>,
    session: &SessionFacts,
) -> Option<&'static Row> {
    rows.copied().reduce(|best, row| if row.decision(session) > best.decision(session) { row } else { best })
}

/// Whether a call runs something at a level of the sandbox that fits.
fn at(call: &CallFacts, session: &SessionFacts, fits: fn(SandboxLevel) -> bool) -> bool {
    call.has(Effect::Exec) && fits(session.sandbox)
}

/// Whether a call is that of a web tool of our own.
fn is_web(call: &CallFacts) -> bool {
    call.has(Effect::Net) && !call.has(Effect::Exec) && !call.has(Effect::Message) && call.server.is_none()
}

/// Whether a call writes what is asked about each time.
fn writes_protected(call: &CallFacts) -> bool {
    call.written().any(|path| protection(path) == Some(Protection::Ask))
}

/// Protection that a written path meets.
fn protection(path: &PathUse) -> Option<Protection> {
    let by_place = match (path.place, path.access) {
        (PathPlace::Protected(protection), PathAccess::Write | PathAccess::Link | PathAccess::Remove) => {
            Some(protection)
        }
        _ => None,
    };
    let by_names = match path.is_of_everything() && !path.path.is_root() {
        true => match touches_anywhere(&path.path) {
            ProtectionMatch::Protected(Protection::Never) => ProtectionMatch::Protected(Protection::Never),
            _ if path.steers_programs() => ProtectionMatch::Protected(Protection::Ask),
            by_names => by_names,
        },
        false => path_match(&path.path),
    };
    let by_name = match (by_names, path.access) {
        // A folder on the way may be created; to move it moves what it holds.
        (ProtectionMatch::Nothing, _)
        | (_, PathAccess::Read)
        | (ProtectionMatch::OnTheWay(_), PathAccess::Write) => None,
        (ProtectionMatch::Protected(protection), _)
        | (ProtectionMatch::OnTheWay(protection), PathAccess::Link | PathAccess::Remove) => Some(protection),
    };
    by_place.max(by_name)
}

/// As [`touches`]; the root is on the way to everything.
fn path_match(path: &RelativePath) -> ProtectionMatch {
    if path.is_root() { ProtectionMatch::OnTheWay(Protection::Never) } else { touches(path) }
}

/// Whether a path is protected in any way, for a command that redirects to it.
pub(crate) fn is_protected(path: &RelativePath) -> bool {
    matches!(path_match(path), ProtectionMatch::Protected(_))
}
