//! Matching of an exec pattern's words against a command: strictly for an allow rule, generously for a deny rule.

use crate::data_takers::may_set;
use crate::programs::{attached, base_name, is_interpreter, is_launcher, launches, program_letters};
use crate::shell::{CommandLine, Lexer, SimpleCommand, UNREADABLE, Word};

/// Answer of a generous match, from the least to the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    No,
    /// What is known does not rule it out.
    Unknown,
    Yes,
}

/// Deepest nesting of texts of commands (`bash -c "bash -c …"`) that is looked into.
const MAX_TEXTS: usize = 4;

/// Words that are passed at most between two of a pattern; beyond, the answer is unknown.
const MAX_PASSED: usize = 64;

/// Whether a command of a plain line is what a pattern says, word by word.
pub(crate) fn covers(pattern: &[String], more: bool, command: &SimpleCommand) -> bool {
    let words = &command.words;
    let fits = words.len() == pattern.len() || (more && words.len() > pattern.len());
    let same = words.iter().zip(pattern).all(|(word, pattern)| word.known && word.text == *pattern);
    fits && same && !(more && launches(command.words.iter().map(|word| word.text.as_str())))
}

/// Whether a command may be what a pattern says: under any path, with options between its words, behind any launcher, in
/// any text that a launcher is given.
pub(crate) fn hits(pattern: &[String], more: bool, command: &SimpleCommand) -> Match {
    hits_within(pattern, more, command, 0)
}

/// Whether a line may start what a pattern says beside its commands: by a variable that names a program, or where commands
/// of it are not known.
pub(crate) fn hits_beside(pattern: &[String], more: bool, line: &CommandLine) -> Match {
    hits_beside_within(pattern, more, line, 0)
}

/// Where a text stands that a program is given.
#[derive(Clone, Copy)]
struct TextContext {
    depth: usize,
    /// Whether an interpreter gets it.
    code: bool,
    /// Whether names of programs may mean others in it.
    changes: bool,
}

fn hits_beside_within(pattern: &[String], more: bool, line: &CommandLine, depth: usize) -> Match {
    let context = TextContext { depth, code: false, changes: true };
    let named = line.program_variables.iter().map(|word| hits_text(pattern, more, word, context)).max();
    named.unwrap_or(Match::No).max(if line.complete { Match::No } else { Match::Unknown })
}

fn hits_within(pattern: &[String], more: bool, command: &SimpleCommand, depth: usize) -> Match {
    let words = &command.words;
    let direct = hits_at(pattern, more, words);
    let runs_others = launches(words.iter().map(|word| word.text.as_str()));
    if direct == Match::Yes || !runs_others {
        return direct;
    }
    let code = words.iter().any(|word| is_interpreter(&word.text));
    let changes = command.changes_names || words.iter().any(may_set);
    let context = TextContext { depth, code, changes };
    let letters = program_letters(|name| words.iter().any(|word| base_name(&word.text) == name));
    let mut best = direct;
    for (at, word) in words.iter().enumerate().skip(1) {
        best = best.max(hits_at(pattern, more, &words[at..])).max(hits_text(pattern, more, word, context));
        // Whether the letters are those of the program that gets them is not looked into.
        if let Some(text) = attached(&word.text, &letters) {
            let value = Word { text: text.to_owned(), known: word.known, bare: 0 };
            best = best.max(hits_text(pattern, more, &value, context).min(Match::Unknown));
        }
        if best == Match::Yes {
            break;
        }
    }
    best
}

/// Whether a word given to a launcher holds such a command: as a line of a shell, or anywhere in a text that names the
/// program. An interpreter's code is never ruled out; its files are, for a pattern sees words, and the sandbox holds the
/// rest.
fn hits_text(pattern: &[String], more: bool, word: &Word, context: TextContext) -> Match {
    let TextContext { depth, code, changes } = context;
    if !word.known || UNREADABLE.contains(&word.text.as_str()) {
        return Match::Unknown;
    }
    // The value of an option or a setting may be a program: `--to-command=rm`, `core.pager=rm`.
    let text = word.text.as_str();
    let value = text.split_once('=').filter(|(name, _)| !name.contains(char::is_whitespace));
    let value = value.map_or(text, |(_, value)| value);
    if !text.contains(|c: char| c.is_whitespace() || "|&;<>()$`\\\"'".contains(c)) {
        let value = Word { text: value.to_owned(), known: true, bare: 0 };
        return hits_at(pattern, more, &[value]);
    }
    if depth >= MAX_TEXTS {
        return Match::Unknown;
    }
    let inner = Lexer::read(value, depth, false, changes || value.len() < text.len());
    let found = inner.commands.iter().map(|command| hits_within(pattern, more, command, depth + 1)).max();
    let beside = hits_beside_within(pattern, more, &inner, depth + 1);
    let may = code || pattern.first().is_some_and(|program| names(value, base_name(program)));
    found.unwrap_or(Match::No).max(beside).max(if may { Match::Unknown } else { Match::No })
}

