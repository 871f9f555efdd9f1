//! Answers that hold for more than one call (spec: agent §4 *Answers*, security §14): what may be remembered of a yes, and
//! which later calls it answers.
//!
//! What is remembered are the exact words of the call: its path, its host, the argv of its command. Of a line that means
//! more than one argv says nothing is remembered: of one with several commands, in another folder than the top one, with
//! files redirected or variables set, in the background, or handed to a command that runs. A permission answers
//! a question and nothing else, so that a deny rule, plan mode and what no tool may reach hold as before. Each has to
//! cover the whole call by itself: two of them do not add up to a call that nobody saw. A rule that is written for good
//! is one of the owner's, and adds up with the others as they do.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::call::{Attendance, CallFacts, CommandFacts, CommandStart, Effect, SessionFacts};
use crate::decision::{Decision, Reason, Repeat, Verdict};
use crate::matching::CallView;
use crate::pattern::{Limit, PathGlob, Pattern, host_name};
use crate::policy::Policy;
use crate::programs::launches;
use crate::rule::PolicyRule;
use crate::shell::{CommandLine, Redirection};
use crate::table::Loosening;

/// Paths, hosts or commands of a call that is remembered, at most: a person reads all of them before they say yes.
const MOST: usize = 8;

/// Tool whose lines are matched as commands.
const EXEC: &str = "exec";

/// Calls that a person allowed for the rest of a session: those that these patterns cover whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Permission(Vec<Pattern>);

/// What a yes to a question may hold for beside the one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastingAnswers {
    /// For the rest of the session.
    pub session: Option<Permission>,
    /// For good: the rule that is written.
    pub always: Option<PolicyRule>,
}

impl Permission {
    pub fn patterns(&self) -> &[Pattern] {
        &self.0
    }

    /// Whether it is about a level of the sandbox, whatever the command is.
    pub fn is_of_level(&self) -> bool {
        self.0.iter().any(|pattern| matches!(pattern, Pattern::Effect { limit: None, .. }))
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns: Vec<String> = self.0.iter().map(Pattern::to_string).collect();
        f.write_str(&patterns.join(", "))
    }
}

impl Policy {
    /// Decides on a call as [`Policy::decide`] does, where a person allowed some calls before.
    pub fn decide_with(
        &self,
        call: &CallFacts,
        session: &SessionFacts,
        permissions: &[Permission],
    ) -> Verdict {
        let verdict = self.decide(call, session);
        if permissions.is_empty() || !is_question(&verdict) {
            return verdict;
        }
        // What it would be asked is what was answered.
        let attended = SessionFacts { attendance: Attendance::Attended, ..*session };
        let asked = self.decide(call, &attended);
        if asked.decision != Decision::Ask || asked.repeat == Repeat::EachTime {
            return verdict;
        }
        let view = CallView::new(call);
        let says_all =
            call.command.as_ref().is_none_or(|command| command.line.is_empty() || words(command).is_some());
        // A rule of the owner's asks about this call, not about the machine.
        let by_rule = !matches!(verdict.reason, Reason::Row(_));
        let given = permissions.iter().find(|permission| {
            let holds = if permission.is_of_level() { !by_rule } else { says_all };
            holds && view.is_covered_by(permission.patterns())
        });
        match given {
            Some(given) => {
                let reason = Reason::Permitted(given.clone());
                Verdict { decision: Decision::Allow, reason, uncovered: None, ..verdict }
            }
            None => verdict,
        }
    }

    /// What a yes to the question about a call may hold for. Nothing is remembered of a call that is asked about each
    /// time, nor while text from outside is in view, which may have led to it. So nothing is of a call to a server that reaches
    /// others: once it answered, what it said is in view.
    pub fn lasting_answers(&self, call: &CallFacts, session: &SessionFacts) -> LastingAnswers {
        let verdict = self.decide(call, session);
        let taints = call.server.as_ref().is_some_and(|server| server.is_online);
        let is_asked = verdict.decision == Decision::Ask && verdict.repeat != Repeat::EachTime;
        if !is_asked || session.tainted || taints {
            return LastingAnswers::default();
        }
        let is_level = matches!(&verdict.reason, Reason::Row(row) if row.repeat == Repeat::OncePerSession);
        let patterns = if is_level && !call.has(Effect::Net) {
            Some(vec![Pattern::Effect { effect: Effect::Exec, limit: None }])
        } else if asks_once_a_server(&verdict) {
            reading(call)
        } else {
            exact(call)
        };
        let answers = |permission: &Permission| {
            let permissions = std::slice::from_ref(permission);
            self.decide_with(call, session, permissions).decision == Decision::Allow
        };
        let permission = patterns.filter(|patterns| patterns.iter().all(is_written_as_read)).map(Permission);
        let Some(permission) = permission.filter(answers) else { return LastingAnswers::default() };
        LastingAnswers { always: self.lasting_rule(call, session, &permission), session: Some(permission) }
    }

