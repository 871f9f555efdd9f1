//! Reading of a command line into simple commands, to match patterns against (spec: security §14).
//!
//! The reader is our own and small. A full grammar (brush-parser 0.4, MIT, looked at) costs some thirty crates that
//! nothing else here uses, and answers another question: what a line means. Two weaker questions are asked here, and
//! each may err to one side:
//!
//! * For an allow rule: is the line *only* simple commands, joined by `;`, `&&`, `||`, `|` or newline, of words that no
//!   expansion changes? Everything else is an [`Obstacle`], and a line with one matches no allow rule.
//! * For a deny rule: which commands *may* run? Those in substitutions, loops and functions are found too; where some may
//!   be missing, [`CommandLine::complete`] is false, and a word that an expansion changes is not [`known`](Word::known).

mod documents;
mod lexer;
mod words;

pub(crate) use lexer::{Lexer, UNREADABLE};

/// Longest line that is read, in bytes: with the work bounded, a decision takes milliseconds.
pub(crate) const MAX_LINE: usize = 64 << 10;

/// What keeps a line from matching an allow rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Obstacle {
    /// `$NAME`, `$(…)`, backquotes, `<(…)`.
    Substitution,
    /// Globs that could become options, braces, `$'…'`.
    Expansion,
    /// Keywords, groups, functions.
    Compound,
    Background,
    HereDocument,
    /// An assignment of a variable that programs may take a program or an option from.
    Assignment,
    /// Control characters other than tab and newline.
    Control,
    /// A quote or a bracket without its partner.
    Unbalanced,
    /// More than is read.
    TooLarge,
}

/// A word after quotes are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    /// Whether the text is what the program gets; not so after an expansion.
    pub(crate) known: bool,
    /// Bytes before the first quote, backslash or expansion.
    pub(crate) bare: usize,
}

impl Word {
    /// Whether the word is written without quotes or expansions: only so is it a keyword.
    pub(crate) fn is_bare(&self) -> bool {
        self.known && self.bare == self.text.len()
    }
}

/// Words of a simple command, assignments before it left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SimpleCommand {
    pub(crate) words: Vec<Word>,
    /// Whether it may get its input from another command, or from a text of the line.
    pub(crate) fed: bool,
    /// Whether a text of the line is the input of a command of its pipeline.
    pub(crate) beside_document: bool,
    /// Whether names of programs may mean others in its line.
    pub(crate) changes_names: bool,
    /// Whether its input is a file.
    pub(crate) has_file: bool,
}

/// File that a line reads from or writes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Redirection {
    pub(crate) target: Word,
    pub(crate) writes: bool,
}

/// A command line as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandLine {
    pub(crate) commands: Vec<SimpleCommand>,
    pub(crate) redirections: Vec<Redirection>,
    /// Whether a variable is set before a command, by whatever name.
    pub(crate) assigns: bool,
    /// Whether a name of a program may mean another one in it, or a program that it starts may start others.
    pub(crate) changes_names: bool,
    /// Assignments of variables from which a program may take another one.
    pub(crate) program_variables: Vec<Word>,
    pub(crate) obstacles: Vec<Obstacle>,
    /// Texts that are the input of commands which do not run it.
    pub(crate) documents: Vec<String>,
    /// Whether all commands that may run are among `commands`.
    pub(crate) complete: bool,
}

impl CommandLine {
    pub(crate) fn read(line: &str) -> Self {
        Lexer::read(line, 0, false, false)
    }

    /// Adds what a text in it may run.
    fn add(&mut self, inner: Self) {
        self.commands.extend(inner.commands);
        self.redirections.extend(inner.redirections);
        self.assigns |= inner.assigns;
        self.changes_names |= inner.changes_names;
        self.program_variables.extend(inner.program_variables);
        self.documents.extend(inner.documents);
        self.complete &= inner.complete;
        for obstacle in inner.obstacles {
            self.note(obstacle);
        }
    }

