//! Programs that take further commands from their input: what they run is in no word of a line (`… | sh`).

use crate::programs::{base_name, is_among, is_interpreter, launches};
use crate::shell::{Lexer, SimpleCommand};

/// Words of a command that are looked at; beyond, it may take commands.
const MAX_WORDS: usize = 64;

/// Programs that take commands from their input, whatever their arguments are.
const READERS: &[&str] = &["at", "batch", "crontab", "ed", "ex", "su", "runuser"];

/// Programs that take commands from their input where no argument says what they run: shells, and programs that start one
/// then. Interpreters are as these.
const READERS_ALONE: &[&str] = &[
    "sh", "rbash", "ash", "bash", "dash", "zsh", "fish", "ksh", "mksh", "csh", "tcsh", "pwsh", "nu", "sudo",
    "doas", "unshare", "nsenter", "fakeroot", "source", "setarch", "i386", "linux32", "linux64", "uname26",
    "x86_64", "parallel", "firejail", "vi", "vim", "nvim",
];

/// Launchers that take so many arguments before the program that they start; the others take none.
const ARGUMENTS: &[(&str, usize)] = &[
    ("chroot", 1),
    ("chrt", 1),
    ("direnv", 2),
    ("docker", 2),
    ("faketime", 1),
    ("flock", 1),
    ("ip", 3),
    ("nerdctl", 2),
    ("podman", 2),
    ("ssh", 1),
    ("taskset", 1),
    ("timeout", 1),
];

/// Whether a command takes further commands from its input, also within a text that it runs. The depth is that of its line
/// in others.
pub(crate) fn reads_commands(command: &SimpleCommand, depth: usize) -> bool {
    let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
    let within = |text: &&str| {
        let line = Lexer::read(text, depth + 1);
        !line.complete || line.commands.iter().any(|command| reads_commands(command, depth + 1))
    };
    let texts = words.iter().skip(1).filter(|text| text.contains(char::is_whitespace));
    starts_reader(&words) || (launches(words.iter().copied()) && texts.clone().any(within))
}

/// Whether words begin with such a program, or start one.
fn starts_reader(words: &[&str]) -> bool {
    let mut arguments = 0;
    let mut last_is_option = false;
    for (at, word) in words.iter().enumerate() {
        if at == MAX_WORDS {
            return true;
        }
        let is_alone = is_among(READERS_ALONE, word) || is_interpreter(word) || (at == 0 && *word == ".");
        if is_among(READERS, word) || (is_alone && !says_what_it_runs(&words[at + 1..])) {
            return true;
        }
        let taken = ARGUMENTS.iter().find(|(program, _)| *program == base_name(word));
        arguments += taken.map_or(0, |(_, count)| *count);
        let is_option = word.starts_with('-');
        let is_free =
            is_option || last_is_option || word.contains('=') || (launches(words[at..].iter().copied()));
        // What `xargs` starts has no input.
        if base_name(word) == "xargs" || (!is_free && arguments == 0) {
            return false;
        }
        arguments -= usize::from(!is_free);
        last_is_option = is_option;
    }
    false
}

/// Whether the arguments of a shell or an interpreter name a file or a text to run.
fn says_what_it_runs(arguments: &[&str]) -> bool {
    const INPUT: &[&str] = &["-", ";", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let letters = argument.strip_prefix(['-', '+']).filter(|letters| !letters.starts_with('-'));
        match letters {
            _ if matches!(*argument, "--version" | "--help" | "-V") => return true,
            _ if INPUT.contains(argument) => return false,
            Some(letters) if letters.contains('c') => return true,
            Some(letters) if letters.ends_with('s') => return false,
            Some(letters) if letters.ends_with(['o', 'O']) => drop(arguments.next()),
            Some(letters) if letters.chars().all(char::is_alphanumeric) => {}
            None if matches!(*argument, "--rcfile" | "--init-file") => drop(arguments.next()),
            None if argument.starts_with("--") => {}
            Some(_) | None => return true,
        }
    }
    false
}
