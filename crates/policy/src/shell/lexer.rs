//! Lexer of command lines: operators, redirections and what else a line may hold; words are read in `words`.

use crate::command_readers::reads_commands;
use crate::data_takers::{changes_names, is_harmless_setting, takes_data};
use crate::programs::{HARMLESS, is_program_variable};

use super::documents::PendingDocument;
use super::{CommandLine, MAX_LINE, Obstacle, Redirection, SimpleCommand, Word};

/// Deepest nesting of substitutions and groups that is read.
pub(super) const MAX_DEPTH: usize = 16;

/// Keywords after which a command begins, and the options of `time`.
const KEYWORDS: &[&str] = &[
    "!", "{", "}", "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "time", "-p", "--",
    "esac",
];

/// Words after which a line is not read for certain: patterns whose bracket closes nothing, bodies in other places, and
/// names that come to mean something else.
pub(crate) const UNREADABLE: &[&str] =
    &["case", "function", "coproc", "select", "alias", "unalias", "hash", "enable"];

/// Commands whose arguments assign.
const DECLARATIONS: &[&str] = &["declare", "export", "local", "readonly", "typeset"];

/// Reader of one line.
pub(crate) struct Lexer {
    pub(super) chars: Vec<char>,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) line: CommandLine,
    /// Whether what stands here may get its input from another command, or from a text of the line.
    pub(super) fed: bool,
    /// Here-documents that began in the line, whose texts come behind its end.
    pub(super) pending: Vec<PendingDocument>,
}

impl Lexer {
    /// Reads a line that stands in another one at a depth, where a command that takes others from its input may hide
    /// some. A text that is the input of any may be commands, too, unless all that may get it are known to run none of it,
    /// by names that mean here what they mean elsewhere.
    pub(crate) fn read(line: &str, depth: usize, fed: bool, changes: bool) -> CommandLine {
        let mut line = Self::parse(line, depth, fed);
        line.changes_names |= changes || line.commands.iter().any(changes_names);
        // What groups and functions are fed with, their end or their call tells.
        let has_groups = line.obstacles.contains(&Obstacle::Compound);
        let gets = |command: &&SimpleCommand| command.fed && (has_groups || command.beside_document);
        let is_data = line.documents.is_empty()
            || (!line.changes_names && line.commands.iter().filter(gets).all(takes_data));
        if !is_data || line.commands.iter().any(|command| reads_commands(command, depth)) {
            line.complete = false;
            for depth in depth + 1..=MAX_DEPTH {
                for text in std::mem::take(&mut line.documents) {
                    line.add(Self::parse(&text, depth, false));
                }
            }
        }
        let changes = line.changes_names;
        line.commands.iter_mut().for_each(|command| command.changes_names = changes);
        line
    }

    /// Reader of a text at a depth.
    pub(super) fn of(text: &str, depth: usize, fed: bool) -> Self {
        let empty = CommandLine {
            commands: Vec::new(),
            redirections: Vec::new(),
            assigns: false,
            changes_names: false,
            program_variables: Vec::new(),
            obstacles: Vec::new(),
            documents: Vec::new(),
            complete: true,
        };
        Self { chars: text.chars().collect(), at: 0, depth, line: empty, fed, pending: Vec::new() }
    }

