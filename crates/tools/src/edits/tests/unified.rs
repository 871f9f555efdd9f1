use super::super::{FileAction, MissReason, Patch};
use super::{apply, error, nearest, only};

fn path(path: &str) -> String {
    path.to_owned()
}

#[test]
fn a_git_diff_of_several_files_is_read() {
    let text = "\
Here is the change:
```diff
diff --git a/src/a.rs b/src/a.rs
index 1111111..2222222 100644
--- a/src/a.rs
+++ b/src/a.rs
@@ -1,3 +1,3 @@ fn head()
 one
-two
+2
 three
@@ -10,2 +10,3 @@
 ten
+10
 eleven
diff --git a/new.sh b/new.sh
new file mode 100755
index 0000000..3333333
--- /dev/null
+++ b/new.sh
@@ -0,0 +1,2 @@
+#!/bin/sh
+true
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1 +0,0 @@
-bye
diff --git a/old name b/new name
similarity index 90%
rename from old name
rename to new name
--- a/old name
+++ b/new name
@@ -1 +1 @@
-x
+y
diff --git a/run b/run
old mode 100644
new mode 100755
diff --git a/empty b/empty
new file mode 100644
index 0000000..e69de29
```
That is all.
";
    let files = Patch::parse(text).unwrap().files;
    let actions: Vec<FileAction> = files.iter().map(|file| file.action.clone()).collect();
    assert_eq!(
        actions,
        [
            FileAction::Update { path: path("src/a.rs") },
            FileAction::Add { path: path("new.sh") },
            FileAction::Delete { path: path("gone") },
            FileAction::Move { from: path("old name"), to: path("new name") },
            FileAction::Update { path: path("run") },
            FileAction::Add { path: path("empty") },
        ]
    );
    let executable: Vec<_> = files.iter().map(|file| file.executable).collect();
    assert_eq!(executable, [None, Some(true), None, None, Some(true), Some(false)]);
    let before = "one\ntwo\nthree\n4\n5\n6\n7\n8\n9\nten\neleven\n";
    let after = "one\n2\nthree\n4\n5\n6\n7\n8\n9\nten\n10\neleven\n";
    assert_eq!(files[0].apply(before).as_deref(), Ok(after));
    assert_eq!(files[1].apply("").as_deref(), Ok("#!/bin/sh\ntrue\n"));
    assert_eq!(files[1].apply("x").unwrap_err().reason, MissReason::NotEmpty);
    assert_eq!(files[2].apply("bye\n").as_deref(), Ok(""));
    assert_eq!(files[2].apply("bye\nmore\n").unwrap_err().reason, MissReason::Leftover { lines: 1 });
    assert_eq!(files[3].apply("x\n").as_deref(), Ok("y\n"));
    assert_eq!((files[4].apply("x\n").as_deref(), files[5].apply("").as_deref()), (Ok("x\n"), Ok("")));
}

#[test]
fn paths_of_plain_diffs_are_read() {
    for (old, new, action) in [
        ("x.c\t2024-01-01 00:00:00 +0000", "x.c\t2024-01-02", FileAction::Update { path: path("x.c") }),
        ("x.c.orig", "x.c", FileAction::Update { path: path("x.c") }),
        ("a/x.c", "b/y.c", FileAction::Move { from: path("x.c"), to: path("y.c") }),
        ("/dev/null", "y.c", FileAction::Add { path: path("y.c") }),
    ] {
        let file = only(&format!("--- {old}\n+++ {new}\n@@ -1 +1 @@\n-a\n+b\n"));
        assert_eq!(file.action, action);
    }
}

const HEAD: &str = "--- a/f\n+++ b/f\n";

