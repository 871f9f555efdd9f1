//! A text as the sections of a handoff, with what is wrong with their structure. Findings name lines and quote nothing of
//! the text, which may hold what is not to be shown.

use text::finding::Finding;

use super::{Handoff, MAX_STEPS, Section, SectionForm, TITLE};

/// A text as it is written.
#[derive(Default)]
pub(super) struct Outline {
    /// By the order of [`Section::ALL`]; none where the section is missing.
    sections: [Option<SectionText>; Section::ALL.len()],
    pub(super) findings: Vec<Finding>,
}

/// A section as it is written.
struct SectionText {
    /// Line of its heading, from 1.
    line: usize,
    entries: Vec<Entry>,
}

/// A line, bullet or step, with the lines that go on with it.
pub(super) struct Entry {
    /// From 1.
    pub(super) line: usize,
    pub(super) text: String,
}

/// Where a line stands.
#[derive(Clone, Copy)]
enum Place {
    /// Before the title, or between it and the first section.
    Outside,
    Section(Section),
    /// In a section that does not belong into a handoff.
    Extra,
}

impl Outline {
    /// Entries of a section.
    pub(super) fn entries(&self, section: Section) -> &[Entry] {
        self.sections[section as usize].as_ref().map_or(&[], |section| &section.entries)
    }

    /// The document that the text holds.
    pub(super) fn handoff(&self) -> Handoff {
        let all = |section| self.entries(section).iter().map(|entry| entry.text.clone()).collect();
        let one = |section| self.entries(section).first().map(|entry| entry.text.clone()).unwrap_or_default();
        Handoff {
            current_work: one(Section::CurrentWork),
            stopping_point: one(Section::StoppingPoint),
            key_outcomes: all(Section::KeyOutcomes),
            open_questions: all(Section::OpenQuestions),
            next_steps: all(Section::NextSteps),
        }
    }
}

/// Reads a text. Linear in it.
pub(super) fn read(text: &str) -> Outline {
    let mut reader =
        Reader { outline: Outline::default(), place: Place::Outside, titled: false, told: false };
    let mut last = 0;
    let mut goes_on = false;
    for (index, line) in text.strip_prefix('\u{feff}').unwrap_or(text).split('\n').enumerate() {
        let number = index + 1;
        let is_indented = line.starts_with([' ', '\t']);
        let words = line.trim();
        if words.is_empty() {
            goes_on = false;
            continue;
        }
        last = number;
        match heading(words) {
            Some((level, name)) => {
                reader.heading(level, name, number);
                goes_on = false;
            }
            None => {
                reader.line(words, number, is_indented && goes_on);
                goes_on = true;
            }
        }
    }
    reader.end(last)
}

/// Level and text of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    let is_heading = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    is_heading.then(|| (level, rest.trim()))
}

struct Reader {
    outline: Outline,
    place: Place,
    /// Whether there was a title.
    titled: bool,
    /// Whether the lines of this place that should not be there were told of.
    told: bool,
}

impl Reader {
    fn found(&mut self, code: &'static str, line: usize, why: impl Into<String>) {
        self.outline.findings.push(Finding::error(code, why).at(line));
    }

    fn heading(&mut self, level: usize, name: &str, line: usize) {
        let is_first = !self.titled && self.outline.sections.iter().all(Option::is_none);
        let words = name.trim_end_matches(':').trim_end();
        let known = Section::ALL.into_iter().find(|section| section.heading().eq_ignore_ascii_case(words));
        match (level, known) {
            (1, None) if is_first => {
                self.titled = true;
                if name != TITLE {
                    self.found("title", line, format!("the title has to be `# {TITLE}`"));
                }
            }
            (_, Some(section)) => {
                if level != 2 || section.heading() != name {
                    let why = format!("this heading has to be written `## {}`", section.heading());
                    self.found("section_name", line, why);
                }
                self.section(section, line);
            }
            (1 | 2, None) => {
                self.found("extra_section", line, "this heading is none of the five sections");
                self.place = Place::Extra;
            }
            _ => self.found(
                "extra_heading",
                line,
                "a handoff has one title and five headings `##`, and no others",
            ),
        }
        self.told = false;
    }

