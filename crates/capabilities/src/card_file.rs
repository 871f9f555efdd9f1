//! A card's file, read as data: every key in either spelling, with what its author should look at (spec: capabilities §1).

use std::collections::BTreeSet;

use loom::Digest;
use text::bigrams::words;
use text::finding::{Finding, Severity};
use text::sanitiser::{self, DetectionKind};
use text::terminal::one_line;
use workspace::frontmatter::{self, FieldError, Map, Page};

use crate::card::{Card, DEFAULT_MAX_CHARS, DEFAULT_THRESHOLD, MAX_TOKEN_BUDGET, SessionType, is_id};
use crate::loading::CardSource;

/// Begin of the ids of cards that need their owner's word or a signature, and are read strictly.
const SECURITY: &str = "security-";

/// Keys at the top and in `triggers`.
const KEYS: [&str; 10] = [
    "capability_id",
    "name",
    "description",
    "version",
    "triggers",
    "examples",
    "uses",
    "priority",
    "max_chars",
    "token_budget",
];
const TRIGGERS: [&str; 5] = ["router_tags", "keywords", "tools", "session_types", "confidence_threshold"];

/// Most entries of a list.
const MOST_PHRASES: usize = 200;
const MOST_NAMES: usize = 50;
const MOST_EXAMPLES: usize = 50;

/// Characters of a token where a budget in tokens is one in characters.
const CHARS_OF_TOKEN: usize = 4;

/// Characters that a body should have.
const ADVISED: std::ops::RangeInclusive<usize> = 200..=800;

/// A file of a card as it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct CardFile {
    /// The card; none where an error refuses it.
    pub card: Option<Card>,
    /// The id that it names, whether or not it is one; empty without one.
    pub id: String,
    pub findings: Vec<Finding>,
}

impl CardFile {
    /// Reads a file of this source. The path of the card is empty.
    #[must_use]
    pub fn read(bytes: &[u8], source: CardSource) -> Self {
        let page = match frontmatter::read(bytes) {
            Ok(page) => page,
            Err(error) => {
                let finding = Finding::error("unparsable", error.why.to_string()).at(error.line);
                return Self { card: None, id: String::new(), findings: vec![finding] };
            }
        };
        let Page { fields, body, warnings } = page;
        let Some(fields) = fields else {
            let why = "it does not begin with a block between two lines `---`";
            let finding = Finding::error("no_frontmatter", why).at(1);
            return Self { card: None, id: String::new(), findings: vec![finding] };
        };
        let text = String::from_utf8_lossy(bytes);
        let mut reading = Reading { text: &text, findings: Vec::new() };
        let irregular = warnings
            .iter()
            .map(|warning| Finding::warning("irregular", warning.what.to_string()).at(warning.line));
        reading.findings.extend(irregular);
        let mut card = reading.card(&fields, source, Digest::of(bytes));
        reading.body(&body);
        card.body = body;
        if card.uses.is_empty() {
            card.uses = code_spans(&card.body);
        }
        if card.id.starts_with(SECURITY) {
            reading.security();
        }
        let mut findings = reading.findings;
        findings.sort_by_key(|finding| finding.line);
        let is_refused = findings.iter().any(Finding::is_error);
        let id = card.id.clone();
        Self { card: (!is_refused).then_some(card), id, findings }
    }

    /// The first error, for which the card is refused.
    pub fn refusal(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.is_error())
    }
}

struct Reading<'a> {
    /// The file, for the lines of its keys.
    text: &'a str,
    findings: Vec<Finding>,
}

