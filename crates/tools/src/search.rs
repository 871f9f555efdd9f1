//! The two tools that stand for others, whose schemas do not fit the window: one finds them, one calls what was found
//! (spec: context §2, agent §3).

use context::ToolSpec;
use context::tools::{call_tool, server_of, tool_search};
use loom::{ToolStatus, Trust};
use serde_json::{Value, json};
use text::fold::folded;

use crate::tool::{Tool, ToolOutput};

/// Schemas that one search returns at most.
const FOUND: usize = 5;

/// Tools that find and call others, for a session with these tools.
pub(crate) fn tools(all: Vec<ToolSpec>) -> [Tool; 2] {
    let search = move |query: &str| {
        let found = found(&all, query);
        if found.is_empty() {
            let names = all.iter().map(|tool| tool.name.as_str()).filter(|name| server_of(name).is_none());
            let names = names.collect::<Vec<_>>().join(", ");
            return (format!("no tool does that: the tools are {names}"), Trust::Owner);
        }
        let trust = if found.iter().any(|tool| server_of(&tool.name).is_some()) {
            Trust::Outside
        } else {
            Trust::Owner
        };
        (found.into_iter().map(|tool| line(tool).to_string() + "\n").collect(), trust)
    };
    [
        Tool::reading_no_files(tool_search(), move |_, arguments| {
            let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
            // Names, descriptions and schemas are the program's own, or the owner's; those of servers are theirs.
            let (found, trust) = search(query);
            ToolOutput::said(ToolStatus::Ok, found, trust)
        }),
        Tool::reading_no_files(call_tool(), |_, _| {
            ToolOutput::error("call_tool calls what tool_search found: it calls no call_tool")
        }),
    ]
}

/// A tool as a search shows it.
fn line(tool: &ToolSpec) -> Value {
    json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
}

/// Tools that a query is about, the nearest first: a word in a name counts for more than one in a description.
fn found<'a>(all: &'a [ToolSpec], query: &str) -> Vec<&'a ToolSpec> {
    let query = words(query);
    let score = |tool: &ToolSpec| {
        let (name, description) = (words(&tool.name), words(&tool.description));
        let in_words = |words: &[String], wanted: &str| words.iter().any(|word| is_near(word, wanted));
        let of = |wanted: &String| match (in_words(&name, wanted), in_words(&description, wanted)) {
            (true, _) => 3,
            (false, true) => 1,
            (false, false) => 0,
        };
        query.iter().map(of).sum::<u32>()
    };
    let mut scored: Vec<(u32, &ToolSpec)> =
        all.iter().map(|tool| (score(tool), tool)).filter(|(score, _)| *score > 0).collect();
    scored.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.name.cmp(&other.name)));
    scored.into_iter().map(|(_, tool)| tool).take(FOUND).collect()
}

/// Words of a text without case and accents, those of a name with `_` too.
fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(folded).collect()
}

/// Letters by which a word may be longer than the other it begins with: an ending.
const ENDING: usize = 3;

/// Whether two words are one but for an ending: *file* and *files*, *rename* and *renames*.
fn is_near(one: &str, other: &str) -> bool {
    let (long, short) = if one.len() >= other.len() { (one, other) } else { (other, one) };
    long == short || (short.len() > ENDING && long.starts_with(short) && long.len() - short.len() <= ENDING)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<ToolSpec> {
        let tool = |name: &str, description: &str| ToolSpec {
            name: name.into(),
            description: description.into(),
            parameters: json!({"type": "object"}),
            core: false,
        };
        vec![
            tool("copy", "Copy a file or a folder."),
            tool("delete", "Put files in the trash."),
            tool("mkdir", "Make a folder, with those on the way to it."),
            tool("move", "Rename or move files."),
        ]
    }

    #[test]
    fn what_a_query_is_about_is_found_nearest_first() {
        let names =
            |query| found(&all(), query).into_iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        assert_eq!(names("Move a file"), ["move", "copy", "delete", "mkdir"]);
        assert_eq!(names("FOLDERS"), ["copy", "mkdir"]);
        assert_eq!(names("mkdir"), ["mkdir"]);
        assert!(names("send mail").is_empty() && names("").is_empty());
    }
}
