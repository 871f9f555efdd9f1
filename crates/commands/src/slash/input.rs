//! An input line, read.

use super::{Section, SlashCommand, TABLE};
use crate::error::CommandError;

/// What a person's input line is.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A text for the model.
    Say(String),
    Command(SlashCommand),
    /// No command of the table, though it looks like one: it may be one of the owner's own. Nothing is sent.
    Unknown {
        /// What was typed behind the slash.
        name: String,
        /// What was typed behind the name.
        arguments: String,
    },
    /// A command whose arguments do not fit.
    Misused {
        name: &'static str,
        /// Arguments of the command, as help shows them.
        arguments: &'static str,
        why: &'static str,
    },
}

/// Reads an input line. A command begins with its first character, a slash; its name is of letters only. `//`
/// stands for a slash that begins a text, and a first word with a further slash is the name of a file in a text.
pub fn parse(line: &str) -> Input {
    let Some(typed) = line.strip_prefix('/') else { return Input::Say(line.to_owned()) };
    if typed.starts_with('/') {
        return Input::Say(typed.to_owned());
    }
    let end = typed.find(char::is_whitespace).unwrap_or(typed.len());
    let (name, rest) = (&typed[..end], typed[end..].trim());
    if name.contains('/') {
        return Input::Say(line.to_owned());
    }
    let Some(row) = TABLE.iter().find(|row| row.name == name) else {
        return Input::Unknown { name: name.to_owned(), arguments: rest.to_owned() };
    };
    match (row.read)(rest) {
        Ok(command) => Input::Command(command),
        Err(why) => Input::Misused { name: row.name, arguments: row.arguments, why },
    }
}

/// An input line that says a text, whatever the text begins with.
pub fn as_text(text: &str) -> String {
    if text.starts_with('/') { format!("/{text}") } else { text.to_owned() }
}

/// The command of the table, or among some others, that is nearest to a name.
pub(crate) fn nearest<'a>(others: impl Iterator<Item = &'a str> + Clone, name: &str) -> Option<&'a str> {
    nearest_of(TABLE.iter().map(|row| row.name).chain(others), name)
}

/// The section or command of the help that someone may have meant.
pub(super) fn nearest_topic<'a>(
    others: impl Iterator<Item = &'a str> + Clone,
    topic: &str,
) -> Option<&'a str> {
    let sections = Section::ALL.iter().map(|section| section.word());
    nearest_of(sections.chain(TABLE.iter().map(|row| row.name)).chain(others), topic)
}

/// The word nearest to a typed one: one that begins so, else the one with the fewest typing errors.
fn nearest_of<'a>(words: impl Iterator<Item = &'a str> + Clone, typed: &str) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let begins = words.clone().find(|word| !typed.is_empty() && word.starts_with(&typed));
    let closest = || {
        let apart = words.map(|word| (strsim::damerau_levenshtein(word, &typed), word));
        let alike =
            |word: &str| word.chars().zip(typed.chars()).take_while(|(one, other)| one == other).count();
        // Of two equally near the one that begins more like it.
        let (errors, word) = apart.min_by_key(|(errors, word)| (*errors, std::cmp::Reverse(alike(word))))?;
        // At most every third letter is an error: with more the name is another word.
        (errors * 3 <= word.len().max(typed.len())).then_some(word)
    };
    begins.or_else(closest)
}

impl Input {
    /// The error of an input line that is neither text nor a command.
    pub(crate) fn refused(name: &str, nearest: Option<&str>) -> CommandError {
        let hint = match nearest {
            Some(nearest) => {
                format!("did you mean /{nearest}? Nothing was sent; `//` begins a text with a slash")
            }
            None => "/help shows the commands. Nothing was sent; `//` begins a text with a slash".to_owned(),
        };
        CommandError::new(
            "unknown_command",
            2,
            format!("there is no command /{}", text::terminal::one_line(name)),
            hint,
        )
    }