impl Reading<'_> {
    fn card(&mut self, fields: &Map, source: CardSource, digest: Digest) -> Card {
        self.unknown(fields, &KEYS);
        let none = Map::default();
        let triggers = self.taken("triggers", fields.map("triggers")).flatten().unwrap_or(&none);
        self.unknown(triggers, &TRIGGERS);
        let id = self.id(fields);
        let name = self.line(fields, "name");
        let threshold = triggers.number("confidence_threshold", 0.0, 1.0);
        let priority = fields.integer("priority", 1, 10);
        let priority = self.taken("priority", priority).flatten();
        let card = Card {
            name: if name.is_empty() { id.clone() } else { name },
            id,
            description: self.line(fields, "description"),
            version: self.line(fields, "version"),
            tags: self.names(triggers, "router_tags"),
            keywords: self.phrases(triggers),
            tools: self.names(triggers, "tools"),
            session_types: self.session_types(triggers),
            threshold: self.taken("confidence_threshold", threshold).flatten().unwrap_or(DEFAULT_THRESHOLD),
            examples: self.texts(fields, "examples", MOST_EXAMPLES),
            uses: self.names(fields, "uses"),
            priority: priority.and_then(|priority| u8::try_from(priority).ok()).unwrap_or(5),
            max_chars: self.max_chars(fields),
            body: String::new(),
            digest,
            source,
            path: std::path::PathBuf::new(),
        };
        let has_trigger = [&card.tags, &card.keywords, &card.tools, &card.examples]
            .iter()
            .any(|triggers| !triggers.is_empty());
        // One that could not be read is told of already.
        if !has_trigger && !self.findings.iter().any(Finding::is_error) {
            let why = "nothing triggers it: give keywords, examples, router tags or tools";
            self.add("triggers", Finding::error("no_trigger", why));
        }
        card
    }

    /// Adds a finding at the line of a key.
    fn add(&mut self, key: &str, finding: Finding) {
        let finding = match self.line_of(key) {
            Some(line) => finding.at(line),
            None => finding,
        };
        self.findings.push(finding);
    }

    /// Line of the frontmatter that gives a key, in either spelling.
    fn line_of(&self, key: &str) -> Option<usize> {
        let bare = |key: &str| -> String {
            let key = key.trim().trim_matches(['"', '\'']);
            key.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
        };
        let mut lines =
            self.text.lines().enumerate().skip(1).take_while(|(_, line)| line.trim_end() != "---");
        let has_key = |line: &str| {
            let before_colons = line.match_indices(':').map(|(colon, _)| &line[..colon]);
            let mut keys = before_colons.filter_map(|before| before.rsplit(['{', ',']).next());
            keys.any(|found| bare(found) == bare(key))
        };
        lines.find(|(_, line)| has_key(line)).map(|(index, _)| index + 1)
    }

    fn taken<T>(&mut self, key: &str, read: Result<T, FieldError>) -> Option<T> {
        read.map_err(|error| self.add(key, Finding::error("wrong_value", error.to_string()))).ok()
    }

    fn unknown(&mut self, fields: &Map, known: &[&str]) {
        let unknown: Vec<String> = fields.unknown(known).map(str::to_owned).collect();
        for key in unknown {
            self.add(&key, Finding::warning("unknown_key", format!("the key `{key}` is not read")));
        }
    }

    fn id(&mut self, fields: &Map) -> String {
        const KEY: &str = "capability_id";
        let id = self.taken(KEY, fields.text(KEY)).flatten().unwrap_or_default().to_owned();
        if id.is_empty() {
            self.findings.push(Finding::error("no_id", "`capability_id` is missing"));
        } else if !is_id(&id) {
            let why =
                "an id has up to 64 small letters a-z, digits and hyphens, and does not begin with a hyphen";
            self.add(KEY, Finding::error("id_form", why));
        }
        id
    }

    /// A text in one line.
    fn line(&mut self, fields: &Map, key: &str) -> String {
        let text = self.taken(key, fields.text(key)).flatten().unwrap_or_default();
        one_line(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
    }

    fn texts(&mut self, fields: &Map, key: &str, most: usize) -> Vec<String> {
        let texts = self.taken(key, fields.texts(key, most)).unwrap_or_default();
        texts.into_iter().map(|text| text.trim().to_owned()).collect()
    }

    fn names(&mut self, fields: &Map, key: &str) -> Vec<String> {
        self.texts(fields, key, MOST_NAMES)
    }

    fn phrases(&mut self, triggers: &Map) -> Vec<String> {
        const KEY: &str = "keywords";
        let phrases = self.texts(triggers, KEY, MOST_PHRASES);
        let none = phrases.iter().filter(|phrase| words(phrase).is_empty());
        let why =
            |phrase: &String| format!("the keyword `{phrase}` has no letter or digit, and is never found");
        let unfound: Vec<String> = none.map(why).collect();
        for why in unfound {
            self.add(KEY, Finding::warning("keyword_without_words", why));
        }
        phrases
    }

    fn session_types(&mut self, triggers: &Map) -> Vec<SessionType> {
        const KEY: &str = "session_types";
        let mut types = Vec::new();
        for name in self.names(triggers, KEY) {
            match SessionType::ALL.into_iter().find(|kind| kind.name() == name) {
                Some(kind) if types.contains(&kind) => {}
                Some(kind) => types.push(kind),
                None => {
                    let why = format!("the session type `{name}` is neither `main` nor `isolated`");
                    self.add(KEY, Finding::error("wrong_value", why));
                }
            }
        }
        if types.is_empty() { SessionType::ALL.into() } else { types }
    }

    fn max_chars(&mut self, fields: &Map) -> usize {
        let largest = MAX_TOKEN_BUDGET * CHARS_OF_TOKEN as i64;
        let chars = self.taken("max_chars", fields.integer("max_chars", 1, largest)).flatten();
        let tokens =
            self.taken("token_budget", fields.integer("token_budget", 1, MAX_TOKEN_BUDGET)).flatten();
        let of_tokens =
            tokens.and_then(|tokens| usize::try_from(tokens).ok()).map(|tokens| tokens * CHARS_OF_TOKEN);
        let chars = chars.and_then(|chars| usize::try_from(chars).ok());
        chars.or(of_tokens).unwrap_or(DEFAULT_MAX_CHARS)
    }

    fn body(&mut self, body: &str) {
        let lines = |text: &str| text.replace("\r\n", "\n").matches('\n').count();
        let before = lines(self.text).saturating_sub(lines(body));
        let length = body.trim().chars().count();
        if length == 0 {
            self.findings.push(Finding::error("no_body", "there is no text behind the frontmatter"));
        } else if !ADVISED.contains(&length) {
            let why = format!(
                "the text has {length} characters, where {} to {} are advised",
                ADVISED.start(),
                ADVISED.end()
            );
            self.findings.push(Finding::warning("body_length", why).at(before + 1));
        }
        for mut finding in sanitiser::findings(body) {
            let line = finding.line.map_or(before + 1, |line| before + line);
            // Nobody answers for such a text yet (spec: capabilities §5).
            if finding.code == DetectionKind::OverridePhrase.code() {
                finding.severity = Severity::Error;
            }
            self.findings.push(finding.at(line));
        }
    }

    /// Refuses what is warned of elsewhere, and every card that nobody answers for.
    fn security(&mut self) {
        for finding in &mut self.findings {
            finding.severity = Severity::Error;
        }
        let why = format!(
            "a card whose id begins with `{SECURITY}` needs a trusted signature or your approval of its text"
        );
        self.add("capability_id", Finding::error("needs_approval", why));
    }
}

/// Names in code spans of a text, each once.
fn code_spans(body: &str) -> Vec<String> {
    let is_name = |span: &str| {
        !span.is_empty()
            && span.len() <= 64
            && span.chars().all(|c| c.is_ascii_alphanumeric() || "_-. /".contains(c))
    };
    let spans: BTreeSet<&str> = body
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .map(str::trim)
        .filter(|span| is_name(span))
        .collect();
    spans.into_iter().take(MOST_NAMES).map(str::to_owned).collect()
}
