//! Matching of patterns against a call, part by part.
//!
//! A call consists of [items](Item): paths, hosts, commands, and effects that show in none of these. A deny or ask rule
//! needs to *hit* one item, and any way in which it may be meant counts. An allow rule must *cover* an item exactly, and
//! a call is allowed only when every item is covered.

use std::net::IpAddr;

use workspace::RelativePath;

use crate::call::{CallFacts, CommandFacts, CommandStart, Effect, PathAccess, PathPlace, PathUse};
use crate::exec_match::{self, Match};
use crate::pattern::{EVERY_TOOL, Limit, Pattern, host_name};
use crate::rule::PolicyRule;
use crate::shell::{CommandLine, Redirection, SimpleCommand, Word};
use crate::table::is_protected;

/// The file that keeps nothing.
const NOWHERE: &str = "/dev/null";

/// Part of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item<'a> {
    /// An effect with no part of its own.
    Effect(Effect),
    Path(&'a PathUse),
    Host(&'a str),
    Command(&'a SimpleCommand),
}

/// Whether a text can be the name of a host, or its address.
fn is_host(text: &str) -> bool {
    let name = host_name(text);
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    (is_name && !name.is_empty()) || name.parse::<IpAddr>().is_ok()
}

/// Characters of a part of a call that are named.
const NAMED: usize = 80;

/// The beginning of a text in one line, of which nothing is hidden: at most so many characters, and a mark where more
/// follow.
pub(crate) fn shown(text: &str, most: usize) -> String {
    let (mut shown, mut length) = (String::new(), 0);
    for char in text.chars() {
        let char = match char {
            '"' | '\'' | '\\' => char.to_string(),
            // It stands between two of them.
            '`' => "\\u{60}".to_owned(),
            other => other.escape_debug().to_string(),
        };
        length += char.chars().count();
        if length > most {
            return shown + "…";
        }
        shown += &char;
    }
    shown
}

/// A call with its command line read.
pub(crate) struct CallView<'a> {
    call: &'a CallFacts,
    line: Option<CommandLine>,
    /// Whether an allow rule may cover its commands.
    is_plain: bool,
}

impl<'a> CallView<'a> {
    pub(crate) fn new(call: &'a CallFacts) -> Self {
        let line = call.command.as_ref().map(|command| CommandLine::read(&command.line));
        let is_plain = match (&line, &call.command) {
            (Some(line), Some(command)) => line.is_plain() && stays_inside(line, command),
            _ => true,
        };
        Self { call, line, is_plain }
    }

    /// Parts of the call; never none.
    pub(crate) fn items(&self) -> Vec<Item<'_>> {
        let commands = self.line.iter().flat_map(|line| &line.commands).map(Item::Command);
        let paths = self.call.paths.iter().map(Item::Path);
        let mut items: Vec<Item<'_>> =
            paths.chain(self.call.hosts().map(Item::Host)).chain(commands).collect();
        for effect in Effect::ALL {
            if self.call.has(effect) && !items.iter().any(|item| self.is_of(*item, effect)) {
                items.push(Item::Effect(effect));
            }
        }
        if self.call.is_open() {
            items.push(Item::Effect(Effect::Net));
        }
        if items.is_empty() {
            items.push(Item::Effect(Effect::Read));
        }
        items
    }

    /// Parts that an allow rule must cover. The table allows all reading of our own tools.
    pub(crate) fn demands(&self) -> Vec<Item<'_>> {
        let mut items = self.items();
        if self.call.server.is_none() {
            items.retain(|item| !self.is_of(*item, Effect::Read));
        }
        // What a command writes is allowed with the command.
        if self.call.command.is_some() {
            items.retain(|item| !matches!(item, Item::Effect(Effect::Write)));
        }
        items
    }

    /// A command or a host in words, in one line; none of other items.
    pub(crate) fn named(&self, item: Item<'_>) -> Option<String> {
        match item {
            Item::Host(host) if is_host(host) => Some(format!("the host {}", shown(host, NAMED))),
            Item::Host(other) => Some(format!("`{}`, which is no host", shown(other, NAMED))),
            Item::Command(_) | Item::Effect(Effect::Exec) if !self.is_plain => {
                Some("a line that is more than plain commands".to_owned())
            }
            Item::Command(command) => {
                let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
                Some(format!("`{}`", shown(&words.join(" "), NAMED)))
            }
            Item::Effect(_) | Item::Path(_) => None,
        }
    }

    /// Whether an item belongs to an effect. A host is that of a message as well, where one is sent.
    fn is_of(&self, item: Item<'_>, effect: Effect) -> bool {
        match item {
            Item::Effect(other) => other == effect,
            Item::Path(path) if path.access == PathAccess::Read => effect == Effect::Read,
            Item::Path(_) => effect == Effect::Write,
            Item::Host(_) => {
                effect == Effect::Net || (effect == Effect::Message && self.call.effects.contains(&effect))
            }
            Item::Command(_) => effect == Effect::Exec,
        }
    }

    /// Whether a pattern may mean an item.
    pub(crate) fn hits(&self, pattern: &Pattern, item: Item<'_>) -> Match {
        match (pattern, item) {
            (Pattern::Exec { words, more }, Item::Command(command)) => {
                exec_match::hits(words, *more, command).max(self.hits_beside(words, *more))
            }
            (Pattern::Exec { words, more }, Item::Effect(Effect::Exec)) => self.hits_beside(words, *more),
            (Pattern::Exec { .. }, _) => Match::No,
            (Pattern::Tool { server, name, limit }, _) => {
                if self.is_named(server.as_deref(), name) {
                    self.hits_limit(limit.as_ref(), item)
                } else {
                    Match::No
                }
            }
            (Pattern::Effect { effect, limit }, _) => {
                if self.is_of(item, *effect) {
                    self.hits_limit(limit.as_ref(), item)
                } else {
                    Match::No
                }
            }
        }
    }

    /// Whether a command that was not found may be what words say.
    fn hits_beside(&self, words: &[String], more: bool) -> Match {
        self.line.as_ref().map_or(Match::No, |line| exec_match::hits_beside(words, more, line))
    }

    /// Whether a pattern may mean what lies below a path that a call looks through.
    fn hits_below(&self, pattern: &Pattern, item: Item<'_>) -> bool {
        let (is_about, limit) = match pattern {
            Pattern::Tool { server, name, limit } => (self.is_named(server.as_deref(), name), limit),
            Pattern::Effect { effect, limit } => (self.is_of(item, *effect), limit),
            Pattern::Exec { .. } => return false,
        };
        match (limit, item) {
            (Some(Limit::Path(glob)), Item::Path(folder)) => {
                is_about && self.call.looks_below && glob.may_hit_below(folder)
            }
            _ => false,
        }
    }

    fn hits_limit(&self, limit: Option<&Limit>, item: Item<'_>) -> Match {
        let yes = |is: bool| if is { Match::Yes } else { Match::No };
        match (limit, item) {
            (None, _) => Match::Yes,
            (Some(Limit::Path(glob)), Item::Path(path)) => yes(glob.hits(path)),
            (Some(Limit::Host(host)), Item::Host(other)) => {
                let other = host_name(other);
                let below = other.strip_suffix(host.as_str());
                yes(below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
            }
            // Hosts that are not named, and paths that only the server knows.
            (Some(Limit::Host(_)), Item::Effect(Effect::Net | Effect::Message)) => Match::Unknown,
            (Some(Limit::Path(_)), Item::Effect(Effect::Read | Effect::Write))
                if self.call.server.is_some() =>
            {
                Match::Unknown
            }
            (Some(_), _) => Match::No,
        }
    }

    /// Whether a pattern means an item for certain.
    pub(crate) fn covers(&self, pattern: &Pattern, item: Item<'_>) -> bool {
        if matches!(item, Item::Command(_) | Item::Effect(Effect::Exec)) && !self.is_plain {
            return false;
        }
        match (pattern, item) {
            (Pattern::Exec { words, more }, Item::Command(command)) => {
                exec_match::covers(words, *more, command)
            }
            (Pattern::Exec { .. }, _) => false,
            (Pattern::Tool { server, name, limit }, _) => {
                self.is_named(server.as_deref(), name) && self.is_within(limit.as_ref())
            }
            (Pattern::Effect { effect, limit }, _) => {
                self.is_of(item, *effect)
                    && match (limit, item) {
                        (None, _) => true,
                        (Some(Limit::Path(glob)), Item::Path(path)) => glob.covers(path),
                        (Some(Limit::Host(host)), Item::Host(other)) => host_name(other) == *host,
                        (Some(_), _) => false,
                    }
            }
        }
    }

    /// Whether patterns together mean all of the call, reading left out.
    pub(crate) fn is_covered_by(&self, patterns: &[Pattern]) -> bool {
        self.demands().into_iter().all(|item| patterns.iter().any(|pattern| self.covers(pattern, item)))
    }

    /// Files that its line writes by redirections, with their names there.
    pub(crate) fn redirected(&self) -> impl Iterator<Item = (&str, Result<PathUse, Unlocated>)> {
        self.line.iter().zip(&self.call.command).flat_map(|(line, command)| {
            let is_anywhere = !line.is_plain() || moves(line, command);
            let written = line.redirections.iter().filter(|to| to.writes && to.target.text != NOWHERE);
            written.map(move |Redirection { target, .. }| {
                let path = located(command, target, is_anywhere).map(|path| PathUse {
                    path,
                    further_root: command.further_root.clone(),
                    access: PathAccess::Write,
                    place: PathPlace::WritableRoot,
                });
                (target.text.as_str(), path)
            })
        })
    }

    /// Whether all that a limit speaks of lies within it.
    fn is_within(&self, limit: Option<&Limit>) -> bool {
        match limit {
            None => true,
            Some(Limit::Path(glob)) => {
                let paths = &self.call.paths;
                !paths.is_empty() && paths.iter().all(|path| glob.covers(path))
            }
            Some(Limit::Host(host)) => {
                let mut hosts = self.call.hosts().peekable();
                !self.call.is_open() && hosts.peek().is_some() && hosts.all(|other| host_name(other) == *host)
            }
        }
    }

    fn is_named(&self, server: Option<&str>, name: &str) -> bool {
        let is_any = server.is_some() && name == EVERY_TOOL;
        self.call.server.as_ref().map(|server| server.name.as_str()) == server
            && (is_any || self.call.tool == name)
    }

    /// Whether a rule that denies or asks is about the call, and by which of its patterns.
    pub(crate) fn falls_to<'r>(&self, rule: &'r PolicyRule) -> (Match, Option<&'r Pattern>) {
        let mut best = (Match::No, None);
        for item in self.items() {
            if rule.unless.iter().any(|pattern| self.covers(pattern, item)) {
                continue;
            }
            for pattern in &rule.tool {
                let hit = self.hits(pattern, item);
                if hit > best.0 {
                    best = (hit, Some(pattern));
                }
            }
        }
        best
    }

    /// Whether one of its exceptions takes the call out of a rule that allows.
    pub(crate) fn is_taken_out(&self, rule: &PolicyRule) -> bool {
        let may_be = |pattern| self.items().into_iter().any(|item| self.hits(pattern, item) != Match::No);
        rule.unless.iter().any(may_be)
    }
}

