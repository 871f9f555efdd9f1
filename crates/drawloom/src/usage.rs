//! Errors of the command line itself, in the same form as all others.

use std::ffi::OsString;
use std::num::{ParseFloatError, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Error};
use commands::CommandError;
use commands::args::tree::InvalidNumber;
use text::terminal::one_line;

use crate::cli::Cli;

/// Forms that people guess: the command, what of it is refused (any text, where it is [`TEXT`]), and what to type.
const GUESSES: [(&str, &str, &str); 22] = [
    ("drawloom", "models", "`drawloom model list` lists the models"),
    ("drawloom", "logs", "`drawloom log` shows the last exchanges"),
    ("drawloom", "keys", SETS_KEY),
    ("drawloom", "key", SETS_KEY),
    ("drawloom", "session", "`drawloom sessions list` lists the sessions"),
    (
        "drawloom",
        "verify",
        "`drawloom tree verify TREE` checks a tree against its hashes; in a conversation it is /verify",
    ),
    ("drawloom", "trees", "`drawloom tree list` lists the trees"),
    ("drawloom ask", "-s", NO_SESSION),
    ("drawloom ask", "--session", NO_SESSION),
    ("drawloom ask", "-f", "write --file FILE"),
    ("drawloom ask", TEXT, "a question of several words needs quotes: `drawloom ask \"TEXT\"`"),
    ("drawloom chat", "-s", "write --session NAME; a system prompt is --system TEXT"),
    ("drawloom chat", "-f", "write --file FILE"),
    ("drawloom chat", EARLIER, "write --temperature NUMBER; a conversation that is forgotten is --private"),
    ("drawloom mcp add", TEXT, ADDS_SERVER),
    ("drawloom mcp add", "<COMMAND>...", ADDS_SERVER),
    ("drawloom tree head", TEXT, "the text is that of a flag: `drawloom tree head TREE --text TEXT`"),
    ("drawloom tree note", TEXT, "the text is that of a flag: `drawloom tree note TREE --text TEXT`"),
    ("drawloom tree draft", "--text", "it comes after the tree: `drawloom tree draft TREE TEXT`"),
    ("drawloom tree draft", TEXT, "a text is one argument, in quotes: `drawloom tree draft TREE \"TEXT\"`"),
    ("drawloom tree append", "--text", "it comes after the tree: `drawloom tree append TREE TEXT`"),
    ("drawloom tree append", TEXT, "a text is one argument, in quotes: `drawloom tree append TREE \"TEXT\"`"),
];
/// An earlier name, of which people do not know whether it was `--private` or is `--temperature`.
const EARLIER: &str = "--temp";
/// In [`GUESSES`], what is no flag.
const TEXT: &str = "";
const SETS_KEY: &str = "`drawloom config set providers.NAME.key` asks for a key and keeps it";
const ADDS_SERVER: &str = "`drawloom mcp add NAME -- PROGRAM ARG…` adds a program, `drawloom mcp add NAME --url URL` a server at an address";
const NO_SESSION: &str = "a question has no session: `drawloom chat --session NAME -m TEXT`, or -c to go on with the last \
                          question; a system prompt is --system TEXT";

/// What to type in place of a form that people guess.
fn guessed(command: &str, refused: &str) -> Option<&'static str> {
    let is_it = |guess: &str| guess == refused || guess == TEXT && !refused.starts_with(['-', '<']);
    let row = GUESSES.iter().find(|(of, guess, _)| *of == command && is_it(guess));
    row.map(|(_, _, meant)| *meant)
}

/// The help of the program.
pub(crate) fn help() -> String {
    Cli::command().render_help().to_string()
}