    /// The rule that allows a call for good, in sessions of this type; none where it would not: behind one that asks.
    fn lasting_rule(
        &self,
        call: &CallFacts,
        session: &SessionFacts,
        permission: &Permission,
    ) -> Option<PolicyRule> {
        let rule = PolicyRule {
            decision: Decision::Allow,
            tool: permission.0.clone(),
            unless: Vec::new(),
            sessions: vec![session.kind],
            reason: None,
        };
        let with = self.with(&rule).ok()?;
        (with.decide(call, session).decision == Decision::Allow).then_some(rule)
    }
}

/// Whether a verdict is that of a question: one that is asked, or that nobody is there to answer and a person may have
/// answered before, where a rule could allow it as well.
fn is_question(verdict: &Verdict) -> bool {
    match (verdict.decision, &verdict.reason) {
        (Decision::Ask, _) | (Decision::Deny, Reason::Unanswered(_)) => true,
        (Decision::Deny, Reason::Row(row)) => {
            row.loosening == Loosening::ByRule && row.attended == Decision::Ask
        }
        _ => false,
    }
}

/// Whether one answer is for all tools of a server that the owner marked `read`.
fn asks_once_a_server(verdict: &Verdict) -> bool {
    matches!(&verdict.reason, Reason::Row(row) if row.repeat == Repeat::OncePerServer)
}

/// Patterns of all tools of a call's server that the owner marked `read`.
fn reading(call: &CallFacts) -> Option<Vec<Pattern>> {
    let server = call.server.as_ref()?;
    let tool =
        |name: &String| Pattern::Tool { server: Some(server.name.clone()), name: name.clone(), limit: None };
    Some(server.reading.iter().map(tool).collect())
}

/// Patterns that mean a call by its own words; none of one that has too many, or whose words do not say what runs.
fn exact(call: &CallFacts) -> Option<Vec<Pattern>> {
    let server = call.server.as_ref().map(|server| server.name.clone());
    let tool = |limit| vec![Pattern::Tool { server: server.clone(), name: call.tool.clone(), limit }];
    let mut hosts: Vec<String> = call.hosts().map(host_name).collect();
    hosts.sort();
    hosts.dedup();
    let commands = call.command.as_ref().map_or_else(|| Some(Vec::new()), commands)?;
    if commands.is_empty() {
        // The name of the tool that runs lines would mean all of them.
        if call.command.is_some() && call.tool == EXEC {
            return None;
        }
        return match (&call.paths[..], &hosts[..]) {
            ([], []) => Some(tool(None)),
            ([], [host]) => Some(tool(Some(Limit::Host(host.clone())))),
            (_, []) => Some(tool(Some(Limit::Path(glob(call)?)))),
            _ => None,
        };
    }
    let written = call.written().next().is_some();
    let paths = if written { Some(Limit::Path(glob(call)?)) } else { None };
    let paths = paths.map(|limit| Pattern::Effect { effect: Effect::Write, limit: Some(limit) });
    let hosts =
        hosts.into_iter().map(|host| Pattern::Effect { effect: Effect::Net, limit: Some(Limit::Host(host)) });
    let patterns: Vec<Pattern> = commands.into_iter().chain(paths).chain(hosts).collect();
    (patterns.len() <= MOST).then_some(patterns)
}

/// The argv of the one command of a line, where it says all that the line does, or none of a line without text. None
/// where the command is a file, or runs what its arguments name: that may be another program at the next call, by the
/// same words.
fn commands(command: &CommandFacts) -> Option<Vec<Pattern>> {
    if command.line.is_empty() {
        return Some(Vec::new());
    }
    let words = words(command)?;
    let program = words.first()?;
    if program.contains('/') || launches(words.iter().map(String::as_str)) {
        return None;
    }
    Some(vec![Pattern::Exec { words, more: false }])
}

/// The words of the one command of a line; none where they do not say all that the line does.
fn words(command: &CommandFacts) -> Option<Vec<String>> {
    let line = CommandLine::read(&command.line);
    let moves = |program: &str| matches!(program, "cd" | "pushd" | "popd");
    let to_nothing =
        |redirection: &Redirection| redirection.target.known && redirection.target.text == "/dev/null";
    let is_plain_start = command.start == CommandStart::Foreground
        && command.directory.is_root()
        && command.further_root.is_none();
    let says_all = is_plain_start && !line.assigns && line.redirections.iter().all(to_nothing);
    let mut commands = line.commands.into_iter();
    let (Some(one), None, true) = (commands.next(), commands.next(), says_all) else { return None };
    let words: Vec<String> = one.words.into_iter().map(|word| word.text).collect();
    (!words.first().is_some_and(|program| moves(program))).then_some(words)
}

/// A glob of the paths of a call, and of no others.
fn glob(call: &CallFacts) -> Option<PathGlob> {
    let mut paths = Vec::new();
    for path in &call.paths {
        let path = globset::escape(path.named().to_str()?).replace(',', "[,]");
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    let text = match &paths[..] {
        [] => return None,
        [path] => path.clone(),
        several if several.len() <= MOST => format!("{{{}}}", several.join(",")),
        _ => return None,
    };
    PathGlob::new(&text).ok()
}

/// Whether a pattern is the same once it was written down.
fn is_written_as_read(pattern: &Pattern) -> bool {
    pattern.to_string().parse().as_ref() == Ok(pattern)
}
