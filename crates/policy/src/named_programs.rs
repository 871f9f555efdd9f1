//! Programs that a line of a shell names, for the question about it (spec: security §14).

use crate::shell::{CommandLine, SimpleCommand};

/// What a shell does itself, though the machine may have a program of this name.
const BUILTINS: &[&str] = &[
    ".", ":", "[", "alias", "bg", "break", "builtin", "cd", "command", "continue", "echo", "eval", "exec",
    "exit", "export", "false", "fc", "fg", "for", "getopts", "hash", "jobs", "kill", "let", "local",
    "printf", "pwd", "read", "readonly", "return", "set", "shift", "source", "test", "times", "trap", "true",
    "type", "ulimit", "umask", "unalias", "unset", "wait",
];

/// Commands behind which a name may mean another program: they run a text, or take a name of a variable.
const RENAMING: &[&str] = &[".", "eval", "source", "trap"];
const ASSIGNING: &[&str] =
    &["declare", "export", "getopts", "local", "printf", "read", "readonly", "typeset", "unset"];

/// First words of the commands of a line, each once, but what a shell does itself; none of a line that may change what a
/// name means.
pub fn named_programs(line: &str) -> Vec<String> {
    let read = CommandLine::read(line);
    let mut programs = Vec::new();
    if !read.complete || defines(line) || read.commands.iter().any(may_rename) {
        return programs;
    }
    for first in read.commands.iter().filter_map(|command| command.words.first()) {
        let is_program = first.known && !first.text.is_empty() && !BUILTINS.contains(&first.text.as_str());
        if is_program && !programs.contains(&first.text) {
            programs.push(first.text.clone());
        }
    }
    programs
}

/// Whether a line may define a function or set `PATH`, however it is quoted.
fn defines(line: &str) -> bool {
    let is_noise = |c: char| c.is_whitespace() || "\\'\"".contains(c);
    let bare: String = line.chars().filter(|c| !is_noise(*c)).collect();
    bare.contains("()") || bare.contains("PATH")
}

fn may_rename(command: &SimpleCommand) -> bool {
    let Some(first) = command.words.first() else { return false };
    let first = first.text.as_str();
    RENAMING.contains(&first) || (ASSIGNING.contains(&first) && command.words.iter().any(|word| !word.known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_programs_of_all_its_commands_and_none_that_may_mean_another() {
        for (line, programs) in [
            ("git status", &["git"][..]),
            ("cd sub && FOO=1 cargo test | tail -5; git add .; git commit", &["cargo", "tail", "git"]),
            ("\"gi\"t x", &["git"]),
            ("echo $(date)", &["date"]),
            ("for x in a b; do sed -i s/$x// f; done", &["sed"]),
            ("./run.sh; /usr/bin/env x; [ -e a ] && true", &["./run.sh", "/usr/bin/env"]),
            ("$X a", &[]),
            ("git () { evil; }; git x", &[]),
            ("PATH=bin git x", &[]),
            ("export \"PA\"TH=bin; git x", &[]),
            ("export $X; git x", &[]),
            ("read PATH < f; git x", &[]),
            ("alias git=evil\ngit x", &[]),
            (". ./names; git x", &[]),
            ("eval $X; git x", &[]),
            ("git 'x", &[]),
        ] {
            assert_eq!(named_programs(line), programs, "{line}");
        }
    }
}
