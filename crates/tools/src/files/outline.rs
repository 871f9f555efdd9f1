//! The outline of a text: its headings or definitions, by simple rules on single lines.

use std::fmt::Write as _;
use std::path::Path;

use super::read::PAGE;

/// Lines of an outline.
const LINES: usize = 500;
/// Characters that are shown of one line.
const LINE: usize = 200;

/// Words that may stand before the one that says what is defined.
const BEFORE: [&str; 24] = [
    "abstract",
    "async",
    "const",
    "data",
    "declare",
    "default",
    "export",
    "extern",
    "final",
    "inline",
    "internal",
    "open",
    "override",
    "partial",
    "private",
    "protected",
    "pub",
    "public",
    "sealed",
    "static",
    "suspend",
    "unsafe",
    "virtual",
    "\"C\"",
];
/// Words that define something.
const DEFINES: [&str; 21] = [
    "class",
    "def",
    "enum",
    "extension",
    "fn",
    "func",
    "function",
    "fun",
    "impl",
    "interface",
    "macro_rules!",
    "mod",
    "module",
    "namespace",
    "object",
    "protocol",
    "record",
    "struct",
    "trait",
    "type",
    "union",
];
/// Endings of files in whose languages a function begins with its type.
const TYPED_FIRST: [&str; 9] = ["c", "cc", "cpp", "cs", "cxx", "h", "hpp", "hxx", "java"];
/// Endings of Markdown.
const MARKDOWN: [&str; 3] = ["markdown", "md", "mdx"];

/// The outline of a text of this name, each line with its number.
pub(super) fn outline(name: &str, text: &str) -> String {
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let ending = ending.to_ascii_lowercase();
    let (is_markdown, is_typed) = (MARKDOWN.contains(&&*ending), TYPED_FIRST.contains(&&*ending));
    let (mut out, mut found, mut listed, mut all, mut in_fence) = (String::new(), 0, 0, 0, false);
    for (number, line) in (1..).zip(text.lines()) {
        all = number;
        let is_part = if is_markdown {
            let is_fence = ["```", "~~~"].iter().any(|fence| line.trim_start().starts_with(fence));
            in_fence ^= is_fence;
            !in_fence && !is_fence && is_heading(line)
        } else {
            is_definition(line) || (is_typed && is_function(line))
        };
        if !is_part {
            continue;
        }
        found += 1;
        if found <= LINES && out.len() < PAGE {
            listed = found;
            let shown: String = line.trim_end().chars().take(LINE).collect();
            let _ = writeln!(out, "{number:>6}\t{shown}");
        }
    }
    let more = found - listed;
    let more = if more > 0 { format!("{more} more of them are not shown. ") } else { String::new() };
    match found {
        0 => format!("[No headings or definitions were found in its {all} lines.]"),
        _ => out + &format!("[{more}The file has {all} lines: offset and limit show some of them.]\n"),
    }
}

pub(super) fn is_heading(line: &str) -> bool {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    (1..=6).contains(&level) && line[level..].starts_with([' ', '\t'])
}

fn is_definition(line: &str) -> bool {
    let mut words = line
        .split_whitespace()
        .map(|word| word.split_once('(').filter(|(word, _)| *word == "pub").map_or(word, |(word, _)| word));
    let first = words.find(|word| !BEFORE.contains(word)).unwrap_or_default();
    // `impl<T>` and `function*` define, too.
    let word = first.trim_end_matches('*').split('<').next().unwrap_or_default();
    DEFINES.contains(&word)
}

/// Whether a line that is not indented has parameters and no end: of C and its like that is a function.
fn is_function(line: &str) -> bool {
    let begins = line.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_');
    begins && line.contains('(') && !line.trim_end().ends_with([';', ',']) && !line.contains('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: &str, text: &str) -> Vec<usize> {
        let shown = outline(name, text);
        shown.lines().filter_map(|line| line.split_once('\t')?.0.trim().parse().ok()).collect()
    }

    #[test]
    fn headings_and_definitions_are_found_by_their_lines() {
        assert_eq!(lines("a.md", "# One\ntext\n```\n# no\n```\n## Two\n#no\n"), [1, 6]);
        let rust = "use x;\npub(crate) struct A;\nimpl<T> A {\n    pub async fn go() {\n        let fn_ = 1;\n    }\n}\n";
        assert_eq!(lines("a.rs", rust), [2, 3, 4]);
        assert_eq!(lines("a.py", "import x\nclass A:\n    def go(self):\n        define = 1\n"), [2, 3]);
        assert_eq!(lines("a.ts", "export default class A {}\nfunction* gen() {}\nclassy();\n"), [1, 2]);
        assert_eq!(lines("a.c", "int f(void);\nstatic int g(int a)\n{\n  h(a);\n}\n#define X(y) y\n"), [2]);
        assert!(
            outline("a.txt", "one\ntwo\n").contains("No headings or definitions were found in its 2 lines")
        );
        let long = outline("a.md", &"# x\n".repeat(600));
        assert!(long.lines().count() == 501 && long.contains("100 more of them are not shown"), "{long}");
    }
}