    fn note(&mut self, obstacle: Obstacle) {
        if !self.obstacles.contains(&obstacle) {
            self.obstacles.push(obstacle);
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.obstacles.is_empty() && self.complete
    }
}

/// Tail of a text, handed to a shell piece by piece, that the next piece goes on with: its last line where no end of it
/// was handed over, or one that goes on by a backslash; all of it where a quote or a bracket is open. Of a tail that is
/// too long to be read no more is kept than tells that.
pub fn unfinished_line(text: &str) -> &str {
    let ends = |at: &usize| text[..*at].bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 0;
    let end = text.match_indices('\n').rev().map(|(at, _)| at).find(ends);
    let (lines, rest) = text.split_at(end.map_or(0, |end| end + 1));
    let is_open = || CommandLine::read(lines).obstacles.contains(&Obstacle::Unbalanced);
    let tail = if text.len() <= MAX_LINE && is_open() { text } else { rest };
    let from = tail.len().saturating_sub(MAX_LINE + 1);
    let from = (0..=from).rev().find(|at| tail.is_char_boundary(*at)).unwrap_or(0);
    &tail[from..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(line: &str) -> Vec<Vec<String>> {
        let read = CommandLine::read(line);
        let words = |command: &SimpleCommand| command.words.iter().map(|word| word.text.clone()).collect();
        read.commands.iter().map(words).collect()
    }

    fn obstacles(line: &str) -> Vec<Obstacle> {
        CommandLine::read(line).obstacles
    }

    #[test]
    fn commands_are_joined_by_five_operators() {
        assert_eq!(
            words("a b; c && d || e | f\ng"),
            [vec!["a", "b"], vec!["c"], vec!["d"], vec!["e"], vec!["f"], vec!["g"]]
        );
        assert!(CommandLine::read("a b; c && d || e | f\ng").is_plain());
    }

    #[test]
    fn quotes_and_backslashes_are_removed() {
        assert_eq!(words(r#"r"m" 'a b' "c \" d" e\ f g\"#), [vec!["rm", "a b", "c \" d", "e f", "g\\"]]);
        assert_eq!(words("a\\\nb # c; d"), [vec!["ab"]]);
        assert_eq!(words("a '' b#c"), [vec!["a", "", "b#c"]]);
    }

    #[test]
    fn commands_within_substitutions_and_groups_are_found() {
        for line in [
            "echo $(rm x)",
            "echo \"$(rm x)\"; b",
            "echo `rm x`",
            "echo \"`rm x`\"",
            "cat <(rm x)",
            "(rm x)",
            "if a; then rm x; fi",
            "for i in 1; do rm x; done",
            "f() { rm x; }",
            "a & rm x",
            "! rm x",
            "echo ${a:-$(rm x)}",
            "A=$(rm x) b",
            "cat <<< \"$(rm x)\"",
            "bash <<E\nrm x\nE",
            "a > \"$(rm x)\"",
        ] {
            assert!(
                words(line).contains(&vec!["rm".to_owned(), "x".to_owned()]),
                "{line}: {:?}",
                words(line)
            );
            assert!(!CommandLine::read(line).is_plain(), "{line}");
        }
    }

    #[test]
    fn a_quote_after_a_substitution_still_closes() {
        let found = words(r#"echo "$(a)"; rm x; echo "y""#);
        assert!(found.contains(&vec!["rm".to_owned(), "x".to_owned()]), "{found:?}");
    }

    #[test]
    fn each_obstacle_is_named() {
        for (line, obstacle) in [
            ("a $B", Obstacle::Substitution),
            ("a \"$B\"", Obstacle::Substitution),
            ("a *", Obstacle::Expansion),
            ("a {b,c}", Obstacle::Expansion),
            ("a $'b'", Obstacle::Expansion),
            ("{ a; }", Obstacle::Compound),
            ("a &", Obstacle::Background),
            ("a << E", Obstacle::HereDocument),
            ("PATH=x a", Obstacle::Assignment),
            ("a \u{7}", Obstacle::Control),
            ("a 'b", Obstacle::Unbalanced),
            ("a )", Obstacle::Compound),
            (&format!("a {}", "b".repeat(MAX_LINE)), Obstacle::TooLarge),
        ] {
            assert!(obstacles(line).contains(&obstacle), "{line:.40}: {:?}", obstacles(line));
        }
    }

    #[test]
    fn ordinary_lines_have_none() {
        for line in [
            "git log --oneline HEAD@{1}",
            "cargo test -p x 2>&1 | tail -5",
            "RUST_BACKTRACE=1 cargo test",
            "git add src/*.rs",
            "git commit -m 'costs $5; really'",
            "git log > out.txt 2> /dev/null",
            "a {} +",
        ] {
            assert_eq!(obstacles(line), Vec::new(), "{line}");
        }
    }

    #[test]
    fn a_pipe_feeds_what_is_behind_it_up_to_the_end_of_its_pipeline() {
        for (line, fed) in [
            ("a; b | c | d; e && f | g || h\ni", "cdg"),
            ("a |\n\nb\nc", "b"),
            ("a | (b; c) | d; e", "bcd"),
            ("a | { b; { c; }; d; }; e", "bcd"),
            ("a | if b; then c; else d; fi; e", "bcd"),
            ("{ a | b; c; }; d", "b"),
            ("a | b $(c `d`); e", "bcd"),
            ("a > >(b); c <(d); e", "b"),
            ("a <<< x; b", "a"),
            ("(a; b) <<< c; d", "ab"),
            ("a() { b; }; c", "ab"),
        ] {
            let read = CommandLine::read(line);
            let fed_ones = read.commands.iter().filter(|command| command.fed);
            let mut names: Vec<&str> = fed_ones.map(|command| command.words[0].text.as_str()).collect();
            names.sort_unstable();
            assert_eq!(names.concat(), fed, "{line}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let line = CommandLine::read(&"$(".repeat(20_000));
        assert!(!line.complete && line.obstacles.contains(&Obstacle::TooLarge));
    }

    #[test]
    fn what_a_further_text_may_go_on_with_is_unfinished() {
        for (text, tail) in [
            ("", ""),
            ("r", "r"),
            ("ls\nr", "r"),
            ("ls\n", ""),
            ("ls\ngit \\\n", "git \\\n"),
            ("git \\\\\n", ""),
            ("ls\ngit 'x\n", "ls\ngit 'x\n"),
            ("echo $(\nrm", "echo $(\nrm"),
            ("echo 'a\nb'\nrm", "rm"),
        ] {
            assert_eq!(unfinished_line(text), tail, "{text:?}");
        }
        let long = "ä".repeat(MAX_LINE);
        let tail = unfinished_line(&long);
        assert!((MAX_LINE + 1..=MAX_LINE + 4).contains(&tail.len()));
        assert!(CommandLine::read(tail).obstacles.contains(&Obstacle::TooLarge));
        assert_eq!(unfinished_line(&format!("'{long}\nrm")), "rm");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn any_text_is_read(line in "\\PC{0,60}", shell in "[a-c '\"\\\\$`(){}<>|&;\n#=*~!]{0,60}") {
            CommandLine::read(&line);
            CommandLine::read(&shell);
        }

        #[test]
        fn quoted_words_come_back(words in proptest::collection::vec("[^\0\u{1}-\u{1f}\u{7f}-\u{9f}]{1,12}", 1..6)) {
            let quoted: Vec<String> =
                words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
            let line = CommandLine::read(&quoted.join(" "));
            prop_assert!(line.is_plain());
            let read: Vec<&str> = line.commands[0].words.iter().map(|word| word.text.as_str()).collect();
            prop_assert_eq!(read, words);
        }
    }
}
