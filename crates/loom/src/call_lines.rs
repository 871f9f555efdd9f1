//! A call of a tool in lines that people read: in notices, in trees and exports, and before an owner answers for it.
//!
//! Each line is safe for a terminal and hides no character (spec: security §14, §26).

use serde_json::{Map, Value, json};
use text::terminal::{explicit, one_line};

/// Bytes that are shown of what a tool is called with.
const ARGUMENTS: usize = 160;
/// Lines and bytes of a command that is shown whole.
const COMMAND_LINES: usize = 20;
const COMMAND_BYTES: usize = 4_000;

/// Lines that show a call. A command is shown whole, however it is hidden in a long one: of one over the limits its
/// beginning and its end. Of a patch the files are shown, of other arguments the beginning, a path first.
#[must_use]
pub fn call_lines(tool: &str, arguments: &Value) -> Vec<String> {
    if let ("exec", Value::Object(given)) = (tool, arguments)
        && let Some(Value::String(command)) = given.get("command")
    {
        let mut others = given.clone();
        others.shift_remove("command");
        let mut shown = vec![headed(tool, &others)];
        shown.extend(command_lines(command));
        return shown;
    }
    if let ("patch", Value::Object(given)) = (tool, arguments)
        && let Some(Value::String(patch)) = given.get("patch")
    {
        let mut others = given.clone();
        others.shift_remove("patch");
        let files: Vec<&str> = patch.lines().filter(|line| names_file(line)).collect();
        if !files.is_empty() {
            let mut shown = vec![headed(tool, &others)];
            shown.extend(files.iter().take(COMMAND_LINES).map(|line| format!("  {}", cut(line))));
            let more = files.len().saturating_sub(COMMAND_LINES);
            shown.extend((more > 0).then(|| format!("  [{more} more files.]")));
            return shown;
        }
    }
    vec![format!("calls {} {}", tool_name(tool), cut(&argument_line(arguments)))]
}

/// The beginning of a text, on one line.
fn cut(text: &str) -> String {
    let line = explicit(&one_line(text)).into_owned();
    let at = text::grapheme::floor(&line, ARGUMENTS.min(line.len()));
    let more = if at < line.len() { "…" } else { "" };
    format!("{}{more}", &line[..at])
}

/// Whether a line of a patch, in either form, names a file that it changes.
fn names_file(line: &str) -> bool {
    ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ", "--- ", "+++ "]
        .iter()
        .any(|head| line.starts_with(head))
}

/// Lines that show the whole of a call: a command, and texts of several lines or over [`ARGUMENTS`], each line by itself.
#[must_use]
pub fn whole_call_lines(tool: &str, arguments: &Value) -> Vec<String> {
    let Value::Object(given) = arguments else {
        return vec![format!("calls {} {}", tool_name(tool), explicit(&one_line(&argument_line(arguments))))];
    };
    let (mut short, mut texts) = (Map::new(), Vec::new());
    for (name, value) in given {
        match value {
            Value::String(text) if (tool, &**name) == ("exec", "command") => {
                texts.extend(lines_of(text).map(|line| format!("  $ {}", explicit(line))));
            }
            Value::String(text) if text.len() > ARGUMENTS || text.contains('\n') => {
                texts.push(format!("  {}:", explicit(&one_line(name))));
                texts.extend(lines_of(text).map(|line| format!("    {}", explicit(line))));
            }
            value => drop(short.insert(name.clone(), value.clone())),
        }
    }
    let mut shown = vec![headed(tool, &short)];
    shown.extend(texts);
    shown
}

fn tool_name(tool: &str) -> String {
    explicit(&one_line(tool)).into_owned()
}

/// The first line of a call: the tool, and arguments that do not stand below it.
fn headed(tool: &str, others: &Map<String, Value>) -> String {
    let others = if others.is_empty() { String::new() } else { format!(" {}", json!(others)) };
    format!("calls {}{}", tool_name(tool), explicit(&one_line(&others)))
}

/// Lines of a text, with all their characters; the end of the last is no line.
fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    text.strip_suffix('\n').unwrap_or(text).split('\n')
}