#[test]
fn wrong_counts_do_not_matter_where_the_body_is_clear() {
    for counts in ["-1,3 +1,3", "-1,9 +1,9", "-1,1 +1,1", "-1 +1", "-1,0 +1,0"] {
        let patch = format!("{HEAD}@@ {counts} @@\n a\n-b\n+B\n\n");
        assert_eq!(apply(&patch, "a\nb\nc\n").as_deref(), Ok("a\nB\nc\n"), "{counts}");
        let patch = format!("```\n{HEAD}@@ {counts} @@\n a\n-b\n+B\n```\nNow it works.\n");
        assert_eq!(apply(&patch, "a\nb\nc\n").as_deref(), Ok("a\nB\nc\n"), "{counts}");
    }
    let two = format!("{HEAD}@@ -1,3 +1,3 @@\n-a\n+b\n--- a/g\n+++ b/g\n@@ -1 +1 @@\n-c\n+d\n");
    let files = Patch::parse(&two).unwrap().files;
    assert_eq!(files.len(), 2);
    assert_eq!(files[0].apply("a\n").as_deref(), Ok("b\n"));
}

#[test]
fn right_counts_tell_lines_from_headers() {
    let patch = format!("{HEAD}@@ -1,3 +1,3 @@\n--- x\n+++ y\n \n \n-- \n2.40.0\n");
    assert_eq!(apply(&patch, "-- x\n\n\n").as_deref(), Ok("++ y\n\n\n"));
    let patch = format!("{HEAD}@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n");
    assert_eq!(apply(&patch, "a\n\nb\n").as_deref(), Ok("a\n\nc\n"), "an empty line that lost its space");
}

#[test]
fn a_hunk_stands_where_it_says_or_once_elsewhere() {
    let hunk = format!("{HEAD}@@ -2 +2 @@\n-x\n+y\n");
    assert_eq!(apply(&hunk, "x\nx\nx\n").as_deref(), Ok("x\ny\nx\n"));
    assert_eq!(apply(&hunk, "a\nb\nx\n").as_deref(), Ok("a\nb\ny\n"));
    let miss = apply(&hunk, "x\nb\nx\n").unwrap_err();
    assert_eq!((miss.hunk, &miss.reason), (Some(3), &MissReason::Several { lines: vec![1, 3], more: false }));
    assert!(
        miss.to_string().starts_with("The hunk at line 3 of the patch does not apply: the text stands in")
    );
    let unnumbered = format!("{HEAD}@@ ... @@\n-x\n+y\n");
    assert_eq!(apply(&unnumbered, "a\nx\n").as_deref(), Ok("a\ny\n"));
}

/// Once a hunk stood elsewhere, the line that the next one states is some other line.
#[test]
fn a_stated_line_is_not_trusted_behind_a_hunk_that_stood_elsewhere() {
    let hunks = format!("{HEAD}@@ -1 +1 @@\n-a\n+A\n@@ -3 +3 @@\n-x\n+y\n");
    assert_eq!(apply(&hunks, "a\nb\nx\nx\n").as_deref(), Ok("A\nb\ny\nx\n"));
    let miss = apply(&hunks, "new\na\nx\nx\n").unwrap_err();
    assert_eq!((miss.hunk, miss.reason), (Some(6), MissReason::Several { lines: vec![3, 4], more: false }));
}

#[test]
fn hunks_are_in_order_and_apart() {
    let hunks = format!("{HEAD}@@ -3 +3 @@\n-c\n+C\n@@ -1 +1 @@\n-a\n+A\n");
    assert_eq!(apply(&hunks, "a\nb\nc\n").unwrap_err().reason, MissReason::OutOfOrder { line: 1 });
    let hunks = format!("{HEAD}@@ -1,2 +1,2 @@\n-a\n+A\n b\n@@ -2,2 +2,2 @@\n b\n-c\n+C\n");
    assert_eq!(apply(&hunks, "a\nb\nc\n").unwrap_err().reason, MissReason::OutOfOrder { line: 2 });
    let blind = format!("{HEAD}@@ -2,0 +3 @@\n+x\n");
    assert_eq!(apply(&blind, "a\nb\nc\n").unwrap_err().reason, MissReason::NoContext);
}