/// The error of arguments that were not understood; none where help or the version was asked for.
pub(crate) fn error(found: &Error, arguments: &[OsString]) -> Option<CommandError> {
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
    let rendered = found.render().to_string();
    let command = command(&rendered).unwrap_or_else(|| command_of(arguments));
    if matches!(
        found.kind(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand
    ) {
        let hint = format!("`{command} --help` lists the commands");
        return Some(CommandError::usage("a command is missing", hint));
    }
    if let Some(refused) = value(found) {
        return Some(CommandError::usage(one_line(&refused), format!("see `{command} --help`")));
    }
    let typed = context(ContextKind::InvalidSubcommand).or_else(|| context(ContextKind::InvalidValue));
    let suggestion =
        [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue]
            .into_iter()
            .find_map(context)
            .and_then(|all| {
                let typed = typed.as_deref();
                // An earlier name is refused itself.
                let names = all.split(", ").map(|name| if name == EARLIER { "--temperature" } else { name });
                let near = names.filter(|meant| typed.is_none_or(|typed| is_near(typed, meant)));
                let errors =
                    |meant: &&str| typed.map_or(0, |typed| strsim::damerau_levenshtein(typed, meant));
                near.min_by_key(errors).map(str::to_owned)
            })
            .map(|meant| format!("did you mean {meant}?"));
    let message_of_chat = || {
        let word = context(ContextKind::InvalidArg).filter(|word| !word.starts_with('-'))?;
        (found.kind() == ErrorKind::UnknownArgument && command == "drawloom chat")
            .then(|| format!("did you mean -m \"{word}\"?"))
    };
    let valid = || context(ContextKind::ValidValue).map(|values| format!("possible values: {values}"));
    let refused = context(ContextKind::InvalidSubcommand).or_else(|| {
        let is_it = matches!(
            found.kind(),
            ErrorKind::UnknownArgument | ErrorKind::TooManyValues | ErrorKind::MissingRequiredArgument
        );
        is_it.then(|| context(ContextKind::InvalidArg)).flatten()
    });
    // An earlier name took no value: what stands behind it is the one of its new name.
    let is_earlier =
        |pair: &[OsString]| pair[0] == EARLIER && refused.as_deref().is_some_and(|it| pair[1] == *it);
    let refused = if arguments.windows(2).any(is_earlier) { Some(EARLIER.to_owned()) } else { refused };
    let guess = refused.and_then(|refused| guessed(&command, &refused)).map(str::to_owned);
    let hint = guess.or_else(message_of_chat).or(suggestion).or_else(valid);
    let hint = hint.or_else(|| match context(ContextKind::Suggested)? {
        // It is right of a text and wrong of a flag.
        tip if tip.starts_with("to pass '-") => {
            Some(format!("see `{command} --help`; a text that begins with - comes after `--`"))
        }
        tip => Some(tip),
    });
    let hint = hint.unwrap_or_else(|| format!("see `{command} --help`"));
    // The first paragraph says what is wrong; what follows is usage and advice.
    let paragraph: Vec<&str> =
        rendered.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
    let message = paragraph.join(" ");
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    let message = message.split(" [possible values:").next().unwrap_or(message);
    let message = message.replace("|-", " or -");
    Some(CommandError::usage(one_line(&message), one_line(&hint)))
}

/// The command with its subcommands, as the usage in a text of clap's names it; none in a text without usage.
fn command(rendered: &str) -> Option<String> {
    let usage = rendered.lines().find_map(|line| line.trim_start().strip_prefix("Usage: "))?;
    let words = usage.split_whitespace();
    Some(words.take_while(|word| !word.starts_with(['[', '<', '-'])).collect::<Vec<_>>().join(" "))
}

/// The command with its subcommands, as it was typed. The values of flags before it are passed over.
fn command_of(arguments: &[OsString]) -> String {
    let program = Cli::command();
    let takes_value = |word: &str| {
        let flag = word.strip_prefix("--");
        let found = program.get_arguments().find(|argument| argument.get_long() == flag);
        flag.is_some() && found.is_some_and(|argument| argument.get_action().takes_values())
    };
    let (mut at, mut path) = (&program, "drawloom".to_owned());
    let mut words = arguments.iter().skip(1).filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        if takes_value(word) {
            words.next();
        } else if let Some(found) = at.find_subcommand(word) {
            at = found;
            path = format!("{path} {word}");
        }
    }
    path
}

/// What our own rule of a value, or that of a number, says, as `--temperature takes a number from 0 to 5`.
fn value(found: &Error) -> Option<String> {
    let source = std::error::Error::source(found)?;
    let Some(ContextValue::String(argument)) = found.get(ContextKind::InvalidArg) else { return None };
    let flag = argument.split_whitespace().next()?;
    if source.is::<ParseIntError>() {
        return Some(format!("{flag} takes a whole number"));
    }
    if source.is::<ParseFloatError>() {
        return Some(format!("{flag} takes a number"));
    }
    source.downcast_ref::<InvalidNumber>().map(|rule| format!("{flag} {rule}"))
}

/// Whether a word is another one with few typing errors.
fn is_near(typed: &str, meant: &str) -> bool {
    let errors = strsim::damerau_levenshtein(typed, meant);
    errors * 3 <= typed.chars().count().max(meant.chars().count())
}