fn command_lines(command: &str) -> Vec<String> {
    let drawn = |lines: &[&str]| -> Vec<String> {
        lines.iter().map(|line| format!("  $ {}", explicit(line))).collect()
    };
    let lines: Vec<&str> = command.lines().collect();
    if lines.len() <= COMMAND_LINES && command.len() <= COMMAND_BYTES {
        return drawn(&lines);
    }
    let half = COMMAND_BYTES / 2;
    let from = text::grapheme::floor(command, command.len().saturating_sub(half));
    let [first, last] =
        [&command[..text::grapheme::floor(command, half.min(command.len()))], &command[from..]];
    let (first, last) = if command.len() > COMMAND_BYTES { (first, last) } else { (command, command) };
    let first: Vec<&str> = first.lines().take(COMMAND_LINES / 2).collect();
    let last: Vec<&str> = last.lines().collect();
    let mut shown = drawn(&first);
    let (lines, bytes) = (lines.len(), command.len());
    shown.push(format!(
        "  [The middle is left out, of {lines} lines and {bytes} bytes: `drawloom tree show TREE --node NODE` has it.]"
    ));
    shown.extend(drawn(&last[last.len().saturating_sub(COMMAND_LINES / 2)..]));
    shown
}

/// Arguments as JSON, with the path before what may be long; what is no JSON as it came.
fn argument_line(arguments: &Value) -> String {
    match arguments {
        Value::String(text) => text.clone(),
        Value::Object(given) if given.contains_key("path") => {
            let path = given.iter().filter(|(name, _)| *name == "path");
            let others = given.iter().filter(|(name, _)| *name != "path");
            let ordered: Map<String, Value> =
                path.chain(others).map(|(name, value)| (name.clone(), value.clone())).collect();
            json!(ordered).to_string()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_command_is_never_hidden() {
        let call = |command: &str| call_lines("exec", &json!({"command": command}));
        assert_eq!(call("cd a &&\nls"), ["calls exec", "  $ cd a &&", "  $ ls"]);
        let long = call(&format!("echo {}; rm -rf notes", "a".repeat(1_000)));
        assert!(long[1].ends_with("; rm -rf notes"), "{long:?}");
        for long in [
            format!("echo {}; rm -rf notes", "ä".repeat(9_000)),
            format!("{}rm -rf notes", "ls\n".repeat(90)),
        ] {
            let lines = call(&long);
            assert!(lines.last().unwrap().ends_with("rm -rf notes"), "{lines:?}");
            assert!(lines.len() <= 22 && lines.iter().any(|line| line.contains("left out")), "{lines:?}");
        }
        let net = call_lines("exec", &json!({"command": "curl x", "net": ["x"]}));
        assert_eq!(net, [r#"calls exec {"net":["x"]}"#, "  $ curl x"]);
    }

    #[test]
    fn a_path_is_shown_whatever_stands_before_it() {
        let call = call_lines("write", &json!({"content": "x".repeat(900), "path": "notes.md"}));
        let [line] = &call[..] else { panic!("{call:?}") };
        assert!(line.starts_with(r#"calls write {"path":"notes.md","content":"xx"#), "{line}");
        assert!(line.ends_with('…') && line.len() < 200, "{line}");
        assert_eq!(call_lines("list", &json!({})), ["calls list {}"]);
        assert_eq!(call_lines("read", &Value::String("{\"path\":".into())), [r#"calls read {"path":"#]);
    }

    #[test]
    fn a_patch_is_shown_by_its_files() {
        let call = |patch: &str| call_lines("patch", &json!({"patch": patch}));
        let both =
            call("*** Begin Patch\n*** Update File: a\u{1b}\n-x\n+y\n*** Delete File: b\n*** End Patch\n");
        assert_eq!(both, ["calls patch", "  *** Update File: a␛", "  *** Delete File: b"]);
        assert_eq!(
            call("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n"),
            ["calls patch", "  --- a/x", "  +++ b/x"]
        );
        assert_eq!(call(&"*** Add File: x\n".repeat(22))[21], "  [2 more files.]");
        assert_eq!(call("x"), [r#"calls patch {"patch":"x"}"#]);
    }

    #[test]
    fn a_whole_call_has_every_line() {
        let patch = json!({"path": "a", "patch": "-x\r\n+y\u{1b}\n"});
        let shown = [r#"calls patch {"path":"a"}"#, "  patch:", "    -x␍", "    +y␛"];
        assert_eq!(whole_call_lines("patch", &patch), shown);
        let command = vec!["ls"; 90].join("\n");
        let lines = whole_call_lines("exec", &json!({"command": command, "net": ["x"]}));
        assert_eq!((lines.len(), &*lines[0]), (91, r#"calls exec {"net":["x"]}"#));
        let long = whole_call_lines("note", &json!({"text": "y".repeat(900)}));
        assert_eq!(long[2].trim().len(), 900);
        assert_eq!(whole_call_lines("list", &json!({})), ["calls list"]);
    }
}
