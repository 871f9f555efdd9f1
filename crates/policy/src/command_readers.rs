//! Programs that take further commands from their input: what they run is in no word of a line (`… | sh`).

use crate::programs::{base_name, is_among, is_interpreter, is_launcher, launches};
use crate::shell::{Lexer, SimpleCommand};

/// Options of programs, and the arguments that stand before the one that says what is run.
struct Syntax {
    programs: &'static [&'static str],
    before: usize,
    /// Short options with which input is read in any case.
    input: &'static str,
    /// Short options whose value says what is run, or that run nothing.
    texts: &'static str,
    /// Other short options with a value.
    values: &'static str,
}

const fn syntax(
    programs: &'static [&'static str],
    before: usize,
    [input, texts, values]: [&'static str; 3],
) -> Syntax {
    Syntax { programs, before, input, texts, values }
}

/// Shells, which run a file that is their input as a script.
const SHELLS: &[&str] = &["sh", "rbash", "ash", "bash", "dash", "zsh", "fish", "ksh", "mksh", "csh", "tcsh"];

/// Programs that take commands from their input where no argument says what they run; interpreters that are not here are as
/// the last one.
const READERS: &[Syntax] = &[
    // Whatever their arguments are, or near to it.
    syntax(
        &[
            "at",
            "batch",
            "crontab",
            "ed",
            "ex",
            "su",
            "runuser",
            "script",
            "chroot",
            "nsenter",
            "unshare",
            "fakeroot",
            "firejail",
            "setarch",
            "i386",
            "linux32",
            "linux64",
            "uname26",
            "x86_64",
            "shell",
            "git-shell",
            "dc",
            "ftp",
            "gnuplot",
            "lftp",
            "m4",
            "sftp",
            "telnet",
        ],
        usize::MAX,
        ["", "", ""],
    ),
    syntax(&["nix-shell"], usize::MAX, ["", "", "AIp"]),
    syntax(SHELLS, 0, ["s", "cn", "oO"]),
    syntax(&["pwsh", "nu"], 0, ["s", "c", "oO"]),
    syntax(&["vi", "vim", "nvim"], 0, ["eE", "", "cSuUtTwWi"]),
    syntax(&["ssh"], 1, ["", "V", "BbcDEeFIiJLlmOopQRSWw"]),
    syntax(&["psql"], usize::MAX, ["", "cflV", "dhpUvFPRTo"]),
    syntax(&["mysql", "mariadb"], usize::MAX, ["", "eV", "DhPSu"]),
    syntax(&["sqlite"], 1, ["", "", ""]),
    syntax(&["gdb", "lldb"], usize::MAX, ["", "b", ""]),
    syntax(&["python", "pypy", "ipython"], 0, ["", "cV", "WX"]),
    syntax(&["perl"], 0, ["", "eEvV", "IMm"]),
    syntax(&["ruby", "irb"], 0, ["", "ev", "CEFIr"]),
    syntax(&["node", "nodejs"], 0, ["", "epv", "Cr"]),
    syntax(&["php"], 0, ["", "BEFRfrv", "cdz"]),
    syntax(&["lua", "luajit"], 0, ["", "ev", "l"]),
    syntax(&["julia"], 0, ["", "Eev", "CHJLPpt"]),
    syntax(&["source", "."], 0, ["", "", ""]),
    syntax(&[], 0, ["", "cefv", ""]),
];

/// Programs whose first argument is the program that they start, with their input or with what comes from it.
const WRAPPERS: &[Syntax] = &[
    syntax(&["sudo"], 0, ["", "", "CDRTUghprtu"]),
    syntax(&["doas"], 0, ["", "", "Cu"]),
    syntax(&["env"], 0, ["", "S", "Cu"]),
    syntax(&["nice"], 0, ["", "", "n"]),
    syntax(&["ionice"], 0, ["", "", "Pcnpu"]),
    syntax(&["stdbuf"], 0, ["", "", "eio"]),
    syntax(&["timeout"], 0, ["", "", "ks"]),
    syntax(&["time"], 0, ["", "", "fo"]),
    syntax(&["command"], 0, ["", "Vv", ""]),
    syntax(&["nohup", "setsid", "builtin", "exec"], 0, ["", "", "a"]),
    syntax(&["npx", "pnpx", "bunx", "uvx"], 0, ["", "c", "p"]),
    syntax(&["xargs"], 0, ["", "", "EILPadns"]),
    syntax(&["parallel"], 0, ["", "", "ILNSXadjn"]),
];

