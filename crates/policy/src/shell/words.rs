//! Words of a command line: quotes, escapes, expansions.

use super::lexer::{Lexer, MAX_DEPTH};
use super::{Obstacle, Word};

impl Lexer {
    /// Reads one word, which may be empty where none stands.
    pub(super) fn word(&mut self) -> Word {
        let mut word = Word { text: String::new(), known: true, bare: usize::MAX };
        let mut braces = BraceState::None;
        while let Some(c) = self.peek() {
            let continues = c == '\\' && self.peek_at(1) == Some('\n');
            if matches!(c, '\'' | '"' | '\\' | '$' | '`') && !continues {
                word.bare = word.bare.min(word.text.len());
            }
            match c {
                ' ' | '\t' | '\n' | ';' | '|' | '&' | '(' | ')' | '<' | '>' => break,
                '\'' => self.single_quoted(&mut word),
                '"' => self.double_quoted(&mut word),
                '\\' => self.escaped(&mut word),
                '$' => self.dollar(&mut word, false),
                '`' => self.backquoted(&mut word),
                _ => {
                    self.at += 1;
                    braces = braces.next(c);
                    if matches!(c, '*' | '?' | '[') && !self.is_test(&word, c) {
                        self.glob(&mut word);
                    }
                    word.text.push(c);
                }
            }
        }
        if braces == BraceState::Expands {
            self.note(Obstacle::Expansion);
            word.known = false;
        }
        word.bare = word.bare.min(word.text.len());
        word
    }

    /// Whether a bracket is the command `[`.
    fn is_test(&self, word: &Word, c: char) -> bool {
        c == '[' && word.text.is_empty() && matches!(self.peek(), None | Some(' ' | '\t' | '['))
    }

    /// Notes a glob. A file's name can be an option or a word that means something, unless a folder stands before it.
    fn glob(&mut self, word: &mut Word) {
        word.known = false;
        word.bare = word.bare.min(word.text.len());
        if word.text.starts_with('-') || !word.text.contains('/') {
            self.note(Obstacle::Expansion);
        }
    }

    fn single_quoted(&mut self, word: &mut Word) {
        self.at += 1;
        while let Some(c) = self.peek() {
            self.at += 1;
            if c == '\'' {
                return;
            }
            word.text.push(c);
        }
        self.give_up(Obstacle::Unbalanced);
    }

    fn double_quoted(&mut self, word: &mut Word) {
        self.at += 1;
        while let Some(c) = self.peek() {
            match c {
                '"' => {
                    self.at += 1;
                    return;
                }
                '\\' if matches!(self.peek_at(1), Some('$' | '`' | '"' | '\\' | '\n')) => self.escaped(word),
                '$' => self.dollar(word, true),
                '`' => self.backquoted(word),
                _ => {
                    self.at += 1;
                    word.text.push(c);
                }
            }
        }
        self.give_up(Obstacle::Unbalanced);
    }

    fn escaped(&mut self, word: &mut Word) {
        match self.peek_at(1) {
            Some('\n') => {}
            Some(c) => word.text.push(c),
            None => word.text.push('\\'),
        }
        self.at += 2;
    }

    /// Reads what a dollar begins: a substitution, a form of quotes, or itself.
    pub(super) fn dollar(&mut self, word: &mut Word, in_quotes: bool) {
        let Some(next) = self.peek_at(1) else {
            self.at += 1;
            word.text.push('$');
            return;
        };
        match next {
            '\'' if !in_quotes => {
                word.known = false;
                self.note(Obstacle::Expansion);
                self.ansi_quoted();
            }
            '"' if !in_quotes => self.at += 1,
            // A shell joins the lines first, so that a bracket may follow.
            '\\' if self.peek_at(2) == Some('\n') => {
                word.known = false;
                self.give_up(Obstacle::Substitution);
                self.at += 3;
            }
            '(' | '{' => {
                word.known = false;
                self.note(Obstacle::Substitution);
                self.at += 2;
                if next == '(' { self.nested(self.fed) } else { self.braced() }
            }
            _ if next.is_alphanumeric() || "_@*#?$!-[".contains(next) => {
                word.known = false;
                self.note(Obstacle::Substitution);
                self.line.changes_names |= next == '[';
                self.at += 2;
            }
            _ => {
                self.at += 1;
                word.text.push('$');
            }
        }
    }

    /// Skips `$'…'`, whose escapes are not decoded: the word is unknown.
    fn ansi_quoted(&mut self) {
        self.at += 2;
        while let Some(c) = self.peek() {
            self.at += if c == '\\' { 2 } else { 1 };
            if c == '\'' {
                return;
            }
        }
        self.give_up(Obstacle::Unbalanced);
    }

    /// Skips `${…}`; commands in it are read, quotes in it follow rules that are not.
    fn braced(&mut self) {
        if self.depth >= MAX_DEPTH {
            self.give_up(Obstacle::TooLarge);
            self.at = self.chars.len();
            return;
        }
        self.depth += 1;
        let documents = self.line.documents.len();
        let mut word = Word::default();
        while let Some(c) = self.peek() {
            match c {
                '}' => {
                    self.at += 1;
                    self.depth -= 1;
                    // An index is computed, and what is computed may run commands.
                    self.line.changes_names |= self.line.documents.len() > documents;
                    return;
                }
                '$' => self.dollar(&mut word, true),
                '`' => self.backquoted(&mut word),
                _ => {
                    if matches!(c, '\'' | '"' | '\\' | '{') {
                        self.line.complete = false;
                    }
                    self.line.changes_names |= c == '=';
                    self.at += 1;
                }
            }
        }
        self.depth -= 1;
        self.give_up(Obstacle::Unbalanced);
    }

    pub(super) fn backquoted(&mut self, word: &mut Word) {
        word.known = false;
        self.note(Obstacle::Substitution);
        self.at += 1;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                '`' => return self.inner(&text, self.fed),
                '\\' => {
                    if !matches!(self.peek(), Some('`' | '\\' | '$')) {
                        text.push(c);
                    }
                    text.extend(self.peek());
                    self.at += 1;
                }
                _ => text.push(c),
            }
        }
        self.give_up(Obstacle::Unbalanced);
    }
}

/// Progress of a brace expansion within a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BraceState {
    None,
    Open,
    /// A dot within the brace: another makes a range.
    Dot,
    Expands,
}

impl BraceState {
    fn next(self, c: char) -> Self {
        match (self, c) {
            (Self::Open | Self::Dot, ',') | (Self::Dot, '.') => Self::Expands,
            (Self::Open, '.') => Self::Dot,
            (Self::None, '{') | (Self::Dot, _) => Self::Open,
            (state, _) => state,
        }
    }
}
