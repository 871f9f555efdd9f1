//! Policy: from a call of a tool and the facts of its session to *allow*, *ask* or *deny* (spec: agent §4, security §1, §14).
//!
//! Nothing here opens a file, starts a program or waits: a decision is a function of values, so that every one of them
//! can be tested, shown to the owner beforehand, and made again later with the same result.
//!
//! The order is deny rules, ask rules, allow rules, then the [table](TABLE). What an allow rule may loosen:
//!
//! * a question that is open to an answer given in advance: a write whose old bytes are not kept, a command with named
//!   hosts, a tool of a server, a message while a person is there;
//! * for an unattended session the same but messages: what the table calls *pre-approved only*.
//!
//! What it never loosens ([`Loosening::Never`]): the protected set, key files and the store, read-only roots, a level of
//! the sandbox below *full*, an open network, a published port, all that is asked because the session is tainted, plan
//! mode, and what no tool may reach. The contract of security names these without exception.
//!
//! A yes of a person may hold for a session or for good ([`LastingAnswers`]): of a question alone, by the exact words of
//! its call, and never of one that is asked each time, nor of a line of which those words do not say all.
//!
//! An allow rule must cover *all* of a call: each command of its line, each host, each path written, each effect. A deny
//! or ask rule needs one of them. So the two are matched differently (`matching`), and both err to the safe side: a deny
//! rule that cannot be ruled out, since part of a line is known only once it runs, becomes a question.
//!
//! Words of a command say what it starts, not what a program or a script does then: a deny rule is the owner's order to
//! the agent, and the sandbox is the wall.

mod allowed_tools;
mod call;
mod command_readers;
mod data_takers;
mod decision;
mod exec_match;
mod lasting;
mod matching;
mod named_files;
mod named_programs;
mod pattern;
mod pattern_parser;
mod policy;
mod programs;
mod rule;
mod shell;
mod steering_variables;
mod table;

pub use allowed_tools::{AllowedTools, tool_of_server};
pub use call::{
    Attendance, CallFacts, CallMark, CommandFacts, CommandStart, Effect, NetworkWish, PathAccess, PathPlace,
    PathUse, SandboxLevel, ServerFacts, SessionFacts, SessionType,
};
pub use decision::{Decision, Reason, Repeat, RuleReason, Verdict};
pub use lasting::{LastingAnswers, Permission};
pub use matching::{may_mean, redirected_files};
pub use named_files::{NamedFile, named_files};
pub use named_programs::named_programs;
pub use pattern::{Limit, PATTERN_FORMS, PathGlob, Pattern};
pub use pattern_parser::PatternError;
pub use policy::{Policy, PolicyError};
pub use rule::PolicyRule;
pub use shell::unfinished_line;
pub use steering_variables::steers_programs;
pub use table::{Loosening, Row, RowId, TABLE};