    fn parse(line: &str, depth: usize, fed: bool) -> CommandLine {
        let mut lexer = Self::of(if line.len() > MAX_LINE { "" } else { line }, depth, fed);
        if line.len() > MAX_LINE || depth > MAX_DEPTH {
            lexer.give_up(Obstacle::TooLarge);
            return lexer.line;
        }
        if line.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
            lexer.note(Obstacle::Control);
        }
        lexer.list(None);
        lexer.line
    }

    pub(super) fn note(&mut self, obstacle: Obstacle) {
        self.line.note(obstacle);
    }

    /// Notes that commands may be missing.
    pub(super) fn give_up(&mut self, obstacle: Obstacle) {
        self.note(obstacle);
        self.line.complete = false;
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Takes a text if it stands next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let found = text.chars().enumerate().all(|(ahead, c)| self.peek_at(ahead) == Some(c));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    /// Reads commands until a closing bracket, or to the end; says whether it came.
    fn list(&mut self, close: Option<char>) -> bool {
        let mut command = SimpleCommand::default();
        let mut pipeline = Pipeline { groups: vec![self.fed], begun: false, commands: 0, documents: 0 };
        self.begin_pipeline(&mut pipeline);
        loop {
            let Some(c) = self.peek() else {
                self.finish(&mut command);
                self.end_pipeline(&mut pipeline);
                self.give_up_documents();
                return close.is_none();
            };
            match c {
                ' ' | '\t' => self.at += 1,
                '\\' if self.peek_at(1) == Some('\n') => self.at += 2,
                '#' => self.skip_comment(),
                ')' if close == Some(')') => {
                    self.at += 1;
                    self.finish(&mut command);
                    self.end_pipeline(&mut pipeline);
                    self.give_up_documents();
                    return true;
                }
                '\n' | ';' | '|' | '&' | '(' | ')' if !self.starts_redirection() => {
                    // What a function does may be fed wherever it is called.
                    self.fed |= c == '(' && !command.words.is_empty();
                    pipeline.begun |= !command.words.is_empty();
                    self.finish(&mut command);
                    self.operator(c, &mut pipeline);
                    if c == '\n' {
                        self.read_documents();
                    }
                }
                '<' | '>' | '&' => self.redirection(&mut command),
                _ => {
                    let word = self.word();
                    self.add(&mut command, word, &mut pipeline);
                }
            }
        }
    }

    fn finish(&mut self, command: &mut SimpleCommand) {
        let mut command = std::mem::take(command);
        if !command.words.is_empty() {
            command.fed |= self.fed;
            self.line.commands.push(command);
        }
    }

    fn begin_pipeline(&self, pipeline: &mut Pipeline) {
        pipeline.commands = self.line.commands.len();
        pipeline.documents = self.line.documents.len() + self.pending.len();
    }

    /// Notes which commands have a text beside them, and begins the next pipeline.
    fn end_pipeline(&mut self, pipeline: &mut Pipeline) {
        if self.line.documents.len() + self.pending.len() > pipeline.documents {
            let commands = self.line.commands.iter_mut().skip(pipeline.commands);
            commands.for_each(|command| command.beside_document = true);
        }
        self.begin_pipeline(pipeline);
    }

    fn skip_comment(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            self.at += 1;
        }
    }

    fn starts_redirection(&self) -> bool {
        self.peek() == Some('&') && self.peek_at(1) == Some('>')
    }

    fn operator(&mut self, c: char, pipeline: &mut Pipeline) {
        let joins = self.take("&&") || self.take("||");
        // A pipe goes on over ends of lines.
        if joins || matches!(c, ';' | '&') || (c == '\n' && pipeline.begun) {
            self.fed = pipeline.base();
            self.end_pipeline(pipeline);
        }
        pipeline.begun &= c != '|' && c != '(';
        if joins {
            return;
        }
        self.at += 1;
        match (c, self.peek()) {
            ('&', _) => self.note(Obstacle::Background),
            ('|', next) => {
                self.fed = true;
                if next == Some('&') {
                    self.at += 1;
                    self.note(Obstacle::Compound);
                }
            }
            (';', Some(';' | '&')) => {
                self.at += 1;
                self.note(Obstacle::Compound);
            }
            ('(', _) => {
                self.note(Obstacle::Compound);
                // Arithmetic assigns, and runs what stands in the index of an array.
                self.line.changes_names |=
                    self.peek() == Some('(') || self.chars[..self.at - 1].ends_with(&['(']);
                let before = self.line.commands.len();
                self.nested(self.fed);
                // An empty one is that of a function, whose body comes.
                pipeline.begun = self.line.commands.len() > before;
            }
            (')', _) => self.note(Obstacle::Compound),
            _ => {}
        }
    }

    /// Reads up to the closing bracket of a group or a substitution.
    pub(super) fn nested(&mut self, fed: bool) {
        self.give_up_documents();
        if self.depth >= MAX_DEPTH {
            self.give_up(Obstacle::TooLarge);
            self.at = self.chars.len();
            return;
        }
        self.depth += 1;
        let outer = std::mem::replace(&mut self.fed, fed);
        if !self.list(Some(')')) {
            self.give_up(Obstacle::Unbalanced);
        }
        self.fed = outer;
        self.depth -= 1;
    }

    /// Reads a text that is itself a line.
    pub(super) fn inner(&mut self, text: &str, fed: bool) {
        self.line.add(Self::parse(text, self.depth + 1, fed));
    }

    /// Adds a word to a command, unless it is a keyword or an assignment before one.
    fn add(&mut self, command: &mut SimpleCommand, word: Word, pipeline: &mut Pipeline) {
        let is_descriptor = word.is_bare() && word.text.bytes().all(|byte| byte.is_ascii_digit());
        if is_descriptor && matches!(self.peek(), Some('<' | '>')) {
            return;
        }
        let assigns = match command.words.first() {
            Some(first) if !DECLARATIONS.contains(&first.text.as_str()) => None,
            _ => assigned(&word),
        };
        if assigns.is_some_and(|name| !HARMLESS.contains(&name)) {
            self.note(Obstacle::Assignment);
        }
        self.line.changes_names |= assigns.is_some_and(|name| !is_harmless_setting(name, &word));
        if assigns.is_some_and(is_program_variable) {
            self.line.program_variables.push(word.clone());
        }
        if command.words.is_empty() {
            if assigns.is_some() {
                self.line.assigns = true;
                return;
            }
            if word.is_bare() {
                self.fed = pipeline.fed_behind(&word.text, self.fed);
            }
            if word.is_bare() && KEYWORDS.contains(&word.text.as_str()) {
                self.note(Obstacle::Compound);
                return;
            }
            if UNREADABLE.contains(&word.text.as_str()) {
                self.give_up(Obstacle::Compound);
            }
        }
        command.words.push(word);
    }

    /// Reads a redirection with its target.
    fn redirection(&mut self, command: &mut SimpleCommand) {
        let gets = self.peek() == Some('>');
        if self.process_substitution().is_some() {
            command.words.push(Word { text: String::new(), known: false, bare: 0 });
            return;
        }
        let document = self.take("<<<");
        if !document && self.take("<<") {
            return self.begin_document(command);
        }
        let writes = !document && self.redirection_operator();
        let duplicates = self.at.checked_sub(1).and_then(|at| self.chars.get(at)) == Some(&'&');
        self.skip_blanks();
        if !document && let Some(writes) = self.process_substitution() {
            if !writes {
                self.feed(command);
            }
            return;
        }
        let target = self.word();
        if document {
            self.note(Obstacle::HereDocument);
            self.line.documents.push(target.text);
            self.feed(command);
        } else if target.text.is_empty() && target.known {
            self.give_up(Obstacle::Unbalanced);
        } else if !(duplicates && target.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')) {
            if !gets && target.text != "/dev/null" {
                command.has_file = true;
                if command.words.is_empty() {
                    self.line.commands.iter_mut().for_each(|before| before.has_file = true);
                }
            }
            self.line.redirections.push(Redirection { target, writes });
        }
    }

    /// Reads `<(…)` or `>(…)`, if it stands here; whether what is in it gets what is written there.
    fn process_substitution(&mut self) -> Option<bool> {
        let writes = self.take(">(");
        if !writes && !self.take("<(") {
            return None;
        }
        self.note(Obstacle::Substitution);
        self.nested(self.fed || writes);
        Some(writes)
    }

    /// Takes the operator, and says whether it writes.
    fn redirection_operator(&mut self) -> bool {
        let writing = ["&>>", "&>", "<>", ">>", ">|", ">&", ">"];
        if writing.iter().any(|operator| self.take(operator)) {
            return true;
        }
        let _reads = self.take("<&") || self.take("<");
        false
    }

    pub(super) fn skip_blanks(&mut self) {
        loop {
            match (self.peek(), self.peek_at(1)) {
                (Some(' ' | '\t'), _) => self.at += 1,
                (Some('\\'), Some('\n')) => self.at += 2,
                _ => return,
            }
        }
    }
}

