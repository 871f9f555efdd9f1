//! Secrets of files that are changed: what a miss quotes, and what a mark stands for.

use serde_json::json;

use super::fixture::Fixture;

fn body(length: usize) -> String {
    "q7Zk2VbN9xR4tLw8Ys3HdJ6mPc5GfT1aUeKoBiQ0".chars().cycle().take(length).collect()
}

/// A token of a kind, another one for each number. Put together here, so that none stands in a file.
fn token(number: usize) -> String {
    format!("gh{}{}{}", "p_", &body(40)[number..], &body(36)[..number - 4])
}

/// A private key, each of whose lines is another one.
fn key() -> String {
    let lines: Vec<String> = (10..22).map(|line| format!("{line}Zq{}", body(60))).collect();
    format!("-----BEGIN {0} KEY-----\n{1}\n-----END {0} KEY-----\n", "PRIVATE", lines.join("\n"))
}

/// The marks of a file, as it is read.
fn marks(fixture: &Fixture, name: &str) -> Vec<String> {
    let read = fixture.call("read", &json!({"path": name})).unwrap();
    text::mask::marks_in(&read).map(|range| read[range].to_owned()).collect()
}

#[test]
fn a_miss_beside_a_secret_quotes_the_file_as_it_is_shown() {
    let fixture = Fixture::new();
    let key = key();
    let lines: Vec<&str> = key.lines().collect();
    fixture.put("key.pem", &key);
    let id = format!("AK{}", "IAQ7ZK2VBNXR4TLWYS");
    let secret = format!("{}/{}", body(20), &body(39)[20..]);
    fixture.put("aws.txt", &format!("id = {id}\n{}val {secret}\n# end here\n# x\n", "# line\n".repeat(6)));
    let half = &lines[5][..30];
    let patch =
        |line: &str| format!("--- a/key.pem\n+++ b/key.pem\n@@ -5,2 +5,2 @@\n {line}\n-not there\n+x\n");
    for (tool, arguments) in [
        ("edit", json!({"path": "key.pem", "old": format!("{half}@@@"), "new": "x"})),
        ("edit", json!({"path": "key.pem", "old": format!("{}\nnot there", lines[5]), "new": "x"})),
        ("patch", json!({"patch": patch(lines[5])})),
        ("patch", json!({"patch": patch("⟦secret:guessed.private_key.00000000⟧")})),
        ("edit", json!({"path": "aws.txt", "old": "# end h3re", "new": "x"})),
    ] {
        let said = fixture.call(tool, &arguments).unwrap_err();
        let quoted = lines.iter().filter(|line| !arguments.to_string().contains(&line[..20]));
        assert!(quoted.clone().count() >= 10);
        for part in quoted.copied().chain([secret.as_str()]).filter(|line| !line.starts_with('-')) {
            assert!(!said.contains(&part[..22]), "{tool} {arguments}: {said}");
        }
    }
    // Nor does an edit tell what stands in the part of a secret that it names.
    fixture.refused(
        "edit",
        &json!({"path": "key.pem", "old": half, "new": "x"}),
        "does not stand in the file",
    );
    fixture.refused(
        "edit",
        &json!({"path": "key.pem", "old": "q7", "new": "x", "replace_all": true}),
        "does not stand",
    );
    assert_eq!(fixture.text("key.pem").unwrap(), key);
}