/// Whether one of some patterns means a part of a call, or may.
pub fn may_mean(patterns: &[Pattern], call: &CallFacts) -> bool {
    let view = CallView::new(call);
    let is_meant = |item| {
        patterns.iter().any(|pattern| view.hits(pattern, item) != Match::No || view.hits_below(pattern, item))
    };
    view.items().into_iter().any(is_meant)
}

/// Files that the line of a call writes by redirections, by their names there.
pub fn redirected_files(call: &CallFacts) -> Vec<PathUse> {
    CallView::new(call).redirected().filter_map(|(_, path)| path.ok()).collect()
}

/// Whether all redirections of a line lead to files below the root that are not protected.
fn stays_inside(line: &CommandLine, command: &CommandFacts) -> bool {
    let is_anywhere = moves(line, command);
    line.redirections.iter().all(|Redirection { target, writes }| {
        let is_open = |path: RelativePath| !(*writes && is_protected(&path));
        target.text == NOWHERE || located(command, target, is_anywhere).is_ok_and(is_open)
    })
}

/// Whether a part of a line may run elsewhere than in its directory.
fn moves(line: &CommandLine, command: &CommandFacts) -> bool {
    let changes = |command: &SimpleCommand| {
        matches!(command.words.first().map(|word| word.text.as_str()), Some("cd" | "pushd" | "popd"))
    };
    // A command that reads it as input may be anywhere.
    command.start == CommandStart::Input || line.commands.iter().any(changes)
}

/// Why nobody knows which file below the root a redirection is to, before its line runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unlocated {
    /// Upwards by `..` from a name that is or may be a link.
    GoesUp,
    Else,
}

/// The file of a redirection.
fn located(command: &CommandFacts, target: &Word, is_anywhere: bool) -> Result<RelativePath, Unlocated> {
    if is_anywhere || !target.known || target.text.starts_with(['/', '~']) {
        return Err(Unlocated::Else);
    }
    let mut parts = target.text.split('/').filter(|part| !matches!(*part, "" | ".")).peekable();
    let goes_up = parts.peek() == Some(&"..");
    let goes_up_from_a_name = parts.skip_while(|part| *part == "..").any(|part| part == "..");
    if goes_up_from_a_name || (goes_up && !command.directory_is_direct) {
        return Err(Unlocated::GoesUp);
    }
    RelativePath::parse(&format!("{}/{}", command.directory, target.text)).map_err(|_| Unlocated::Else)
}
