//! A `SKILL.md`, read as leniently as other clients read it (spec: agent §6, formats B).

use text::finding::Finding;
use text::terminal::{explicit, one_line};
use workspace::frontmatter::{self, FrontmatterProblem, Map, Page, ScalarKind, YamlValue};

use crate::mending::mended;
use crate::metadata::Requirements;
use crate::own::{is_built_in, is_own_text, is_reserved};

/// Largest file, in bytes.
pub const MAX_BYTES: u64 = 256_000;

/// Most characters that the specification allows a name and a description.
pub(crate) const NAME: usize = 64;
pub(crate) const DESCRIPTION: usize = 1_024;

/// Keys of the frontmatter that are read, or that the specification has.
pub const KEYS: [&str; 10] = [
    "name",
    "description",
    "license",
    "compatibility",
    "metadata",
    "allowed-tools",
    "disable-model-invocation",
    "requires",
    "os",
    "always",
];

/// The description that a skill is begun with where its owner says none.
pub const PLACEHOLDER: &str =
    "Say here what it does, and when it is of use, in the words that people use when they need it.";

/// The text that a skill is begun with.
pub const PLACEHOLDER_TEXT: &str = "Say here what is to be done, step by step, and what is not.";

/// A skill as its file says it.
#[derive(Clone, Debug, PartialEq)]
pub struct SkillFile {
    /// The name of its frontmatter, else that of its folder; one line without hidden characters, cut where it is too long.
    pub name: String,
    /// When it is of use, in one line; empty where the file does not say so.
    pub description: String,
    pub requirements: Requirements,
    /// Entries of its `allowed-tools`: calls that are allowed while it is followed; none where it narrows nothing.
    pub allowed_tools: Option<Vec<String>>,
    /// Whether a model is told of it; else a person alone calls it by name.
    pub for_model: bool,
    /// What is to be done, the text behind the frontmatter.
    pub body: String,
    /// Whether it is a copy of one of Drawloom's own, as `skills export` writes them.
    pub is_own_copy: bool,
    /// Keys that are none of [`KEYS`].
    pub unknown_keys: Vec<String>,
    pub findings: Vec<Finding>,
}

impl SkillFile {
    /// Reads a file of a folder of this name. What is wrong with it are findings.
    pub fn read(bytes: &[u8], folder: &str) -> Self {
        let mut file = Self::read_any(bytes, folder);
        file.is_own_copy = is_own_text(bytes);
        if is_reserved(&file.name) && !file.is_own_copy {
            let why = format!("the name {} is that of a skill of Drawloom's: give it another one", file.name);
            file.findings.push(Finding::error("reserved", why));
        }
        file
    }

    /// Reads a file that stands, or is to stand, in place of a built-in skill, whose name both it and its folder have; any
    /// other as [`Self::read`] does.
    pub fn read_built_in(bytes: &[u8], folder: &str) -> Self {
        let file = Self::read_any(bytes, folder);
        if file.name == folder && is_built_in(folder) { file } else { Self::read(bytes, folder) }
    }

    fn read_any(bytes: &[u8], folder: &str) -> Self {
        let mut findings = Vec::new();
        let page = page(bytes, &mut findings);
        findings.extend(
            page.warnings
                .iter()
                .map(|warning| Finding::warning("irregular", warning.what.to_string()).at(warning.line)),
        );
        let fields = page.fields.unwrap_or_default();
        let description = description(&fields, &mut findings);
        if page.body.trim() == PLACEHOLDER_TEXT {
            let why = "its text is still the one it was begun with: say what is to be done";
            findings.push(Finding::warning("placeholder", why));
        }
        let name = name(&fields, folder, &mut findings);
        let requirements = Requirements::of(&fields, &mut findings);
        let allowed_tools = allowed_tools(&fields, &mut findings);
        let hidden = hides(&fields, &mut findings);
        Self {
            name,
            description,
            requirements,
            allowed_tools,
            for_model: !hidden,
            body: page.body,
            is_own_copy: false,
            unknown_keys: fields.unknown(&KEYS).map(str::to_owned).collect(),
            findings,
        }
    }

    /// A file that cannot be read, in a folder of this name.
    pub fn unread(folder: &str, why: String) -> Self {
        Self {
            name: shown_name(&words_of(folder)),
            description: String::new(),
            requirements: Requirements::default(),
            allowed_tools: None,
            for_model: false,
            body: String::new(),
            is_own_copy: false,
            unknown_keys: Vec::new(),
            findings: vec![Finding::error("unreadable", why)],
        }
    }

    /// The first error, for which the skill is not offered.
    pub fn refusal(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.is_error())
    }
}

/// Frontmatter and body; a block that is no YAML is read once more with its values in quotes.
fn page(bytes: &[u8], findings: &mut Vec<Finding>) -> Page {
    let error = match frontmatter::read(bytes) {
        Ok(page) => return page,
        Err(error) => error,
    };
    if let FrontmatterProblem::Yaml(_) = error.why
        && let Some(page) = mended(bytes).and_then(|bytes| frontmatter::read(&bytes).ok())
    {
        let why = format!("{}: put the value in quotes", error.why);
        findings.push(Finding::warning("unquoted", why).at(error.line));
        return page;
    }
    findings.push(Finding::error("unparsable", error.why.to_string()).at(error.line));
    Page { fields: None, body: String::new(), warnings: Vec::new() }
}

