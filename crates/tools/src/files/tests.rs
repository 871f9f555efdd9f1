use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loom::{ToolStatus, Trust};
use model::Cancel;
use policy::{Policy, SessionType};
use serde_json::{Value, json};
use text::mask::{Masker, Secret};
use workspace::{AllowedRoots, FurtherRoot, Root, StoreGuard};

use super::fixture::{Fixture, RowRecorder, place};
use crate::{
    SearchEngine, SearchService, SeenFiles, ServerTool, ToolOutput, ToolRegistry, ToolScope, WebScope,
    web_tools,
};

fn scope(folder: &Path, roots: Vec<Root>, secrets: &[Secret]) -> ToolScope {
    ToolScope {
        roots: AllowedRoots::within(roots).into(),
        trust: Trust::Workspace,
        masker: Arc::new(Masker::new(secrets).unwrap()),
        policy: Policy::default().into(),
        session: SessionType::Main,
        locks: folder.join(".locks"),
        umask: 0o022,
        seen: SeenFiles::default(),
        max_pixels: 1_000_000,
        search_time: Duration::from_secs(600),
        commands: None,
        hooks: Vec::new(),
    }
}

fn registry(folder: &Path) -> Arc<ToolRegistry> {
    let secret = Secret::new("key", "sk-canary-0123456789").unwrap();
    let scope = scope(folder, vec![Root::open(folder, &StoreGuard::new()).unwrap()], &[secret]);
    Arc::new(ToolRegistry::new(scope, Vec::new(), &ToolRegistry::names()).unwrap())
}

fn call(folder: &Path, name: &str, arguments: &Value) -> ToolOutput {
    match registry(folder).check(name, arguments) {
        Ok(call) => call.run(&Cancel::never(), &RowRecorder::default(), &place()),
        Err(output) => output,
    }
}

fn ok(folder: &Path, name: &str, arguments: &Value) -> String {
    let output = call(folder, name, arguments);
    assert_eq!((output.status, output.trust), (ToolStatus::Ok, Trust::Workspace), "{output:?}");
    output.text
}

fn refused(folder: &Path, name: &str, arguments: &Value) -> String {
    let output = call(folder, name, arguments);
    assert_eq!(output.status, ToolStatus::Error, "{output:?}");
    output.text
}

fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("src/main.rs", "fn main() {\n    weave();\n}\n"),
        ("src/deep/loom.rs", "pub fn weave() {}\n"),
        ("notes.md", "Key: sk-canary-0123456789\n"),
        ("target/out.rs", "fn weave() {}\n"),
        (".gitignore", "/target\n*.log\n!keep.log\n"),
        ("a.log", "weave\n"),
        ("keep.log", "weave\n"),
        (".git/config", "weave\n"),
        ("sub/.gitignore", "hidden.txt\n"),
        ("sub/hidden.txt", "weave\n"),
        ("sub/seen.txt", "nothing\n"),
    ] {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn f10_a_file_is_read_by_pages_with_its_line_numbers() {
    let folder = workspace();
    let folder = folder.path();
    assert_eq!(
        ok(folder, "read", &json!({"path": "src/main.rs"})),
        "     1\tfn main() {\n     2\t    weave();\n     3\t}\n"
    );
    let page = ok(folder, "read", &json!({"path": "./src/main.rs", "offset": 2, "limit": 1}));
    assert_eq!(page, "     2\t    weave();\n[Lines 2 to 2 of 3; offset 3 goes on.]\n");
    assert!(refused(folder, "read", &json!({"path": "src/main.rs", "offset": 9})).contains("3 lines"));
    assert!(ok(folder, "read", &json!({"path": "notes.md"})).contains("⟦secret:key⟧"), "masked as it enters");
    let long: String = (0..9_000).map(|line| format!("line {line} of a long file\n")).collect();
    fs::write(folder.join("long.txt"), format!("{}\n{long}", "x".repeat(5_000))).unwrap();
    let page = ok(folder, "read", &json!({"path": "long.txt"}));
    assert!(page.contains("[3000 more characters]"), "{}", &page[..2_100]);
    let last = page.lines().last().unwrap();
    let next: usize = last.split("offset ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let go_on = ok(folder, "read", &json!({"path": "long.txt", "offset": next}));
    assert!(go_on.starts_with(&format!("{next:>6}\t")), "{last}");
    fs::write(folder.join("bytes"), b"a\0b").unwrap();
    fs::write(folder.join("latin"), b"\xe9t\xe9").unwrap();
    assert!(refused(folder, "read", &json!({"path": "bytes"})).contains("no text"));
    assert_eq!(ok(folder, "read", &json!({"path": "latin"})), "     1\t\u{fffd}t\u{fffd}\n");
    assert!(refused(folder, "read", &json!({"path": "."})).starts_with(". is a folder"));
    let sparse = fs::File::create(folder.join("sparse")).unwrap();
    sparse.set_len(11 << 20).unwrap();
    for (name, arguments) in
        [("read", json!({"path": "sparse"})), ("grep", json!({"path": "sparse", "pattern": "a"}))]
    {
        assert!(refused(folder, name, &arguments).contains("sparse"), "{name}");
    }
    let searched = ok(folder, "grep", &json!({"pattern": "weave"}));
    assert!(
        searched.ends_with("[Not searched, as they are no text, too long or cannot be read: 2.]\n"),
        "{searched}"
    );
}

#[test]
fn f9_no_path_leads_out_of_the_roots() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "weave").unwrap();
    let folder = workspace();
    let folder = folder.path();
    std::os::unix::fs::symlink(outside.path(), folder.join("out")).unwrap();
    let absolute = outside.path().join("secret");
    for path in ["../secret", "out/secret", "~/secret", "", absolute.to_str().unwrap()] {
        for name in ["read", "list", "grep", "glob"] {
            let mut arguments = json!({"path": path});
            if name == "grep" || name == "glob" {
                arguments["pattern"] = "*".replace('*', "weave").into();
            }
            let output = call(folder, name, &arguments);
            assert!(
                output.status == ToolStatus::Error && !output.text.contains("weave\n"),
                "{name} {path}: {output:?}"
            );
        }
    }
    assert!(!ok(folder, "grep", &json!({"pattern": "weave"})).contains("out/"), "links are not gone into");
    assert!(ok(folder, "list", &json!({})).contains("out@\n"));
}