    /// The error of a command whose arguments do not fit.
    pub(crate) fn misused(name: &str, arguments: &str, why: &str) -> CommandError {
        let usage = format!("/{name} {arguments}");
        CommandError::usage(format!("/{name}: {why}"), format!("type {}", usage.trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::slash::ContextForm;

    #[test]
    fn a_slash_begins_a_command_and_two_a_text() {
        assert_eq!(parse("/status"), Input::Command(SlashCommand::Status));
        assert_eq!(parse("/status  \n"), Input::Command(SlashCommand::Status));
        assert_eq!(parse("//status"), Input::Say("/status".into()));
        assert_eq!(parse("hello /status"), Input::Say("hello /status".into()));
        assert_eq!(parse(" /status"), Input::Say(" /status".into()));
        assert_eq!(parse("/etc/hosts is odd"), Input::Say("/etc/hosts is odd".into()));
        assert_eq!(parse(""), Input::Say(String::new()));
    }

    #[test]
    fn a_text_is_said_whatever_it_begins_with() {
        for text in ["/status", "//x", "plain"] {
            assert_eq!(parse(&as_text(text)), Input::Say(text.to_owned()));
        }
    }

    #[test]
    fn arguments_are_read_with_the_command() {
        let edit = |node: Option<&str>, text: &str| {
            Input::Command(SlashCommand::Edit { node: node.map(str::to_owned), text: text.to_owned() })
        };
        assert_eq!(parse("/edit a b\nc"), edit(None, "a b\nc"));
        assert_eq!(parse("/edit @7k2m a b"), edit(Some("7k2m"), "a b"));
        assert_eq!(parse("/context map"), Input::Command(SlashCommand::Context { form: ContextForm::Map }));
        for wrong in [
            "/edit",
            "/edit @7k2m",
            "/edit @ x",
            "/context all",
            "/rename",
            "/rename a b",
            "/undo 3",
            "/queue",
        ] {
            assert!(matches!(parse(wrong), Input::Misused { .. }), "{wrong}");
        }
    }

    #[test]
    fn an_unknown_command_is_no_text_and_the_nearest_is_named() {
        for (typed, meant) in [
            ("/stauts", Some("status")),
            ("/sess", Some("sessions")),
            ("/Quit", Some("quit")),
            ("/undo2", Some("undo")),
            ("/xyzzyxyzzy", None),
            ("/wxyz", None),
            ("/", None),
            ("/ status", None),
        ] {
            let Input::Unknown { name, .. } = parse(typed) else { panic!("{typed}") };
            assert_eq!(nearest([].into_iter(), &name), meant, "{typed}");
        }
        assert_eq!(nearest(["fix-issue"].into_iter(), "fix-isue"), Some("fix-issue"));
        let typed = Input::Unknown { name: "fix".to_owned(), arguments: "a  b\nc".to_owned() };
        assert_eq!(parse("/fix  a  b\nc "), typed);
    }

    #[test]
    fn a_file_to_restore_may_have_spaces_and_a_node_behind_it() {
        let of = |line: &str| match parse(line) {
            Input::Command(SlashCommand::Restore { file, node, yes }) => {
                Some((file.display().to_string(), node, yes))
            }
            _ => None,
        };
        assert_eq!(of("/restore a.txt"), Some(("a.txt".into(), None, false)));
        assert_eq!(of("/restore 'a b' @9c3d --yes"), Some(("a b".into(), Some("9c3d".into()), true)));
        assert_eq!(of("/restore --yes a 9c3d"), Some(("a".into(), Some("9c3d".into()), true)));
        for line in ["/restore", "/restore --yes", "/restore a b c", "/restore 'a"] {
            assert!(matches!(parse(line), Input::Misused { .. }), "{line}");
        }
    }

    #[test]
    fn every_row_is_read_as_its_own_command() {
        for row in TABLE {
            assert!(row.name.chars().all(|c| c.is_ascii_lowercase()), "{}", row.name);
            assert!(!row.help.is_empty());
            let needed = row.arguments.split('[').next().unwrap_or_default();
            let line = format!("/{} {needed}", row.name);
            let Input::Command(command) = parse(&line) else {
                assert_eq!(row.name, "edit", "{line}");
                continue;
            };
            // It has two names.
            let name = if row.name == "exit" { "quit" } else { row.name };
            assert_eq!(command.row().name, name);
        }
    }
}
