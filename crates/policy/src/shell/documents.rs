//! Here-documents and what else of a line is the input of its commands.

use super::lexer::{Lexer, MAX_DEPTH};
use super::{Obstacle, SimpleCommand, Word};

/// Here-document whose text begins behind the line that it stands in.
pub(super) struct PendingDocument {
    end: String,
    /// Whether nothing in it is expanded.
    is_quoted: bool,
    strips_tabs: bool,
}

impl PendingDocument {
    /// The document of a word as it is written; none where shells may not agree on its end.
    fn of(word: &str, strips_tabs: bool) -> Option<Self> {
        let quoted = ['\'', '"'].into_iter().find_map(|quote| word.strip_prefix(quote)?.strip_suffix(quote));
        let quoted = quoted.or_else(|| word.strip_prefix('\\'));
        let end = quoted.unwrap_or(word);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.!:".contains(c);
        (!end.is_empty() && end.chars().all(is_plain)).then(|| Self {
            end: end.to_owned(),
            is_quoted: quoted.is_some(),
            strips_tabs,
        })
    }
}

impl Lexer {
    /// Notes a here-document, behind its operator.
    pub(super) fn begin_document(&mut self, command: &mut SimpleCommand) {
        self.note(Obstacle::HereDocument);
        let strips_tabs = self.take("-");
        self.skip_blanks();
        let from = self.at;
        self.word();
        let written: String = self.chars.iter().take(self.at).skip(from).collect();
        match PendingDocument::of(&written, strips_tabs) {
            Some(document) => self.pending.push(document),
            None => self.give_up(Obstacle::HereDocument),
        }
        self.feed(command);
    }

    /// Says that a command, or the group that ended before it, gets a text or what another command prints.
    pub(super) fn feed(&mut self, command: &mut SimpleCommand) {
        command.fed = true;
        if command.words.is_empty() {
            self.line.commands.iter_mut().for_each(|before| before.fed = true);
        }
    }

    /// Gives up where the text of a here-document does not begin behind the end of its line.
    pub(super) fn give_up_documents(&mut self) {
        if !self.pending.is_empty() {
            self.pending.clear();
            self.give_up(Obstacle::HereDocument);
        }
    }

    /// Reads the texts of the here-documents of a line, behind its end.
    pub(super) fn read_documents(&mut self) {
        for document in std::mem::take(&mut self.pending) {
            let Some(text) = self.document(&document) else { return self.give_up(Obstacle::HereDocument) };
            if !document.is_quoted {
                self.expansions(&text);
            }
            self.line.documents.push(text);
        }
    }

    /// The text up to its end; none where that is not there, or shells may see it elsewhere: some join lines first.
    fn document(&mut self, document: &PendingDocument) -> Option<String> {
        let (mut at, mut text, mut joined) = (self.at, String::new(), String::new());
        while at < self.chars.len() {
            let line: String = self.chars[at..].iter().take_while(|c| **c != '\n').collect();
            at += line.chars().count() + 1;
            let line = if document.strips_tabs { line.trim_start_matches('\t') } else { &line };
            let is_alone = joined.is_empty();
            joined.push_str(line);
            if line == document.end || joined == document.end {
                self.at = at.min(self.chars.len());
                return is_alone.then_some(text);
            }
            text.push_str(line);
            text.push('\n');
            let backslashes = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
            match backslashes % 2 == 1 && !document.is_quoted {
                true => drop(joined.pop()),
                false => joined.clear(),
            }
        }
        None
    }

    /// Finds the commands that a text has expanded in it.
    fn expansions(&mut self, text: &str) {
        if self.depth >= MAX_DEPTH {
            return self.give_up(Obstacle::TooLarge);
        }
        let mut inner = Self::of(text, self.depth + 1, self.fed);
        let mut word = Word::default();
        while let Some(c) = inner.peek() {
            match c {
                '$' => inner.dollar(&mut word, true),
                '`' => inner.backquoted(&mut word),
                '\\' => inner.at += 2,
                _ => inner.at += 1,
            }
        }
        self.line.add(inner.line);
    }
}
