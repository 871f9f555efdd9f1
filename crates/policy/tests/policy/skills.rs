//! What a skill that is followed leaves of the tools: `allowed-tools` of several clients.

use drawloom_policy::{AllowedTools, CallFacts, Decision, Effect, NetworkWish, PathAccess, redirected_files};

use workspace::RelativePath;

use crate::support::{call, exec, file, online, server};

fn allows(entries: &[&str], call: &CallFacts) -> bool {
    let allowed = AllowedTools::new(entries.iter().map(|entry| (*entry).to_owned()).collect());
    let refusal = allowed.refusal("paint", call, &[]);
    assert!(refusal.iter().all(|refusal| refusal.decision == Decision::Deny));
    refusal.is_none()
}

fn line(line: &str) -> CallFacts {
    exec(line, NetworkWish::Off)
}

fn writes_docs(call: &CallFacts) -> bool {
    allows(&["Bash(echo:*)", "Write(docs/**)"], call)
}

#[test]
fn entries_of_other_clients_mean_the_tools_here_and_no_more() {
    let write = |path| file(PathAccess::Write, path);
    let edit = |path| CallFacts { tool: "edit".to_owned(), ..file(PathAccess::Write, path) };
    let fetch = |host: &str| CallFacts {
        host: Some(host.to_owned()),
        ..call("web_fetch", &[Effect::Net, Effect::Read])
    };
    for (entries, call, is_allowed) in [
        (&["Bash(git add:*)"][..], line("git add a b"), true),
        (&["Bash(git add *)"], line("git add a"), true),
        (&["exec git add *"], line("git add a"), true),
        (&["Bash(git add:*)"], line("git push"), false),
        (&["Bash(git add:*)"], line("git add a && rm b"), false),
        (&["Bash(git add:*)"], line("git add $(rm b)"), false),
        (&["Bash(git add:*)"], online("git add a"), false),
        (&["Bash(git status)"], line("git status -s"), false),
        (&["Bash(git status)"], line("git status"), true),
        (&["Bash(git add:*)", "Bash(rm:*)"], line("git add a && rm b"), true),
        (&["Bash"], line("x=$(ls) && rm $x | tee b"), true),
        (&["Bash(*)"], line("ls | tee b"), true),
        (&["exec"], online("curl example.org"), true),
        (&["Bash(git * main)"], line("git push main"), false),
        (&["Bash($EDITOR:*)"], line("ls"), false),
        (&["Bash(echo:*)"], line("echo a > b"), false),
        (&["Bash(echo:*)"], line("echo a >> b"), false),
        (&["Bash(echo:*)"], line("echo a &> b"), false),
        (&["Bash(echo:*)"], line("echo a >| b"), false),
        (&["Bash(echo:*)"], line("echo a 2<> b"), false),
        (&["Bash(echo:*)"], line("echo a >& b"), false),
        (&["exec echo *"], line("echo a > b"), false),
        (&["Bash(echo:*)"], line("echo a > /dev/null 2>&1"), true),
        (&["Bash(echo:*)"], line("echo a 2>&- >&2"), true),
        (&["Bash(cat:*)"], line("cat < b"), true),
        (&["Bash(echo:*)", "Write"], line("echo a > b"), true),
        (&["Bash(echo:*)", "Edit(docs/**)"], line("echo a > docs/b"), true),
        (&["Bash(echo:*)", "Write(docs/**)"], line("echo a > docs/b 2> b"), false),
        (&["Bash(echo:*)", "Write(docs/**)"], line("echo a > docs/../b"), false),
        (&["Bash(echo:*)", "Write"], line("echo a > $B"), false),
        (&["Bash(echo:*)", "Bash"], line("echo a > b"), true),
        (&["Bash"], write("a"), false),
        (&["Write"], write("a"), true),
        (&["Write"], edit("a"), false),
        (&["Edit"], edit("a"), true),
        (&["Write(docs/**)"], write("docs/a/b"), true),
        (&["Write(./docs/**)"], write("docs/a"), true),
        (&["Write(docs/**)"], write("src/a"), false),
        (&["Write(//etc/**)", "Write(/docs/**)", "Write(~/docs/**)"], write("docs/a"), false),
        (&["write path=docs/**"], write("docs/a"), true),
        (&["WebFetch(domain:example.org)"], fetch("example.org"), true),
        (&["WebFetch(domain:example.org)"], fetch("example.com"), false),
        (&["WebFetch(https://example.org)"], fetch("example.org"), false),
        (&["WebFetch"], fetch("example.com"), true),
        (&["mcp__box__open"], server("box", "open", false), true),
        (&["mcp__box"], server("box", "open", false), false),
        (&["box:open"], server("box", "list", true), false),
        (&["Task", "Frobnicate(x)", "Bash(", ")", ""], write("a"), false),
    ] {
        assert_eq!(allows(entries, &call), is_allowed, "{entries:?} {call:?}");
    }
}

