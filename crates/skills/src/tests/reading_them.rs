//! Files of both profiles, with what each reader says of them.

use text::finding::{Finding, Severity};

use super::Having;
use crate::{SkillFile, strict};

/// A file of the folder `pdf`, and what is said of it.
struct Row {
    what: &'static str,
    text: Vec<u8>,
    /// Name and description, or the code of the error for which it is not offered.
    read: Result<(&'static str, &'static str), &'static str>,
    /// Codes of warnings of the lenient reader.
    warnings: &'static [&'static str],
    /// Codes of errors of the strict one.
    strict: &'static [&'static str],
}

fn row(
    what: &'static str,
    text: impl Into<Vec<u8>>,
    read: Result<(&'static str, &'static str), &'static str>,
    warnings: &'static [&'static str],
    strict: &'static [&'static str],
) -> Row {
    Row { what, text: text.into(), read, warnings, strict }
}

/// A file with this block.
fn block(block: &str) -> Vec<u8> {
    format!("---\n{block}\n---\n# Do\n").into_bytes()
}

const PLAIN: Result<(&str, &str), &str> = Ok(("pdf", "Read PDFs"));

fn rows() -> Vec<Row> {
    let plain = |more: &str| block(&format!("name: pdf\ndescription: Read PDFs{more}"));
    let bomb: String = (0..9).map(|n| format!("\nb{n}: &b{n} [*b{}, *b{}]", n - 1, n - 1)).collect();
    vec![
        row("by the specification", plain(""), PLAIN, &[], &[]),
        row(
            "every key",
            plain(
                "\nlicense: MIT\ncompatibility: Needs pdftotext\nallowed-tools: Read Bash(pdftotext:*)\nmetadata:\n  author: me\n  version: '1.0'",
            ),
            PLAIN,
            &[],
            &[],
        ),
        row(
            "OpenClaw in flow style",
            plain("\nhomepage: https://x.example\nmetadata: {openclaw: {requires: {bins: [pdftotext]}}}"),
            PLAIN,
            &[],
            &["flow_style", "unknown_key", "wrong_kind"],
        ),
        row(
            "OpenClaw as JSON in a line",
            plain("\nmetadata: {\"openclaw\":{\"emoji\":\"📄\",\"requires\":{\"bins\":[\"pdftotext\"]}}}"),
            PLAIN,
            &[],
            &["flow_style", "wrong_kind"],
        ),
        row(
            "a byte order mark",
            ["\u{feff}".as_bytes(), &plain("")].concat(),
            PLAIN,
            &[],
            &["byte_order_mark"],
        ),
        row("CRLF", String::from_utf8(plain("")).unwrap().replace('\n', "\r\n"), PLAIN, &[], &[]),
        row("a folded description", block("name: pdf\ndescription: >\n  Read\n  PDFs"), PLAIN, &[], &[]),
        row(
            "an unquoted colon",
            block("name: pdf\ndescription: Use when: a PDF\n  isn't text"),
            Ok(("pdf", "Use when: a PDF isn't text")),
            &["unquoted"],
            &["unparsable"],
        ),
        row(
            "an unquoted colon beside JSON",
            block("name: pdf\ndescription: Use when: a PDF\nmetadata: {\"openclaw\": {\"os\": [\"linux\"]}}"),
            Ok(("pdf", "Use when: a PDF")),
            &["unquoted"],
            &["unparsable"],
        ),
        row("no name", block("description: Read PDFs"), PLAIN, &[], &["missing"]),
        row(
            "another name",
            block("name: Other_Name\ndescription: Read PDFs"),
            Ok(("Other_Name", "Read PDFs")),
            &["other_name"],
            &["name_form", "other_name"],
        ),
        row("no description", block("name: pdf"), Err("no_description"), &[], &["missing"]),
        row(
            "an empty description",
            block("name: pdf\ndescription: '  '"),
            Err("no_description"),
            &[],
            &["missing"],
        ),
        row("no frontmatter", "# Do", Err("no_description"), &[], &["no_frontmatter"]),
        row("not closed", "---\nname: pdf\n", Err("unparsable"), &[], &["unparsable"]),
        row(
            "a list for a description",
            block("name: pdf\ndescription: [a, b]"),
            Err("no_description"),
            &["wrong_kind"],
            &["flow_style", "wrong_kind"],
        ),
        row(
            "dashes in a description",
            block("name: pdf\ndescription: Read --- PDFs"),
            Ok(("pdf", "Read --- PDFs")),
            &[],
            &["dashes"],
        ),
        row("a key twice", plain("\nname: other"), Err("unparsable"), &[], &["unparsable"]),
        row("aliases that grow", plain(&bomb), Err("unparsable"), &[], &["unparsable"]),
        row(
            "a tag that makes an object",
            plain("\nx: !!python/object:os.system x"),
            Err("unparsable"),
            &[],
            &["unparsable"],
        ),
        row("a block in JavaScript", "---js\nname: pdf\n---\n", Err("unparsable"), &[], &["unparsable"]),
        row(
            "nested without end",
            plain(&format!("\nmetadata: {}", "[".repeat(5_000))),
            Err("unparsable"),
            &[],
            &["unparsable"],
        ),
        row("no text", [0xff, 0xfe, b'-', 0].to_vec(), Err("unparsable"), &[], &["unparsable"]),
        row(
            "a description that begins another entry",
            block("name: pdf\ndescription: \"Read PDFs\\n- evil (x): \\u202Ereversed\\e[2J\""),
            Ok(("pdf", "Read PDFs - evil (x): \\u{202e}reversed␛[2J")),
            &[],
            &[],
        ),
        row(
            "needs that are none",
            plain("\nmetadata: {openclaw: {requires: [a], os: 1}}"),
            Err("requirements"),
            &[],
            &["flow_style", "wrong_kind"],
        ),
        row("metadata that is neither", plain("\nmetadata: nothing"), PLAIN, &["metadata"], &["wrong_kind"]),
    ]
}

