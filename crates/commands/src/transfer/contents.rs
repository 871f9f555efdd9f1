//! What an export says of itself before it is written.

use interop::own::{ExportPart, ExportSummary};

use crate::args::tree::FormatArg;

/// What an export contains and leaves out, by stable names.
#[derive(Debug, Clone)]
pub(super) struct ExportContents {
    pub(super) contains: Vec<String>,
    pub(super) left_out: Vec<String>,
    /// Bodies that go along, for the person to see.
    bodies: Vec<String>,
}

impl ExportContents {
    /// Of a file in the own format.
    pub(super) fn own(survey: &ExportSummary) -> Self {
        let names = |parts: &[ExportPart]| parts.iter().map(|part| name(*part).to_owned()).collect();
        let bodies = survey.bodies.iter().map(|body| format!("{} ({} bytes)", body.name, body.length));
        Self {
            contains: names(&survey.contains),
            left_out: names(&survey.left_out),
            bodies: bodies.collect(),
        }
    }

    /// Of what people and other programs read.
    pub(super) fn path(format: FormatArg) -> Self {
        let contains: &[&str] = match format {
            FormatArg::Jsonl | FormatArg::Text | FormatArg::Markdown => &["text", "calls"],
            FormatArg::Html => &["text", "calls", "authors", "branches"],
            FormatArg::Annotations => &["text", "authors"],
            FormatArg::Training => &["text", "roles"],
        };
        let all = [
            "calls",
            "authors",
            "branches",
            "blobs",
            "operations",
            "manifests",
            "responses",
            "annotations",
            "drafts",
        ];
        let left_out = all.into_iter().filter(|part| !contains.contains(part));
        Self {
            contains: contains.iter().map(|part| (*part).to_owned()).collect(),
            left_out: left_out.map(str::to_owned).collect(),
            bodies: Vec::new(),
        }
    }

    /// The lines for the person.
    pub(super) fn lines(&self) -> Vec<String> {
        let list = |names: &[String]| names.iter().map(|name| words(name)).collect::<Vec<_>>().join("; ");
        let mut lines = vec![
            format!("it contains: {}", list(&self.contains)),
            format!("it leaves out: {}", list(&self.left_out)),
        ];
        lines.extend(self.bodies.iter().map(|body| {
            let body = text::terminal::one_line(body);
            format!("it contains the body of a {body}")
        }));
        lines
    }
}

/// The name of a part, as the file itself has it.
const fn name(part: ExportPart) -> &'static str {
    match part {
        ExportPart::Content => "content",
        ExportPart::Operations => "operations",
        ExportPart::Seals => "seals",
        ExportPart::Blobs => "blobs",
        ExportPart::ToolOutput => "tool_output",
        ExportPart::Annotations => "annotations",
        ExportPart::Generations => "generations",
        ExportPart::Manifests => "manifests",
        ExportPart::Responses => "responses",
        ExportPart::FileBodies => "file_bodies",
        ExportPart::Hashes => "hashes",
        ExportPart::Drafts => "drafts",
        ExportPart::Trust => "trust",
    }
}

fn words(name: &str) -> &str {
    match name {
        "content" => "all texts with all versions and authors, pruned ones too",
        "text" => "the text of the path",
        "calls" => "calls of tools",
        "operations" => "history",
        "blobs" => "pictures and sounds",
        "tool_output" => "tool output",
        "annotations" => "remarks, bookmarks, tags",
        "generations" => "list of requests and notices shown in them",
        "manifests" => "requests",
        "responses" => "responses",
        "file_bodies" => "bodies of requests",
        "hashes" => "hashes and sizes of what is left out",
        "trust" => "trust of each text",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_file() {
        for part in ExportPart::ALL {
            assert_eq!(serde_json::to_value(part).unwrap(), name(part));
        }
    }
}
