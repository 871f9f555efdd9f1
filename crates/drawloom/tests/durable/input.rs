//! Input that cannot be meant: one clear error each, and nothing is lost.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;

use crate::support::{Before, Home};

/// Asserts that these arguments are refused, and that the tale does not feel it.
#[track_caller]
fn is_refused<S: AsRef<OsStr>>(home: &Home, arguments: &[S], exit: i32, words: &[&str]) {
    let before = Before::of(home);
    home.run(arguments).refused(exit, words);
    before.unharmed(home);
}

#[test]
fn a_name_that_is_nobodys_is_not_found() {
    let home = Home::with_tale("It rained.");
    let missing: &[&[&str]] = &[
        &["tree", "text", "Nobody"],
        &["tree", "append", "Nobody", "text"],
        &["tree", "show", "01ARZ3NDEKTSV4RRFFQ69G5FAV"],
        &["tree", "edit", "Tale", "zzzzzzzz", "--text", "x"],
        &["tree", "branch", "Tale", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--at", "1"],
        &["--model", "script:echo", "tree", "generate", "Tale", "--from", "zzzzzzzz"],
        &["--model", "script:/nowhere.jsonl", "tree", "generate", "Tale"],
        &["--model", "nobody/model", "tree", "generate", "Tale"],
        &["tree", "text", "Tale", "--view", "elsewhere"],
        &["tree", "new", "--file", "/nowhere/at/all"],
    ];
    for arguments in missing {
        is_refused(&home, arguments, 3, &["no"]);
    }
}

#[test]
fn a_title_that_two_trees_have_is_ambiguous_and_names_both() {
    let home = Home::with_tale("It rained.");
    let ids: Vec<String> = (0..2)
        .map(|_| {
            home.json(&["tree", "new", "--title", "Twin", "--text", "one of two"])["short_id"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    is_refused(&home, &["tree", "append", "Twin", "text"], 2, &[&ids[0], &ids[1], "use one of them"]);
    for id in ids {
        assert_eq!(home.json(&["tree", "text", &id])["text"], "one of two");
    }
}

#[test]
fn a_text_or_place_that_cannot_be_is_refused() {
    let home = Home::with_tale("It rained.");
    let node = home.nodes().last().unwrap()["short_id"].as_str().unwrap().to_owned();
    let impossible: &[&[&str]] = &[
        &["tree", "append", "Tale", ""],
        &["tree", "branch", "Tale", &node, "--at", "99999"],
        &["tree", "branch", "Tale", &node, "--at", "18446744073709551615"],
        &["tree", "branch", "Tale", &node, "--at", "-1"],
        &["--model", "script:echo", "tree", "generate", "Tale", "-n", "0"],
        &["--model", "script:echo", "tree", "generate", "Tale", "-n", "65"],
        &["tree", "generate", "Tale"],
        &["tree", "show", "Tale", "--view", ""],
        &["tree", "fly", "Tale"],
        &["tree", "text"],
        &["tree"],
    ];
    for arguments in impossible {
        is_refused(&home, arguments, 2, &[]);
    }
}

#[test]
fn a_file_that_is_no_text_is_refused() {
    let home = Home::with_tale("It rained.");
    let binary = home.file("binary", b"caf\xe9 au lait").into_os_string();
    let folder = home.folder().as_os_str().to_owned();
    let mut wild = home.folder().join("no").into_os_string().into_vec();
    wild.extend_from_slice(b"\xff\x1b[31mfile");
    let new = |file: OsString| ["tree".into(), "new".into(), "--file".into(), file];
    is_refused(&home, &new(binary), 2, &["not UTF-8", "from byte 4 on", "iconv"]);
    is_refused(&home, &new(folder), 2, &["not a plain file"]);
    is_refused(&home, &new("/dev/zero".into()), 2, &["not a plain file"]);
    let before = Before::of(&home);
    let ran = home.run(&new(OsString::from_vec(wild)));
    ran.refused(3, &["check the path"]);
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
    before.unharmed(&home);
}

#[test]
fn an_argument_that_is_no_utf8_is_refused() {
    let home = Home::with_tale("It rained.");
    let argument = OsStr::from_bytes(b"caf\xe9").to_owned();
    is_refused(&home, &["tree".into(), "append".into(), "Tale".into(), argument.clone()], 2, &["UTF-8"]);
    let before = Before::of(&home);
    home.run_with(&["tree", "append", "Tale", "-"], b"caf\xe9").refused(2, &["standard input is not UTF-8"]);
    before.unharmed(&home);
}

#[test]
fn a_file_that_may_not_be_read_is_refused() {
    let home = Home::with_tale("It rained.");
    let file = home.file("secret.txt", "text");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::File::open(&file).is_ok() {
        // Whoever may read everything meets the same refusal at a file that cannot be read by anyone.
        is_refused(&home, &["tree", "new", "--file", "/proc/self/mem"], 2, &["cannot read", "permissions"]);
        return;
    }
    is_refused(&home, &["tree", "new", "--file", file.to_str().unwrap()], 2, &["cannot read", "permissions"]);
}

#[test]
fn a_paste_of_50_mb_becomes_several_nodes() {
    let home = Home::with_tale("It rained.\n");
    let line = "All of it came from somewhere, and nobody could say from where.\n";
    let paste = line.repeat(50_000_000 / line.len());
    let drafted = home.run_with(&["tree", "draft", "Tale", "-"], paste.as_bytes());
    assert_eq!(drafted.status.code(), Some(0), "{}", drafted.stderr);
    let whole = format!("It rained.\n{paste}");
    assert!(home.ok(&["tree", "text", "Tale"]) == whole, "the draft is shown, byte for byte");
    // Whatever is written next commits the draft before it.
    home.ok(&["tree", "append", "Tale", "The end."]);
    assert!(home.ok(&["tree", "text", "Tale"]) == format!("{whole}The end."), "what was pasted is committed");
    let report = home.json(&["tree", "verify", "Tale"]);
    assert_eq!(report["status"], "valid", "{report}");
    assert!(
        report["nodes"].as_u64().unwrap() >= 6,
        "a genesis, a beginning, several for the paste, an end: {report}"
    );
}

#[test]
fn a_paste_of_70_mb_is_refused() {
    let home = Home::with_tale("It rained.");
    let before = Before::of(&home);
    let refused = home.run_with(&["tree", "draft", "Tale", "-"], &vec![b'x'; 70_000_000]);
    refused.refused(2, &["longer than 64 MiB", "split it"]);
    before.unharmed(&home);
}