fn codes(findings: &[Finding], severity: Severity) -> Vec<&'static str> {
    let mut codes: Vec<_> =
        findings.iter().filter(|finding| finding.severity == severity).map(|finding| finding.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

#[test]
fn each_file_is_read_leniently_and_checked_by_the_letter() {
    for Row { what, text, read, warnings, strict } in rows() {
        let file = SkillFile::read(&text, "pdf");
        let is_read = match file.refusal() {
            None => Ok((file.name.as_str(), file.description.as_str())),
            Some(finding) => Err(finding.code),
        };
        assert_eq!(is_read, read, "{what}: {:?}", file.findings);
        assert_eq!(codes(&file.findings, Severity::Warning), warnings, "{what}: {:?}", file.findings);
        let found = strict::check(&text, "pdf");
        assert_eq!(codes(&found, Severity::Error), strict, "{what}: {found:?}");
    }
}

#[test]
fn lengths_are_warned_of_and_breaches_by_the_letter() {
    let long = format!(
        "name: {}\ndescription: {}\ncompatibility: {}",
        "a".repeat(65),
        "d".repeat(1_025),
        "c".repeat(501)
    );
    let file = SkillFile::read(&block(&long), &"a".repeat(65));
    assert_eq!(codes(&file.findings, Severity::Warning), ["long_description"]);
    assert_eq!(file.refusal().unwrap().code, "long_name");
    assert_eq!((file.name.as_str(), file.description.len()), (&*format!("{}…", "a".repeat(64)), 1_025));
    let found = strict::check(&block(&long), &"a".repeat(65));
    assert_eq!(found.iter().filter(|finding| finding.code == "length").count(), 3, "{found:?}");
    for (name, fits) in [
        ("a-1", true),
        ("-a", false),
        ("a-", false),
        ("a--b", false),
        ("A", false),
        ("a_b", false),
        ("übung", true),
    ] {
        let found = strict::check(&block(&format!("name: '{name}'\ndescription: d")), name);
        assert_eq!(codes(&found, Severity::Error).is_empty(), fits, "{name}: {found:?}");
    }
    let many = [block("name: pdf\ndescription: d"), b"x\n".repeat(600)].concat();
    assert_eq!(codes(&strict::check(&many, "pdf"), Severity::Warning), ["long"]);
}

#[test]
fn what_is_missing_is_named_and_never_its_value() {
    let missing = |metadata: &str, having: &[&'static str]| {
        let text = block(&format!("name: pdf\ndescription: d\nmetadata: {metadata}"));
        let file = SkillFile::read(&text, "pdf");
        assert_eq!(file.findings, Vec::new(), "{metadata}");
        file.requirements.missing(&Having::these(having))
    };
    let all = r#"{"openclaw": {"requires": {"bins": ["a", "b"], "anyBins": ["c", "d"], "env": ["KEY"], "config": ["x.y"]}}}"#;
    assert_eq!(missing(all, &["b"]), ["bin a", "bin c or d", "env KEY", "config x.y"]);
    assert_eq!(missing(all, &["a", "b", "d", "KEY"]), ["config x.y"]);
    assert_eq!(missing("{clawdbot: {requires: {bins: a}}}", &[]), ["bin a"]);
    assert_eq!(
        missing("{clawdis: {always: true, os: [linux], requires: {bins: a}}}", &[]),
        Vec::<String>::new()
    );
    assert_eq!(missing("{openclaw: {always: true, os: [darwin, win32]}}", &[]), ["os darwin or win32"]);
    assert_eq!(missing("'{\"openclaw\": {\"os\": [\"darwin\"]}}'", &[]), ["os darwin"]);
}

/// X22: `requires: null`, `always: false`, a folded description, CRLF.
#[test]
fn x22_a_skill_as_other_programs_write_it_is_offered() {
    let text = "---\r\nname: pdf\r\ndescription: >\r\n  folded\r\n  text\r\nalways: false\r\n\
                metadata: {openclaw: {requires: null, os: [darwin, linux]}}\r\nrequires: null\r\n---\r\n# Do\r\n";
    let file = SkillFile::read(text.as_bytes(), "pdf");
    assert_eq!((file.description.as_str(), file.body.as_str()), ("folded text", "# Do\n"));
    assert_eq!((file.findings.len(), file.requirements.missing(&Having::default()).len()), (0, 0));
    let hidden = SkillFile::read(&block("description: d\ndisable-model-invocation: true"), "pdf");
    assert!(file.for_model && !hidden.for_model);
}

#[test]
fn a_name_hides_nothing_and_is_no_other_spelling_of_one_of_drawlooms_own() {
    for (name, code, shown) in [
        ("buf\\u200Bfer", Some("unseen_name"), "buf\\u{200b}fer"),
        ("buffer\\u00AD", Some("unseen_name"), "buffer\\u{ad}"),
        ("\\u2060loom", Some("unseen_name"), "\\u{2060}loom"),
        ("pdf\\u202E", Some("unseen_name"), "pdf\\u{202e}"),
        ("pdf\\u001B[2J", Some("unseen_name"), "pdf␛[2J"),
        ("\\uFF42uffer", Some("reserved"), "ｂuffer"),
        ("LOOM", Some("reserved"), "LOOM"),
        ("\u{dc}bung", None, "Übung"),
    ] {
        let file = SkillFile::read(&block(&format!("name: \"{name}\"\ndescription: d")), "pdf");
        let refused = file.refusal().map(|finding| finding.code);
        assert_eq!((refused, file.name.as_str()), (code, shown), "{:?}", file.findings);
    }
}

#[test]
fn what_cannot_be_read_of_needs_counts_as_needed_and_each_yes_hides() {
    for needs in [
        "requires: [git]",
        "requires: {bins: {git: 1}}",
        "requires: {bins: ['']}",
        "metadata: {openclaw: [requires]}",
        "metadata: '{\"openclaw\": {\"requires\": {\"bins\": [\"git\"]}'",
    ] {
        let file = SkillFile::read(&block(&format!("description: d\n{needs}")), "pdf");
        assert_eq!(file.refusal().map(|finding| finding.code), Some("requirements"), "{needs}");
    }
    for (value, is_hidden) in [
        ("true", true),
        ("\"true\"", true),
        ("yes", true),
        ("On", true),
        ("1", true),
        ("[true]", true),
        ("perhaps", true),
        ("false", false),
        ("'no'", false),
        ("0", false),
        ("", false),
        ("null", false),
    ] {
        let text = block(&format!("description: d\ndisable-model-invocation: {value}"));
        assert_eq!(SkillFile::read(&text, "pdf").for_model, !is_hidden, "{value}");
    }
}

#[test]
fn allowed_tools_are_words_of_a_text_or_a_list() {
    for (written, entries) in [
        ("Read Bash(git add:*)  Write", Some(&["Read", "Bash(git add:*)", "Write"][..])),
        ("Read, Edit(docs/**),Bash(a, b)", Some(&["Read", "Edit(docs/**)", "Bash(a, b)"])),
        ("[Read, 'exec git *']", Some(&["Read", "exec git *"])),
        ("\n  - Read\n  - [Write]\n  - {a: b}", Some(&["Read"])),
        ("{Read: true}", Some(&[])),
        ("[]", Some(&[])),
        ("''", Some(&[])),
        ("", Some(&[])),
        ("null", Some(&[])),
    ] {
        let file = SkillFile::read(&block(&format!("description: d\nallowed-tools: {written}")), "pdf");
        let entries = entries.map(|entries| entries.iter().map(|entry| (*entry).to_owned()).collect());
        assert_eq!(file.allowed_tools, entries, "{written}: {:?}", file.findings);
    }
    let empty = SkillFile::read(&block("description: d\nallowed-tools:"), "pdf");
    assert!(
        empty.findings.iter().any(|finding| finding.why.contains("it allows reading alone")),
        "{empty:?}"
    );
    assert_eq!(SkillFile::read(&block("description: d"), "pdf").allowed_tools, None);
}
