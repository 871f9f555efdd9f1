//! `/export`: the conversation as a new file.

use std::path::PathBuf;

use clap::ValueEnum as _;

use super::SlashCommand;
use crate::app::App;
use crate::args::tree::{Export, FormatArg};
use crate::args::{TreeArg, ViewArg};
use crate::chat::Conversation;
use crate::error::CommandError;
use crate::results::CommandOutcome;
use crate::rights::Asker;
use crate::transfer;

/// The formats, as they are typed.
pub(super) const FORMATS: [&str; 6] = ["jsonl", "text", "markdown", "html", "annotations", "training"];

/// Reads `[FORMAT] [FILE]`. A first word that is no format names the file if it looks like one.
pub(super) fn read(rest: &str) -> Result<SlashCommand, &'static str> {
    let (first, more) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if let Ok(format) = FormatArg::from_str(first, false) {
        let file = (!more.trim().is_empty()).then(|| PathBuf::from(more.trim()));
        return Ok(SlashCommand::Export { format: Some(format), file });
    }
    if rest.is_empty() {
        return Ok(SlashCommand::Export { format: None, file: None });
    }
    if !rest.contains(['.', '/']) {
        return Err(match first {
            "md" => "did you mean markdown? The name of a file follows it",
            "txt" => "did you mean text? The name of a file follows it",
            "htm" => "did you mean html? The name of a file follows it",
            "json" => "did you mean jsonl? The name of a file follows it",
            _ => {
                "the format is jsonl, text, markdown, html, annotations or training, and the name of a file follows it"
            }
        });
    }
    Ok(SlashCommand::Export { format: None, file: Some(PathBuf::from(rest)) })
}

/// Writes what a conversation shows.
pub(super) async fn export(
    app: &App,
    asker: &Asker,
    conversation: &Conversation,
    format: Option<FormatArg>,
    file: Option<PathBuf>,
) -> Result<CommandOutcome, CommandError> {
    let (tree, view) = super::run::place(app, asker, conversation).await?;
    let how = "`/export FORMAT FILE`";
    let format = transfer::format(app, format, file.as_deref(), FormatArg::Markdown, how);
    let file = file.unwrap_or_else(|| named(&conversation.name(), format));
    // Nothing is asked at an input line; what is there stays.
    if file.symlink_metadata().is_ok() {
        let shown = text::terminal::one_line(&file.to_string_lossy()).into_owned();
        let hint = "name another file: /export FORMAT FILE";
        return Err(CommandError::new("exists", 2, format!("{shown} exists"), hint));
    }
    let tree = TreeArg { tree: tree.to_string(), view: ViewArg { view: Some(view.to_string()) } };
    let (share, with_context) = (false, false);
    let format = Some(format);
    transfer::export(app, asker, Export { tree, format, share, with_context, output: Some(file) }).await
}

/// A file named after a session, in the current folder.
fn named(session: &str, format: FormatArg) -> PathBuf {
    let ending = match format {
        FormatArg::Jsonl => "jsonl",
        FormatArg::Text => "txt",
        FormatArg::Markdown => "md",
        FormatArg::Html => "html",
        FormatArg::Annotations => "annotations.md",
        FormatArg::Training => "training.jsonl",
    };
    PathBuf::from(format!("{}.{ending}", session.replace(':', "-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(rest: &str) -> Option<(Option<FormatArg>, Option<PathBuf>)> {
        match read(rest) {
            Ok(SlashCommand::Export { format, file }) => Some((format, file)),
            _ => None,
        }
    }

    #[test]
    fn a_format_a_file_or_both_are_named() {
        let file = |path: &str| Some(PathBuf::from(path));
        assert_eq!(reads(""), Some((None, None)));
        assert_eq!(reads("html"), Some((Some(FormatArg::Html), None)));
        assert_eq!(reads("html my talk"), Some((Some(FormatArg::Html), file("my talk"))));
        assert_eq!(reads("talk.txt"), Some((None, file("talk.txt"))));
        assert_eq!(reads("talk.pdf"), Some((None, file("talk.pdf"))));
        assert_eq!(reads("./html"), Some((None, file("./html"))));
        assert_eq!(reads("pdf"), None);
        assert_eq!(reads("html talk.pdf"), Some((Some(FormatArg::Html), file("talk.pdf"))));
        for format in FORMATS {
            assert!(reads(format).is_some_and(|(read, _)| read.is_some()), "{format}");
        }
        assert_eq!(FORMATS.len(), FormatArg::value_variants().len());
    }

    #[test]
    fn a_file_is_named_after_the_session() {
        assert_eq!(named("main:alt", FormatArg::Markdown), PathBuf::from("main-alt.md"));
    }
}