/// What of a list of commands is fed by others.
struct Pipeline {
    /// Whether the list is fed as a whole, and each group of keywords that is open in it.
    groups: Vec<bool>,
    /// Whether a command stands behind the last pipe.
    begun: bool,
    /// Commands of the line before the pipeline, and texts that are their input.
    commands: usize,
    documents: usize,
}

impl Pipeline {
    /// Whether a pipeline that begins here is fed.
    fn base(&self) -> bool {
        self.groups.last().is_some_and(|fed| *fed)
    }

    /// Whether what comes behind a first word of a command is fed, where that was or was not.
    fn fed_behind(&mut self, word: &str, fed: bool) -> bool {
        match word {
            "{" | "if" | "while" | "until" | "for" => self.groups.push(fed || self.base()),
            "}" | "fi" | "done" => {
                self.begun = true;
                if self.groups.len() > 1 {
                    self.groups.pop();
                }
                return self.base();
            }
            _ => {}
        }
        fed
    }
}

/// Name that a word assigns, if it is an assignment.
fn assigned(word: &Word) -> Option<&str> {
    let (name, _) = word.text.split_once('=')?;
    let plain = name.strip_suffix('+').unwrap_or(name);
    let plain = plain.split_once('[').map_or(plain, |(plain, _)| plain);
    let starts = plain.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_name = starts && plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_name && plain.len() < word.bare).then_some(plain)
}