/// Long options whose value says what is run, that run nothing, and others with a value.
const LONG_TEXTS: &[&str] = &["--command", "--eval", "--execute", "--file", "--print", "--run", "--batch"];
const LONG_VALUES: &[&str] =
    &["--rcfile", "--init-file", "--require", "--import", "--loader", "--env-file", "--conditions"];
const RUN_NOTHING: &[&str] = &["--version", "--help", "-version", "-V"];

/// Whether a word names the input, in whichever spelling, or ends the words of `find -exec`.
fn is_input(word: &str) -> bool {
    let (folder, name) = word.rsplit_once('/').unwrap_or(("", word));
    let is_descriptor = || !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    matches!(word, "-" | ";") || name == "stdin" || (base_name(folder) == "fd" && is_descriptor())
}

/// Launchers that start nothing that their arguments name by itself.
const FILTERS: &[&str] =
    &["awk", "gawk", "mawk", "nawk", "sed", "gsed", "less", "more", "view", "man", "info", "nano"];

/// Programs that run what their input says where an argument names it.
const RUN_NAMED_INPUT: &[&str] = &["make", "uv", "deno", "bun"];

/// Programs that run a file which an option names, and short options that do.
const RUN_FILE_OPTION: &[&str] = &["awk", "gawk", "mawk", "nawk", "sed", "gsed", "make", "gmake", "bmake"];
const FILE_OPTION: &[char] = &['f', 'E'];

/// What the arguments of a program say of what it runs.
#[derive(Clone, Copy)]
enum Said<'w> {
    /// Nothing, or that it is in the input.
    Input,
    /// A text, where one is known.
    Text(Option<&'w str>),
    /// A file or a program, by its place.
    Named(usize),
}

/// Whether a command takes further commands from what feeds it, also within a text that it runs, or is a shell whose script is
/// its input. The depth is that of its line in others.
pub(crate) fn reads_commands(command: &SimpleCommand, depth: usize) -> bool {
    let all: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
    (command.fed && reads_fed_commands(&all, depth)) || (command.has_file && runs_input_file(&all))
}

/// Whether a shell among words runs its input, or that of the shells that follow is changed.
fn runs_input_file(words: &[&str]) -> bool {
    let is_shell = |at: usize| {
        is_among(SHELLS, words[at])
            && reader(&words[at..])
                .is_some_and(|reader| matches!(reader.said(&words[at..], false), Said::Input))
    };
    let others = if launches(words.iter().copied()) { words.len() } else { 1 };
    words == ["exec"] || (0..others).any(is_shell)
}

fn reads_fed_commands(all: &[&str], depth: usize) -> bool {
    let is_line_that_reads = |text: &str| !Lexer::read(text, depth + 1, true, false).complete;
    let mut words = all;
    let (mut is_completed, mut replaces) = (false, false);
    while let Some(program) = words.first() {
        if let Some(wrapper) = WRAPPERS.iter().find(|row| is_among(row.programs, program)) {
            if base_name(program) == "parallel" || base_name(program) == "xargs" {
                is_completed = true;
                let is_replacing =
                    |word: &&str| ["-I", "-i", "--replace"].iter().any(|option| word.starts_with(option));
                replaces |= base_name(program) == "parallel" || words.iter().any(is_replacing);
            }
            match wrapper.said(words, true) {
                Said::Input => return base_name(program) != "xargs",
                Said::Text(text) => return text.is_some_and(is_line_that_reads),
                Said::Named(at) => words = &words[at..],
            }
            continue;
        }
        let Some(reader) = reader(words) else { break };
        return match reader.said(words, false) {
            Said::Input => true,
            // What comes from the input completes the words, and stands in each of them.
            Said::Text(_) if replaces => true,
            Said::Text(None) => is_completed,
            Said::Text(Some(text)) => !is_interpreter(program) && is_line_that_reads(text),
            Said::Named(_) if base_name(program) == "ssh" => starts_reader(&words[1..], is_line_that_reads),
            Said::Named(_) => false,
        };
    }
    let Some(program) = words.first().filter(|_| launches(words.iter().copied())) else { return false };
    let names_input = |word: &&str| is_input(word) || word.ends_with("=-") || *word == "-f-";
    if is_among(RUN_NAMED_INPUT, program) && words.iter().any(names_input) {
        return true;
    }
    if is_among(RUN_FILE_OPTION, program) && names_file_option(words) {
        return true;
    }
    !is_among(FILTERS, program) && starts_reader(&words[1..], is_line_that_reads)
}

