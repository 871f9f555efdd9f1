//! The open specification by its letter, as its reference validator reads it (spec: formats B).

use text::finding::Finding;
use workspace::frontmatter::{self, FieldError, Map, YamlValue};

use crate::file::{DESCRIPTION, MAX_BYTES, NAME};

/// The keys that there are.
const KEYS: [&str; 6] = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];

/// Most characters of `compatibility`.
const COMPATIBILITY: usize = 500;

/// Lines that a file should have fewer of.
const LINES: usize = 500;

/// Every breach in a file of a folder of this name.
pub fn check(bytes: &[u8], folder: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    if bytes.len() as u64 > MAX_BYTES {
        found.push(Finding::error("too_large", format!("it has more than {MAX_BYTES} bytes")));
    }
    if bytes.starts_with("\u{feff}".as_bytes()) {
        found.push(
            Finding::error("byte_order_mark", "it begins with a byte order mark, where `---` is wanted")
                .at(1),
        );
    }
    let page = match frontmatter::read(bytes) {
        Ok(page) => page,
        Err(error) => {
            found.push(Finding::error("unparsable", error.why.to_string()).at(error.line));
            return found;
        }
    };
    let Some(fields) = page.fields else {
        found.push(
            Finding::error("no_frontmatter", "it does not begin with a block between two lines `---`").at(1),
        );
        return found;
    };
    if let Ok(text) = std::str::from_utf8(bytes) {
        block(text, &mut found);
        let lines = text.lines().count();
        if lines > LINES {
            found.push(Finding::warning(
                "long",
                format!("it has {lines} lines, where fewer than {LINES} are advised"),
            ));
        }
    }
    for (key, _) in fields.iter().filter(|(key, _)| !KEYS.contains(key)) {
        let why = format!("the key `{key}` is none of {}", KEYS.join(", "));
        found.push(Finding::error("unknown_key", why));
    }
    if let Some(name) = required(&fields, "name", NAME, &mut found) {
        self::name(&name, folder, &mut found);
    }
    required(&fields, "description", DESCRIPTION, &mut found);
    optional(&fields, &mut found);
    found
}

/// What the YAML of the reference validator does not read, and its way of finding the block.
fn block(text: &str, found: &mut Vec<Finding>) {
    let mut literal = None;
    for (index, line) in text.lines().enumerate().skip(1) {
        if line.trim_end() == "---" {
            return;
        }
        let number = index + 1;
        if line.contains("---") {
            let why = "`---` in the block: the reference validator takes it for its end";
            found.push(Finding::error("dashes", why).at(number));
        }
        let indent = line.len() - line.trim_start().len();
        if literal.is_some_and(|outer| indent > outer || line.trim().is_empty()) {
            continue;
        }
        literal = None;
        let entry = line.trim_start().trim_start_matches("- ");
        let value = entry.split_once(':').map_or(entry, |(_, value)| value).trim_start();
        match value.chars().next() {
            Some('{' | '[') => {
                let why = "a list or mapping in brackets is not read: write an entry a line";
                found.push(Finding::error("flow_style", why).at(number));
            }
            Some('|' | '>') => literal = Some(indent),
            _ => {}
        }
    }
}

fn name(name: &str, folder: &str, found: &mut Vec<Finding>) {
    let fits = |c: char| c == '-' || (c.is_alphanumeric() && c.to_lowercase().eq([c]));
    if !name.chars().all(fits) {
        found.push(Finding::error("name_form", "a name has lowercase letters, digits and hyphens alone"));
    } else if !name.is_ascii() {
        let why = "the specification says a-z and 0-9; its validator also takes other letters";
        found.push(Finding::warning("name_form", why));
    }
    if name.starts_with('-') || name.ends_with('-') || name.contains("--") {
        let why = "a name does not begin or end with a hyphen, nor has two in a row";
        found.push(Finding::error("name_form", why));
    }
    if name != folder {
        found.push(Finding::error(
            "other_name",
            format!("the name {name} is not that of its folder, {folder}"),
        ));
    }
}

fn required(fields: &Map, key: &'static str, most: usize, found: &mut Vec<Finding>) -> Option<String> {
    let text = match fields.text(key) {
        Ok(text) => text.map(str::trim).unwrap_or_default(),
        Err(error) => {
            found.push(wrong(&error));
            return None;
        }
    };
    if text.is_empty() {
        found.push(Finding::error("missing", format!("`{key}` is missing")));
        return None;
    }
    bounded(key, text, most, found);
    Some(text.to_owned())
}

fn bounded(key: &str, text: &str, most: usize, found: &mut Vec<Finding>) {
    let length = text.chars().count();
    if length == 0 || length > most {
        let why = format!("`{key}` has {length} characters, where 1 to {most} are allowed");
        found.push(Finding::error("length", why));
    }
}

fn optional(fields: &Map, found: &mut Vec<Finding>) {
    for key in ["license", "allowed-tools"] {
        found.extend(fields.text(key).err().map(|error| wrong(&error)));
    }
    match fields.text("compatibility") {
        Ok(text) => {
            if let Some(text) = text {
                bounded("compatibility", text, COMPATIBILITY, found);
            }
        }
        Err(error) => found.push(wrong(&error)),
    }
    match fields.map("metadata") {
        Ok(None) => {}
        Ok(Some(map)) => {
            let nested = map.iter().filter(|(_, value)| !matches!(value, YamlValue::Scalar(_)));
            found.extend(
                nested.map(|(key, _)| {
                    Finding::error("wrong_kind", format!("`metadata.{key}`: a text is wanted"))
                }),
            );
        }
        Err(error) => found.push(wrong(&error)),
    }
}

fn wrong(error: &FieldError) -> Finding {
    Finding::error("wrong_kind", error.to_string())
}