    fn section(&mut self, section: Section, line: usize) {
        let heading = section.heading();
        self.place = Place::Section(section);
        let later = Section::ALL.into_iter().filter(|other| *other > section);
        let before = later.filter_map(|other| Some((other, self.outline.sections[other as usize].as_ref()?)));
        let before =
            before.min_by_key(|(_, text)| text.line).map(|(other, text)| (other.heading(), text.line));
        match (&self.outline.sections[section as usize], before) {
            (Some(first), _) => {
                let why = format!("`{heading}` stands in line {} already", first.line);
                self.found("doubled_section", line, why);
            }
            (None, Some((other, at))) => {
                let why = format!("`{heading}` belongs before `{other}`, which stands in line {at}");
                self.found("reordered_section", line, why);
                self.outline.sections[section as usize] = Some(SectionText { line, entries: Vec::new() });
            }
            (None, None) => {
                self.outline.sections[section as usize] = Some(SectionText { line, entries: Vec::new() });
            }
        }
    }

    fn line(&mut self, words: &str, line: usize, goes_on: bool) {
        let Place::Section(section) = self.place else {
            if matches!(self.place, Place::Outside) && !std::mem::replace(&mut self.told, true) {
                self.found("outside_sections", line, "text stands before the first section");
            }
            return;
        };
        let Some(SectionText { entries, .. }) = &mut self.outline.sections[section as usize] else { return };
        let (heading, number) = (section.heading(), entries.len() + 1);
        let marked = match section.form() {
            SectionForm::OneLine => None,
            SectionForm::Bullets => bullet(words),
            SectionForm::Numbers => step(words),
        };
        let told = match (section.form(), marked, entries.last_mut()) {
            (_, Some(""), _) => Some(("empty_entry", format!("an entry of `{heading}` has no text"))),
            (form, Some(entry), _) => {
                entries.push(Entry { line, text: entry.to_owned() });
                let is_over = form == SectionForm::Numbers && number == MAX_STEPS + 1;
                is_over.then(|| ("too_many_steps", format!("there are more than {MAX_STEPS} steps")))
            }
            (SectionForm::OneLine, None, Some(entry)) => {
                append(entry, words);
                let told = std::mem::replace(&mut self.told, true);
                (!told).then(|| ("several_lines", format!("`{heading}` has to be one line")))
            }
            (SectionForm::OneLine, None, None) => {
                entries.push(Entry { line, text: words.to_owned() });
                None
            }
            (_, None, Some(entry)) if goes_on => {
                append(entry, words);
                None
            }
            (form, None, _) => {
                entries.push(Entry { line, text: words.to_owned() });
                Some(if form == SectionForm::Bullets {
                    ("not_a_bullet", format!("an entry of `{heading}` has to begin with `- `"))
                } else {
                    ("not_a_step", format!("an entry of `{heading}` has to begin with its number, as `1. `"))
                })
            }
        };
        if let Some((code, why)) = told {
            self.found(code, line, why);
        }
    }

    /// What is missing or empty is found at the end, of which `last` is the last line with text, 0 where there is none.
    fn end(mut self, last: usize) -> Outline {
        if last == 0 {
            self.found("empty", 1, "there is no text in it");
            return self.outline;
        }
        if !self.titled {
            self.found("no_title", 1, format!("it has to begin with `# {TITLE}`"));
        }
        for section in Section::ALL {
            let heading = section.heading();
            match &self.outline.sections[section as usize] {
                None => {
                    let later = self.outline.sections[section as usize..].iter().flatten().next();
                    let line = later.map_or(last, |later| later.line);
                    self.found("missing_section", line, format!("`## {heading}` is missing here"));
                }
                Some(SectionText { line, entries }) if entries.is_empty() => {
                    let why = format!("`{heading}` is empty");
                    self.outline.findings.push(Finding::warning("empty_section", why).at(*line));
                }
                Some(_) => {}
            }
        }
        self.outline.findings.sort_by_key(|finding| finding.line);
        self.outline
    }
}

fn append(entry: &mut Entry, words: &str) {
    entry.text.push(' ');
    entry.text += words;
}

/// The text behind the mark of a bullet.
fn bullet(line: &str) -> Option<&str> {
    behind_mark(line.strip_prefix(['-', '*', '+'])?)
}

/// The text behind the number of a step.
fn step(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == line.len() {
        return None;
    }
    behind_mark(rest.strip_prefix(['.', ')'])?)
}

fn behind_mark(rest: &str) -> Option<&str> {
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| rest.trim())
}