#[test]
fn files_are_found_by_name_and_by_line_without_what_git_ignores() {
    let folder = workspace();
    let folder = folder.path();
    assert_eq!(ok(folder, "glob", &json!({"pattern": "*.rs"})), "src/main.rs\nsrc/deep/loom.rs\n".to_owned());
    assert_eq!(ok(folder, "glob", &json!({"pattern": "src/*.rs"})), "src/main.rs\n");
    assert_eq!(ok(folder, "glob", &json!({"pattern": "*.rs", "path": "src/deep"})), "src/deep/loom.rs\n");
    assert!(ok(folder, "glob", &json!({"pattern": "*.rs", "ignored": true})).contains("target/out.rs"));
    assert_eq!(ok(folder, "glob", &json!({"pattern": "*.py"})), "[No file matches.]\n");
    assert!(refused(folder, "glob", &json!({"pattern": "a{"})).contains("is no pattern"));
    let lines = ok(folder, "grep", &json!({"pattern": "weave"}));
    assert_eq!(lines, "keep.log:1:weave\nsrc/main.rs:2:    weave();\nsrc/deep/loom.rs:1:pub fn weave() {}\n");
    let around = ok(
        folder,
        "grep",
        &json!({"pattern": "WEAVE", "ignore_case": true, "glob": "main.rs", "context": 1}),
    );
    assert_eq!(around, "src/main.rs-1-fn main() {\nsrc/main.rs:2:    weave();\nsrc/main.rs-3-}\n");
    let one = ok(folder, "grep", &json!({"pattern": "weave", "limit": 1}));
    assert!(one.starts_with("keep.log:1:weave\n[There may be more"), "{one}");
    assert_eq!(ok(folder, "grep", &json!({"pattern": "loom|shuttle"})), "[No line matches.]\n");
    assert!(refused(folder, "grep", &json!({"pattern": "("})).contains("cannot be searched for"));
    assert!(
        refused(folder, "grep", &json!({"pattern": "(?:a{1000}){1000}"})).contains("cannot be searched for")
    );
}

#[test]
fn a_secret_that_a_cut_parts_is_masked_whole() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "sk-canary-0123456789";
    for (name, cut) in [("read", 2_000), ("grep", 400)] {
        for within in 1..secret.len() {
            let text = format!("{}{secret} and more\n", "x".repeat(cut - within));
            fs::write(folder.path().join("a"), text).unwrap();
            let arguments = if name == "read" { json!({"path": "a"}) } else { json!({"pattern": "^x"}) };
            let said = ok(folder.path(), name, &arguments);
            assert!(!said.contains("sk-c") && !said.contains("xsk"), "{name} {within}: {said}");
        }
    }
}