#[test]
fn white_space_is_not_passed_over_and_the_miss_says_so() {
    let miss = apply(&format!("{HEAD}@@ -1,2 +1,2 @@\n fn a()\n-  b\n+  c\n"), "fn a()\n\tb\n").unwrap_err();
    let nearest = nearest(&miss);
    assert!(nearest.only_white_space);
    assert_eq!(
        (nearest.difference.wanted.as_str(), nearest.difference.found.as_deref()),
        ("··b", Some("→b"))
    );
}

#[test]
fn endings_mark_and_final_newline_stay_unless_the_patch_knows_them() {
    let hunk = format!("{HEAD}@@ -1,2 +1,3 @@\n a\n-b\n+B\n+c\n");
    for (before, after) in [
        ("a\r\nb\r\n", "a\r\nB\r\nc\r\n"),
        ("a\nb", "a\nB\nc"),
        ("a\r\nb", "a\r\nB\r\nc"),
        ("\u{feff}a\nb\n", "\u{feff}a\nB\nc\n"),
        ("a\r\nb\n", "a\r\nB\nc\n"),
    ] {
        assert_eq!(apply(&hunk, before).as_deref(), Ok(after), "{before:?}");
        let crlf = hunk.replace('\n', "\r\n");
        assert_eq!(apply(&crlf, before).as_deref(), Ok(after), "{before:?}, by a patch in CR LF");
    }
    let first = format!("{HEAD}@@ -1 +1,2 @@\n+x\n a\n");
    assert_eq!(
        apply(&first, "\u{feff}a\n").as_deref(),
        Ok("\u{feff}x\na\n"),
        "the mark is before the first line"
    );
    let marker = "\\ No newline at end of file\n";
    let takes = format!("{HEAD}@@ -1 +1 @@\n-a\n+a\n{marker}");
    let gives = format!("{HEAD}@@ -1 +1 @@\n-a\n{marker}+a\n");
    assert_eq!(apply(&takes, "a\n").as_deref(), Ok("a"));
    assert_eq!(apply(&gives, "a").as_deref(), Ok("a\n"));
    assert_eq!((apply(&takes, "a").as_deref(), apply(&gives, "a\n").as_deref()), (Ok("a"), Ok("a\n")));
    assert_eq!(apply(&gives, "a\nb\n").unwrap_err().reason, MissReason::NotAtEnd { line: 1, behind: 1 });
    let endings = format!("{HEAD}@@ -1 +1 @@\n-a\r\n+a\n");
    assert_eq!(apply(&endings, "a\r\n").as_deref(), Ok("a\n"), "a patch that says so");
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    for (patch, line, expected) in [
        ("nothing\nhere\n", 3, "*** Begin Patch"),
        ("@@ -1 +1 @@\n-a\n+b\n", 1, "--- PATH"),
        ("--- a/f\n+++ b/f\n", 3, "@@ -LINE,COUNT"),
        ("--- a/f\n+++ b/f\n@@ -1,x +1 @@\n-a\n", 3, "@@ -LINE,COUNT"),
        ("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\nfn b()\n+c\n", 5, "begins with a space, `-` or `+`"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n a\n", 5, "begins with `-` or `+`"),
        ("diff --git a/f b/f\nBinary files a/f and b/f differ\n", 2, "binary"),
        ("diff --git a/f b/f\nnew file mode 120000\n", 2, "links"),
        ("diff --git a/f b/f\nindex 1..2 160000\n", 2, "submodules"),
        ("diff --git a/f b/g\nold mode 100644\n", 3, "--- PATH"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n*** Begin Patch\n", 6, "unified"),
    ] {
        let error = error(patch);
        assert!(error.line == line && error.expected.contains(expected), "{patch}{error}");
        assert!(error.to_string().starts_with(&format!("line {line} of the patch: expected ")));
    }
}
