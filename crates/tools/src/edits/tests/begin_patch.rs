use super::super::{FileAction, MissReason, Patch};
use super::{apply, error};

fn update(hunks: &str) -> String {
    format!("*** Begin Patch\n*** Update File: f\n{hunks}*** End Patch\n")
}

#[test]
fn every_kind_of_file_is_read() {
    let text = "\
apply_patch <<'EOF'
*** Begin Patch
*** Add File: new file.md
+# Title

+text
*** Delete File: gone
*** Update File: src/a.py
*** Move to: src/b.py
@@ class A:
@@     def f(self):
-        return 1
+        return 2
*** End Patch
EOF
";
    let files = Patch::parse(text).unwrap().files;
    let actions: Vec<FileAction> = files.iter().map(|file| file.action.clone()).collect();
    assert_eq!(
        actions,
        [
            FileAction::Add { path: "new file.md".to_owned() },
            FileAction::Delete { path: "gone".to_owned() },
            FileAction::Move { from: "src/a.py".to_owned(), to: "src/b.py".to_owned() },
        ]
    );
    assert_eq!(files[0].apply("").as_deref(), Ok("# Title\n\ntext\n"));
    assert_eq!(files[1].apply("x\ny\n").as_deref(), Ok(""));
    let body = "    def f(self):\n        return 1\n";
    let before = format!("class B:\n{body}class A:\n{body}class C:\n{body}");
    let after = format!("class B:\n{body}class A:\n{}class C:\n{body}", body.replace('1', "2"));
    assert_eq!(files[2].apply(&before), Ok(after));
}

#[test]
fn hunks_without_context_need_a_place() {
    assert_eq!(apply(&update("@@ a\n+x\n"), "a\nb\n").as_deref(), Ok("a\nx\nb\n"));
    assert_eq!(apply(&update("+x\n*** End of File\n"), "a\nb\n").as_deref(), Ok("a\nb\nx\n"));
    assert_eq!(apply(&update("+x\n*** End of File\n"), "a\r\nb").as_deref(), Ok("a\r\nb\r\nx"));
    assert_eq!(apply(&update("@@\n+x\n"), "").as_deref(), Ok("x\n"));
    assert_eq!(apply(&update("@@\n+x\n"), "a\n").unwrap_err().reason, MissReason::NoContext);
    let several = MissReason::Several { lines: vec![1, 3], more: false };
    assert_eq!(apply(&update("@@ a\n+x\n"), "a\nb\na\n").unwrap_err().reason, several);
}

#[test]
fn the_first_hunk_needs_no_sign_and_empty_lines_may_have_lost_their_space() {
    assert_eq!(apply(&update(" a\n\n-b\n+c\n\n"), "a\n\nb\n").as_deref(), Ok("a\n\nc\n"));
    assert_eq!(apply(&update("\n@@\n-b\n+c\n\n@@\n-d\n+e\n"), "b\nd\n").as_deref(), Ok("c\ne\n"));
}

#[test]
fn an_anchor_narrows_the_place() {
    let text = "fn a() {\n  1\n}\nfn b() {\n  1\n}\n";
    let hunk = "-  1\n+  2\n";
    let several = MissReason::Several { lines: vec![2, 5], more: false };
    assert_eq!(apply(&update(&format!("@@\n{hunk}")), text).unwrap_err().reason, several);
    let after = "fn a() {\n  1\n}\nfn b() {\n  2\n}\n";
    assert_eq!(apply(&update(&format!("@@ fn b() {{\n{hunk}")), text).as_deref(), Ok(after));
    assert_eq!(apply(&update(&format!("@@ fn b() {{\n fn b() {{\n{hunk}")), text).as_deref(), Ok(after));
    let missing = MissReason::AnchorNotFound { anchor: "fn c() {".to_owned(), below: 0 };
    assert_eq!(apply(&update(&format!("@@ fn c() {{\n{hunk}")), text).unwrap_err().reason, missing);
    let above = apply(&update("@@ fn b() {\n-fn a() {\n+fn c() {\n"), text).unwrap_err().reason;
    assert_eq!(above, MissReason::OutOfOrder { line: 1 });
}

#[test]
fn the_end_of_the_file_is_the_end() {
    let hunk = update("-x\n+y\n*** End of File\n");
    assert_eq!(apply(&hunk, "x\na\nx\n").as_deref(), Ok("x\na\ny\n"));
    assert_eq!(apply(&hunk, "x\na\n").unwrap_err().reason, MissReason::NotAtEnd { line: 1, behind: 1 });
}

#[test]
fn errors_name_the_line_and_what_was_expected() {
    for (patch, line, expected) in [
        ("*** Begin Patch\n*** Update File: f\n-a\n+b\n", 5, "*** End Patch"),
        ("*** Begin Patch\n*** End Patch\n", 2, "*** Add File: PATH"),
        ("*** Begin Patch\n*** Rename File: f\n*** End Patch\n", 2, "*** Update File: PATH"),
        ("*** Begin Patch\n*** Add File:\n+a\n*** End Patch\n", 2, "PATH"),
        ("*** Begin Patch\n*** Add File: f\n+a\nb\n*** End Patch\n", 4, "behind a `+`"),
        ("*** Begin Patch\n*** Add File: f\n-a\n*** End Patch\n", 3, "behind a `+`"),
        ("*** Begin Patch\n*** Update File: f\n*** End Patch\n", 3, "`@@`"),
        ("*** Begin Patch\n*** Update File: f\n@@\n a\n*** End Patch\n", 5, "begins with `-` or `+`"),
        ("*** Begin Patch\n*** Update File: f\n@@\n-a\nx\n*** End Patch\n", 5, "begins with a space"),
    ] {
        let error = error(patch);
        assert!(error.line == line && error.expected.contains(expected), "{patch}{error}");
    }
}
