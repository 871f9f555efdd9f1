//! Completion of slash commands and their arguments.

use std::ops::Range;

use super::{Section, TABLE};
use crate::skills::is_of_name;

/// What the argument of a command may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidates {
    /// Nothing that could be listed.
    None,
    Words(&'static [&'static str]),
    /// The name of a command, or of a section of the help.
    Commands,
    Sessions,
    Models,
}

/// Names that are known when a line is typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompletionNames {
    /// Sessions, and forks as `SESSION:FORK`.
    pub sessions: Vec<String>,
    pub models: Vec<String>,
    /// Commands of the owner's own.
    pub commands: Vec<String>,
    /// Skills that a message may name.
    pub skills: Vec<String>,
}

/// What may stand at the end of `line`, which ends at the cursor: texts with the bytes of the line each replaces.
pub fn complete(line: &str, known: &CompletionNames) -> (Range<usize>, Vec<String>) {
    let none = (line.len()..line.len(), Vec::new());
    let Some(typed) = line.strip_prefix('/') else {
        return skill_begun(line).map_or(none, |typed| {
            let names = known.skills.iter().map(String::as_str);
            (line.len() - typed.len()..line.len(), beginning(typed, names, ""))
        });
    };
    let Some((name, argument)) = typed.split_once(' ') else {
        let own = known.commands.iter().map(String::as_str);
        return (0..line.len(), beginning(typed, TABLE.iter().map(|row| row.name).chain(own), "/"));
    };
    let Some(row) = TABLE.iter().find(|row| row.name == name) else { return none };
    if argument.contains(char::is_whitespace) {
        return none;
    }
    let found = match row.candidates {
        Candidates::None => Vec::new(),
        Candidates::Words(words) => beginning(argument, words.iter().copied(), ""),
        Candidates::Commands => {
            let sections = Section::ALL.iter().map(|section| section.word());
            let own = known.commands.iter().map(String::as_str);
            beginning(argument, sections.chain(TABLE.iter().map(|row| row.name)).chain(own), "")
        }
        Candidates::Sessions => beginning(argument, known.sessions.iter().map(String::as_str), ""),
        Candidates::Models => beginning(argument, known.models.iter().map(String::as_str), ""),
    };
    (line.len() - argument.len()..line.len(), found)
}

/// What of the name of a skill is typed at the end of a text, behind the `$` that begins it.
fn skill_begun(line: &str) -> Option<&str> {
    let word = line.rsplit(char::is_whitespace).next()?;
    let (before, typed) = word.rsplit_once('$')?;
    (!before.ends_with(|c: char| is_of_name(c) || matches!(c, '$' | '\\')) && typed.chars().all(is_of_name))
        .then_some(typed)
}

fn beginning<'a>(typed: &str, all: impl Iterator<Item = &'a str>, before: &str) -> Vec<String> {
    all.filter(|one| one.starts_with(typed)).map(|one| format!("{before}{one}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_arguments_are_completed_and_texts_are_not() {
        let known = CompletionNames {
            sessions: vec!["main".into(), "main:alt".into(), "plans".into()],
            models: vec!["script:echo".into()],
            commands: vec!["reword".into()],
            skills: vec!["paint".into(), "pdf".into()],
        };
        let of = |line| complete(line, &known);
        assert_eq!(
            of("/re").1,
            ["/rename", "/retry", "/regenerate", "/redo", "/reload", "/restore", "/reword"]
        );
        assert_eq!(
            of("/s").1,
            [
                "/status",
                "/sessions",
                "/switch",
                "/siblings",
                "/system",
                "/set",
                "/search",
                "/skills",
                "/subagents",
                "/stop"
            ]
        );
        assert_eq!(of("/switch m"), (8..9, vec!["main".to_owned(), "main:alt".to_owned()]));
        assert_eq!(of("/model "), (7..7, vec!["script:echo".to_owned()]));
        assert_eq!(of("/context d").1, ["detail"]);
        assert_eq!(of("/help und").1, ["undo"]);
        assert_eq!(of("/help se").1, ["settings", "session", "sessions", "set", "search"]);
        assert_eq!(of("Use ($p"), (6..7, vec!["paint".to_owned(), "pdf".to_owned()]));
        assert_eq!(of("$pd").1, ["pdf"]);
        for text in [
            "",
            "he",
            "//s",
            "/rename x",
            "/switch main m",
            "/nothing x",
            "$pdf and",
            "5$p",
            "$$p",
            "\\$p",
            "$HO",
        ] {
            assert!(of(text).1.is_empty(), "{text}");
        }
    }
}