#[test]
fn ignore_files_are_read_as_git_reads_them() {
    let folder = workspace();
    let folder = folder.path();
    fs::write(folder.join(".gitignore"), b"\xef\xbb\xbf/target\n# \xe9\n*.log\n{a,b}.txt\n").unwrap();
    for name in ["a.txt", "b.txt", "{a,b}.txt", "mine.rs"] {
        fs::write(folder.join(name), "weave\n").unwrap();
    }
    fs::create_dir_all(folder.join(".git/info")).unwrap();
    fs::write(folder.join(".git/info/exclude"), "mine.rs\n").unwrap();
    let found = ok(folder, "grep", &json!({"pattern": "^weave"}));
    assert_eq!(found, "a.txt:1:weave\nb.txt:1:weave\n");
    assert_eq!(ok(folder, "glob", &json!({"pattern": "*.rs"})), "src/main.rs\nsrc/deep/loom.rs\n");
}

#[test]
fn x10_an_expression_that_would_go_back_and_forth_is_searched_for_in_one_pass() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), format!("{}!\n{}\n", "a".repeat(1 << 20), "a".repeat(28))).unwrap();
    let found = ok(folder.path(), "grep", &json!({"pattern": "(a+)+$"}));
    assert_eq!(found, format!("a:2:{}\n", "a".repeat(28)));
}

#[test]
fn what_a_tool_says_is_bounded_whatever_names_it_meets() {
    let folder = tempfile::tempdir().unwrap();
    let long = "n".repeat(250);
    let deep = (0..6).fold(folder.path().to_owned(), |path, _| path.join(&long));
    fs::create_dir_all(&deep).unwrap();
    for number in 0..300 {
        fs::write(deep.join(format!("{number:03}")), "").unwrap();
    }
    let found = ok(folder.path(), "glob", &json!({"pattern": "*"}));
    assert!(found.len() < 300 << 10 && found.contains(" more bytes are left out"), "{}", found.len());
    let why = refused(folder.path(), "read", &json!({"path": "a", "x".repeat(1 << 20): 1}));
    assert!(why.len() < 1_000, "{}", why.len());
}

#[test]
fn a_walk_that_is_stopped_says_so() {
    let folder = workspace();
    let (stop, cancel) = Cancel::new();
    stop.cancel();
    let call = registry(folder.path()).check("grep", &json!({"pattern": "weave"}));
    let output = call.ok().unwrap().run(&cancel, &RowRecorder::default(), &place());
    assert!(output.text.contains("[Stopped"), "{output:?}");
}

#[test]
fn v4_v7_what_does_not_fit_is_told_whole_and_near_names_are_named() {
    let folder = workspace();
    let why = refused(folder.path(), "read", &json!({"offset": 0, "line": 3}));
    assert!(why.starts_with("Invalid parameters of read: "), "v7: {why}");
    for problem in ["missing required path", "offset must be >= 1", "unknown line"] {
        assert!(why.contains(problem), "{problem}: {why}");
    }
    assert!(refused(folder.path(), "Read", &json!({})).contains("did you mean read?"));
    assert!(refused(folder.path(), "weave", &json!({})).contains(
        "the tools are copy, delete, edit, exec, glob, grep, list, list_skills, mkdir, move, patch, plan, process, read, \
         spawn, subagent_status, subagent_stop, write"
    ));
    let scope = scope(folder.path(), Vec::new(), &[]);
    let registry = ToolRegistry::new(scope, Vec::new(), &["read".to_owned()]).unwrap();
    let call = Arc::new(registry).check("read", &json!({"path": "a"})).ok().unwrap();
    assert!(call.run(&Cancel::never(), &RowRecorder::default(), &place()).text.contains("no workspace"));
    assert_eq!(ToolRegistry::names().len(), 18);
}

