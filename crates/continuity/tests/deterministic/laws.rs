//! What holds for every handoff that is made without a model.

use std::fmt;

use drawloom_continuity::deterministic::DeterministicHandoff;
use drawloom_continuity::handoff::check;
use text::finding::{Finding, Severity};

use crate::conversations::Conversation;

pub(crate) const LAWS: [&str; 8] = [
    "it has no error",
    "no log of activity stands",
    "no order stands without brackets",
    "nothing that is corrected stands",
    "what is from outside is a quotation",
    "the last request and its end are named",
    "the open steps are the next steps",
    "each entry has its source",
];

/// The laws that a handoff of a conversation breaks.
pub(crate) fn broken(conversation: &Conversation, made: &DeterministicHandoff) -> Vec<&'static str> {
    let text = made.handoff.render();
    let found = check(&text);
    let overflow: Vec<&str> = made.overflow.iter().map(|entry| &*entry.text).collect();
    let stands = |mark: &String| text.contains(&**mark) || overflow.iter().any(|line| line.contains(&**mark));
    let is_kept = [
        found.iter().all(|finding| finding.severity != Severity::Error),
        found.iter().all(|finding| finding.code != "activity")
            && !conversation.logs.iter().any(|mark| text.contains(&**mark)),
        unbracketed(&text).is_none() && overflow.iter().all(|line| is_harmless(line)),
        !conversation.corrected.iter().any(stands),
        conversation.from_outside.iter().all(|mark| is_quoted(mark, &text, &overflow)),
        names_the_end(conversation, &made.handoff.stopping_point),
        has_steps(conversation, &made.handoff.next_steps, text.len()),
        made.sources.len() == text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count(),
    ];
    LAWS.into_iter().zip(is_kept).filter(|(_, is_kept)| !is_kept).map(|(law, _)| law).collect()
}

fn speaks(finding: &Finding) -> bool {
    let codes = ["role_tag", "role_marker", "override_phrase", "hidden_characters", "encoded_text"];
    codes.contains(&finding.code)
}

/// Whether the line of a finding is one that stands in brackets from its beginning to its end.
fn is_bracketed(text: &str, finding: &Finding) -> bool {
    let line = text.lines().nth(finding.line.unwrap() - 1).unwrap();
    let entry = line.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.' | ' '));
    let inside = entry.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inside.is_some_and(|inside| inside.starts_with(finding.code) && !inside.contains(['[', ']']))
}

/// What speaks to a model without brackets.
pub(crate) fn unbracketed(text: &str) -> Option<Finding> {
    check(text).into_iter().find(|finding| speaks(finding) && !is_bracketed(text, finding))
}

/// Whether it is one line in which nothing speaks, or that is bracketed.
pub(crate) fn is_harmless(line: &str) -> bool {
    !line.contains('\n') && unbracketed(&format!("- {line}")).is_none()
}

/// Whether each line with a mark quotes it with its origin, in 160 characters.
fn is_quoted(mark: &str, text: &str, overflow: &[&str]) -> bool {
    let entries = text
        .lines()
        .map(|line| line.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.' | ' ')));
    let mut with_mark = entries.chain(overflow.iter().copied()).filter(|line| line.contains(mark));
    with_mark.all(|line| {
        line.starts_with("example.org says: \"") && line.ends_with('"') && line.chars().count() <= 160
    })
}

fn names_the_end(conversation: &Conversation, stopping_point: &str) -> bool {
    stopping_point.contains(&conversation.last_request)
        && (stopping_point.contains(conversation.ending) || conversation.last_request.is_empty())
}

/// Whether the open steps stand in their order, all of them where there is room.
fn has_steps(conversation: &Conversation, next: &[String], bytes: usize) -> bool {
    let planted: Vec<&String> = conversation.steps.iter().collect();
    let in_order = next.iter().zip(&planted).all(|(step, mark)| step.contains(&***mark));
    let has_room = bytes < 1200 || next.len() >= planted.len().min(3);
    // What else was planted may stand among them.
    conversation.is_hostile || in_order && has_room && (bytes > 1600 || next.len() >= planted.len().min(5))
}

/// How much of what is planted is handed over.
#[derive(Default)]
pub(crate) struct Shares {
    conversations: usize,
    hostile: usize,
    /// Those from which lines had to leave.
    full: usize,
    noted: Share,
    noted_in_handoff: Share,
    said: Share,
    said_in_handoff: Share,
    bytes: usize,
}

#[derive(Default)]
struct Share {
    there: usize,
    all: usize,
}

impl Share {
    fn count(&mut self, is_there: bool) {
        self.there += usize::from(is_there);
        self.all += 1;
    }

    fn of_all(&self) -> f64 {
        self.there as f64 / self.all as f64
    }
}

impl Shares {
    pub(crate) fn count(&mut self, conversation: &Conversation, made: &DeterministicHandoff) {
        let text = made.handoff.render();
        let stands =
            |mark: &str| text.contains(mark) || made.overflow.iter().any(|entry| entry.text.contains(mark));
        self.conversations += 1;
        self.hostile += usize::from(conversation.is_hostile);
        self.full += usize::from(!made.overflow.is_empty() && text.len() > 1600);
        self.bytes += text.len();
        for mark in &conversation.noted {
            self.noted.count(stands(mark));
            self.noted_in_handoff.count(text.contains(&**mark));
        }
        for mark in &conversation.said {
            self.said.count(stands(mark));
            self.said_in_handoff.count(text.contains(&**mark));
        }
    }

    pub(crate) fn noted(&self) -> f64 {
        self.noted.of_all()
    }

    pub(crate) fn said(&self) -> f64 {
        self.said.of_all()
    }

    pub(crate) fn full(&self) -> f64 {
        self.full as f64 / self.conversations as f64
    }

    pub(crate) fn hostile(&self) -> f64 {
        self.hostile as f64 / self.conversations as f64
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: &Share| format!("{:.1} % of {}", share.of_all() * 100.0, share.all);
        writeln!(
            f,
            "{} conversations, {} hostile, {} full, {} bytes each",
            self.conversations,
            self.hostile,
            self.full,
            self.bytes / self.conversations
        )?;
        writeln!(
            f,
            "noted: {} handed over, {} in the handoff",
            percent(&self.noted),
            percent(&self.noted_in_handoff)
        )?;
        write!(
            f,
            "said plainly: {} handed over, {} in the handoff",
            percent(&self.said),
            percent(&self.said_in_handoff)
        )
    }
}
