//! HANDOFF.md: the document by which a session hands over to the next one (spec: continuity §1).
//!
//! A title and five sections in one order, each with one recovery question to answer, in 2,048 bytes. Reading is lenient,
//! so that nothing a person wrote is lost to a breach of the format: what is not as it should be is a [`Finding`] with its
//! line, and the text of it still stands in the document. Rendering a document and reading that gives the same document.

mod activity;
pub(crate) mod bracketed;
mod parser;

pub(crate) use activity::activity;
use text::finding::Finding;
use text::sanitiser;

/// Most bytes of a handoff (UTF-8, with its title and line ends).
pub const MAX_BYTES: usize = 2048;

/// Most entries of [`Section::NextSteps`].
pub const MAX_STEPS: usize = 5;

/// Most findings that are told one by one.
const MOST_TOLD: usize = 100;

/// Bytes of a file that is still read when it is checked; of a longer one its size alone is told.
pub(crate) const MOST_READ: usize = 32 * MAX_BYTES;

const TITLE: &str = "HANDOFF.md";

/// A handoff. Entries are single lines without white space at their ends, and are not empty; a section without text is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Handoff {
    /// What the work is about.
    pub current_work: String,
    /// What was being done at the end, and in what state it is.
    pub stopping_point: String,
    /// What is decided or known now: conclusions.
    pub key_outcomes: Vec<String>,
    pub open_questions: Vec<String>,
    /// At most [`MAX_STEPS`], the first one first.
    pub next_steps: Vec<String>,
}

/// A section of a handoff, in the order in which they stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    CurrentWork,
    StoppingPoint,
    KeyOutcomes,
    OpenQuestions,
    NextSteps,
}

/// How the text of a section is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SectionForm {
    OneLine,
    Bullets,
    Numbers,
}

impl Section {
    pub const ALL: [Self; 5] =
        [Self::CurrentWork, Self::StoppingPoint, Self::KeyOutcomes, Self::OpenQuestions, Self::NextSteps];

    /// The heading, as it is written.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::CurrentWork => "Current Work",
            Self::StoppingPoint => "Stopping Point",
            Self::KeyOutcomes => "Key Outcomes",
            Self::OpenQuestions => "Open Questions",
            Self::NextSteps => "Next Steps",
        }
    }

    const fn form(self) -> SectionForm {
        match self {
            Self::CurrentWork | Self::StoppingPoint => SectionForm::OneLine,
            Self::KeyOutcomes | Self::OpenQuestions => SectionForm::Bullets,
            Self::NextSteps => SectionForm::Numbers,
        }
    }
}

/// A text read as a handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedHandoff {
    pub handoff: Handoff,
    /// Breaches of the structure, by line.
    pub findings: Vec<Finding>,
}

impl Handoff {
    /// Reads a text, with or without a byte order mark, its lines ended by LF or CRLF.
    #[must_use]
    pub fn parse(text: &str) -> ParsedHandoff {
        let outline = parser::read(text);
        ParsedHandoff { handoff: outline.handoff(), findings: outline.findings }
    }

    /// Entries of a section; of one of a single line none where it is empty.
    pub(crate) fn entries(&self, section: Section) -> &[String] {
        let one = |line| if String::is_empty(line) { &[] } else { std::slice::from_ref(line) };
        match section {
            Section::CurrentWork => one(&self.current_work),
            Section::StoppingPoint => one(&self.stopping_point),
            Section::KeyOutcomes => &self.key_outcomes,
            Section::OpenQuestions => &self.open_questions,
            Section::NextSteps => &self.next_steps,
        }
    }

    /// The entries that have text, in the order of the document.
    fn entries_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let Self { current_work, stopping_point, key_outcomes, open_questions, next_steps } = self;
        let lists = key_outcomes.iter_mut().chain(open_questions).chain(next_steps);
        [current_work, stopping_point].into_iter().chain(lists).filter(|entry| !entry.is_empty())
    }

    /// The text of the document. Reading it gives this document again.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = format!("# {TITLE}\n");
        for section in Section::ALL {
            out += &format!("\n## {}\n", section.heading());
            for (index, entry) in self.entries(section).iter().filter(|entry| !entry.is_empty()).enumerate() {
                match section.form() {
                    SectionForm::OneLine => {}
                    SectionForm::Bullets => out += "- ",
                    SectionForm::Numbers => out += &format!("{}. ", index + 1),
                }
                out += entry;
                out.push('\n');
            }
        }
        out
    }
}

/// A handoff as a session reads it: each line that speaks to a model stands in brackets with the reason, and nothing of it
/// is left out (spec: security §25).
#[must_use]
pub fn readable(text: &str) -> String {
    bracketed::bracketed_lines(text)
}

/// Everything that the author of a handoff should look at, by line: errors are breaches of structure and size, warnings
/// the rest. Of more than 100 findings the last one is the count of those left out, an error where one of them is.
#[must_use]
pub fn check(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    if text.len() > MAX_BYTES {
        let why = format!("it has {} bytes, where {MAX_BYTES} are allowed", text.len());
        found.push(Finding::error("too_large", why));
    }
    if text.len() > MOST_READ {
        return found;
    }
    let outline = parser::read(text);
    found.extend(activity::findings(&outline));
    found.extend(sanitiser::findings(text));
    found.extend(outline.findings);
    found.sort_by_key(|finding| finding.line);
    if found.len() > MOST_TOLD {
        let rest = found.split_off(MOST_TOLD);
        let why = format!("{} more were found", rest.len());
        let has_error = rest.iter().any(Finding::is_error);
        let told = if has_error { Finding::error } else { Finding::warning };
        found.push(told("more_problems", why));
    }
    found
}