#[test]
fn a_mark_of_another_file_is_refused_and_neither_loses_a_secret() {
    let fixture = Fixture::new();
    let (a, b) = (format!("A={}\n", token(4)), format!("X={}\nY={}\n", token(5), token(6)));
    fixture.put("a.env", &a);
    fixture.put("b.env", &b);
    let (of_a, of_b) = (marks(&fixture, "a.env").remove(0), marks(&fixture, "b.env"));
    assert!(!of_b.contains(&of_a) && of_b[0] != of_b[1]);
    let patch =
        format!("*** Begin Patch\n*** Update File: b.env\n@@\n-X={}\n+X={of_a}\n*** End Patch\n", of_b[0]);
    for (tool, arguments) in [
        ("edit", json!({"path": "b.env", "old": "X=", "new": format!("A={of_a}\nX=")})),
        ("write", json!({"path": "b.env", "content": format!("A={of_a}\nX={}\n", of_b[0])})),
        ("patch", json!({"patch": patch})),
        ("write", json!({"path": "new.env", "content": format!("A={of_a}\n")})),
        (
            "edit",
            json!({"path": "b.env", "old": "X=", "new": format!("A={}\nX=", &of_b[0][..of_b[0].len() - 4])}),
        ),
    ] {
        fixture.refused(tool, &arguments, "stands for a secret that is not there");
    }
    assert_eq!((fixture.text("a.env").unwrap(), fixture.text("b.env").unwrap()), (a, b));
    // Within the file a mark keeps its secret when others go or change their place.
    fixture.call("edit", &json!({"path": "b.env", "old": format!("X={}\n", of_b[0]), "new": ""})).unwrap();
    fixture.refused(
        "edit",
        &json!({"path": "b.env", "old": "Y=", "new": format!("Z={}\nY=", of_b[0])}),
        "is not there",
    );
    fixture
        .call("edit", &json!({"path": "b.env", "old": "Y=", "new": format!("Z={}\nY=", of_b[1])}))
        .unwrap();
    assert_eq!(fixture.text("b.env").unwrap(), format!("Z={0}\nY={0}\n", token(6)));
}

#[test]
fn a_file_with_a_secret_is_deleted_by_a_patch_and_edited_where_it_speaks_of_its_mark() {
    let fixture = Fixture::new();
    fixture.put("a.env", &format!("A={}\nB=1\n", token(4)));
    let mark = marks(&fixture, "a.env").remove(0);
    let patch = format!("--- a/a.env\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-A={mark}\n-B=1\n");
    fixture.call("patch", &json!({"patch": patch})).unwrap();
    assert_eq!(fixture.text("a.env"), None);
    let text = format!("A={mark}\nB={}\nC=1\n", token(4));
    fixture.put("a.env", &text);
    fixture.call("edit", &json!({"path": "a.env", "old": "C=1", "new": "C=2"})).unwrap();
    assert_eq!(fixture.text("a.env").unwrap(), text.replace("C=1", "C=2"));
    let several = json!({"path": "a.env", "old": format!("B={mark}\nC=2"), "new": format!("C=2\nB={mark}")});
    fixture.refused("edit", &several, "stands for several texts");
    // A token that is known otherwise is found where its mark is shown.
    let named = json!({"path": "a.env", "old": format!("B={}", token(4)), "new": format!("B={}", token(5))});
    fixture.call("edit", &named).unwrap();
    assert_eq!(fixture.text("a.env").unwrap(), format!("A={mark}\nB={}\nC=2\n", token(5)));
    let patch = format!(
        "*** Begin Patch\n*** Update File: a.env\n@@\n-B={}\n+B={}\n*** End Patch\n",
        token(5),
        token(6)
    );
    fixture.call("patch", &json!({"patch": patch})).unwrap();
    assert_eq!(fixture.text("a.env").unwrap(), format!("A={mark}\nB={}\nC=2\n", token(6)));
}

#[test]
fn a_file_keeps_what_nobody_sees_of_its_lines() {
    let fixture = Fixture::new();
    let crlf = |text: &str| text.replace('\n', "\r\n");
    fixture.put("k.env", &crlf(&format!("\u{feff}K={}\n{}Z=1\n", token(4), key())));
    let marks = marks(&fixture, "k.env");
    let (token_mark, key_mark) = (&marks[0], &marks[1]);
    let edit = json!({"path": "k.env", "old": format!("{key_mark}\nZ=1"), "new": format!("{key_mark}\nZ=2")});
    fixture.call("edit", &edit).unwrap();
    let is = |number: u32| {
        let expected = crlf(&format!("\u{feff}K={}\n{}Z={number}\n", token(4), key()));
        assert_eq!(fixture.text("k.env").unwrap(), expected);
    };
    is(2);
    let write = json!({"path": "k.env", "content": format!("K={token_mark}\n{key_mark}\nZ=3\n")});
    fixture.call("write", &write).unwrap();
    is(3);
    // Lines that end in two ways are written as the text has them.
    fixture.put("mixed.txt", "a\r\nb\n");
    fixture.call("read", &json!({"path": "mixed.txt"})).unwrap();
    fixture.call("write", &json!({"path": "mixed.txt", "content": "c\nd\n"})).unwrap();
    assert_eq!(fixture.text("mixed.txt").unwrap(), "c\nd\n");
}