#[test]
fn a_redirection_to_a_name_that_leads_elsewhere_is_refused() {
    let call = line("echo a > docs/link/b");
    let files = redirected_files(&call);
    assert_eq!(files.iter().map(|file| file.path.to_string()).collect::<Vec<_>>(), ["docs/link/b"]);
    for (entries, indirect, is_refused) in [
        (&["Bash(echo:*)", "Write(docs/**)"][..], &[][..], false),
        (&["Bash(echo:*)", "Write(docs/**)"], &files, true),
        (&["Bash(echo:*)", "Write"], &[], false),
        (&["Bash(echo:*)", "Write"], &files, true),
        (&["Bash"], &files, false),
    ] {
        let allowed = AllowedTools::new(entries.iter().map(|entry| (*entry).to_owned()).collect());
        let refusal = allowed.refusal("paint", &call, indirect).map(|refusal| refusal.to_string());
        assert_eq!(refusal.is_some(), is_refused, "{entries:?} {indirect:?}");
        assert!(refusal.is_none_or(|why| why.contains("docs/link/b, which is a link,")), "{entries:?}");
    }
}

#[test]
fn a_redirection_that_goes_up_from_a_name_is_not_known() {
    for (target, is_refused) in [
        ("docs/b", false),
        ("./docs/b", false),
        ("docs/../docs/b", true),
        ("docs/link/../b", true),
        ("docs/./link//../b", true),
    ] {
        assert_eq!(!writes_docs(&line(&format!("echo a > {target}"))), is_refused, "{target}");
    }
}

#[test]
fn a_redirection_that_goes_up_from_the_directory_of_its_command_is_known_where_no_link_leads_there() {
    for (target, is_direct, is_known, is_allowed) in [
        ("../b", true, true, true),
        ("../b", false, false, false),
        ("./..//b", false, false, false),
        (".././../docs/b", true, true, true),
        (".././../docs/b", false, false, false),
        ("../../b", true, true, false),
        ("../../../b", true, false, false),
        ("link/../b", true, false, false),
        // Where its name leads is looked up.
        ("b", false, true, true),
    ] {
        let mut call = line(&format!("echo a > {target}"));
        let command = call.command.as_mut().unwrap();
        command.directory = RelativePath::parse("docs/in").unwrap();
        command.directory_is_direct = is_direct;
        assert_eq!(writes_docs(&call), is_allowed, "{target} {is_direct}");
        assert_eq!(redirected_files(&call).len(), usize::from(is_known), "{target} {is_direct}");
    }
}

#[test]
fn a_refusal_names_the_file_and_repeats_what_is_allowed_in_one_short_line() {
    let refused = |entries: &[&str], call: &CallFacts| {
        let allowed = AllowedTools::new(entries.iter().map(|entry| (*entry).to_owned()).collect());
        allowed.refusal("paint", call, &[]).unwrap().to_string()
    };
    let why = refused(&["Bash(echo:*)"], &line("echo a > b"));
    assert!(why.ends_with("its allowed-tools are Bash(echo:*) (none allows writing b)"), "{why}");
    let only_docs = &["Bash(echo:*)", "Write(docs/**)"];
    let unknown = ", of which is not known which file it is";
    let goes_up = ", which goes up by `..` from a folder that may be a link: name the file without it";
    for (redirected, target, reason) in [
        // The one that is in the way, and not the one before it.
        ("> docs/b 2> src/b", "src/b", ""),
        ("> docs/b 2> ../b", "../b", unknown),
        ("> docs/b 2> /x/docs/b", "/x/docs/b", unknown),
        ("> docs/b 2> docs/in/../b", "docs/in/../b", goes_up),
        ("> $B", "a file that is known only once the line runs", ""),
    ] {
        let why = refused(only_docs, &line(&format!("echo a {redirected}")));
        assert!(why.ends_with(&format!("(none allows writing {target}{reason})")), "{why}");
    }
    let long = "x".repeat(16_000);
    let why = refused(&["Read(\u{1b}[2J\nfaked: allowed)", &long], &line("ls"));
    let (_, told) = why.split_once("its allowed-tools are ").unwrap();
    assert!(told.starts_with("Read(\\u{1b}[2J\\nfaked: allowed), xxx") && told.ends_with("x…"), "{why}");
    assert_eq!(told.chars().count(), 201);
}

/// The skill and its files are read whatever it allows.
#[test]
fn reading_is_left_as_it_is() {
    for entries in [&[][..], &["Bash(ls)"], &["Read"], &["what is this"]] {
        assert!(allows(entries, &file(PathAccess::Read, "a")), "{entries:?}");
        assert!(allows(entries, &call("plan", &[])), "{entries:?}");
        assert!(!allows(entries, &file(PathAccess::Write, "a")), "{entries:?}");
        assert!(!allows(entries, &call("message", &[Effect::Message])), "{entries:?}");
    }
}
