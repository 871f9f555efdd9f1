//! The command line: the table of commands with the flags that every command takes.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use commands::Command;

/// The first four things to try; each works as it stands, from an empty home.
const EXAMPLES: &str = "\
Examples:
  drawloom demo                                       a story, without a network
  drawloom tree new --title Tale --text \"It rained.\"  begin a document
  drawloom tree generate Tale --model smollm2         let a small model go on (98 MB, once)
  drawloom chat                                       talk; at first it asks for a model

Answers go to standard output, notices and errors to standard error.";

/// What was asked for.
#[derive(Debug, Parser)]
#[command(
    name = "drawloom",
    version,
    about = "A local-first agent runtime and writing loom.",
    after_help = EXAMPLES,
    max_term_width = 110
)]
pub(crate) struct Cli {
    /// Flags of every command.
    #[command(flatten)]
    pub(crate) global: Global,
    /// The command.
    #[command(subcommand)]
    pub(crate) action: Action,
}

/// Flags of every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Everywhere")]
pub(crate) struct Global {
    /// The workspace [default: the nearest folder upward that is one].
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// The home, also as DRAWLOOM_HOME [default: ~/.drawloom].
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// Print the answer as JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print no notices.
    #[arg(long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Show answers while they stream, on standard error.
    #[arg(long, global = true)]
    pub(crate) verbose: bool,
    /// The model: PROVIDER/NAME, http://HOST:PORT/NAME, smollm2, script:FILE or script:echo.
    #[arg(long, global = true, value_name = "MODEL", conflicts_with = "model_file")]
    pub(crate) model: Option<String>,
    /// A GGUF file, for the embedded engine.
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) model_file: Option<PathBuf>,
    /// When to use colours. auto: at a terminal, unless NO_COLOR is set.
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

/// When to colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    // Without a line of help each: those would make every help text a page long.
    #[default]
    Auto,
    Always,
    Never,
}

/// A command of the table, or one of the command line alone.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Of the table.
    #[command(flatten)]
    Command(Box<Command>),
    /// Play a story in a temporary home: a document, continuations, an edit, a branch, undo, verify. No network.
    Demo {
        /// Keep the home, as the folder `home` in DIR.
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
    },
    /// Print a completion script for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::error::ErrorKind;
    use clap::{CommandFactory as _, Parser as _};

    use super::Cli;

    #[test]
    fn the_arguments_of_all_commands_fit_together() {
        Cli::command().debug_assert();
    }

    /// The words of a line, those between double quotes together.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        for (place, part) in line.split('"').enumerate() {
            if place % 2 == 1 {
                words.push(part.to_owned());
            } else {
                words.extend(part.split_whitespace().map(str::to_owned));
            }
        }
        words
    }

    #[test]
    fn every_family_of_commands_has_an_example_that_is_read() {
        let program = Cli::command();
        let mut found = 0;
        for command in program.get_subcommands() {
            let Some(example) = command.get_after_help().map(ToString::to_string) else {
                assert!(!command.has_subcommands(), "{} has no example", command.get_name());
                continue;
            };
            let line = example.strip_prefix("Example: ").unwrap_or_else(|| panic!("{example}"));
            let read = Cli::try_parse_from(words(line));
            assert!(read.is_ok(), "{line}: {}", read.unwrap_err());
            assert_eq!(words(line)[1], command.get_name(), "{line}");
            found += 1;
        }
        assert!(found >= 8, "{found}");
    }

    /// The text of a document outside its blocks of code, whose lines `cargo xtask docs` runs.
    fn prose(text: &str) -> String {
        // A fence that the text speaks of is none.
        let text = text.replace("```` ``` ````", "");
        let parts = text.split("\n```").enumerate().filter(|(place, _)| place % 2 == 0);
        parts.map(|(_, part)| part).collect::<Vec<_>>().join("\n")
    }

    /// The lines for the command line that a document names in its text and in its tables of commands.
    fn named(text: &str) -> Vec<String> {
        let program = Cli::command();
        let prose = prose(text);
        let mut lines = Vec::new();
        for code in
            prose.split('`').skip(1).step_by(2).map(|code| code.replace('\n', " ").replace("\\|", "|"))
        {
            let begin = code.find("drawloom ").filter(|at| *at == 0 || code[..*at].ends_with("| "));
            lines.extend(begin.map(|at| code[at..].to_owned()));
        }
        for row in prose.lines().filter(|row| row.starts_with("| `")) {
            let cell = row.replace("\\|", "¦").split('|').nth(1).unwrap_or_default().replace('¦', "|");
            let codes = cell.split('`').skip(1).step_by(2);
            let known =
                |code: &&str| program.find_subcommand(code.split(' ').next().unwrap_or_default()).is_some();
            lines.extend(codes.filter(known).map(|code| format!("drawloom {code}")));
        }
        lines
    }

    /// A line with its optional parts, one of the words at each choice and something for each name of a value; and the
    /// same without the optional parts.
    fn ways(line: &str) -> Vec<Vec<String>> {
        let line = [" | ", " > ", " < ", " && ", " …"]
            .iter()
            .fold(line, |line, end| line.split(end).next().unwrap_or(line));
        let word = |word: String| match &*word {
            "N" | "OFFSET" | "RANK" | "SECONDS" => "3".to_owned(),
            "COMMAND" => "tree".to_owned(),
            "FORMAT" => "text".to_owned(),
            "SHELL" => "bash".to_owned(),
            "WHEN" => "auto".to_owned(),
            _ => word,
        };
        let mut without = String::new();
        for part in line.split('[') {
            without +=
                if without.is_empty() { part } else { part.split_once(']').map_or("", |(_, rest)| rest) };
        }
        let mut all = Vec::new();
        for line in [line.replace(['[', ']'], ""), without] {
            let choices = line.split(' ').map(|word| word.split('|').count()).max().unwrap_or(1);
            all.extend((0..choices).map(|at| {
                let chosen = line.split(' ').map(|word| word.split('|').cycle().nth(at).unwrap_or(word));
                words(&chosen.collect::<Vec<_>>().join(" ").replace('\'', "\""))
            }));
        }
        let filled = |words: Vec<String>| words.into_iter().map(word).collect();
        all.into_iter().map(filled).collect()
    }

    #[test]
    fn the_commands_that_documents_name_are_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let pages = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
        let mut found = 0;
        for page in pages
            .chain([root.join("README.md")])
            .filter(|page| page.extension().is_some_and(|end| end == "md"))
        {
            for line in named(&std::fs::read_to_string(&page).unwrap()) {
                for words in ways(&line) {
                    let Err(error) = Cli::try_parse_from(&words) else { continue };
                    // Many are named without all that they take, or with flags that go with one another in no call.
                    let is_read = matches!(
                        error.kind(),
                        ErrorKind::MissingRequiredArgument
                            | ErrorKind::MissingSubcommand
                            | ErrorKind::ArgumentConflict
                            | ErrorKind::DisplayHelp
                            | ErrorKind::DisplayVersion
                            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                    );
                    assert!(is_read, "{}: {line}: {words:?}: {error}", page.display());
                }
                found += 1;
            }
        }
        assert!(found >= 80, "{found}");
    }
}