fn name(fields: &Map, folder: &str, findings: &mut Vec<Finding>) -> String {
    let given = read(fields, "name", findings).map(words_of).filter(|name| !name.is_empty());
    let name = given.unwrap_or_else(|| words_of(folder));
    let shown = shown_name(&name);
    if name != folder {
        let why = format!("the name {shown} is not that of its folder, {}", explicit(folder));
        findings.push(Finding::warning("other_name", why));
    }
    let length = name.chars().count();
    if length > NAME {
        let why = format!("the name has {length} characters, where {NAME} are allowed");
        findings.push(Finding::error("long_name", why));
    }
    if explicit(&name) != name {
        let why = format!("the name {shown} has characters that are not seen");
        findings.push(Finding::error("unseen_name", why));
    }
    shown
}

/// A name with nothing hidden, of as many characters as are allowed and a mark of what is cut.
fn shown_name(name: &str) -> String {
    let shown = explicit(name);
    match shown.char_indices().nth(NAME) {
        Some((end, _)) if name.chars().count() > NAME => format!("{}…", &shown[..end]),
        _ => shown.into_owned(),
    }
}

fn description(fields: &Map, findings: &mut Vec<Finding>) -> String {
    let description = read_text(fields, "description", findings);
    let length = description.chars().count();
    if length == 0 && !findings.iter().any(Finding::is_error) {
        findings.push(Finding::error(
            "no_description",
            "it has no description: a model would not know when to use it",
        ));
    }
    if description == PLACEHOLDER {
        let why =
            "its description is still the one it was begun with: say what it does, and when it is of use";
        findings.push(Finding::error("placeholder", why));
    }
    if length > DESCRIPTION {
        let why = format!("the description has {length} characters, where {DESCRIPTION} are allowed");
        findings.push(Finding::warning("long_description", why));
    }
    description
}

fn read_text(fields: &Map, key: &str, findings: &mut Vec<Finding>) -> String {
    read(fields, key, findings).map(in_one_line).unwrap_or_default()
}

fn read<'a>(fields: &'a Map, key: &str, findings: &mut Vec<Finding>) -> Option<&'a str> {
    fields.text(key).unwrap_or_else(|error| {
        findings.push(Finding::warning("wrong_kind", error.to_string()));
        None
    })
}

/// Entries of `allowed-tools`, in a list or in one text. One that is no text allows nothing.
fn allowed_tools(fields: &Map, findings: &mut Vec<Finding>) -> Option<Vec<String>> {
    const KEY: &str = "allowed-tools";
    let mut wrong = |why: String| findings.push(Finding::warning("wrong_kind", why));
    match fields.get(KEY) {
        Ok(None) => None,
        Ok(Some(YamlValue::Scalar(scalar))) => match scalar.kind() {
            ScalarKind::Null => {
                wrong(format!(
                    "`{KEY}` has no value: it allows reading alone; without the key nothing is narrowed"
                ));
                Some(Vec::new())
            }
            _ => Some(entries(scalar.source())),
        },
        Ok(Some(YamlValue::List(all))) => {
            let texts = all.iter().filter_map(|entry| match entry {
                YamlValue::Scalar(scalar) => Some(scalar.source().trim().to_owned()),
                YamlValue::List(_) | YamlValue::Map(_) => None,
            });
            let texts: Vec<String> = texts.filter(|entry| !entry.is_empty()).collect();
            if texts.len() < all.len() {
                wrong(format!("`{KEY}`: an entry is no text, and allows nothing"));
            }
            Some(texts)
        }
        Ok(Some(YamlValue::Map(_))) => {
            wrong(format!("`{KEY}`: a text or a list is wanted; it allows reading alone"));
            Some(Vec::new())
        }
        Err(error) => {
            wrong(error.to_string());
            Some(Vec::new())
        }
    }
}

/// Words of a text, separated by white space or commas outside of parentheses.
fn entries(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let separates = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c.is_whitespace() || c == ',')
    };
    text.split(separates).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}

/// Whether a model is not to be told of it. What is neither yes nor no hides it, too.
fn hides(fields: &Map, findings: &mut Vec<Finding>) -> bool {
    const KEY: &str = "disable-model-invocation";
    let value = match fields.text(KEY) {
        Ok(value) => value.unwrap_or_default().trim().to_lowercase(),
        Err(error) => {
            findings.push(Finding::warning("wrong_kind", error.to_string()));
            return true;
        }
    };
    match value.as_str() {
        "" | "false" | "no" | "off" | "0" => false,
        "true" | "yes" | "on" | "1" => true,
        _ => {
            let why = format!("`{KEY}`: true or false is wanted; models are not told of it");
            findings.push(Finding::warning("wrong_kind", why));
            true
        }
    }
}

/// A text as one line without characters that move a cursor or turn the direction of text.
fn in_one_line(text: &str) -> String {
    one_line(&words_of(text)).into_owned()
}

/// A text with a blank for all space between words.
fn words_of(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