/// Whether a text names a program.
fn names(text: &str, program: &str) -> bool {
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || "-_.+".contains(c)));
    words.any(|word| word == program)
}

/// Whether words are those of a pattern, with options and their values between.
fn hits_at(pattern: &[String], more: bool, words: &[Word]) -> Match {
    let (Some(program), Some(first)) = (pattern.first(), words.first()) else { return Match::No };
    if !first.known {
        return Match::Unknown;
    }
    if base_name(&first.text) != base_name(program) {
        return Match::No;
    }
    let mut best = Match::No;
    let mut reached = after_options(words, vec![1], &mut best);
    for wanted in &pattern[1..] {
        let next = reached.iter().filter(|at| words.get(**at).is_some_and(|word| word.text == *wanted));
        reached = after_options(words, next.map(|at| at + 1).collect(), &mut best);
    }
    let ends = if more { !reached.is_empty() } else { reached.contains(&words.len()) };
    if ends { Match::Yes } else { best }
}

/// Places reached from some, by passing options with or without a value. A word that an expansion changes may be any
/// words: from there on all is unknown.
fn after_options(words: &[Word], mut reached: Vec<usize>, best: &mut Match) -> Vec<usize> {
    let mut next = 0;
    while let Some(at) = reached.get(next).copied() {
        next += 1;
        let Some(word) = words.get(at) else { continue };
        if !word.known || reached.len() > MAX_PASSED {
            *best = (*best).max(Match::Unknown);
        }
        if word.text.starts_with('-') && reached.len() <= MAX_PASSED {
            let beyond = [at + 1, (at + 2).min(words.len())];
            reached.extend(beyond);
            reached.sort_unstable();
            reached.dedup();
        }
    }
    reached
}

/// Whether a pattern with a wildcard can cover nothing, as its program runs whatever its arguments say.
pub(crate) fn is_futile(pattern: &[String]) -> bool {
    pattern.first().is_some_and(|program| is_launcher(program))
        || launches(pattern.iter().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn best(words: &str, line: &str) -> Match {
        let line = CommandLine::read(line);
        line.commands.iter().map(|command| hits(&pattern(words), true, command)).max().unwrap_or(Match::No)
    }

    #[test]
    fn a_program_is_found_behind_others() {
        for line in [
            "rm x",
            "/bin/rm x",
            "sudo -u root rm x",
            "env A=b /usr/bin/rm x",
            "xargs -0 rm",
            "find . -exec rm {} ;",
            "bash -c 'rm x'",
            "bash -c \"bash -c 'rm x'\"",
            "ssh host 'cd x; rm y'",
            "git -c core.pager='rm x' log",
            "tar --to-command=rm x",
        ] {
            assert_eq!(best("rm", line), Match::Yes, "{line}");
        }
    }

    #[test]
    fn what_cannot_be_known_is_unknown() {
        for line in [
            "$X y",
            "r? y",
            "python3 -c 'import x; x.rm()'",
            "eval $X",
            "sudo {rm,x}",
            "awk 'BEGIN{system(\"rm x\")}'",
        ] {
            assert_eq!(best("rm", line), Match::Unknown, "{line}");
        }
        assert_eq!(best("git push", "git $X"), Match::Unknown);
    }

    #[test]
    fn ordinary_commands_are_ruled_out() {
        for line in [
            "git rm x",
            "echo rm x",
            "ls $X",
            "git commit -m 'rm x'",
            "python3 x.py",
            "rmdir x",
            "cargo rm x",
        ] {
            assert_eq!(best("rm", line), Match::No, "{line}");
        }
    }

    #[test]
    fn options_may_stand_between_words() {
        for line in ["git push", "git -C /x push origin", "git --no-pager -q push"] {
            assert_eq!(best("git push", line), Match::Yes, "{line}");
        }
        for line in ["git stash push", "git commit -m push"] {
            assert_eq!(best("git push", line), Match::No, "{line}");
        }
    }

    #[test]
    fn without_a_wildcard_the_words_are_all() {
        let command = |line| CommandLine::read(line).commands[0].clone();
        assert_eq!(hits(&pattern("rm x"), false, &command("rm x y")), Match::No);
        assert_eq!(hits(&pattern("rm x"), false, &command("rm -f x")), Match::Yes);
        assert!(covers(&pattern("bash x.sh"), false, &command("bash x.sh")));
        assert!(!covers(&pattern("bash x.sh"), true, &command("bash x.sh")));
        assert!(!covers(&pattern("git"), true, &command("/bin/git status")));
    }
}