/// Whether an option of words names the input as the file that is run.
fn names_file_option(words: &[&str]) -> bool {
    let names = |(word, next): (&&str, &&str)| match word.strip_prefix("--") {
        Some(long) => long.split_once('=').map_or_else(
            || long.starts_with('f') && is_input(next),
            |(name, value)| name.starts_with('f') && is_input(value),
        ),
        None => word
            .strip_prefix('-')
            .and_then(|short| short.split_once(FILE_OPTION))
            .is_some_and(|(_, value)| is_input(if value.is_empty() { next } else { value })),
    };
    words.iter().zip(words.iter().skip(1).chain([&""])).any(names)
}

/// Whether a program that takes commands from its input stands anywhere among words, or in a line that is one of them.
fn starts_reader(words: &[&str], is_line_that_reads: impl Fn(&str) -> bool) -> bool {
    words.iter().enumerate().any(|(at, word)| match word.contains(char::is_whitespace) {
        true => is_line_that_reads(word),
        false => {
            let words = &words[at..];
            reader(words).is_some_and(|reader| matches!(reader.said(words, false), Said::Input))
        }
    })
}

fn reader(words: &[&str]) -> Option<&'static Syntax> {
    let program = words.first()?;
    let known = READERS.iter().find(|row| is_among(row.programs, program));
    known.or_else(|| READERS.last().filter(|_| is_interpreter(program)))
}

impl Syntax {
    /// What the words of a command say. Behind a long option of a wrapper stands its value, unless it is a program.
    fn said<'w>(&self, words: &[&'w str], is_wrapper: bool) -> Said<'w> {
        let is_editor = self.input.contains('e');
        let mut before = self.before;
        let mut at = 1;
        while let Some(word) = words.get(at).copied() {
            let next = words.get(at + 1).copied();
            if RUN_NOTHING.contains(&word) && !is_wrapper {
                return Said::Named(at);
            }
            at += 1;
            if is_input(word) {
                return if is_editor { Said::Named(at - 1) } else { Said::Input };
            }
            let options = word.strip_prefix(['-', '+']);
            match options.map(|options| (options, options.strip_prefix('-'))) {
                Some((_, Some(long))) => {
                    let (name, value) =
                        word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
                    if LONG_TEXTS.contains(&name) && !is_wrapper {
                        return Self::text(value.or(next));
                    }
                    let is_program = next.is_some_and(is_launcher);
                    let has_value = LONG_VALUES.contains(&word) || (is_wrapper && !is_program);
                    at += usize::from(value.is_none() && !long.is_empty() && has_value);
                }
                Some((letters, None)) => {
                    for (place, letter) in letters.char_indices() {
                        let rest = &letters[place + letter.len_utf8()..];
                        let value = if rest.is_empty() { next } else { Some(rest) };
                        if self.input.contains(letter) {
                            return Said::Input;
                        }
                        if self.texts.contains(letter) {
                            return Self::text(value);
                        }
                        if self.values.contains(letter) {
                            at += usize::from(rest.is_empty());
                            break;
                        }
                    }
                }
                // Settings, and numbers as the time of `timeout`, are no programs.
                None if word.contains('=') || word.starts_with(|c: char| c.is_ascii_digit()) => {}
                None if before == 0 => return Said::Named(at - 1),
                None => before -= 1,
            }
        }
        Said::Input
    }

    fn text(value: Option<&str>) -> Said<'_> {
        if value.is_some_and(is_input) { Said::Input } else { Said::Text(value) }
    }
}