#[test]
fn f6_f7_without_the_restriction_absolute_paths_resolve_and_without_a_workspace_none() {
    let (folder, outside) = (workspace(), tempfile::tempdir().unwrap());
    fs::write(outside.path().join("there.txt"), "there\n").unwrap();
    let root = Root::open(folder.path(), &StoreGuard::new()).unwrap();
    let mut open = scope(folder.path(), Vec::new(), &[]);
    open.roots =
        AllowedRoots::within(vec![root, FurtherRoot::everything().open(&StoreGuard::new(), &[]).unwrap()])
            .into();
    let open = ToolRegistry::new(open, Vec::new(), &ToolRegistry::names()).unwrap();
    let there = outside.path().join("there.txt").canonicalize().unwrap();
    let call = open.check("read", &json!({"path": there})).ok().unwrap();
    assert_eq!(call.run(&Cancel::never(), &RowRecorder::default(), &place()).text, "     1\tthere\n");
    let none =
        ToolRegistry::new(scope(folder.path(), Vec::new(), &[]), Vec::new(), &ToolRegistry::names()).unwrap();
    for (tool, arguments) in [
        ("read", json!({"path": "a"})),
        ("write", json!({"path": "a", "content": ""})),
        ("move", json!({"from": "a", "to": "b"})),
        ("delete", json!({"path": "a"})),
    ] {
        let output = none.check(tool, &arguments).ok().unwrap().run(
            &Cancel::never(),
            &RowRecorder::default(),
            &place(),
        );
        assert!(output.text.contains("no workspace is configured"), "{tool}: {output:?}");
    }
}

#[test]
fn schemas_of_the_core_have_at_most_2500_tokens() {
    let scope = scope(Path::new("/"), Vec::new(), &[]);
    let url = Some("http://localhost:1");
    let search = Some(SearchService::new(SearchEngine::Searxng, url, None).unwrap());
    let (gate, is_shown) = (egress::Gate::default(), Arc::new(|_: &str| false));
    let web = web_tools(&WebScope { gate, private_hosts: Vec::new(), search, is_shown });
    let names: Vec<String> = web.iter().map(|tool| tool.spec.name.clone()).collect();
    let names = [names, ToolRegistry::names()].concat();
    let specs = ToolRegistry::new(scope, web, &names).unwrap().specs();
    let size = |core: bool| {
        let specs = specs.iter().filter(|spec| spec.core == core);
        let text = |spec: &context::ToolSpec| {
            let (name, description, parameters) = (&spec.name, &spec.description, &spec.parameters);
            json!({"name": name, "description": description, "parameters": parameters}).to_string()
        };
        context::Estimator::default().estimated(&specs.map(text).collect::<String>())
    };
    assert!(size(true) > 300 && size(true) < 2_500, "{} and {}", size(true), size(false));
    let core: Vec<&str> = specs.iter().filter(|spec| spec.core).map(|spec| spec.name.as_str()).collect();
    assert_eq!(
        core,
        ["edit", "exec", "glob", "grep", "list", "plan", "read", "web_fetch", "web_search", "write"]
    );
}

#[test]
fn a_search_that_takes_too_long_says_what_it_found_and_names_the_limit() {
    let said = |time| {
        let fixture = Fixture::searching_for(time);
        fixture.put("a.txt", "weft\n");
        [("glob", json!({"pattern": "*.txt"})), ("grep", json!({"pattern": "weft"}))]
            .map(|(tool, arguments)| fixture.call(tool, &arguments).unwrap())
    };
    for said in said(Duration::ZERO) {
        assert!(said.contains("[Not all files were looked at: ") && said.contains("(limits.glob)"), "{said}");
    }
    for said in said(Duration::from_secs(600)) {
        assert!(said.starts_with("a.txt") && !said.contains("limits.glob"), "{said}");
    }
}

#[test]
fn who_names_a_tool_that_a_subagent_cannot_have_is_told_of_none_of_a_server() {
    let tool = ServerTool {
        server: "notes".to_owned(),
        name: "add".to_owned(),
        description: "Adds.".to_owned(),
        schema: json!({"type": "object"}),
        reading: Vec::new(),
        is_online: false,
    };
    let tool = tool.into_tool((
        Arc::new(|_, _, _| unreachable!("it is not called")),
        Arc::new(|_| Err("it has none".to_owned())),
    ));
    let names = ["read", "notes:add"].map(str::to_owned);
    let registry = ToolRegistry::new(scope(Path::new("/"), Vec::new(), &[]), vec![tool], &names).unwrap();
    let named = |name: &str| registry.of_subagent(Some(&[name.to_owned()]), false).map(drop);
    assert_eq!(named("notes:add"), Ok(()));
    assert_eq!(named("notes:sub"), Err("a subagent can have no tool notes:sub: it can have read".to_owned()));
}
