//! Errors of the command line itself, in the same form as all others.

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use commands::CommandError;
use text::terminal::one_line;

/// The error of arguments that were not understood; none where help or the version was asked for.
pub(crate) fn error(found: &Error) -> Option<CommandError> {
    if matches!(found.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return None;
    }
    let context = |kind| match found.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) if !texts.is_empty() => Some(texts.join(", ")),
        Some(ContextValue::StyledStr(text)) => Some(text.to_string()),
        Some(ContextValue::StyledStrs(texts)) => texts.first().map(ToString::to_string),
        _ => None,
    };
    if found.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Some(CommandError::usage("a command is missing", "`drawloom --help` lists them"));
    }
    let suggestion =
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue]
            .into_iter()
            .find_map(context)
            .map(|meant| format!("did you mean {meant}?"));
    let valid = || context(ContextKind::ValidValue).map(|values| format!("possible values: {values}"));
    let hint = suggestion.or_else(valid).or_else(|| context(ContextKind::Suggested)).unwrap_or_else(help);
    // The first paragraph says what is wrong; what follows is usage and advice.
    let rendered = found.render().to_string();
    let paragraph: Vec<&str> =
        rendered.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
    let message = paragraph.join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    let message = message.split(" [possible values:").next().unwrap_or(message);
    Some(CommandError::usage(one_line(message), one_line(&hint)))
}

fn help() -> String {
    "`--help` shows what goes there".to_owned()
}
